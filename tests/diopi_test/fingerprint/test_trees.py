"""The tree of a sum is derived from the sizes of its subtrees, and the order is named."""

import random
from collections.abc import Sequence

import pytest

from diopi_test.fingerprint import orders
from diopi_test.fingerprint.trees import NoTreeError, Sizes, Tree, depth, leaves, normalize, reveal


def sizes_in(tree: Tree) -> Sizes:
    """Return a function that returns the sizes of the smallest subtrees of a tree that contain two terms."""

    def size(node: Tree, first: int, partner: int) -> int:
        if not isinstance(node, int):
            for child in node:
                if {first, partner} <= set(leaves(child)):
                    return size(child, first, partner)
        return len(leaves(node))

    return lambda first, partners: [size(tree, first, partner) for partner in partners]


def random_tree(terms: Sequence[int], chance: random.Random, max_children: int) -> Tree:
    """Return a random tree of additions of these terms."""
    if len(terms) == 1:
        return terms[0]
    cuts = sorted(chance.sample(range(1, len(terms)), min(chance.randint(1, max_children - 1), len(terms) - 1)))
    parts = [terms[start:end] for start, end in zip([0, *cuts], [*cuts, len(terms)], strict=True)]
    return tuple(random_tree(part, chance, max_children) for part in parts)


@pytest.mark.parametrize("max_children", [2, 5])
@pytest.mark.parametrize("seed", range(20))
def test_every_tree_is_revealed(seed: int, max_children: int) -> None:
    chance = random.Random(seed)
    terms = chance.sample(range(24), 24)
    tree = random_tree(terms, chance, max_children)
    assert normalize(reveal(sizes_in(tree), 24)) == normalize(tree)


def test_a_sum_of_one_term_has_no_additions() -> None:
    assert reveal(lambda first, partners: [], 1) == 0


@pytest.mark.parametrize(
    "sizes",
    [
        lambda first, partners: [2 for _ in partners],  # everybody is everybody's neighbor
        lambda first, partners: [9 for _ in partners],  # more terms than there are
        lambda first, partners: [0 for _ in partners],
        lambda first, partners: [partner + 2 for partner in partners],  # a gap after the first
        lambda first, partners: [3 if first == 0 else 2 for _ in partners],
    ],
)
def test_sizes_that_form_no_tree_are_rejected(sizes: Sizes) -> None:
    with pytest.raises(NoTreeError):
        reveal(sizes, 5)


LANES = tuple(((lane, lane + 4), lane + 8) for lane in range(4))
NEIGHBORS = [(((start, start + 1), start + 4), start + 5) for start in (0, 2)]

TREES: list[tuple[Tree, str]] = [
    ((((0, 1), 2), 3), "sequential"),
    ((0, (1, (2, 3))), "backwards"),
    (((0, 1), (2, 3)), "pairwise"),
    (((0, 2), (1, 3)), "folded in halves"),
    ((0, 1, 2, 3), "all at once"),
    ((((((1, 0), 3), 2), 5), 4), "sequential in swapped pairs"),
    (((0, 1, 2), 3, 4, 5), "sequential, 3 at once"),
    ((((LANES[0], LANES[1]), LANES[2]), LANES[3]), "sequential in 4 interleaved sums, then sequential"),
    (((LANES[0], LANES[2]), (LANES[1], LANES[3])), "sequential in 4 interleaved sums, then folded in halves"),
    ((((0, 1), 2), ((3, 4), 5)), "sequential in 2 blocks of 3, then sequential"),
    ((NEIGHBORS[0], NEIGHBORS[1]), "sequential in 2 interleaved sums of 2 neighbors, then sequential"),
]


@pytest.mark.parametrize(("tree", "words"), TREES, ids=[words for _, words in TREES])
def test_orders_have_names(tree: Tree, words: str) -> None:
    assert orders.describe(tree) == words


def test_the_order_of_operands_makes_no_difference() -> None:
    assert orders.describe((3, (2, (1, 0)))) == "sequential"


def test_orders_without_a_name_have_distinct_descriptions() -> None:
    first, partner = orders.describe((((0, 3), 1), (2, 4))), orders.describe((((0, 4), 1), (2, 3)))
    assert first.startswith("irregular, at most 3 additions a term (tree ")
    assert first != partner


def test_depth_counts_additions() -> None:
    assert [depth(tree) for tree in (0, (0, 1, 2), ((0, 1), 2))] == [0, 1, 2]

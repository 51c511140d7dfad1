"""Find the order in which an operator adds the terms of a sum, as a tree of additions.

Method: P. Xie, Y. Gao, Y. Wang, J. Xue, "Revealing Floating-Point Accumulation Orders in Software/Hardware
Implementations", USENIX ATC 2025 (arXiv:2411.00442). All terms are 1, except that term i is a huge number M and term j
is −M. Rounding loses every 1 that is added to M or −M, but no 1 that is added after M and −M have cancelled. The sum is
therefore the number of terms outside the smallest subtree that contains both i and j. The sizes of these subtrees
determine the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

Tree = int | tuple["Tree", ...]
"""A tree of additions. A leaf is the number of a term. A node adds its subtrees, usually two, and rounds only once."""

Sizes = Callable[[int, Sequence[int]], Sequence[int]]
"""A function that returns the sizes of smallest subtrees.

It receives a term i and several terms j. For each j, it returns the number of terms in the smallest subtree that
contains both i and j.
"""


class NoTreeError(Exception):
    """The sizes of subtrees contradict each other, so that no tree has them."""


def reveal(sizes: Sizes, terms: int) -> Tree:
    """Find the tree of additions of a sum.

    Args:
        sizes: returns the sizes of smallest subtrees.
        terms: the number of terms of the sum.

    Returns:
        The tree over the terms 0 to `terms` − 1.

    Raises:
        NoTreeError: The sizes do not form a tree.
    """
    tree, size = _subtree(sizes, range(terms))
    if size != terms:
        raise NoTreeError(f"the smallest subtree that holds all {terms} terms seems to have {size}")
    return tree


def _subtree(sizes: Sizes, terms: Sequence[int]) -> tuple[Tree, int]:
    """Find the subtree over some of the terms.

    Args:
        sizes: returns the sizes of smallest subtrees.
        terms: the numbers of the terms, in ascending order.

    Returns:
        The subtree over `terms`, and the number of terms below its root. The root may add further terms in the same
        step. In that case, this number is larger than the number of `terms`.

    Raises:
        NoTreeError: The sizes do not form a tree.
    """
    first, *later_terms = terms
    tree: Tree = first
    covered = size = 1
    for size_with, joining in _group_by_size(later_terms, sizes(first, later_terms) if later_terms else ()):
        if size > covered or size_with < covered + len(joining):
            raise NoTreeError(f"the terms added to term {first} are no subtrees")
        joined, joined_size = _subtree(sizes, joining)
        if joined_size == size_with and isinstance(joined, tuple):
            tree = (tree, *joined)  # the node adds all of them in one step
        elif joined_size == len(joining):
            tree = (tree, joined)
        else:
            raise NoTreeError(f"the {len(joining)} terms from term {joining[0]} on are no subtree")
        covered, size = covered + len(joining), size_with
    return tree, size


def _group_by_size(terms: Sequence[int], sizes: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield each distinct size, the smallest first, with the terms of this size."""
    for size in sorted(set(sizes)):
        yield size, [term for term, size_of_term in zip(terms, sizes, strict=True) if size_of_term == size]


def leaves(tree: Tree) -> list[int]:
    """Return the numbers of a tree's terms, from left to right."""
    return [tree] if isinstance(tree, int) else [leaf for child in tree for leaf in leaves(child)]


def normalize(tree: Tree) -> Tree:
    """Return the tree with the children of each node sorted by their smallest terms; addition is commutative."""
    if isinstance(tree, int):
        return tree
    return tuple(sorted((normalize(child) for child in tree), key=lambda child: min(leaves(child))))


def depth(tree: Tree) -> int:
    """Return the number of additions on the longest path from a term to the sum."""
    return 0 if isinstance(tree, int) else 1 + max(depth(child) for child in tree)


def renumber(tree: Tree, number: Callable[[int], int]) -> Tree:
    """Return the tree in which every term n is replaced by the term `number(n)`."""
    return number(tree) if isinstance(tree, int) else tuple(renumber(child, number) for child in tree)

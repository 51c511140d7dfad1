"""Describe an order of summation in words, for instance "pairwise".

An order of summation is a tree of additions (see `trees`): a leaf is the number of a term, a node adds its subtrees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce

from diopi_test.fingerprint.trees import Tree, depth, leaves, normalize, renumber


def sequential(terms: Sequence[Tree]) -> Tree:
    """Return the tree that adds one term after the other, from the first."""
    return reduce(lambda sum_, term: (sum_, term), terms)


def backwards(terms: Sequence[Tree]) -> Tree:
    """Return the tree that adds one term after the other, from the last."""
    return sequential(terms[::-1])


def pairwise(terms: Sequence[Tree]) -> Tree:
    """Return the tree of pairwise summation: the sum of the first half plus the sum of the second half."""
    half = len(terms) // 2
    return (pairwise(terms[:half]), pairwise(terms[half:])) if half else terms[0]


def folded_in_halves(terms: Sequence[Tree]) -> Tree:
    """Return the tree that adds the second half of the terms to the first half, element by element.

    The partial sums are then added in the same way, half to half, until one sum remains.
    """
    return (folded_in_halves(terms[::2]), folded_in_halves(terms[1::2])) if len(terms) > 1 else terms[0]


def in_swapped_pairs(terms: Sequence[Tree]) -> Tree:
    """Return the tree that adds one term after the other, with the terms of each pair swapped, such as 1, 0, 3, 2."""
    return sequential([terms[min(number ^ 1, len(terms) - 1)] for number in range(len(terms))])


def at_once(terms: Sequence[Tree]) -> Tree:
    """Return the tree that adds all terms in one step, without rounding in between."""
    return tuple(terms)


_ORDERS: dict[str, Callable[[Sequence[Tree]], Tree]] = {
    "sequential": sequential,
    "backwards": backwards,
    "pairwise": pairwise,
    "folded in halves": folded_in_halves,
    "all at once": at_once,
    "sequential in swapped pairs": in_swapped_pairs,
}
"""The orders that have a name; each function returns the tree for a list of terms."""


def _stepwise(terms: Sequence[Tree], step: int) -> Tree:
    """Return the tree that adds `step` terms at once to the sum of the terms before them."""
    return reduce(
        lambda sum_, start: (sum_, *terms[start : start + step]),
        range(step, len(terms), step),
        tuple(terms[:step]),
    )


def describe(tree: Tree) -> str:
    """Return the order of a tree in words, the innermost sums first.

    Example: "sequential in 8 interleaved sums, then pairwise". If the order has no name, the text contains the depth of
    the tree and a digest that identifies it.
    """
    return _describe_normalized(normalize(tree)) or _describe_irregular(normalize(tree))


def _describe_irregular(tree: Tree) -> str:
    """Return the depth of a tree and a digest that identifies it."""
    digest = hashlib.sha256(repr(tree).encode()).hexdigest()[:8]
    return f"irregular, at most {depth(tree)} additions a term (tree {digest})"


@cache
def _describe_normalized(tree: Tree) -> str | None:
    """Return the order of a normalized tree over the terms 0, 1, … in words; None if it has no name.

    An order may have a name itself, or consist of partial sums with a named order that are added in a named order. The
    shortest description is returned.
    """
    if isinstance(tree, int):
        return "alone"  # a single term, which nothing is added to
    named_order = _find_named_order(tree)
    if named_order is not None:
        return named_order
    return min(_composites(tree), key=len, default=None)


def _find_named_order(tree: Tree) -> str | None:
    """Return the name of the order of a normalized tree if it is one of `_ORDERS` or of `_stepwise`; None otherwise."""
    terms = range(len(leaves(tree)))
    for name, order in _ORDERS.items():
        if normalize(order(terms)) == tree:
            return name
    for step in _divisors(len(terms)):
        if normalize(_stepwise(terms, step)) == tree:
            return f"sequential, {step} at once"
    return None


def _composites(tree: Tree) -> Iterator[str]:
    """Yield each description of a tree as partial sums with equal orders that are added in a named order."""
    terms = len(leaves(tree))
    for parts in _divisors(terms):
        for run in (run for run in range(1, terms // parts + 1) if terms % (parts * run) == 0):
            split = _split(tree, parts, run)
            if split is not None:
                inner, outer = _describe_normalized(split[0]), _find_named_order(split[1])
                if inner is not None and outer is not None:
                    yield f"{inner} in {_describe_partition(terms, parts, run)}, then {outer}"


def _describe_partition(terms: int, parts: int, run: int) -> str:
    """Return in words how terms are distributed to partial sums.

    Args:
        terms: the number of terms.
        parts: the number of partial sums.
        run: the number of neighboring terms that each partial sum takes in turn.
    """
    if parts * run == terms:
        return f"{parts} blocks of {run}"
    return f"{parts} interleaved sums" + (f" of {run} neighbors" if run > 1 else "")


def _divisors(number: int) -> list[int]:
    """Return the divisors of a number, without 1 and the number itself."""
    return [divisor for divisor in range(2, number // 2 + 1) if number % divisor == 0]


def _split(tree: Tree, parts: int, run: int) -> tuple[Tree, Tree] | None:
    """Split a tree into the tree of each partial sum, which must be the same, and the tree that adds the partial sums.

    Args:
        tree: a normalized tree over the terms 0, 1, …
        parts: the number of partial sums.
        run: the number of neighboring terms that each partial sum takes in turn: terms 0 to `run` − 1 belong to the
            first one, as many to the second one, and so on cyclically.

    Returns:
        The tree of a partial sum and the tree of their addition; None if the tree is not composed in this way.
    """
    subtrees: dict[int, Tree] = {}

    def place(term: int) -> int:
        """Return the number of a term within its partial sum."""
        return term // (parts * run) * run + term % run

    def contracted(node: Tree) -> Tree:
        """Return the node with each subtree that is a complete partial sum replaced by the number of the sum."""
        numbers = {leaf // run % parts for leaf in leaves(node)}
        if len(numbers) == 1 and numbers.isdisjoint(subtrees):
            number = numbers.pop()
            subtrees[number] = normalize(renumber(node, place))
            return number
        return node if isinstance(node, int) else tuple(contracted(child) for child in node)

    outer = contracted(tree)
    if len(leaves(outer)) != parts or len(set(subtrees.values())) != 1:
        return None
    return subtrees[0], normalize(outer)

"""Sorting, selection of the largest or smallest, and distinct values: equal elements in any order."""

from __future__ import annotations

import numpy as np

from diopi_test.oracle.validators import Answer, Array, Problems, validates
from diopi_test.oracle.validators.kinds import (
    all_where,
    distinct_positions,
    equal,
    in_order,
    same,
    same_elements,
    taken_from,
)


def _selection(answer: Answer, positions: Array, name: str, axis: int) -> tuple[list[str], Array]:
    """What is wrong with the positions along `axis` of a selection; the elements they point at, none if they can't."""
    input = np.atleast_1d(answer.arguments["input"])
    positions = np.atleast_1d(positions)
    problems = list(distinct_positions(name, positions, input.shape[axis], axis))
    return problems, positions if problems else np.take_along_axis(input, positions, axis)


@validates("diopiSort")
def sort(answer: Answer) -> Problems:
    axis, values = answer.arguments["dim"], np.atleast_1d(answer.results["values"])
    problems, elements = _selection(answer, answer.results["indices"], "indices", axis)
    yield from problems
    if not problems:
        yield from all_where("values", same(values, elements), values, "the elements that indices point at")
        yield from in_order("values", values, axis, answer.arguments["descending"])


@validates("diopiArgsort")
def argsort(answer: Answer) -> Problems:
    dim = answer.arguments["dim"]
    axis = -1 if dim is None else dim
    problems, elements = _selection(answer, answer.result, "out", axis)
    yield from problems or in_order("the elements out points at", elements, axis, answer.arguments["descending"])


@validates("diopiTopk")
def topk(answer: Answer) -> Problems:
    axis, values = answer.arguments["dim"], np.atleast_1d(answer.results["values"])
    problems, elements = _selection(answer, answer.results["indices"], "indices", axis)
    yield from problems
    if not problems:
        yield from all_where("values", same(values, elements), values, "the elements that indices point at")
        yield from same_elements("values", values, np.atleast_1d(answer.expected["values"]), axis)
        if answer.arguments["sorted"]:
            yield from in_order("values", values, axis, answer.arguments["largest"])


@validates("diopiUnique")
def unique(answer: Answer) -> Problems:
    """The distinct values are known but for the sign of zero; they must be elements, or slices, that input has."""
    input, dim, out = answer.arguments["input"], answer.arguments["dim"], answer.results["out"]
    yield from all_where("out", equal(out, answer.expected["out"]), out, "the distinct values in order")
    if dim is None:
        yield from taken_from("out", out, input.reshape(-1))
    else:
        yield from taken_from("out", np.moveaxis(out, dim, 0), np.moveaxis(input, dim, 0))

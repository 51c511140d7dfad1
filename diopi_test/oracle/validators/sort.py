"""Validators of sorting, of the selection of the largest or smallest elements, and of distinct values.

Equal elements may be in any order, so that their positions are not determined.
"""

from __future__ import annotations

import numpy as np

from diopi_test.oracle.validators import Array, CompletedCall, Problems, validates
from diopi_test.oracle.validators.properties import (
    check_distinct_positions,
    check_elements,
    check_order,
    check_rows_come_from,
    check_same_elements,
    is_equal,
    is_identical,
)


def _check_and_select(call: CompletedCall, positions: Array, name: str, axis: int) -> tuple[list[str], Array]:
    """Check positions along an axis of the input, and select the elements of the input at these positions.

    Args:
        call: The call, with the argument `input`.
        positions: The positions, with the shape of the input except along the axis.
        name: The name of the result that consists of the positions.
        axis: The axis.

    Returns:
        The problems of the positions, and the selected elements; the positions themselves if there are problems.
    """
    input = np.atleast_1d(call.arguments["input"])
    positions = np.atleast_1d(positions)
    problems = list(check_distinct_positions(name, positions, input.shape[axis], axis))
    return problems, positions if problems else np.take_along_axis(input, positions, axis)


@validates("diopiSort")
def sort(call: CompletedCall) -> Problems:
    """Check that the values are in order and are the elements of the input at distinct positions."""
    axis, values = call.arguments["dim"], np.atleast_1d(call.results["values"])
    problems, elements = _check_and_select(call, call.results["indices"], "indices", axis)
    yield from problems
    if not problems:
        yield from check_elements(
            "values", is_identical(values, elements), values, "the elements of input at the positions in indices"
        )
        yield from check_order("values", values, axis, call.arguments["descending"])


@validates("diopiArgsort")
def argsort(call: CompletedCall) -> Problems:
    """Check that the positions are distinct and that the elements of the input there are in order."""
    dim = call.arguments["dim"]
    axis = -1 if dim is None else dim
    problems, elements = _check_and_select(call, call.result, "out", axis)
    yield from problems or check_order(
        "the elements of input at the positions in out", elements, axis, call.arguments["descending"]
    )


@validates("diopiTopk")
def topk(call: CompletedCall) -> Problems:
    """Check that the k values are the largest or smallest elements, at distinct positions, and sorted if requested."""
    axis, values = call.arguments["dim"], np.atleast_1d(call.results["values"])
    problems, elements = _check_and_select(call, call.results["indices"], "indices", axis)
    yield from problems
    if not problems:
        yield from check_elements(
            "values", is_identical(values, elements), values, "the elements of input at the positions in indices"
        )
        yield from check_same_elements("values", values, np.atleast_1d(call.expected["values"]), axis)
        if call.arguments["sorted"]:
            yield from check_order("values", values, axis, call.arguments["largest"])


@validates("diopiUnique")
def unique(call: CompletedCall) -> Problems:
    """Check that `out` has the distinct elements of the input, or the distinct slices along `dim`, in ascending order.

    Zeros of both signs are equal, and either of them may represent them in the result if the input contains it.
    """
    input, dim, out = call.arguments["input"], call.arguments["dim"], call.results["out"]
    yield from check_elements("out", is_equal(out, call.expected["out"]), out, "the distinct values in order")
    if dim is None:
        yield from check_rows_come_from("out", out, input.reshape(-1))
    else:
        yield from check_rows_come_from("out", np.moveaxis(out, dim, 0), np.moveaxis(input, dim, 0))

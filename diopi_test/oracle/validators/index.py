"""Validators of functions that write values to indexed elements.

If several values have the same destination, any of them may remain.
To find the destinations, the validators apply the index to an array that contains the number of each element.
"""

from __future__ import annotations

import numpy as np

from diopi_test.oracle.validators import Array, CompletedCall, Problems, validates
from diopi_test.oracle.validators.properties import check_written_values


def _element_numbers(array: Array) -> Array:
    """Return the row-major number of every element; a scalar counts as a vector of one element."""
    return np.arange(array.size).reshape(array.shape or (1,))


@validates("diopiIndexPut")
def index_put(call: CompletedCall) -> Problems:
    """Check that each indexed element has one of the values written to it, and all other elements are unchanged."""
    arguments = call.arguments
    places = _element_numbers(arguments["input"])[
        tuple(slice(None) if index is None else index for index in arguments["indices"])
    ]
    values = np.broadcast_to(arguments["values"], places.shape)
    yield from check_written_values("the result", call.result, arguments["input"], places, values)


@validates("diopiScatter")
def scatter(call: CompletedCall) -> Problems:
    """Check that each element has one of the values scattered to it, or is unchanged if there is none."""
    arguments = call.arguments
    index, source = np.atleast_1d(arguments["index"]), np.atleast_1d(arguments["src"])
    if index.size:
        axis = arguments["dim"] % index.ndim
        covered = tuple(slice(length) for length in index.shape)
        lines = _element_numbers(arguments["input"])[(*covered[:axis], slice(None), *covered[axis + 1 :])]
        places, values = np.take_along_axis(lines, index, axis), source[covered]
    else:
        places, values = np.zeros(0, int), source.reshape(-1)[:0]
    yield from check_written_values("the result", call.result, arguments["input"], places, values)

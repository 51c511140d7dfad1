"""Writing by index: of several values for one place, any may stay.

Where values go is found by reading an array of element numbers through the same index.
"""

from __future__ import annotations

import numpy as np

from diopi_test.oracle.validators import Answer, Array, Problems, validates
from diopi_test.oracle.validators.kinds import one_of_those_written


def _numbered(array: Array) -> Array:
    """The row-major number of every element; of a number, which counts as a vector of one, too."""
    return np.arange(array.size).reshape(array.shape or (1,))


@validates("diopiIndexPut")
def index_put(answer: Answer) -> Problems:
    given = answer.arguments
    places = _numbered(given["input"])[tuple(slice(None) if index is None else index for index in given["indices"])]
    values = np.broadcast_to(given["values"], places.shape)
    yield from one_of_those_written("the result", answer.result, given["input"], places, values)


@validates("diopiScatter")
def scatter(answer: Answer) -> Problems:
    """Along `dim` the index says the place; along the other axes, of which it may cover a part, its own position."""
    given = answer.arguments
    index, source = np.atleast_1d(given["index"]), np.atleast_1d(given["src"])
    if index.size:
        axis = given["dim"] % index.ndim
        covered = tuple(slice(length) for length in index.shape)
        lines = _numbered(given["input"])[(*covered[:axis], slice(None), *covered[axis + 1 :])]
        places, values = np.take_along_axis(lines, index, axis), source[covered]
    else:
        places, values = np.zeros(0, int), source.reshape(-1)[:0]
    yield from one_of_those_written("the result", answer.result, given["input"], places, values)

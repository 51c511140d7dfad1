"""Special paths of functions that have certain parameters: calls for which libraries have kernels of their own.

A function has these paths if it has the parameters that a predicate reads. `diopi_test.quality.mutation.geometry` makes
a mutant of each path and defines the paths of products, convolutions and softmax.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.prototype import Prototype
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.quality.mutation.mutant import Array

Predicate = Callable[[BaselineCase], bool]
"""A function that returns whether the call of a case takes a path."""


def call_paths(prototype: Prototype) -> Mapping[str, Predicate]:
    """Return the special paths that follow from the names of a function's parameters.

    Args:
        prototype: the declaration of the function.

    Returns:
        By description of the path, a predicate that tells whether the call of a case takes the path.
    """
    names = {parameter.name for parameter in prototype.arguments}
    return {path: takes for needed, paths in PATHS.items() if needed in names for path, takes in paths.items()}


def _first_array(case: BaselineCase) -> Array:
    """Return the elements of the first tensor of a case; an empty array if it has no tensor."""
    return next((tensor.values for value in case.arguments.values() for tensor in tensors_in(value)), np.zeros(0))


def _axes(case: BaselineCase, name: str) -> list[int]:
    """Return the axes of the first tensor that an attribute names, as nonnegative numbers; none if it is NULL."""
    value = case.arguments[name]
    axes = value if isinstance(value, list | tuple) else [] if value is None else [value]
    return [axis % max(_first_array(case).ndim, 1) for axis in axes]


def _names_outer_axes(case: BaselineCase) -> bool:
    """Return whether `dim` names the first and the last axis of a tensor, but not all axes."""
    rank, axes = _first_array(case).ndim, set(_axes(case, "dim"))
    return {0, rank - 1} <= axes and len(axes) < rank


def _has_many_pairs(case: BaselineCase) -> bool:
    """Return whether `dim` names only the last axis of a tensor, which consists of more than 1,024 pairs."""
    array = _first_array(case)
    is_last = _axes(case, "dim") == [array.ndim - 1]
    return is_last and array.shape[-1] == 2 and array.size > 2 * 1024


def _has_incomplete_tiles(case: BaselineCase) -> bool:
    """Return whether the call moves data of a matrix with more than 64 rows and columns, no multiples of 32."""
    array = _first_array(case)
    return array.ndim == 2 and all(size > 64 and size % 32 for size in array.shape)


def _shifts_an_axis_twice(case: BaselineCase) -> bool:
    """Return whether all shifts, of which there are several, concern one axis."""
    axes = _axes(case, "dims")
    return len(axes) > 1 and len(set(axes)) == 1


def _has_wide_groups(case: BaselineCase) -> bool:
    """Return whether groups, of which there are several, have more than 16 channels, not a multiple of 16."""
    groups, shape = case.arguments["num_groups"], _first_array(case).shape
    channels = shape[1] // groups if len(shape) > 1 and groups > 1 else 0
    return channels > 16 and channels % 16 != 0


def _repeats_an_index(case: BaselineCase) -> bool:
    """Return whether an index occurs more than 255 times."""
    arrays = [tensor.values for tensor in tensors_in(case.arguments["indices"])]
    return any(array.size > 255 and bool(np.unique(array, return_counts=True)[1].max() > 255) for array in arrays)


def _has_far_coordinates(case: BaselineCase) -> bool:
    """Return whether a half-precision result has more than 256 elements along its last axis."""
    results = [entry for value in case.expected.values() for entry in expected_arrays(value)]
    return any(entry.dtype in half and entry.values.shape[-1] > 256 for entry in results if entry.values.ndim)


def _averages_a_plane(case: BaselineCase) -> bool:
    """Return whether each element of the result represents more than 1,024 elements of the input."""
    results = [entry.values.size for value in case.expected.values() for entry in expected_arrays(value)]
    return max(results, default=0) > 0 and _first_array(case).size > 1024 * max(results)


def _selects_from_many_rows_with_nan(case: BaselineCase) -> bool:
    """Return whether the call selects from more than 512 rows, some of which contain NaN."""
    array = _first_array(case)
    return array.ndim > 1 and array.dtype.kind == "f" and array.shape[0] > 512 and bool(np.isnan(array).any())


PATHS: Mapping[str, Mapping[str, Predicate]] = {
    "dim": {
        "dim that names the first and the last of more axes": _names_outer_axes,
        "more than 1,024 pairs along dim": _has_many_pairs,
    },
    "dim0": {"incomplete tiles of 32 × 32": _has_incomplete_tiles},
    "dims": {"incomplete tiles of 32 × 32": _has_incomplete_tiles},
    "shifts": {"several shifts of one axis": _shifts_an_axis_twice},
    "num_groups": {"groups of more than 16 channels": _has_wide_groups},
    "indices": {"an index that occurs more than 255 times": _repeats_an_index},
    "align_corners": {"half precision and coordinates above 256": _has_far_coordinates},
    "output_size": {"more than 1,024 elements of the input per result": _averages_a_plane},
    "k": {"NaN in more than 512 rows": _selects_from_many_rows_with_nan},
}
"""By the name of a parameter, the special paths of the functions that have it."""

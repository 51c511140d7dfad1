"""Mutants that depend on the size, which small cases can't kill: late elements, tiles, rows, offsets, and long sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.layouts import layout_named
from diopi_test.oracle.records import BaselineCase, BaselineTensor, expected_arrays, tensors_in
from diopi_test.quality.mutation.arguments import recompute_with
from diopi_test.quality.mutation.mutant import Array, Effect, Mutant, SimulatedCall
from diopi_test.quality.mutation.randomness import is_random
from diopi_test.quality.mutation.results import change_last_element, values_before_call
from diopi_test.quality.mutation.summation import add_first_block_only, round_block_sums_to

TILE = 1024
"""The number of elements of a tile; the last tile is incomplete."""

ROWS = 65_535
"""The maximum number of blocks in some grids."""

COLUMNS = 65_536
"""The number of columns of a row that some kernels handle."""

MATRIX_ROWS = 8_192
"""The number of rows, along all axes but the last one, after which some kernels change their algorithm."""

MANY_SELECTED = 2_048
"""The number of selected elements above which some kernels of top-k need another algorithm."""

FindIndices = Callable[[tuple[int, ...]], Array | None]
"""A function that returns the row-major indices of the wrong elements of a result with this shape; None if a result of
this shape has none."""


def size_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants of a function that depend on the size.

    Args:
        function: the name of the function.

    Yields:
        The mutants.
    """
    for name, places in OMITTED_PARTS.items():
        yield Mutant(name=f"{name} not written", corrupt=_leave_unwritten(places))
    if is_random(function):
        return  # any element of a random result may differ
    for name, places in OMITTED_PARTS.items():
        yield Mutant(name=f"{name} zero", corrupt=_replace_elements(places, np.zeros_like))
    for period, last in ((2000, -1), (4096, -1), (65_536, 0)):
        named = f"k · {period}" + (" − 1" if last else "")
        yield Mutant(
            name=f"one element at {named} wrong",
            corrupt=_change_elements(partial(_last_periodic_element, period, last)),
        )
    for name, offsets in OFFSETS.items():
        yield Mutant(name=f"offsets of the result stored in {name}", corrupt=_write_at_offsets(offsets))
        yield Mutant(
            name=f"offsets of inputs stored in {name}", corrupt=recompute_with(partial(_read_at_offsets, offsets))
        )
    yield from many_element_mutants(function)
    yield Mutant(
        name=f"last element wrong if more than {MANY_SELECTED:,} elements are selected",
        corrupt=_corrupt_if_many_selected,
    )
    yield Mutant(
        name="only the first block of sums added",
        corrupt=recompute_with(_change_floating_tensors(add_first_block_only)),
    )
    for dtype in half:
        yield Mutant(
            name=f"long sums accumulated in {dtype.name}", corrupt=recompute_with(partial(_accumulate_long_sums, dtype))
        )


def many_element_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants that a thousand elements kill, which some small cases have.

    Args:
        function: the name of the function.

    Yields:
        The mutants.
    """
    if not is_random(function):
        yield Mutant(
            name="NaNs in large tensors replaced by 0", corrupt=recompute_with(_change_floating_tensors(_replace_nans))
        )


def _corrupt_if_many_selected(call: SimulatedCall) -> Effect:
    """Change the last element of each result if the attribute `k`, a number of elements, exceeds `MANY_SELECTED`.

    Returns:
        `not_applicable` for a smaller or missing `k`, else whether a result changed.
    """
    k = call.case.arguments.get("k")
    return change_last_element(call) if isinstance(k, int) and k > MANY_SELECTED else Effect.not_applicable


# Elements of a result


def _last_periodic_element(period: int, last: int, shape: tuple[int, ...]) -> Array | None:
    """Return the index of the last element at k · `period` + `last`, as an array of one index.

    `last` is 0, or −1 for the element before each multiple. Return None if there is no such index above 0.
    """
    size = int(np.prod(shape))
    place = (size - 1 - last) // period * period + last
    return None if place <= 0 else np.array([place])


def _last_tile_indices(shape: tuple[int, ...]) -> Array | None:
    """Return the indices into the flattened array of the last, incomplete tile; None if there is no such tile."""
    size = int(np.prod(shape))
    start = size // TILE * TILE
    return np.arange(start, size) if TILE < size != start else None


def _late_row_indices(shape: tuple[int, ...]) -> Array | None:
    """Return the indices into the flattened array of the elements from index `ROWS` of the first axis on.

    Return None if the first axis is not longer than `ROWS`.
    """
    if not shape or shape[0] <= ROWS:
        return None
    size = int(np.prod(shape))
    return np.arange(ROWS * (size // shape[0]), size)


def _late_column_indices(shape: tuple[int, ...]) -> Array | None:
    """Return the indices into the flattened array of the elements from index `COLUMNS` of the last axis on.

    Return None if the last axis is not longer than `COLUMNS`.
    """
    if not shape or shape[-1] <= COLUMNS:
        return None
    indices = np.arange(int(np.prod(shape)))
    return indices[indices % shape[-1] >= COLUMNS]


def _late_matrix_row_indices(shape: tuple[int, ...]) -> Array | None:
    """Return the indices of the elements in matrix rows from `MATRIX_ROWS` on; return None if there are none.

    All axes but the last one count the matrix rows: a tensor of shape (3, 4, 5) has 12.
    """
    if len(shape) < 2 or int(np.prod(shape[:-1])) <= MATRIX_ROWS:
        return None
    return np.arange(MATRIX_ROWS * shape[-1], int(np.prod(shape)))


OMITTED_PARTS: Mapping[str, FindIndices] = {
    "last partial tile": _last_tile_indices,
    f"rows from {ROWS} on": _late_row_indices,
    f"columns from {COLUMNS} on": _late_column_indices,
    f"matrix rows from {MATRIX_ROWS} on": _late_matrix_row_indices,
}
"""Parts of a result that a faulty kernel does not compute, by name."""


def _change_results(
    change: Callable[[SimulatedCall, str, int, Array], Array | None],
) -> Callable[[SimulatedCall], Effect]:
    """Return a corruption that changes every result array for which `change` does not return None.

    Args:
        change: returns a changed array, with any shape of the same size. Its parameters are the call, the name of the
            result, the number of the array in the result, and the array.

    Returns:
        The corruption.
    """

    def corrupt(call: SimulatedCall) -> Effect:
        """Replace the result arrays by changed ones and return the effect."""
        changed_results = {name: list(arrays) for name, arrays in call.results.items()}
        for name, arrays in call.results.items():
            for number, array in enumerate(arrays):
                if (changed := change(call, name, number, array)) is not None:
                    changed_results[name][number] = changed.reshape(array.shape)
        return call.replace_results(changed_results)

    return corrupt


def _replace_elements(find_indices: FindIndices, values: Callable[[Array], Array]) -> Callable[[SimulatedCall], Effect]:
    """Return a corruption that replaces elements of each result.

    Args:
        find_indices: returns the indices of the elements.
        values: returns the new values from the correct ones.

    Returns:
        The corruption.
    """

    def change(call: SimulatedCall, name: str, number: int, array: Array) -> Array | None:
        """Return the array with the selected elements replaced; None if no element of this shape is selected."""
        if (places := find_indices(array.shape)) is None:
            return None
        flat = array.flatten()
        with np.errstate(all="ignore"):
            flat[places] = values(flat[places])
        return flat

    return _change_results(change)


def _leave_unwritten(find_indices: FindIndices) -> Callable[[SimulatedCall], Effect]:
    """Return a corruption that leaves elements as they were before the call: poison, or the old state.

    Args:
        find_indices: returns the indices of the elements for a shape, or None if the mutant does not apply.
    """

    def change(call: SimulatedCall, name: str, number: int, array: Array) -> Array | None:
        """Return the array with the selected elements as they were before the call."""
        if (places := find_indices(array.shape)) is None:
            return None
        flat, original = array.flatten(), values_before_call(call, name, call.results[name])[number]
        flat[places] = original.reshape(-1)[places]
        return flat

    return _change_results(change)


def _change_elements(find_indices: FindIndices) -> Callable[[SimulatedCall], Effect]:
    """Return a corruption that changes the elements at the indices that `find_indices` returns.

    A number x becomes 9/8 x + 1, and an infinity or NaN becomes 1. The lowest bit of an integer is flipped, and a truth
    value is inverted.
    """

    def change_values(values: Array) -> Array:
        """Return the changed values."""
        if values.dtype == bool:
            return ~values
        if values.dtype.kind in "iu":
            return np.asarray(values ^ 1)
        increased = values * values.dtype.type(1.125) + values.dtype.type(1)
        return np.where(np.isfinite(values), increased, np.ones_like(values))

    return _replace_elements(find_indices, change_values)


# Offsets

Offsets = Callable[[Array], Array]
"""A function that returns offsets after they were stored in a type that can't represent all of them."""

OFFSETS: Mapping[str, Offsets] = {
    "int16": lambda offsets: offsets & 0x7FFF,  # not negative, because a negative offset would crash at once
    "uint16": lambda offsets: offsets & 0xFFFF,
    "float32": lambda offsets: offsets.astype(np.float32).astype(np.int64),
    "20 bits": lambda offsets: offsets & 0xFFFFF,
}
"""The functions that return the offsets as a kernel reads them from a type, by the name of the type."""


def _write_at_offsets(offsets: Offsets) -> Callable[[SimulatedCall], Effect]:
    """Return a corruption that writes elements at mutated offsets.

    Of several elements written to one place, the last one stays there.
    """

    def change(call: SimulatedCall, name: str, number: int, array: Array) -> Array | None:
        """Return the array as if its elements were written at the mutated offsets; None if no offset changes."""
        correct_offsets = np.arange(array.size)
        actual_offsets = offsets(correct_offsets)
        if np.array_equal(actual_offsets, correct_offsets):
            return None
        flat, written = array.flatten(), values_before_call(call, name, call.results[name])[number].flatten()
        written[actual_offsets % max(array.size, 1)] = flat
        return written

    return _change_results(change)


def _read_at_offsets(offsets: Offsets, case: BaselineCase) -> Mapping[str, Any] | None:
    """Return floating-point inputs read at mutated offsets; an offset at which no element lies reads NaN.

    Return None if no offset changes.
    """
    plain = case.plain_arguments()
    misread = {
        name: _read_tensor_at_offsets(value, plain[name], offsets)
        for name, value in case.arguments.items()
        if isinstance(value, BaselineTensor) and isinstance(plain[name], np.ndarray) and plain[name].dtype.kind in "fc"
    }
    changed = {name: array for name, array in misread.items() if array is not None}
    return changed or None


def _read_tensor_at_offsets(tensor: BaselineTensor, values: Array, offsets: Offsets) -> Array | None:
    """Return the values that are read from a tensor at wrong offsets; None if no offset changes."""
    shape = values.shape
    place = layout_named(tensor.layout)(shape)
    correct_offsets = np.zeros(shape, np.int64)
    for axis, (length, step) in enumerate(zip(shape, place.strides, strict=True)):
        correct_offsets += (np.arange(length) * step).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    actual_offsets = offsets(correct_offsets)
    if np.array_equal(actual_offsets, correct_offsets):
        return None
    known_offsets, first_indices = np.unique(correct_offsets, return_index=True)
    indices = np.minimum(np.searchsorted(known_offsets, actual_offsets), known_offsets.size - 1)
    return np.where(known_offsets[indices] == actual_offsets, values.reshape(-1)[first_indices[indices]], np.nan)


# Long vectors, and sums


def _replace_nans(array: Array) -> Array:
    """Return the array with zeros in place of NaNs if it is larger than a tile."""
    return np.nan_to_num(array, posinf=np.inf, neginf=-np.inf) if array.size > TILE and np.isnan(array).any() else array


def _change_floating_tensors(change: Callable[[Array], Array]) -> Callable[[BaselineCase], Mapping[str, Any] | None]:
    """Return a function that applies `change` to all floating-point and complex tensors of a case."""

    def apply_change(value: Any) -> Any:
        """Apply the change to the floating-point tensors in an argument."""
        if isinstance(value, list):
            return [apply_change(entry) for entry in value]
        return change(value) if isinstance(value, np.ndarray) and value.dtype.kind in "fc" else value

    def changed_arguments(case: BaselineCase) -> Mapping[str, Any] | None:
        """Return the changed arguments; return None if no tensor changes."""
        tensors = {name: value for name, value in case.plain_arguments().items() if tensors_in(case.arguments[name])}
        changed_tensors = {name: apply_change(value) for name, value in tensors.items()}
        return changed_tensors if any(changed_tensors[name] is not tensors[name] for name in tensors) else None

    return changed_arguments


def _accumulate_long_sums(dtype: Dtype, case: BaselineCase) -> Mapping[str, Any] | None:
    """Return arguments whose long sums are accumulated in `dtype`; None if all results have this type."""
    results: Sequence[Dtype] = [entry.dtype for value in case.expected.values() for entry in expected_arrays(value)]
    return (
        _change_floating_tensors(partial(round_block_sums_to, dtype))(case)
        if any(d is not dtype for d in results)
        else None
    )

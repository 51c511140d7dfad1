"""Faults of size, which small cases can't show: single elements far on, tiles, rows, offsets, and long sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.baseline.records import BaselineCase, BaselineTensor, expected_arrays, tensors_in
from diopi_test.cases.layouts import layout_named
from diopi_test.quality.mutation.arguments import recompute_with
from diopi_test.quality.mutation.mutant import Array, Effect, Mutant, SimulatedCall
from diopi_test.quality.mutation.randomness import is_random
from diopi_test.quality.mutation.results import found_before
from diopi_test.quality.mutation.summation import of_first_block, of_long_sums_in

TILE = 1024
"""Elements of a tile, the last of which is not whole."""

ROWS = 65_535
"""As many blocks as some grids have at most."""

Places = Callable[[tuple[int, ...]], Array | None]
"""From the shape of a result to which of its elements are mistaken, of all in row-major order; None if none can be."""


def size_mutants(function: str) -> Iterator[Mutant]:
    """The faults of size of a function."""
    for name, where in PARTS.items():
        yield Mutant(f"{name} not written", _left_as_found(where))
    if is_random(function):
        return  # of what is drawn any element may be another
    for name, where in PARTS.items():
        yield Mutant(f"{name} zero", _put(where, np.zeros_like))
    for period, last in ((2000, -1), (4096, -1), (65_536, 0)):
        named = f"k · {period}" + (" − 1" if last else "")
        yield Mutant(f"one element at {named} wrong", _elements_wrong(partial(_last_of, period, last)))
    for name, offsets in OFFSETS.items():
        yield Mutant(f"offsets of the result stored in {name}", _moved(offsets))
        yield Mutant(f"offsets of inputs stored in {name}", recompute_with(partial(_misread, offsets)))
    yield from many_element_mutants(function)
    yield Mutant("only the first block of sums added", recompute_with(_with_tensors(of_first_block)))
    for dtype in half:
        yield Mutant(f"long sums accumulated in {dtype.name}", recompute_with(partial(_accumulated, dtype)))


def many_element_mutants(function: str) -> Iterator[Mutant]:
    """Those of them that a thousand elements show, as some small cases have."""
    if not is_random(function):
        yield Mutant("NaNs in large tensors replaced by 0", recompute_with(_with_tensors(_without_nans)))


# Places in a result


def _last_of(period: int, last: int, shape: tuple[int, ...]) -> Array | None:
    """The last element at a multiple of the period, or before it."""
    size = int(np.prod(shape))
    place = (size - 1 - last) // period * period + last
    return None if place <= 0 else np.array([place])


def _last_tile(shape: tuple[int, ...]) -> Array | None:
    size = int(np.prod(shape))
    start = size // TILE * TILE
    return np.arange(start, size) if TILE < size != start else None


def _later_rows(shape: tuple[int, ...]) -> Array | None:
    if not shape or shape[0] <= ROWS:
        return None
    size = int(np.prod(shape))
    return np.arange(ROWS * (size // shape[0]), size)


PARTS: Mapping[str, Places] = {"last partial tile": _last_tile, f"rows from {ROWS} on": _later_rows}
"""Parts of a result that a kernel may leave out."""


def _each_result(change: Callable[[SimulatedCall, str, int, Array], Array | None]) -> Callable[[SimulatedCall], Effect]:
    """Every result array becomes what `change` makes of it, where that is not None."""

    def corrupt(call: SimulatedCall) -> Effect:
        wrong = {name: list(arrays) for name, arrays in call.results.items()}
        for name, arrays in call.results.items():
            for number, array in enumerate(arrays):
                if (changed := change(call, name, number, array)) is not None:
                    wrong[name][number] = changed.reshape(array.shape)
        return call.replace_results(wrong)

    return corrupt


def _put(where: Places, values: Callable[[Array], Array]) -> Callable[[SimulatedCall], Effect]:
    """Other elements at some places."""

    def change(call: SimulatedCall, name: str, number: int, array: Array) -> Array | None:
        if (places := where(array.shape)) is None:
            return None
        flat = array.flatten()
        with np.errstate(all="ignore"):
            flat[places] = values(flat[places])
        return flat

    return _each_result(change)


def _left_as_found(where: Places) -> Callable[[SimulatedCall], Effect]:
    """Elements at some places stay as they were found: poison, or the old state."""

    def change(call: SimulatedCall, name: str, number: int, array: Array) -> Array | None:
        if (places := where(array.shape)) is None:
            return None
        flat, before = array.flatten(), found_before(call, name, call.results[name])[number]
        flat[places] = before.reshape(-1)[places]
        return flat

    return _each_result(change)


def _elements_wrong(where: Places) -> Callable[[SimulatedCall], Effect]:
    """Elements at some places are wrong: by an eighth of themselves and 1, by their lowest bit, or negated."""

    def wrong(values: Array) -> Array:
        if values.dtype == bool:
            return ~values
        if values.dtype.kind in "iu":
            return np.asarray(values ^ 1)
        off = values * values.dtype.type(1.125) + values.dtype.type(1)
        return np.where(np.isfinite(values), off, np.ones_like(values))

    return _put(where, wrong)


# Offsets

Offsets = Callable[[Array], Array]
"""From offsets to what is left of them in a type that does not hold all."""

OFFSETS: Mapping[str, Offsets] = {
    "int16": lambda offsets: offsets & 0x7FFF,  # negative ones are a fault that shows at once
    "uint16": lambda offsets: offsets & 0xFFFF,
    "float32": lambda offsets: offsets.astype(np.float32).astype(np.int64),
}


def _moved(offsets: Offsets) -> Callable[[SimulatedCall], Effect]:
    """Elements are written where their offsets lead: the last one that is led to a place stays there."""

    def change(call: SimulatedCall, name: str, number: int, array: Array) -> Array | None:
        right = np.arange(array.size)
        led = offsets(right)
        if np.array_equal(led, right):
            return None
        flat, before = array.flatten(), found_before(call, name, call.results[name])[number].flatten()
        before[led % max(array.size, 1)] = flat
        return before

    return _each_result(change)


def _misread(offsets: Offsets, case: BaselineCase) -> Mapping[str, Any] | None:
    """Inputs of floating numbers are read where their offsets lead; between the elements, that is nothing (NaN)."""
    plain = case.plain_arguments()
    wrong = {
        name: _read(value, plain[name], offsets)
        for name, value in case.arguments.items()
        if isinstance(value, BaselineTensor) and isinstance(plain[name], np.ndarray) and plain[name].dtype.kind in "fc"
    }
    changed = {name: array for name, array in wrong.items() if array is not None}
    return changed or None


def _read(tensor: BaselineTensor, values: Array, offsets: Offsets) -> Array | None:
    """What is read of a tensor; None if that is what is there."""
    shape = values.shape
    place = layout_named(tensor.layout)(shape)
    right = np.zeros(shape, np.int64)
    for axis, (length, step) in enumerate(zip(shape, place.strides, strict=True)):
        right += (np.arange(length) * step).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    led = offsets(right)
    if np.array_equal(led, right):
        return None
    known, first = np.unique(right, return_index=True)
    at = np.minimum(np.searchsorted(known, led), known.size - 1)
    return np.where(known[at] == led, values.reshape(-1)[first[at]], np.nan)


# Long vectors, and sums


def _without_nans(array: Array) -> Array:
    """The array with numbers in place of its NaNs, if it has more than a tile; another array only if it had some."""
    return np.nan_to_num(array, posinf=np.inf, neginf=-np.inf) if array.size > TILE and np.isnan(array).any() else array


def _with_tensors(change: Callable[[Array], Array]) -> Callable[[BaselineCase], Mapping[str, Any] | None]:
    """All floating tensors changed, of cases that are large enough to show it."""

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [changed(entry) for entry in value]
        return change(value) if isinstance(value, np.ndarray) and value.dtype.kind in "fc" else value

    def arguments(case: BaselineCase) -> Mapping[str, Any] | None:
        given = {name: value for name, value in case.plain_arguments().items() if tensors_in(case.arguments[name])}
        wrong = {name: changed(value) for name, value in given.items()}
        return wrong if any(wrong[name] is not given[name] for name in given) else None

    return arguments


def _accumulated(dtype: Dtype, case: BaselineCase) -> Mapping[str, Any] | None:
    """Sums of many terms accumulated in half precision, and short ones in float32."""
    results: Sequence[Dtype] = [one.dtype for value in case.expected.values() for one in expected_arrays(value)]
    return _with_tensors(partial(of_long_sums_in, dtype))(case) if any(d is not dtype for d in results) else None

"""Find patterns of wrong elements: one slice, every k-th element, all after an offset, whole blocks, special values.

A pattern is a set of elements. It is reported in two cases, both of which must be unlikely for random errors. Either
the pattern consists of exactly the wrong elements. Or it contains all wrong elements and some correct ones. If many
similar patterns exist, it is more likely that random errors match one of them, and more evidence is required.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.execution.difference import Pattern, PatternKind
from lib_rt.dtypes import to_numpy
from lib_rt.formats import FORMATS, is_subnormal

Mask = NDArray[np.bool_]
"""A Boolean array with the shape of a tensor, which selects elements."""

MAX_LOG_CHANCE_EXACT, MAX_LOG_CHANCE_WITHIN = math.log(0.05), math.log(0.01)
"""A pattern is reported if the logarithm of its probability for random errors is below a limit.

The first limit applies to patterns that consist of exactly the wrong elements, the second one to patterns that also
contain correct elements."""

TILE_SIZES = tuple(2**power for power in range(2, 13))
"""Sizes of tiles and vectors; the remainder of an axis after the last full tile is a possible pattern."""

MIN_BLOCK_LENGTH, MIN_ALIGNMENT = 8, 32
"""The minimum length of runs that are called blocks, and the smallest power of two that is reported as an alignment."""


def find_patterns(is_wrong: Mask, strides: Sequence[int] = ()) -> list[Pattern]:
    """Return the patterns in the positions of the wrong elements, the most specific pattern first.

    Args:
        is_wrong: which elements are wrong; at least one is.
        strides: the strides of the tensor; row-major by default.

    Returns:
        The patterns; empty if there are none.
    """
    if is_wrong.all():
        return [Pattern(PatternKind.everything, "all of them")]
    count = int(is_wrong.sum())
    lines = list(_orders(is_wrong, strides))
    box = _bounding_slice(is_wrong)
    exact = [*_exactly_a_slice(box, count), *_first_nonempty(_exact_pattern(line, order) for order, line in lines)]
    return exact or [
        *_within_a_slice(box, count),
        *_first_nonempty(_including_patterns(line, order) for order, line in lines),
    ]


def _first_nonempty(pattern_lists: Iterator[list[Pattern]]) -> list[Pattern]:
    """Return the first list of patterns that is not empty."""
    return next((candidates for candidates in pattern_lists if candidates), [])


def _orders(is_wrong: Mask, strides: Sequence[int]) -> Iterator[tuple[str, Mask]]:
    """Yield a name and the flat mask for each order of the elements: logical order, and memory order if it differs.

    Args:
        is_wrong: the mask of the wrong elements.
        strides: the strides of the tensor; empty if they are not known.
    """
    yield "", is_wrong.reshape(-1)
    long_axes = [axis for axis, length in enumerate(is_wrong.shape) if length > 1]
    if strides and sorted(long_axes, key=lambda axis: -strides[axis]) != long_axes:
        order = sorted(range(is_wrong.ndim), key=lambda axis: -strides[axis])
        yield " in memory order", is_wrong.transpose(order).reshape(-1)


def _log_choose(total: int, count: int) -> float:
    """Return the logarithm of the number of ways to choose `count` of `total` elements."""
    return math.lgamma(total + 1) - math.lgamma(count + 1) - math.lgamma(total - count + 1)


# Slices


@final
@dataclass(frozen=True, kw_only=True)
class _BoundingSlice:
    """The smallest slice that contains all wrong elements.

    Attributes:
        text: the slice in the notation of NumPy.
        size: the number of elements in the slice.
        total: the number of elements of the tensor.
        choices: the logarithm of the number of slices of the tensor that restrict the same axes.
    """

    text: str
    size: int
    total: int
    choices: float


def _bounding_slice(is_wrong: Mask) -> _BoundingSlice | None:
    """Return the smallest slice with all wrong elements.

    The result is None if this slice is the whole tensor, or if fewer than two axes are longer than 1.
    """
    if sum(length > 1 for length in is_wrong.shape) < 2:
        return None
    parts, size, choices = [], 1, 0.0
    for axis, length in enumerate(is_wrong.shape):
        remaining_axes = tuple(remaining for remaining in range(is_wrong.ndim) if remaining != axis)
        indices = np.flatnonzero(is_wrong.any(remaining_axes))
        parts.append(_format_indices(indices, length))
        size *= length if parts[-1] == ":" else len(indices)
        choices += 0.0 if parts[-1] == ":" else math.log(length) * (1 if len(indices) == 1 else 2)
    return (
        _BoundingSlice(text=f"[{', '.join(parts)}]", size=size, total=is_wrong.size, choices=choices)
        if size < is_wrong.size
        else None
    )


def _format_indices(indices: NDArray[np.intp], length: int) -> str:
    """Return sorted indices along an axis as text: `3`, `4:9`, `:10:2`; `:` for all indices or unequal distances."""
    first, last, steps = int(indices[0]), int(indices[-1]), np.diff(indices)
    if len(indices) == 1 and length > 1:
        return str(first)
    if len(indices) == length or (steps != steps[0]).any():
        return ":"
    end = "" if last + steps[0] >= length else last + 1
    return f"{first or ''}:{end}" + (f":{steps[0]}" if steps[0] > 1 else "")


def _exactly_a_slice(box: _BoundingSlice | None, count: int) -> list[Pattern]:
    """Return the pattern of a slice that consists of exactly the wrong elements, if there is such a slice."""
    if box is None or box.size != count or box.choices - _log_choose(box.total, count) > MAX_LOG_CHANCE_EXACT:
        return []
    return [Pattern(PatternKind.slice, f"exactly {box.text}")]


def _within_a_slice(box: _BoundingSlice | None, count: int) -> list[Pattern]:
    """Return the pattern of a slice that contains all wrong elements and is unlikely to do so by chance."""
    if box is None or box.choices + count * math.log(box.size / box.total) > MAX_LOG_CHANCE_WITHIN:
        return []
    return [Pattern(PatternKind.slice, f"all in {box.text}, which has {box.size}")]


# Patterns in the flat order of the elements


@final
@dataclass(frozen=True)
class _Runs:
    """The contiguous runs of wrong elements in a flat mask.

    Attributes:
        starts: the index of the first element of each run.
        ends: the index after the last element of each run.
        total: the length of the mask.
    """

    starts: NDArray[np.intp]
    ends: NDArray[np.intp]
    total: int

    @classmethod
    def from_line(cls, line: Mask) -> _Runs:
        """Return the runs of a flat mask."""
        inner = np.flatnonzero(line[1:] != line[:-1]) + 1
        first, last = np.flatnonzero(line[:1]), np.flatnonzero(line[-1:]) + len(line)
        edges = np.concatenate([first, inner, last])
        return cls(edges[::2], edges[1::2], len(line))

    @property
    def length(self) -> int:
        """The common length of the runs; 0 if they differ. A last run that ends with the mask may be shorter."""
        lengths = self.ends - self.starts
        complete_lengths = lengths[:-1] if self.ends[-1] == self.total and lengths[-1] <= lengths[0] else lengths
        return int(lengths[0]) if (complete_lengths == lengths[0]).all() else 0

    @property
    def period(self) -> int:
        """The distance between the starts of runs; 0 if it is not the same over the whole mask."""
        steps = np.diff(self.starts)
        if not steps.size or (steps != steps[0]).any():
            return 0
        step, first, last = int(steps[0]), int(self.starts[0]), int(self.starts[-1])
        return step if first < step and last + step >= self.total else 0


def _exact_pattern(line: Mask, order: str) -> list[Pattern]:
    """Return the pattern that consists of exactly the wrong elements of a flat mask, if there is one."""
    runs, count = _Runs.from_line(line), int(line.sum())
    if len(runs.starts) == 1:
        pattern: _ScoredPattern = _single_run(runs)
    else:
        pattern = (
            _periodic_runs(runs, "") or _periodic_runs(_Runs.from_line(~line), "all but ") or _aligned_blocks(runs)
        )
    if pattern is None or pattern[1] - _log_choose(len(line), count) > MAX_LOG_CHANCE_EXACT:
        return []
    return [Pattern(pattern[0].kind, pattern[0].text + order)]


_ScoredPattern = tuple[Pattern, float] | None
"""A pattern, and the logarithm of the number of similar patterns; None if no pattern was found."""


def _single_run(runs: _Runs) -> tuple[Pattern, float]:
    """Return the pattern of a single run, with the logarithm of the number of similar patterns."""
    start, end, total = int(runs.starts[0]), int(runs.ends[0]), runs.total
    if end == total:
        last = f"the last {end - start} of {total}, all from number {start} on"
        tiles = [str(tile) for tile in TILE_SIZES if total > tile and total % tile == end - start]
        left = f", what remains after tiles of {' or '.join(tiles)}" if tiles else _tile_size(start)
        return Pattern(PatternKind.tail if tiles else PatternKind.end, last + left), 0.0
    if start == 0:
        return Pattern(PatternKind.range, f"the first {end} of {total}{_tile_size(end)}"), 0.0
    text = f"a run of {end - start} of {total}, from number {start} on{_tile_size(start)}"
    return Pattern(PatternKind.range, text), math.log(total)


def _tile_size(number: int) -> str:
    """Return `, a multiple of N` with the largest power of two that divides a number; an empty text if N < 32."""
    power = number & -number
    return f", a multiple of {power}" if power >= MIN_ALIGNMENT else ""


def _periodic_runs(runs: _Runs, excluded: str) -> _ScoredPattern:
    """Return the pattern of runs of equal length at equal distances over the whole mask.

    Args:
        runs: the runs of wrong elements, or of correct elements.
        excluded: the beginning of the description: `all but ` for correct elements, else empty.
    """
    length, period = runs.length, runs.period
    if not length or not period:
        return None
    numbers = [str(start) if length == 1 else f"{start} to {start + length - 1}" for start in runs.starts[:2]]
    text = f"{excluded}{length} of every {period} elements, numbers {', '.join(numbers)}, …"
    return Pattern(PatternKind.period, text), math.log(period) * (1 if length == 1 else 2)


def _aligned_blocks(runs: _Runs) -> _ScoredPattern:
    """Return the pattern of whole blocks that begin at multiples of their size, or else of runs of equal length."""
    ends = runs.ends[:-1] if runs.ends[-1] == runs.total else runs.ends
    block = int(np.gcd.reduce(np.concatenate([runs.starts, ends])))
    if block >= MIN_BLOCK_LENGTH:
        numbers, blocks = int(np.sum(-(-(runs.ends - runs.starts) // block))), -(-runs.total // block)
        text = f"whole blocks of {block}, {numbers} of {blocks}, the first from number {runs.starts[0]} on"
        return Pattern(PatternKind.blocks, text), _log_choose(blocks, numbers)
    if runs.length >= MIN_BLOCK_LENGTH:
        text = f"in {len(runs.starts)} runs of {runs.length} each, the first from number {runs.starts[0]} on"
        return Pattern(PatternKind.blocks, text), _log_choose(runs.total, len(runs.starts))
    return None


def _including_patterns(line: Mask, order: str) -> list[Pattern]:
    """Return the patterns that include all wrong elements of a flat mask and also some correct elements."""
    indices, total = np.flatnonzero(line), len(line)
    count, first, last = len(indices), int(indices[0]), int(indices[-1])
    patterns = []
    period = int(np.gcd.reduce(np.diff(indices))) if count > 1 else 1
    if period > 1 and (1 - count) * math.log(period) + math.log(2) < MAX_LOG_CHANCE_WITHIN:
        text = f"all in 1 of every {period} elements, numbers {first % period}, {first % period + period}, …{order}"
        patterns.append(Pattern(PatternKind.period, text))
    # Each end of the range is tested on its own, and also together with the other end, at which a wrong element lies.
    span, end = last + 1 - first, last + 1
    is_after = is_unlikely(total - first, total, count) or is_unlikely(span, end, count - 1)
    is_before = is_unlikely(end, total, count) or is_unlikely(span, total - first, count - 1)
    if is_after or is_before:
        begin_text = f" from number {first} on{_tile_size(first)}" if is_after else ""
        end_text = f" up to number {last}" if is_before else ""
        patterns.append(
            Pattern(PatternKind.range if is_before else PatternKind.end, f"all{begin_text}{end_text}{order}")
        )
    return patterns


def is_unlikely(part: int, total: int, count: int) -> bool:
    """Return whether `count` random elements of `total` are unlikely to lie all in a part with `part` elements."""
    return count * math.log(part / total) < MAX_LOG_CHANCE_WITHIN


# Special values


@np.errstate(invalid="ignore")  # signaling NaN
def value_patterns(is_wrong: Mask, values: Mapping[str, tuple[NDArray[Any], Dtype]]) -> list[Pattern]:
    """Return the patterns of wrong elements at which an array has a special value, such as `only where input is NaN`.

    Args:
        is_wrong: which elements are wrong; at least one is.
        values: arrays of the same shape and their element types, by name.

    Returns:
        The patterns; empty if there are none.
    """
    patterns = []
    for name, (array, dtype) in values.items():
        if special := rarest_special_class(is_wrong, array, dtype):
            text = f"only where {name} is {special[0]}, {int(is_wrong.sum())} of {special[1]} such"
            patterns.append(Pattern(PatternKind.values, text))
    return patterns


@np.errstate(invalid="ignore")  # signaling NaN
def rarest_special_class(is_wrong: Mask, array: NDArray[Any], dtype: Dtype) -> tuple[str, int] | None:
    """Return the rarest class of special values, such as NaN, to which an array belongs at all wrong elements.

    Args:
        is_wrong: which elements are wrong; at least one is.
        array: an array of the same shape.
        dtype: the element type of the array.

    Returns:
        The name of the class and the number of its elements; None if there is no such class, or if this may be chance.
    """
    alike = {text for text, special in _special_value_masks(array[is_wrong], dtype) if special.all()}
    candidates = [
        (int(special.sum()), text)
        for text, special in (_special_value_masks(array, dtype) if alike else ())
        if text in alike and _is_distinctive(special, is_wrong)
    ]
    if not candidates:
        return None
    size, text = min(candidates, key=lambda candidate: candidate[0])
    return text, size


def _is_distinctive(special: Mask, is_wrong: Mask) -> bool:
    """Return whether it is unlikely by chance that all wrong elements are among the elements with a special value."""
    count, size, total = int(is_wrong.sum()), int(special.sum()), is_wrong.size
    return (count == size and -_log_choose(total, count) < MAX_LOG_CHANCE_EXACT) or is_unlikely(size, total, count)


def _special_value_masks(array: NDArray[Any], dtype: Dtype) -> Iterator[tuple[str, Mask]]:
    """Yield the name of each class of special values, and a mask of the elements that belong to it."""
    if dtype is Dtype.bool:
        yield "true", array != 0
        yield "false", array == 0
        return
    if dtype in FORMATS:
        array = array.astype(np.float64)
        yield "NaN", np.isnan(array)
        yield "infinite", np.isinf(array)
        yield "subnormal", is_subnormal(array, dtype)
        yield "-0", (array == 0) & np.signbit(array)
    elif to_numpy(dtype).kind in "iu":
        limits = np.iinfo(to_numpy(dtype))
        yield f"the largest number {limits.max}", array == limits.max
        if limits.min:
            yield f"the smallest number {limits.min}", array == limits.min
    yield "0", array == 0
    if array.dtype.kind in "if":
        yield "negative", array < 0


@np.errstate(invalid="ignore")  # signaling NaN
def constant_pattern(is_wrong: Mask, actual: NDArray[Any], expected: NDArray[Any]) -> list[Pattern]:
    """Return the pattern of two or more wrong elements that are all equal although different values are expected."""
    wrong_values, expected_values = np.ascontiguousarray(actual[is_wrong]), expected[is_wrong]
    expects_several = len(expected_values) > 1 and (expected_values != expected_values[0]).any()
    bits = wrong_values.view(np.uint8).reshape(len(wrong_values), -1)
    if not expects_several or (bits != bits[0]).any():
        return []
    return [Pattern(PatternKind.constant, f"all wrong elements are {wrong_values[0]}")]

"""What wrong elements have in common: one slice, every k-th, all after an offset, whole blocks, special values.

A pattern is told if the wrong elements are exactly those it names, or are all among them, and chance would hardly put
as many there: the more patterns of a kind there are to choose from, the less likely each must be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.formats import FORMATS, is_subnormal
from diopi_test.execution.difference import Pattern, PatternKind
from lib_rt.dtypes import to_numpy

Mask = NDArray[np.bool_]

EXACT, WITHIN = math.log(0.05), math.log(0.01)
"""Logarithms of the chance below which a pattern is told that names exactly the wrong elements, or further ones too."""

TILES = tuple(2**power for power in range(2, 13))
"""Sizes of tiles and vectors whose remainder is looked for."""

BLOCK, MULTIPLE = 8, 32
"""Number of elements from which on runs of equal length are called blocks; power of two worth telling at an offset."""


def patterns(wrong: Mask, strides: Sequence[int] = ()) -> list[Pattern]:
    """What the wrong elements of a tensor have in common, by their places; the most telling first.

    Args:
        wrong: at least one element.
        strides: where the elements lie; left out, row by row.
    """
    if wrong.all():
        return [Pattern(PatternKind.everything, "all of them")]
    count = int(wrong.sum())
    lines = list(_lines(wrong, strides))
    box = _box(wrong)
    exact = [*_exactly_a_slice(box, count), *_first(_exactly(line, order) for order, line in lines)]
    return exact or [*_within_a_slice(box, count), *_first(_within(line, order) for order, line in lines)]


def _first(found: Iterator[list[Pattern]]) -> list[Pattern]:
    """The patterns of the first order in which there are any."""
    return next((some for some in found if some), [])


def _lines(wrong: Mask, strides: Sequence[int]) -> Iterator[tuple[str, Mask]]:
    """The elements in logical order, and in memory order where that is another, with the order's name."""
    yield "", wrong.reshape(-1)
    long = [axis for axis, length in enumerate(wrong.shape) if length > 1]
    if strides and sorted(long, key=lambda axis: -strides[axis]) != long:
        order = sorted(range(wrong.ndim), key=lambda axis: -strides[axis])
        yield " in memory order", wrong.transpose(order).reshape(-1)


def _choose(total: int, count: int) -> float:
    """Logarithm of the number of ways to choose `count` elements of `total`."""
    return math.lgamma(total + 1) - math.lgamma(count + 1) - math.lgamma(total - count + 1)


# Slices


@final
@dataclass(frozen=True)
class _Box:
    """A slice: as text, its number of elements, that of the tensor, and the logarithm of how many like it there are."""

    text: str
    size: int
    total: int
    choices: float


def _box(wrong: Mask) -> _Box | None:
    """The smallest slice with all wrong elements; None if that is the whole tensor, or the tensor has but one axis."""
    if sum(length > 1 for length in wrong.shape) < 2:
        return None
    parts, size, choices = [], 1, 0.0
    for axis, length in enumerate(wrong.shape):
        others = tuple(other for other in range(wrong.ndim) if other != axis)
        indices = np.flatnonzero(wrong.any(others))
        parts.append(_slice(indices, length))
        size *= length if parts[-1] == ":" else len(indices)
        choices += 0.0 if parts[-1] == ":" else math.log(length) * (1 if len(indices) == 1 else 2)
    return _Box(f"[{', '.join(parts)}]", size, wrong.size, choices) if size < wrong.size else None


def _slice(indices: NDArray[np.intp], length: int) -> str:
    """Indices along an axis as a slice; `:` for all, and for those that are none."""
    first, last, steps = int(indices[0]), int(indices[-1]), np.diff(indices)
    if len(indices) == 1 and length > 1:
        return str(first)
    if len(indices) == length or (steps != steps[0]).any():
        return ":"
    end = "" if last + steps[0] >= length else last + 1
    return f"{first or ''}:{end}" + (f":{steps[0]}" if steps[0] > 1 else "")


def _exactly_a_slice(box: _Box | None, count: int) -> list[Pattern]:
    if box is None or box.size != count or box.choices - _choose(box.total, count) > EXACT:
        return []
    return [Pattern(PatternKind.slice, f"exactly {box.text}")]


def _within_a_slice(box: _Box | None, count: int) -> list[Pattern]:
    if box is None or box.choices + count * math.log(box.size / box.total) > WITHIN:
        return []
    return [Pattern(PatternKind.slice, f"all in {box.text}, which has {box.size}")]


# Elements numbered one after the other


@final
@dataclass(frozen=True)
class _Runs:
    """Wrong elements in contiguous runs: where they start and end, of how many elements in all."""

    starts: NDArray[np.intp]
    ends: NDArray[np.intp]
    total: int

    @classmethod
    def of(cls, line: Mask) -> _Runs:
        inner = np.flatnonzero(line[1:] != line[:-1]) + 1
        first, last = np.flatnonzero(line[:1]), np.flatnonzero(line[-1:]) + len(line)
        edges = np.concatenate([first, inner, last])
        return cls(edges[::2], edges[1::2], len(line))

    @property
    def length(self) -> int:
        """Of every run, but for a shorter last one that the end cuts off; 0 if they differ."""
        lengths = self.ends - self.starts
        whole = lengths[:-1] if self.ends[-1] == self.total and lengths[-1] <= lengths[0] else lengths
        return int(lengths[0]) if (whole == lengths[0]).all() else 0

    @property
    def period(self) -> int:
        """From one start to the next, where that is always the same from the beginning to the end; else 0."""
        steps = np.diff(self.starts)
        if not steps.size or (steps != steps[0]).any():
            return 0
        step, first, last = int(steps[0]), int(self.starts[0]), int(self.starts[-1])
        return step if first < step and last + step >= self.total else 0


def _exactly(line: Mask, order: str) -> list[Pattern]:
    """The pattern that names exactly the wrong elements of a line."""
    runs, count = _Runs.of(line), int(line.sum())
    if len(runs.starts) == 1:
        found: _Found = _run(runs)
    else:
        found = _periodic(runs, "") or _periodic(_Runs.of(~line), "all but ") or _blocks(runs)
    if found is None or found[1] - _choose(len(line), count) > EXACT:
        return []
    return [Pattern(found[0].kind, found[0].text + order)]


_Found = tuple[Pattern, float] | None
"""A pattern, and the logarithm of how many like it there are."""


def _run(runs: _Runs) -> tuple[Pattern, float]:
    """One run."""
    start, end, total = int(runs.starts[0]), int(runs.ends[0]), runs.total
    if end == total:
        last = f"the last {end - start} of {total}, all from number {start} on"
        tiles = [str(tile) for tile in TILES if total > tile and total % tile == end - start]
        left = f", what remains after tiles of {' or '.join(tiles)}" if tiles else _multiple(start)
        return Pattern(PatternKind.tail if tiles else PatternKind.range, last + left), 0.0
    if start == 0:
        return Pattern(PatternKind.range, f"the first {end} of {total}{_multiple(end)}"), 0.0
    text = f"a run of {end - start} of {total}, from number {start} on{_multiple(start)}"
    return Pattern(PatternKind.range, text), math.log(total)


def _multiple(number: int) -> str:
    """By which power of two a number can be divided, if it is a size of tiles."""
    power = number & -number
    return f", a multiple of {power}" if power >= MULTIPLE else ""


def _periodic(runs: _Runs, but: str) -> _Found:
    """Runs at equal distances, over all of the line; of right elements in `but` words."""
    length, period = runs.length, runs.period
    if not length or not period:
        return None
    numbers = [str(start) if length == 1 else f"{start} to {start + length - 1}" for start in runs.starts[:2]]
    text = f"{but}{length} of every {period} elements, numbers {', '.join(numbers)}, …"
    return Pattern(PatternKind.period, text), math.log(period) * (1 if length == 1 else 2)


def _blocks(runs: _Runs) -> _Found:
    """Whole blocks that begin at multiples of their size; else runs of equal length."""
    ends = runs.ends[:-1] if runs.ends[-1] == runs.total else runs.ends
    block = int(np.gcd.reduce(np.concatenate([runs.starts, ends])))
    if block >= BLOCK:
        numbers, blocks = int(np.sum(-(-(runs.ends - runs.starts) // block))), -(-runs.total // block)
        text = f"whole blocks of {block}, {numbers} of {blocks}, the first from number {runs.starts[0]} on"
        return Pattern(PatternKind.blocks, text), _choose(blocks, numbers)
    if runs.length >= BLOCK:
        text = f"in {len(runs.starts)} runs of {runs.length} each, the first from number {runs.starts[0]} on"
        return Pattern(PatternKind.blocks, text), _choose(runs.total, len(runs.starts))
    return None


def _within(line: Mask, order: str) -> list[Pattern]:
    """The patterns among whose elements are all wrong ones of a line."""
    indices, total = np.flatnonzero(line), len(line)
    count, first, last = len(indices), int(indices[0]), int(indices[-1])
    found = []
    period = int(np.gcd.reduce(np.diff(indices))) if count > 1 else 1
    if period > 1 and (1 - count) * math.log(period) + math.log(2) < WITHIN:
        text = f"all in 1 of every {period} elements, numbers {first % period}, {first % period + period}, …{order}"
        found.append(Pattern(PatternKind.period, text))
    # an end of the range tells something by itself, or given the other, at which one element lies
    span, end = last + 1 - first, last + 1
    after = _hit(total - first, total, count) or _hit(span, end, count - 1)
    before = _hit(end, total, count) or _hit(span, total - first, count - 1)
    if after or before:
        begin = f" from number {first} on{_multiple(first)}" if after else ""
        until = f" up to number {last}" if before else ""
        found.append(Pattern(PatternKind.range, f"all{begin}{until}{order}"))
    return found


def _hit(part: int, total: int, count: int) -> bool:
    """Whether chance would hardly put `count` elements of `total` into a part of them."""
    return count * math.log(part / total) < WITHIN


# Special values


@np.errstate(invalid="ignore")  # signalling NaN
def value_patterns(wrong: Mask, values: Mapping[str, tuple[NDArray[Any], Dtype]]) -> list[Pattern]:
    """Special values that all wrong elements have in one of some arrays of their shape.

    Args:
        wrong: at least one element.
        values: by name, an array and its element type.
    """
    found = []
    for name, (array, dtype) in values.items():
        alike = {text for text, special in _special(array[wrong], dtype) if special.all()}
        told = [
            (int(special.sum()), text)
            for text, special in (_special(array, dtype) if alike else ())
            if text in alike and _is_telling(special, wrong)
        ]
        if told:
            size, text = min(told, key=lambda one: one[0])
            found.append(Pattern(PatternKind.values, f"only where {name} is {text}, {int(wrong.sum())} of {size} such"))
    return found


def _is_telling(special: Mask, wrong: Mask) -> bool:
    """Whether chance would hardly have all wrong elements be special ones."""
    count, size, total = int(wrong.sum()), int(special.sum()), wrong.size
    return (count == size and -_choose(total, count) < EXACT) or _hit(size, total, count)


def _special(array: NDArray[Any], dtype: Dtype) -> Iterator[tuple[str, Mask]]:
    """Classes of values, by name, and which elements are in them."""
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


def constant_pattern(wrong: Mask, given: NDArray[Any], expected: NDArray[Any]) -> list[Pattern]:
    """The one value that is given at two or more wrong elements, if several are expected there."""
    found, wanted = np.ascontiguousarray(given[wrong]), expected[wrong]
    several = len(wanted) > 1 and (wanted != wanted[0]).any()
    bits = found.view(np.uint8).reshape(len(found), -1)
    if not several or (bits != bits[0]).any():
        return []
    return [Pattern(PatternKind.constant, f"all given as {found[0]}")]

"""Inputs moved by half an ulp, up or down for each element by itself, in eight rounds.

What an input's rounding does may cancel what another's does: x + y does not move if x goes up and y down. So the signs
of two inputs agree in some rounds at each element, and in others they don't: in half of them, if they have one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.data import TensorData
from diopi_test.cases.formats import format_of, is_inexact, ulp

ROUNDS = 8

Pattern = NDArray[np.uint8]
"""For each element a bit a round: whether it goes up."""

WALSH = (0x00, 0x55, 0x33, 0x66, 0x0F, 0x5A, 0x3C, 0x69)
"""The rows of the Hadamard matrix of order 8: any two differ in four bits, also if bits of all are flipped."""

PARALLEL = np.isin(np.arange(1 << ROUNDS), [*WALSH, *(0xFF ^ row for row in WALSH)])
"""By the difference of two patterns, whether some row added to one of them makes them equal or opposite."""

NEIGHBOURS = 8
"""Of so many shapes before it, the last ones, a shape heeds: each of them rules out a sixteenth of the patterns."""

Mover = Callable[[int], Any]
"""From the number of a round to what an argument is in it."""


@final
class Signs:
    """The patterns of the tensors of a call, drawn one after the other, smaller ones first.

    Those of one shape are orthogonal, up to eight; none is equal or opposite, at any element, to one before that
    broadcasts to it. Elements of one tensor have nothing to do with each other.
    """

    def __init__(self, rng: Generator) -> None:
        self._rng = rng
        self._drawn: dict[tuple[int, ...], tuple[Pattern, int]] = {}

    def of_number(self) -> Pattern:
        """For an attribute."""
        return self._rng.integers(0, 256, (), np.uint8)

    def of_tensor(self, shape: tuple[int, ...]) -> Pattern:
        """For one more tensor of a shape."""
        first, number = self._drawn.get(shape, (None, 0))
        if first is None or number == len(WALSH):
            first, number = self._first(shape), 0
        self._drawn[shape] = first, number + 1
        pattern: Pattern = first ^ np.uint8(WALSH[number])
        return pattern

    def _first(self, shape: tuple[int, ...]) -> Pattern:
        others = [self._drawn[other][0] for other in self._drawn if other != shape and _broadcasts(other, shape)]
        drawn = self._rng.integers(0, 256, shape, np.uint8)
        while others and (again := np.any([PARALLEL[drawn ^ other] for other in others[-NEIGHBOURS:]], axis=0)).any():
            drawn = np.where(again, self._rng.integers(0, 256, shape, np.uint8), drawn)
        return drawn


def _broadcasts(shape: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    """Whether a tensor of a shape can be one of another."""
    pairs = zip(reversed(shape), reversed(larger), strict=False)
    return len(shape) <= len(larger) and all(one in (1, other) for one, other in pairs)


def movers(values: Mapping[str, Any], tested: Dtype, dtype: Dtype, rng: Generator) -> dict[str, Mover | None]:
    """How each argument is moved; None for those that have no rounding to amplify.

    Args:
        values: materialised arguments.
        tested: the element type under test.
        dtype: that of the result: inputs are moved in it if it is finer than their own.
        rng: of the signs.
    """
    signs = Signs(rng)
    made = {name: _mover(values[name], tested, dtype, signs) for name in sorted(values, key=lambda n: _size(values[n]))}
    return {name: made[name] for name in values}


def _size(value: Any) -> int:
    if isinstance(value, list):
        return max((_size(entry) for entry in value), default=0)
    return value.values.size if isinstance(value, TensorData) else 0


def _mover(value: Any, tested: Dtype, dtype: Dtype, signs: Signs) -> Mover | None:
    """How an argument is moved.

    Floating tensors are moved in their own type, or in that of the result if it is finer, for then they are to be
    converted before anything else happens. Integers that float32 does not hold are moved too if the case tests an
    integer type: their floating results are computed in float32. Attributes are moved only if the type can't represent
    them.
    """
    if isinstance(value, list):
        own = tested if is_inexact(tested) else dtype  # the entries of an array are computed each for itself
        entries = [_mover(entry, tested, own, signs) for entry in value]
        if not any(entries):
            return None
        return lambda number: [
            move(number) if move else plain(entry) for move, entry in zip(entries, value, strict=True)
        ]
    if isinstance(value, TensorData):
        return _tensor_mover(value, tested, dtype, signs)
    if isinstance(value, float) and not _is_representable(value, dtype):
        pattern = signs.of_number()
        return lambda number: float(_moved(np.asarray(value), dtype, pattern, number))
    return None


def _tensor_mover(value: TensorData, tested: Dtype, dtype: Dtype, signs: Signs) -> Mover | None:
    own, shape = value.spec.dtype, value.values.shape
    if is_inexact(own):
        finer = dtype if format_of(dtype).precision > format_of(own).precision else own
        patterns = [signs.of_tensor(shape) for _ in range(1 + np.iscomplexobj(value.exact))]
        return lambda number: _moved_parts(value.exact, finer, patterns, number)
    if own is tested and own is not Dtype.bool:
        pattern = signs.of_tensor(shape)
        return lambda number: _converted(value.exact.astype(np.float64), pattern, number)
    return None


def _converted(integers: NDArray[Any], pattern: Pattern, number: int) -> NDArray[Any]:
    """Integers as they may become numbers of float32: those it holds stay as they are."""
    moved = _moved(integers, Dtype.float32, pattern, number)
    return np.where(integers == integers.astype(np.float32), integers, moved)


def plain(value: Any) -> Any:
    """An argument in the reference's arithmetic."""
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return value.exact if isinstance(value, TensorData) else value


def _moved_parts(exact: NDArray[Any], dtype: Dtype, patterns: list[Pattern], number: int) -> NDArray[Any]:
    """Numbers, or the two parts of complex ones, moved by a pattern each."""
    if not np.iscomplexobj(exact):
        return _moved(exact, dtype, patterns[0], number)
    moved = np.empty_like(exact)
    moved.real, moved.imag = (  # not real + 1j · imaginary, which is NaN where the imaginary part is infinite
        _moved(part, dtype, pattern, number) for part, pattern in zip((exact.real, exact.imag), patterns, strict=True)
    )
    return moved


@np.errstate(all="ignore")
def _moved(exact: NDArray[Any], dtype: Dtype, pattern: Pattern, number: int) -> NDArray[Any]:
    steps = np.where(pattern >> number & 1, step(dtype), -step(dtype))
    moves = np.isfinite(exact) & (exact != 0)  # rounding errors are relative: they leave zero alone
    return np.where(moves, exact + steps * ulp(exact, dtype), exact)


def step(dtype: Dtype) -> float:
    """Size of a perturbation in ulp: a half, but one in float64, where the reference can't represent halves."""
    return 1.0 if format_of(dtype).precision == 53 else 0.5


def _is_representable(value: float, dtype: Dtype) -> bool:
    """Whether `value` is a number of the format, or not finite."""
    return not np.isfinite(value) or float(np.remainder(value, ulp(value, dtype))) == 0

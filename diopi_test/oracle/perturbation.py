"""Perturb inputs by half an ulp, up or down independently for each element, in eight rounds.

The effects of two inputs can cancel: x + y does not change if x moves up and y moves down. Therefore the directions of
two inputs agree at each element in some rounds and differ in other rounds. If both inputs have the same shape, they
agree in half of the rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.oracle.data import TensorData
from lib_rt.formats import format_of, is_inexact, ulp

ROUNDS = 8
"""The number of rounds. Each round perturbs all inputs once."""

Pattern = NDArray[np.uint8]
"""The directions of the elements of a tensor: for each element one bit per round, which is set if it moves up."""

WALSH = (0x00, 0x55, 0x33, 0x66, 0x0F, 0x5A, 0x3C, 0x69)
"""The rows of the Hadamard matrix of order 8: any two rows differ in four bits, also if one of them is inverted."""

PARALLEL = np.isin(np.arange(1 << ROUNDS), [*WALSH, *(0xFF ^ row for row in WALSH)])
"""Indexed by the difference of two patterns: whether adding a row to one pattern makes them equal or opposite."""

NEIGHBORS = 8
"""A new pattern avoids the patterns of this number of shapes: the last ones that were drawn and broadcast to its shape.

Each of these patterns excludes 16 of the 256 directions of an element.
"""

Perturbation = Callable[[int], Any]
"""Maps the number of a round to the perturbed argument in this round."""


@final
class SignPatterns:
    """Draws the sign patterns of the tensors of a call. The caller draws them in order of size, smallest tensor first.

    Up to eight patterns of the same shape are orthogonal: any two of them agree in four rounds at each element. The
    eight directions of an element differ from the directions, and from the opposite directions, of earlier, smaller
    tensors at the same place. This holds for the last `NEIGHBORS` shapes that broadcast. Different elements of a tensor
    have independent signs.
    """

    def __init__(self, rng: Generator) -> None:
        self._rng = rng
        self._patterns: dict[tuple[int, ...], tuple[Pattern, int]] = {}

    def draw_scalar(self) -> Pattern:
        """Return the pattern of a number, such as a float attribute."""
        return self._rng.integers(0, 256, (), np.uint8)

    def draw_tensor(self, shape: tuple[int, ...]) -> Pattern:
        """Return the pattern of the next tensor of the shape `shape`."""
        first, number = self._patterns.get(shape, (None, 0))
        if first is None or number == len(WALSH):
            first, number = self._draw_first(shape), 0
        self._patterns[shape] = first, number + 1
        pattern: Pattern = first ^ np.uint8(WALSH[number])
        return pattern

    def _draw_first(self, shape: tuple[int, ...]) -> Pattern:
        """Return the first pattern of a shape, nowhere equal or opposite to recent patterns that broadcast to it."""
        earlier = [
            self._patterns[smaller][0]
            for smaller in self._patterns
            if smaller != shape and _broadcasts_to(smaller, shape)
        ]
        pattern = self._rng.integers(0, 256, shape, np.uint8)
        while (
            earlier
            and (
                is_parallel := np.any([PARALLEL[pattern ^ previous] for previous in earlier[-NEIGHBORS:]], axis=0)
            ).any()
        ):
            pattern = np.where(is_parallel, self._rng.integers(0, 256, shape, np.uint8), pattern)
        return pattern


def _broadcasts_to(shape: tuple[int, ...], larger: tuple[int, ...]) -> bool:
    """Return whether a tensor of a shape broadcasts to a larger shape."""
    pairs = zip(reversed(shape), reversed(larger), strict=False)
    return len(shape) <= len(larger) and all(size in (1, target) for size, target in pairs)


def make_perturbations(
    values: Mapping[str, Any], tested: Dtype, dtype: Dtype, rng: Generator
) -> dict[str, Perturbation | None]:
    """Return a function that perturbs an argument, for each argument.

    Args:
        values: the materialized arguments.
        tested: the element type under test.
        dtype: the element type of the result. Inputs are perturbed in this type if it is finer than their own.
        rng: the generator of the signs.

    Returns:
        For each argument name a function from the number of a round to the perturbed argument; None if the argument is
        not perturbed.
    """
    signs = SignPatterns(rng)
    perturbations = {
        name: _make_perturbation(values[name], tested, dtype, signs)
        for name in sorted(values, key=lambda n: _size(values[n]))
    }
    return {name: perturbations[name] for name in values}


def _size(value: Any) -> int:
    """Return the number of elements of a tensor, or of the largest tensor of a list; 0 for other values."""
    if isinstance(value, list):
        return max((_size(entry) for entry in value), default=0)
    return value.values.size if isinstance(value, TensorData) else 0


def _make_perturbation(value: Any, tested: Dtype, dtype: Dtype, signs: SignPatterns) -> Perturbation | None:
    """Return the function that perturbs an argument; None if it is not perturbed.

    Floating-point tensors are perturbed in their own type, or in the type of the result if that is finer, because the
    function then converts them first. If the case tests an integer type, integers that float32 can't represent are
    perturbed too, because their floating-point results are computed in float32. Float attributes are perturbed only if
    the type of the result can't represent them.

    Args:
        value: The argument.
        tested: The element type that the case tests.
        dtype: The type of the result.
        signs: Draws the directions of each element.

    Returns:
        A function from the number of a round to the perturbed argument; None if the argument is not perturbed.
    """
    if isinstance(value, list):
        entry_dtype = tested if is_inexact(tested) else dtype  # each entry of an array is computed separately
        entries = [_make_perturbation(entry, tested, entry_dtype, signs) for entry in value]
        if not any(entries):
            return None
        return lambda number: [
            move(number) if move else exact_value(entry) for move, entry in zip(entries, value, strict=True)
        ]
    if isinstance(value, TensorData):
        return _make_tensor_perturbation(value, tested, dtype, signs)
    if isinstance(value, float) and not _is_representable(value, dtype):
        pattern = signs.draw_scalar()
        return lambda number: float(_perturb(np.asarray(value), dtype, pattern, number))
    return None


def _make_tensor_perturbation(
    value: TensorData, tested: Dtype, dtype: Dtype, signs: SignPatterns
) -> Perturbation | None:
    """Return the function that perturbs a tensor; None if the tensor is not perturbed, such as an index tensor."""
    own_dtype, shape = value.spec.dtype, value.values.shape
    if is_inexact(own_dtype):
        finer = dtype if format_of(dtype).precision > format_of(own_dtype).precision else own_dtype
        patterns = [signs.draw_tensor(shape) for _ in range(1 + np.iscomplexobj(value.exact))]
        return lambda number: _perturb_parts(value.exact, finer, patterns, number)
    if own_dtype is tested and own_dtype is not Dtype.bool:
        pattern = signs.draw_tensor(shape)
        return lambda number: _perturb_integers(value.exact.astype(np.float64), pattern, number)
    return None


def _perturb_integers(integers: NDArray[Any], pattern: Pattern, number: int) -> NDArray[Any]:
    """Move integers by half an ulp of float32; integers that float32 represents are unchanged."""
    moved = _perturb(integers, Dtype.float32, pattern, number)
    return np.where(integers == integers.astype(np.float32), integers, moved)


def exact_value(value: Any) -> Any:
    """Return a materialized argument as references take it: arrays for tensors; attributes are unchanged."""
    if isinstance(value, list):
        return [exact_value(entry) for entry in value]
    return value.exact if isinstance(value, TensorData) else value


def _perturb_parts(exact: NDArray[Any], dtype: Dtype, patterns: list[Pattern], number: int) -> NDArray[Any]:
    """Perturb numbers, or both parts of complex numbers, with one pattern per part."""
    if not np.iscomplexobj(exact):
        return _perturb(exact, dtype, patterns[0], number)
    moved = np.empty_like(exact)
    moved.real, moved.imag = (  # not real + 1j · imaginary, which is NaN where the imaginary part is infinite
        _perturb(part, dtype, pattern, number) for part, pattern in zip((exact.real, exact.imag), patterns, strict=True)
    )
    return moved


@np.errstate(all="ignore")
def _perturb(exact: NDArray[Any], dtype: Dtype, pattern: Pattern, number: int) -> NDArray[Any]:
    """Move each nonzero finite number by `step_in_ulps` ulps of `dtype`, up if bit `number` of its pattern is set."""
    steps = np.where(pattern >> number & 1, step_in_ulps(dtype), -step_in_ulps(dtype))
    moves = np.isfinite(exact) & (exact != 0)  # rounding errors are relative: they do not change zero
    return np.where(moves, exact + steps * ulp(exact, dtype), exact)


def step_in_ulps(dtype: Dtype) -> float:
    """Return the size of a perturbation in ulps: 0.5, but 1 for float64, because the reference computes in float64."""
    return 1.0 if format_of(dtype).precision == 53 else 0.5


def _is_representable(value: float, dtype: Dtype) -> bool:
    """Return whether `value` is a number of type `dtype`, or is not finite."""
    return not np.isfinite(value) or float(np.remainder(value, ulp(value, dtype))) == 0

"""Faults of results: one element, the last block, the whole in a narrower type, what NaN and zeros become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from diopi_proto.types import Dtype
from diopi_test.audit.fault import Answer, Array, Fault
from diopi_test.formats import FORMATS
from lib_rt import poison_of
from lib_rt.dtypes import from_numpy, to_numpy


def _each(change: Callable[[Array], Array | None]) -> Callable[[Answer], bool]:
    """A fault of every result array by itself; `change` gives the wrong array, or None if it can't show there."""

    def spoil(answer: Answer) -> bool:
        shown = False
        for name, arrays in answer.results.items():
            for number, array in enumerate(arrays):
                wrong = change(array)
                if wrong is not None and wrong.tobytes() != array.tobytes():
                    answer.results[name][number] = wrong.reshape(array.shape)
                    shown = True
        return shown

    return spoil


def _element(position: Callable[[int], int]) -> Callable[[Array], Array | None]:
    """One element is wrong: by a tenth of itself and then some, negated where it is a truth value."""

    def change(array: Array) -> Array | None:
        if not array.size:
            return None
        wrong = array.copy().reshape(-1)
        index = position(array.size)
        value = wrong[index]
        if wrong.dtype == bool:
            wrong[index] = not value
        elif wrong.dtype.kind in "iu":
            wrong[index] = value ^ 1
        else:
            with np.errstate(all="ignore"):
                wrong[index] = 1 if not np.isfinite(value) else value * array.dtype.type(1.125) + array.dtype.type(1)
        return wrong

    return change


def _tail_unwritten(array: Array) -> Array | None:
    """The last partial block of sixteen is not computed."""
    start = (array.size - 1) // 16 * 16 if array.size > 16 else array.size - 1
    if not array.size:
        return None
    wrong = array.copy().reshape(-1)
    wrong.view(np.uint8).reshape(array.size, -1)[start:] = 0
    return wrong


def _is_float(array: Array) -> bool:
    return array.dtype.kind in "fc" or array.dtype == ml_dtypes.bfloat16


def _scaled(relative: float) -> Callable[[Array], Array | None]:
    def change(array: Array) -> Array | None:
        if not _is_float(array):
            return None
        with np.errstate(all="ignore"):
            return (array.astype(np.complex128 if array.dtype.kind == "c" else np.float64) * (1 + relative)).astype(
                array.dtype
            )

    return change


def _off_by_epsilons(array: Array) -> Array | None:
    """Every element is off by four times the distance from 1 to the next number."""
    if not _is_float(array):
        return None
    return _scaled(4 * float(ml_dtypes.finfo(array.dtype).eps))(array)


def _replaced(condition: Callable[[Array], Array], value: Callable[[Array], Any]) -> Callable[[Array], Array | None]:
    """Floating elements that meet a condition become something else."""

    def change(array: Array) -> Array | None:
        if not _is_float(array) or array.dtype.kind == "c":
            return None
        with np.errstate(all="ignore"):
            return np.where(condition(array), value(array), array).astype(array.dtype)

    return change


def _through(dtype: Dtype) -> Callable[[Array], Array | None]:
    """The result was computed in a narrower type and cast."""
    narrow = to_numpy(dtype)

    def change(array: Array) -> Array | None:
        own = next((d for d in FORMATS if to_numpy(d) == array.dtype), None)
        if own is None or FORMATS[own].precision <= FORMATS[dtype].precision:
            return None
        with np.errstate(all="ignore"):
            return array.astype(narrow).astype(array.dtype)

    return change


def _through_double(array: Array) -> Array | None:
    """Integers pass through double."""
    with np.errstate(invalid="ignore"):
        return array.astype(np.float64).astype(array.dtype) if array.dtype == np.int64 else None


def _transposed(array: Array) -> Array | None:
    """The elements of the last two axes come in the order of the transposed result."""
    return np.ascontiguousarray(np.swapaxes(array, -1, -2)).reshape(array.shape) if array.ndim >= 2 else None


def _stale() -> Callable[[Answer], bool]:
    """The result of the previous call for a tensor of the same form; right the first time."""
    previous: dict[Any, Array] = {}

    def spoil(answer: Answer) -> bool:
        stale = {(array.shape, array.dtype): array for array in answer.arrays()}
        shown = _each(lambda array: previous.get((array.shape, array.dtype)))(answer)
        previous.update(stale)
        return shown

    return spoil


def _poison(array: Array) -> Array:
    """Success without work: what fresh memory holds."""
    return np.frombuffer(poison_of(from_numpy(array.dtype)) * array.size, array.dtype)


def result_faults() -> tuple[Fault, ...]:
    """The faults of results, which every function can have."""
    return (
        Fault("first element wrong", _each(_element(lambda size: 0))),
        Fault("last element wrong", _each(_element(lambda size: size - 1))),
        Fault("one element in 2000 wrong", _each(_element(lambda size: 1999 % size))),
        Fault("last block not computed", _each(_tail_unwritten)),
        Fault("zeros", _each(np.zeros_like)),
        Fault("result of the previous call", _stale()),
        Fault("success without work", _each(_poison)),
        Fault("off by 4 eps", _each(_off_by_epsilons)),
        Fault("off by 1e-3", _each(_scaled(1e-3))),
        Fault("off by 4 %", _each(_scaled(0.04))),
        Fault("NaN dropped", _each(_replaced(np.isnan, np.zeros_like))),
        Fault("infinity clamped", _each(_replaced(np.isinf, lambda a: np.copysign(ml_dtypes.finfo(a.dtype).max, a)))),
        Fault("sign of zero lost", _each(_replaced(lambda a: a == 0, np.zeros_like))),
        Fault("computed in bfloat16", _each(_through(Dtype.bfloat16))),
        Fault("computed in float16", _each(_through(Dtype.float16))),
        Fault("computed in float32", _each(_through(Dtype.float32))),
        Fault("integers through double", _each(_through_double)),
        Fault("result transposed", _each(_transposed)),
    )

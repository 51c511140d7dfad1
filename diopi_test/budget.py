"""The error budget of a result element, derived from the reference alone: K · (s + ulp(ref) + eps · m).

s is how much the problem itself amplifies rounding: the largest change of the reference under random half-ulp
perturbations of its floating inputs. m is the size of intermediate terms that a sound algorithm may cancel, declared
by the reference and zero nearly everywhere. docs/budgets.md tells how K, R and each m were found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.data import TensorData
from diopi_test.formats import FloatArray, format_of, is_inexact, is_subnormal, ulp

K = 8.0
"""Largest accepted ratio of an element's error to s + ulp + eps · m."""

R = 1.0
"""Largest accepted root mean square of those ratios over a result of at least `R_ELEMENTS` elements."""

R_ELEMENTS = 20

PERTURBATIONS = 8

Evaluate = Callable[[Mapping[str, Any]], list[NDArray[Any]]]
"""From argument values to the reference's result arrays."""


def amplification(
    evaluate: Evaluate, values: Mapping[str, Any], results: list[NDArray[Any]], dtype: Dtype, rng: Generator
) -> list[FloatArray]:
    """s of every element of every result.

    Args:
        evaluate: the reference.
        values: materialised arguments.
        results: the reference's results for them.
        dtype: the element type under test, in which inexact float attributes are perturbed.
        rng: source of the perturbations' signs.
    """
    largest = [np.zeros(result.shape) for result in results]
    if not any(_is_perturbable(value, dtype) for value in values.values()):
        return largest
    for _ in range(PERTURBATIONS):
        moved = evaluate({name: _perturbed(value, dtype, rng) for name, value in values.items()})
        for i, (result, other) in enumerate(zip(results, moved, strict=True)):
            if result.shape == other.shape and result.dtype.kind in "fc":
                with np.errstate(all="ignore"):
                    change = np.abs(other - result)
                largest[i] = np.maximum(largest[i], np.where(np.isfinite(change), change, 0))
    return largest


def blur(reference: NDArray[Any], amplified: FloatArray, terms: Any, dtype: Dtype) -> FloatArray:
    """(s + ulp + eps · m) / ulp for each element, at least 1; 1 where the reference is not finite."""
    spacing = ulp(reference, dtype)
    with np.errstate(all="ignore"):
        ratio = (amplified + spacing + format_of(dtype).epsilon * np.asarray(terms)) / spacing
    return np.where(np.isfinite(ratio), ratio, 1.0)


def flushed(value: Any) -> Any:
    """An argument as an implementation sees it that takes subnormal numbers for zero."""
    if isinstance(value, list):
        return [flushed(entry) for entry in value]
    if not isinstance(value, TensorData) or not is_inexact(value.spec.dtype):
        return value.exact if isinstance(value, TensorData) else value
    exact = value.exact
    if np.iscomplexobj(exact):
        return exact
    return np.where(is_subnormal(exact, value.spec.dtype), np.copysign(0.0, exact), exact)


def has_subnormals(value: Any) -> bool:
    """Whether an argument holds subnormal numbers of its element type."""
    if isinstance(value, list):
        return any(has_subnormals(entry) for entry in value)
    if not isinstance(value, TensorData) or not is_inexact(value.spec.dtype):
        return False
    return bool(is_subnormal(value.exact, value.spec.dtype).any())


def _is_perturbable(value: Any, dtype: Dtype) -> bool:
    if isinstance(value, list):
        return any(_is_perturbable(entry, dtype) for entry in value)
    if isinstance(value, TensorData):
        return is_inexact(value.spec.dtype) or bool(_rounded_integers(value).any())
    return isinstance(value, float) and is_inexact(dtype) and not _representable(value, dtype).all()


def _perturbed(value: Any, dtype: Dtype, rng: Generator) -> Any:
    """The argument moved by half an ulp, up or down at random.

    Attributes are moved only if the dtype can't represent them, integers only if float32, in which floating
    functions of integers are computed, can't.
    """
    if isinstance(value, list):
        return [_perturbed(entry, dtype, rng) for entry in value]
    if not _is_perturbable(value, dtype):
        return value.exact if isinstance(value, TensorData) else value
    if not isinstance(value, TensorData):
        return float(_moved(np.asarray(value), dtype, rng))
    if is_inexact(value.spec.dtype):
        return _moved(value.exact, value.spec.dtype, rng)
    exact = value.exact.astype(np.float64)
    return np.where(_rounded_integers(value), _moved(exact, Dtype.float32, rng), exact)


def _rounded_integers(value: TensorData) -> NDArray[np.bool_]:
    if is_inexact(value.spec.dtype) or value.values.itemsize < 4:
        return np.zeros(value.values.shape, bool)
    return ~_representable(value.exact, Dtype.float32)


def _moved(exact: NDArray[Any], dtype: Dtype, rng: Generator) -> NDArray[Any]:
    if np.iscomplexobj(exact):
        real, imaginary = (_moved(part, dtype, rng) for part in (exact.real, exact.imag))
        return real + 1j * imaginary
    steps = np.where(rng.integers(0, 2, exact.shape, dtype=np.int8), 0.5, -0.5)
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(exact), exact + steps * ulp(exact, dtype), exact)


def _representable(values: Any, dtype: Dtype) -> NDArray[np.bool_]:
    """Where `values` are numbers of the format, or not finite."""
    values = np.asarray(values, np.float64)
    with np.errstate(all="ignore"):
        return ~np.isfinite(values) | (np.remainder(values, ulp(values, dtype)) == 0)

"""Measure how much a function amplifies rounding: how much its reference changes if the inputs are perturbed.

The largest change of each result element is *s* in its error budget (`budget.py`), because even a correct
implementation may have an error of this size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.oracle.perturbation import ROUNDS, exact_value, make_perturbations, step_in_ulps
from lib_rt.formats import FloatArray, format_of, is_inexact

Evaluate = Callable[[Mapping[str, Any]], list[NDArray[Any]]]
"""Maps argument values to the reference's result arrays."""


def measure_amplification(
    evaluate: Evaluate,
    values: Mapping[str, Any],
    results: Sequence[NDArray[Any]],
    dtypes: Sequence[Dtype],
    tested: Dtype,
    seed: Callable[[], Generator],
) -> list[FloatArray]:
    """Return the amplification of every element of every result.

    Args:
        evaluate: the reference.
        values: the materialized arguments.
        results: the reference's results for the unperturbed arguments.
        dtypes: the element types of the results.
        tested: the element type under test.
        seed: returns a generator for the signs of the perturbations, with the same seed at every call.

    Returns:
        For each result an array of its shape: the largest change of each element for perturbations of half an ulp, as
        an absolute number. It is 0 for integer and bool results.
    """
    amplified = [np.zeros(result.shape) for result in results]
    for dtype in dict.fromkeys(dtype for dtype in dtypes if is_inexact(dtype)):
        finer = dtype if not is_inexact(tested) or _significand_bits(dtype) >= _significand_bits(tested) else tested
        for i, change in enumerate(_largest_changes(evaluate, values, results, tested, finer, seed())):
            if dtypes[i] is dtype:
                amplified[i] = change
    return amplified


def _largest_changes(
    evaluate: Evaluate,
    values: Mapping[str, Any],
    results: Sequence[NDArray[Any]],
    tested: Dtype,
    dtype: Dtype,
    rng: Generator,
) -> list[FloatArray]:
    """Return the largest change of each result element over all rounds of perturbed inputs.

    Args:
        evaluate: the reference.
        values: the materialized arguments.
        results: the reference's results for the unperturbed arguments.
        tested: the element type under test.
        dtype: an element type: an input is perturbed by ulps of this type if it is finer than the input's own type.
        rng: the generator for the signs of the perturbations.

    Returns:
        For each result an array of its shape: the largest absolute change, scaled to perturbations of half an ulp.
    """
    largest = [np.zeros(result.shape) for result in results]
    perturbations = make_perturbations(values, tested, dtype, rng)
    if not any(perturbations.values()) or not any(result.dtype.kind in "fc" for result in results):
        return largest
    # the move of an attribute may cancel the move of an input, so one more round leaves attributes unperturbed
    tensors = {name: None if isinstance(values[name], float) else move for name, move in perturbations.items()}
    for round_number, active in [
        *((n, perturbations) for n in range(ROUNDS)),
        *([(0, tensors)] if tensors != perturbations else []),
    ]:
        perturbed = evaluate(
            {name: move(round_number) if move else exact_value(values[name]) for name, move in active.items()}
        )
        largest = [
            np.maximum(maximum, _absolute_change(a, b))
            for maximum, a, b in zip(largest, results, perturbed, strict=True)
        ]
    return [0.5 / step_in_ulps(dtype) * maximum for maximum in largest]


def _significand_bits(dtype: Dtype) -> int:
    """Return the number of significand bits of an element type."""
    return format_of(dtype).precision


def _absolute_change(result: NDArray[Any], perturbed: NDArray[Any]) -> FloatArray:
    """Return |perturbed − result|; 0 for integer and bool results, for unequal shapes, and where it is not finite.

    A part of a complex difference that is not finite counts as 0; the other part counts.
    """
    if result.dtype.kind not in "fc" or result.shape != perturbed.shape:
        return np.zeros(result.shape)
    with np.errstate(all="ignore"):
        change = np.asarray(perturbed - result)
    if change.dtype.kind == "c":
        return np.hypot(*(np.where(np.isfinite(part), part, 0) for part in (change.real, change.imag)))
    return np.where(np.isfinite(change), np.abs(change), 0)

"""Probes of the errors of elementary functions such as exp, in units in the last place (ulp).

A half-precision type is probed at every number, float32 at a fixed sample of 65,536 numbers. The true values are those
of the suite's float64 reference.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import narrow
from diopi_proto.implementations import takes_out
from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOverride
from diopi_test.fingerprint.probe import Observations, Probe, ProbedOperator, single_variants
from diopi_test.fingerprint.samples import sweep
from diopi_test.oracle.reference import find_reference, strip_remarks
from lib_rt.formats import flush_to_zero, format_of, ulp

Floats = NDArray[np.float64]

FUNCTIONS = (
    "diopiSqrt",
    "diopiRsqrt",
    "diopiReciprocal",
    "diopiExp",
    "diopiExpm1",
    "diopiLog",
    "diopiLog2",
    "diopiLog10",
    "diopiLog1p",
    "diopiSin",
    "diopiCos",
    "diopiTan",
    "diopiAsin",
    "diopiAcos",
    "diopiAtan",
    "diopiSinh",
    "diopiCosh",
    "diopiTanh",
    "diopiAsinh",
    "diopiAcosh",
    "diopiAtanh",
    "diopiErf",
    "diopiErfinv",
    "diopiSigmoid",
    "diopiSilu",
)
"""The functions that are probed; each has one argument and one result."""


def measure(operator: ProbedOperator, dtype: Dtype) -> Observations:
    """Observe the largest error and its argument, how often the result is the nearest number, and special values.

    A special value is a true value that is zero, infinite or NaN. Results that are wrong because a subnormal number was
    flushed to zero are counted separately.

    Args:
        operator: the function.
        dtype: the element type of the arguments and results.

    Returns:
        The observations in words: `largest error`, `nearest` (the share of results that are the nearest number),
        `flushed` (the number of results that are wrong because of flushing), and `special values`.
    """
    numbers = sweep(dtype)
    with np.errstate(all="ignore"):
        exact = numbers.astype(np.float64)
        truth, flushed = (find_truth(operator.name, values, dtype) for values in (exact, flush_to_zero(exact, dtype)))
        result = operator(numbers, shape=numbers.shape, dtype=dtype).astype(np.float64)
        errors = error(result, truth, dtype)
        special = ~np.isfinite(truth) | (truth == 0)
        is_correct = np.where(special, _same(result, truth), errors <= 0.5)
        only_flushed = ~is_correct & _is_flushed(result, truth, flushed, dtype)
    counted = ~special & ~only_flushed
    return {
        "largest error": _describe_largest(errors, counted, exact),
        "nearest": _share(is_correct[counted]),
        "flushed": str(np.count_nonzero(only_flushed)) if only_flushed.any() else "none",
        "special values": _describe_wrong(special & ~is_correct & ~only_flushed, exact, truth, result),
    }


def _is_flushed(result: Floats, truth: Floats, flushed: Floats, dtype: Dtype) -> NDArray[np.bool_]:
    """Return a mask of the results that would be correct if subnormal arguments and results were flushed to zero.

    Where flushing makes no difference, the mask is false.

    Args:
        result: the results of the vendor.
        truth: the true values.
        flushed: the true values after subnormal arguments are replaced by zero.
        dtype: the element type of the results.
    """
    as_if = flush_to_zero(flushed, dtype)
    matters = ~_same(as_if, truth) & ~(error(as_if, truth, dtype) <= 0.5)
    flushes: NDArray[np.bool_] = matters & (_same(result, as_if) | (error(result, as_if, dtype) <= 0.5))
    return flushes


def _share(holds: NDArray[np.bool_]) -> str:
    """Return the share of true elements as a percentage with two decimals, rounded down; "always" if all are true."""
    return "always" if holds.all() else f"{np.floor(1e4 * holds.mean()) / 100:.2f} %"


def _same(result: Floats, truth: Floats) -> NDArray[np.bool_]:
    """Return a mask of the elements that are equal, including the sign of zero, or both NaN."""
    is_same: NDArray[np.bool_] = (result == truth) & (np.signbit(result) == np.signbit(truth))
    return is_same | (np.isnan(result) & np.isnan(truth))


def find_truth(name: str, values: Floats, dtype: Dtype) -> Floats:
    """Return the true values of a function by the suite's reference, in float64.

    Args:
        name: the name of the function, which has one argument and one result.
        values: the arguments.
        dtype: the element type of the vendor's result, which some references need.
    """
    function = find_reference(name)
    assert function is not None
    keywords = {"out": ResultOverride(dtype)} if takes_out(function) else {}
    return np.asarray(strip_remarks(function(values, **keywords)), np.float64)


def error(result: Floats, truth: Floats, dtype: Dtype) -> Floats:
    """Return the distance of each result from the true value, in units in the last place of the true value.

    The distance of NaN is infinite. An infinite number counts as the number after the largest one, so that a correct
    overflow has no error.

    Args:
        result: the results of the vendor.
        truth: the true values, of the same shape.
        dtype: the element type of the results.
    """
    form = format_of(dtype)
    beyond = 2.0 ** (form.max_exponent + 1)
    finite = np.where(np.isinf(result), np.copysign(beyond, result), result)
    clipped_truth = np.clip(truth, -beyond, beyond)
    distance = np.abs(finite - clipped_truth) / ulp(np.clip(clipped_truth, -form.largest, form.largest), dtype)
    return np.where(np.isnan(result), np.inf, distance)


def _describe_largest(errors: Floats, counted: NDArray[np.bool_], numbers: Floats) -> str:
    """Return the largest of the counted errors, and the argument at which it occurs, as text.

    Args:
        errors: the error of each result in ulp.
        counted: a mask of the errors that count.
        numbers: the arguments of the function.
    """
    worst = int(np.argmax(np.where(counted, errors, -1)))
    size = errors[worst]
    in_words = "NaN" if np.isinf(size) else f"{size:.3f} ulp" if size < 1000 else f"{size:.3g} ulp"
    return f"{in_words} at {numbers[worst]:.9g}"


def _describe_wrong(is_wrong: NDArray[np.bool_], numbers: Floats, truth: Floats, result: Floats) -> str:
    """Return "right" if no result is wrong; otherwise the number of wrong results and the first one as an example.

    Args:
        is_wrong: a mask of the wrong results.
        numbers: the arguments of the function.
        truth: the true values.
        result: the results of the vendor.
    """
    if not is_wrong.any():
        return "right"
    first = int(np.argmax(is_wrong))
    example = f"{numbers[first]:.9g} gives {result[first]:.9g}, not {truth[first]:.9g}"
    return f"{np.count_nonzero(is_wrong)} wrong: {example}"


PROBES = tuple(Probe(function=function, measure=measure, variants=single_variants(*narrow)) for function in FUNCTIONS)
"""One probe per function, for float32 and the half-precision types."""

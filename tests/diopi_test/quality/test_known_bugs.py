"""Bugs that were found in ONNX Runtime, oneDNN and PyTorch, simulated on the smoke cases: what the diagnoses say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, Error
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, BaselineTensor
from diopi_test.quality.diagnoses import assign_groups, run_cases_on_mutant
from diopi_test.quality.mutation.mutant import Effect, Mutant, SimulatedCall
from diopi_test.results.causes.cause import Cause
from diopi_test.results.causes.severity import Severity
from diopi_test.results.records import CaseRecord

Array = NDArray[Any]
Change = Callable[[Array, BaselineCase], Array]
"""Returns the wrong result of a case for the correct one."""


def records_with(function: str, change: Change) -> list[CaseRecord]:
    """Return the records of the smoke cases of a function whose floating-point and integer results are changed."""

    def corrupt(call: SimulatedCall) -> Effect:
        name = next(iter(call.results))
        with np.errstate(all="ignore"):
            call.results[name] = [
                np.asarray(change(array, call.case)).astype(array.dtype) for array in call.results[name]
            ]
        return Effect.changed

    cases = [compute_baseline_case(lookup(function), case) for case in select_cases(function, "smoke")]
    return list(run_cases_on_mutant(Mutant(name="bug", corrupt=corrupt), cases))


def causes_with(function: str, change: Change) -> list[Cause]:
    """Return the causes that a run finds if a bug changes the results of a function."""
    return list(assign_groups(records_with(function, change))[1])


def tensor(case: BaselineCase, name: str = "input") -> Array:
    """Return the values of a tensor argument."""
    argument = case.arguments[name]
    assert isinstance(argument, BaselineTensor)
    return argument.values


def inaccurate_below_minus_3(result: Array, case: BaselineCase) -> Array:
    """Make results increasingly wrong for inputs below −3."""
    if case.dtype not in (Dtype.float32, Dtype.float64):
        return result
    distance: Array = np.clip(-3 - tensor(case), 0, 100)
    return result * (1 + (1e-4 if case.dtype is Dtype.float32 else 1e-13) * distance)


def test_sigmoid_of_onnx_runtime_is_an_approximation_outside_its_range() -> None:
    (cause,) = causes_with("diopiSigmoid", inaccurate_below_minus_3)
    assert cause.sentence == "errors beyond the budget if an input is below a bound"
    assert (cause.diagnosis, cause.severity) == ("intrinsic-outside-its-range", Severity.major)


def test_max_pooling_of_onnx_runtime_starts_at_the_lowest_number() -> None:
    def lowest(result: Array, case: BaselineCase) -> Array:
        return np.maximum(result, -float(np.finfo(np.float32).max)) if case.dtype is Dtype.float32 else result

    (cause,) = causes_with("diopiMaxPool2d", lowest)
    assert cause.diagnosis == "accumulator-starts-at-lowest"


def test_max_pooling_of_onnx_runtime_drops_nan() -> None:
    (cause,) = causes_with("diopiMaxPool2d", lambda result, case: np.nan_to_num(result, nan=11.5, neginf=-np.inf))
    assert cause.diagnosis == "nan-dropped"


def test_integer_sums_of_onnx_runtime_pass_through_float64() -> None:
    def through_float64(result: Array, case: BaselineCase) -> Array:
        if result.dtype != np.int64:
            return result
        wide = result.astype(np.float64)
        return np.where(np.abs(wide) > 2**62, np.iinfo(np.int64).min, wide.astype(np.int64))

    found = causes_with("diopiSum", through_float64)
    assert [cause.diagnosis for cause in found] == ["integers-through-floating-point"]


def test_means_of_nothing_of_onnx_runtime_are_zero() -> None:
    found = causes_with("diopiMean", lambda result, case: result if tensor(case).size else np.zeros_like(result))
    assert [cause.diagnosis for cause in found] == ["reduction-of-nothing"]


def test_gelu_of_onnx_runtime_has_constants_of_float32() -> None:
    def coarse(result: Array, case: BaselineCase) -> Array:
        noise = np.random.default_rng(3).normal(size=result.shape) * 2.0**-27
        return result * (1 + noise) if case.dtype is Dtype.float64 else result

    found = causes_with("diopiGelu", coarse)
    assert {cause.diagnosis for cause in found} == {"arithmetic-in-narrower-type"}


def test_argmax_of_onnx_runtime_ignores_nan() -> None:
    def ignoring(result: Array, case: BaselineCase) -> Array:
        values, axis = tensor(case), case.plain_arguments()["dim"]
        if values.dtype.kind != "f" or not np.isnan(values).any():
            return result
        found = np.argmax(np.nan_to_num(values, nan=-np.inf), axis)
        return np.asarray(found).reshape(result.shape)

    found = causes_with("diopiArgmax", ignoring)
    assert [cause.diagnosis for cause in found] == ["nan-compared"]


def test_leaky_relu_of_onnx_runtime_has_a_slope_of_float32() -> None:
    def coarse(result: Array, case: BaselineCase) -> Array:
        slope = case.plain_arguments()["negative_slope"]
        values = tensor(case)
        return np.where(values < 0, values * float(np.float32(slope)), result) if values.dtype == "f8" else result

    found = [cause for cause in causes_with("diopiLeakyRelu", coarse) if cause.severity is Severity.major]
    assert {cause.diagnosis for cause in found} == {"inexact-constant"}


def test_leaky_relu_gradient_of_onednn_takes_nan_for_a_positive_number() -> None:
    def without_slope(result: Array, case: BaselineCase) -> Array:
        return np.where(np.isnan(tensor(case)), tensor(case, "grad_output"), result)

    found = causes_with("diopiLeakyReluBackward", without_slope)
    assert [cause.diagnosis for cause in found] == ["nan-compared"]


def test_hardswish_gradient_of_onednn_multiplies_by_zero() -> None:
    def multiplied(result: Array, case: BaselineCase) -> Array:
        gradient = tensor(case, "grad_output")
        return np.where((result == 0) & ~np.isfinite(gradient), np.nan, result)

    found = causes_with("diopiHardswishBackward", multiplied)
    assert {cause.diagnosis for cause in found} == {"masked-by-multiplication"}


def test_sign_of_nan_of_onnx_runtime_has_no_diagnosis() -> None:
    found = causes_with("diopiSign", lambda result, case: np.where(np.isnan(tensor(case)), np.nan, result))
    assert [cause.diagnosis for cause in found] == [""]


def test_relu_gradient_of_onednn_multiplies_by_zero() -> None:
    def multiplied(result: Array, case: BaselineCase) -> Array:
        passes = tensor(case) > np.asarray(case.plain_arguments()["threshold"])
        return np.asarray(tensor(case, "grad_output") * passes)

    found = causes_with("diopiThresholdBackward", multiplied)
    assert found[0].diagnosis == "masked-by-multiplication"


def test_products_of_integers_of_onednn_saturate() -> None:
    def saturated(result: Array, case: BaselineCase) -> Array:
        if case.dtype is not Dtype.int8:
            return result
        exact = tensor(case).astype(np.int64) * tensor(case, "other")
        return np.clip(exact, -128, 127)

    found = causes_with("diopiMul", saturated)
    assert [cause.diagnosis for cause in found] == ["integers-saturate"]


def test_logarithm_of_onednn_has_too_few_digits() -> None:
    def inaccurate(result: Array, case: BaselineCase) -> Array:
        noise = np.random.default_rng(3).normal(size=result.shape) * 2.0**-20
        return result + noise if case.dtype is Dtype.float32 else result

    found = causes_with("diopiLog", inaccurate)
    assert found[0].diagnosis == "inaccurate-approximation"


@pytest.mark.parametrize(("dtype", "lost"), [(Dtype.float16, 2.0**-6), (Dtype.bfloat16, 2.0**-2)])
def test_long_sums_of_pytorch_are_accumulated_in_half_precision(dtype: Dtype, lost: float) -> None:
    def stagnating(result: Array, case: BaselineCase) -> Array:
        return result * (1 - lost) if case.dtype is dtype else result

    found = causes_with("diopiIndexBackward", stagnating)
    assert {cause.diagnosis for cause in found} == {"half-accumulated-in-half"}


def test_engines_of_onednn_that_cannot_be_created_have_one_cause() -> None:
    message = "ErrorOccurred: could not create an engine"
    records = [
        replace(record, verdict=Verdict.failed, checks=(), message=message, error_code=Error.ErrorOccurred.name)
        for function in ("diopiExp", "diopiRelu")
        for record in records_with(function, lambda result, case: result)
    ]
    (cause,) = assign_groups(records)[1]
    assert (cause.diagnosis, len(cause.functions)) == ("engine-cannot-start", 2)

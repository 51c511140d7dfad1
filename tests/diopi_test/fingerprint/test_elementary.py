"""Known errors of elementary functions are found with their size and position."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from small_vendor import Array, small_vendor

from diopi_impl import Vendor
from diopi_proto.types import Dtype
from diopi_test.fingerprint.elementary import PROBES, error
from diopi_test.fingerprint.samples import SIZE, significands, sweep


def measure(vendor: Vendor, function: str, dtype: Dtype) -> Mapping[str, str]:
    """Return the observations of the probe of an elementary function."""
    probe = next(probe for probe in PROBES if probe.function == function)
    with vendor.open_device() as device:
        return probe.observations(vendor, device, [dtype])


def in_float64(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a function that computes in float64 and rounds the result."""

    def compute(input: Array) -> Array:
        return function(input.astype(np.float64)).astype(input.dtype)

    return compute


@pytest.mark.parametrize("dtype", [Dtype.float16, Dtype.bfloat16])
def test_a_sweep_contains_every_number_once(dtype: Dtype) -> None:
    assert sorted(sweep(dtype).view(np.uint16).tolist()) == list(range(SIZE))


def test_a_sample_of_float32_has_every_prefix_once() -> None:
    bits = sweep(Dtype.float32).view(np.uint32)
    assert sorted((bits >> 16).tolist()) == list(range(SIZE))
    assert len(set((bits & 0xFFFF).tolist())) > SIZE // 2


@pytest.mark.parametrize("dtype", [Dtype.float16, Dtype.bfloat16, Dtype.float32, Dtype.float64])
def test_significands_are_between_one_and_two_with_random_low_bits(dtype: Dtype) -> None:
    first, second = (significands(dtype, seed).astype(np.float64) for seed in (0, 1))
    assert ((first >= 1) & (first < 2)).all()
    assert len(np.unique(first)) > 100
    assert not np.array_equal(first, second)
    assert np.mean(first * 2.0**7 % 1 != 0) > 0.4 or dtype is Dtype.bfloat16


def test_errors_are_measured_in_units_in_the_last_place() -> None:
    truth = np.array([1.0, 1.0, 0.999, 65504.0, 1e9, np.nan])
    result = np.array([1 + 2**-10, 1 - 2**-11, 0.999 + 2**-11, np.inf, np.inf, 1.0])
    assert error(result, truth, Dtype.float16)[:5] == pytest.approx([1, 0.5, 1, 1, 0])
    assert np.isinf(error(np.array([np.nan]), np.array([1.0]), Dtype.float16))


@pytest.mark.parametrize("dtype", [Dtype.float16, Dtype.bfloat16, Dtype.float32])
def test_a_correctly_rounded_function_is_detected(dtype: Dtype) -> None:
    observations = measure(small_vendor(diopiSqrt=in_float64(np.sqrt)), "diopiSqrt", dtype)
    assert observations["largest error"].startswith(("0.500 ulp at", "0.499 ulp at"))
    remaining = {aspect: observations[aspect] for aspect in ("nearest", "flushed", "special values")}
    assert remaining == {"nearest": "always", "flushed": "none", "special values": "right"}


def test_a_single_wrong_result_is_found() -> None:
    def exp(input: Array) -> Array:
        result = in_float64(np.exp)(input)
        return np.where(input == 1.5, result + np.float16(5 * 2**-8), result)  # e^1.5 lies between 4 and 8

    observations = measure(small_vendor(diopiExp=exp), "diopiExp", Dtype.float16)
    size, _, place = observations["largest error"].partition(" ulp at ")
    assert (4.5 < float(size) < 5.5, place) == (True, "1.5")
    assert observations["nearest"] == "99.99 %"


def test_flushed_results_are_counted_separately() -> None:
    def exp(input: Array) -> Array:
        result = in_float64(np.exp)(input)
        return np.where(np.abs(result) < np.finfo(np.float16).tiny, np.zeros_like(result), result)

    preserved, flushed = (
        measure(small_vendor(diopiExp=function), "diopiExp", Dtype.float16) for function in (in_float64(np.exp), exp)
    )
    assert preserved["flushed"] == "none"
    assert int(flushed["flushed"]) > 100
    assert (preserved["largest error"], preserved["nearest"]) == (flushed["largest error"], flushed["nearest"])


def test_flushed_arguments_are_not_wrong_special_values() -> None:
    def sqrt(input: Array) -> Array:
        return in_float64(np.sqrt)(np.where(np.abs(input) < np.finfo(np.float16).tiny, 0 * input, input))

    observations = measure(small_vendor(diopiSqrt=sqrt), "diopiSqrt", Dtype.float16)
    assert observations["special values"] == "right"
    assert int(observations["flushed"]) == 2 * 1023


@pytest.mark.parametrize(
    ("value", "instead", "words"),
    [
        (np.inf, 1.0, "1 wrong: inf gives 1, not inf"),
        (-0.0, 0.0, "1 wrong: -0 gives 0, not -0"),
        (-1.0, 2.0, "1 wrong: -1 gives 2, not nan"),
    ],
)
def test_wrong_special_values_are_shown(value: float, instead: float, words: str) -> None:
    def sqrt(input: Array) -> Array:
        hit = (input == value) & (np.signbit(input) == np.signbit(value))
        return np.where(hit, np.array(instead, input.dtype), np.sqrt(input))

    assert measure(small_vendor(diopiSqrt=sqrt), "diopiSqrt", Dtype.float16)["special values"] == words


def test_nan_instead_of_a_number_is_reported() -> None:
    def sqrt(input: Array) -> Array:
        return np.where(input == 4, np.array(np.nan, input.dtype), np.sqrt(input))

    assert measure(small_vendor(diopiSqrt=sqrt), "diopiSqrt", Dtype.float16)["largest error"] == "NaN at 4"

"""Subnormal numbers, conversions, multiply-add, NaN and division in NumPy vendors with known arithmetic."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from small_vendor import Array, small_vendor

from diopi_impl import Vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_impl.specs import ResultSpec
from diopi_proto.interface import lookup
from diopi_proto.parameters import Role
from diopi_proto.types import Dtype, Error, RoundMode
from diopi_test.fingerprint import conversions, division, fusion, nans, subnormals
from diopi_test.fingerprint.probe import Probe
from lib_rt import Context, Tensor
from lib_rt.dtypes import from_numpy, to_numpy


def measure(vendor: Vendor, probe: Probe, *dtypes: Dtype) -> Mapping[str, str]:
    """Return the observations of a probe on a vendor."""
    with vendor.open_device() as device:
        return probe.observations(vendor, device, dtypes)


def probe_of(probes: Sequence[Probe], function: str, *dtypes: Dtype) -> Probe:
    """Return the probe of a function, and of a variant with these element types if there are any."""
    return next(probe for probe in probes if probe.function == function and (not dtypes or dtypes in probe.variants))


def unchanged(x: Array) -> Array:
    """Return x."""
    return x


def zero(x: Array) -> Array:
    """Replace subnormal numbers by zeros with the same signs."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(np.zeros_like(x), x), x)


def positive_zero(x: Array) -> Array:
    """Replace subnormal numbers by +0."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.zeros_like(x), x)


def make_multiplying_vendor(before: Callable[[Array], Array], after: Callable[[Array], Array]) -> Vendor:
    """Return a vendor that changes the factors before, and the product after a multiplication."""

    def mul(input: Array, other: Array) -> Array:
        return after(before(input) * before(other))

    return small_vendor(diopiMul=mul)


@pytest.mark.parametrize("dtype", [Dtype.float16, Dtype.float32, Dtype.float64])
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (unchanged, unchanged, ("kept", "kept")),
        (zero, unchanged, ("flushed", "kept")),
        (unchanged, zero, ("kept", "flushed")),
        (positive_zero, positive_zero, ("flushed, sign of zero lost", "flushed, sign of zero lost")),
    ],
    ids=["kept", "arguments flushed", "results flushed", "to positive zero"],
)
def test_handling_of_subnormal_numbers_is_detected(
    dtype: Dtype, before: Callable[[Array], Array], after: Callable[[Array], Array], expected: tuple[str, str]
) -> None:
    observations = measure(make_multiplying_vendor(before, after), probe_of(subnormals.PROBES, "diopiMul"), dtype)
    assert (observations["arguments"], observations["results"]) == expected


def test_inconsistent_or_wrong_subnormal_results_are_shown() -> None:
    probe = probe_of(subnormals.PROBES, "diopiNeg")
    partly = small_vendor(diopiNeg=lambda input: -np.where(input > 0, input, zero(input)))
    assert measure(partly, probe, Dtype.float32) == {"moved": "kept in 4 of 8"}
    vendor = small_vendor(diopiNeg=lambda input: -input * 4)
    assert measure(vendor, probe, Dtype.float32) == {"moved": "-5.60519e-45 for -1.4013e-45"}


class Truthful(Vendor):
    """A vendor that answers every call with `compute` of the tensors among the arguments."""

    def __init__(self, compute: Callable[..., Array]) -> None:
        super().__init__("truthful", "1", HostRuntime().functions(), host_addressable=True)
        self._compute = compute

    def has(self, name: str) -> bool:
        return True

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        context.stream.synchronize()
        passed = list(zip(lookup(name).parameters[1:], arguments, strict=True))
        (result,) = (value for parameter, value in passed if parameter.role is Role.output)
        tensors = [value.view() for _, value in passed if isinstance(value, Tensor) and value is not result]
        with np.errstate(all="ignore"):
            result.view()[...] = self._compute(*tensors)
        return Error.Success


@pytest.mark.parametrize("change", [unchanged, zero])
@pytest.mark.parametrize("probe", subnormals.PROBES, ids=lambda probe: probe.function)
def test_flushing_is_reported_for_each_function(probe: Probe, change: Callable[[Array], Array]) -> None:
    truth = subnormals.PROBED_FUNCTIONS[probe.function].truth

    def compute(*values: Array) -> Array:
        result = truth(*(change(value).astype(np.float64) for value in values))
        return result if result.dtype == bool else change(result.astype(values[0].dtype))

    expected = "kept" if change is unchanged else "flushed"
    assert set(measure(Truthful(compute), probe, Dtype.float32).values()) == {expected}


Cast = Callable[[Array, ResultSpec], Array]


def make_casting_vendor(cast: Cast) -> Vendor:
    """Return a vendor with this conversion of element types."""

    def convert(input: Array, *, out: ResultSpec) -> Array:
        return cast(input, out)

    return small_vendor(diopiCastDtype=convert)


def measure_cast(cast: Cast, source: Dtype, target: Dtype) -> Mapping[str, str]:
    """Return the observations about a conversion between two element types."""
    probes = [*conversions.TO_FLOATS, *conversions.TO_INTEGERS, *conversions.TO_BOOL]
    return measure(make_casting_vendor(cast), probe_of(probes, "diopiCastDtype", source, target), source, target)


def round_to_nearest(input: Array, out: ResultSpec) -> Array:
    """Convert with rounding to nearest."""
    return input.astype(to_numpy(out.dtype))


def truncate_to_bfloat16(input: Array, out: ResultSpec) -> Array:
    """Return the bfloat16 number that is the upper half of a float32 number."""
    return (np.ascontiguousarray(input).view(np.uint32) >> 16).astype(np.uint16).view(ml_dtypes.bfloat16)


def cast_with_saturation(input: Array, out: ResultSpec) -> Array:
    """Convert to float16 with saturation instead of overflow."""
    largest = np.finfo(np.float16).max
    return np.clip(input, -largest, largest).astype(np.float16)


def without_subnormals(input: Array, out: ResultSpec) -> Array:
    """Convert to float16 and flush subnormal results to zero."""
    return zero(input.astype(np.float16))


def by_way_of_float32(input: Array, out: ResultSpec) -> Array:
    """Convert to float16 through float32, which rounds twice."""
    return input.astype(np.float32).astype(np.float16)


def ties_away(input: Array, out: ResultSpec) -> Array:
    """Round by adding half of the last digit and truncating."""
    bits = np.ascontiguousarray(input).view(np.uint32).astype(np.uint64) + 0x8000
    return (bits >> 16).astype(np.uint16).view(ml_dtypes.bfloat16)


TO_FLOATS: list[tuple[Cast, Dtype, Dtype, dict[str, str]]] = [
    (round_to_nearest, Dtype.float32, Dtype.float16, {"rounded": "to nearest, ties to even", "too large": "infinite"}),
    (round_to_nearest, Dtype.float32, Dtype.bfloat16, {"rounded": "to nearest, ties to even", "too large": "infinite"}),
    (
        truncate_to_bfloat16,
        Dtype.float32,
        Dtype.bfloat16,
        {"rounded": "towards zero", "too large": "the largest number"},
    ),
    (ties_away, Dtype.float32, Dtype.bfloat16, {"rounded": "to nearest, ties away from zero"}),
    (
        cast_with_saturation,
        Dtype.float32,
        Dtype.float16,
        {"rounded": "to nearest, ties to even", "too large": "the largest number"},
    ),
    (without_subnormals, Dtype.float32, Dtype.float16, {"subnormal numbers": "flushed"}),
    (round_to_nearest, Dtype.float64, Dtype.float16, {"by way of float32": "no", "subnormal numbers": "kept"}),
    (by_way_of_float32, Dtype.float64, Dtype.float16, {"by way of float32": "yes", "too large": "infinite"}),
    (round_to_nearest, Dtype.float16, Dtype.float32, {"subnormal numbers": "kept"}),
    (round_to_nearest, Dtype.bfloat16, Dtype.float16, {"too large": "infinite"}),
    (round_to_nearest, Dtype.int32, Dtype.float32, {"rounded": "to nearest, ties to even"}),
    (round_to_nearest, Dtype.int64, Dtype.float64, {"rounded": "to nearest, ties to even"}),
]


@pytest.mark.parametrize(("cast", "source", "target", "expected"), TO_FLOATS)
def test_rounding_of_conversions_to_floating_types_is_detected(
    cast: Cast, source: Dtype, target: Dtype, expected: dict[str, str]
) -> None:
    observations = measure_cast(cast, source, target)
    assert {aspect: observations.get(aspect) for aspect in expected} == expected


@pytest.mark.parametrize(("words", "rounded"), conversions.ROUNDINGS.items(), ids=list(conversions.ROUNDINGS))
def test_each_rounding_is_recognised(words: str, rounded: Callable[[Array], Array]) -> None:
    observations = measure_cast(lambda input, out: rounded(input).astype(np.int32), Dtype.float64, Dtype.int32)
    assert observations["rounded"] == words


def test_unknown_rounding_is_shown() -> None:
    odd = measure_cast(lambda input, out: (2 * np.floor(input / 2) + 1).astype(np.int32), Dtype.float64, Dtype.int32)
    assert odd["rounded"] == "unknown: 0 → 1 units"


def by_rule(rule: Callable[[int, tuple[int, int]], int]) -> Cast:
    """Convert finite numbers with a rule for those out of range; infinities saturate, and NaN becomes 7."""

    def cast(input: Array, out: ResultSpec) -> Array:
        limits = conversions.limits_of(out.dtype)
        finite = np.where(np.isfinite(input), input, 0)
        numbers = np.array([rule(int(number), limits) for number in finite])
        ends = np.where(np.isnan(input), 7, np.where(input > 0, limits[1], limits[0]))
        return np.where(np.isfinite(input), numbers, ends).astype(to_numpy(out.dtype))

    return cast


@pytest.mark.parametrize(("words", "rule"), conversions.OUT_OF_RANGE.items(), ids=list(conversions.OUT_OF_RANGE))
def test_each_rule_for_numbers_out_of_range_is_recognised(
    words: str, rule: Callable[[int, tuple[int, int]], int]
) -> None:
    assert measure_cast(by_rule(rule), Dtype.float64, Dtype.int16) == {
        "rounded": "towards zero",
        "too large": words,
        "−∞, ∞": "smallest, largest",
        "NaN": "7",
    }


def test_overflow_of_conversions_between_integers_is_detected() -> None:
    wrapping = measure_cast(round_to_nearest, Dtype.int64, Dtype.int8)
    clipping = measure_cast(lambda input, out: np.clip(input, -128, 127).astype(np.int8), Dtype.int64, Dtype.int8)
    assert (wrapping, clipping) == ({"too large": "modulo 2^bits"}, {"too large": "saturated"})


def test_rules_of_conversions_to_bool_are_detected() -> None:
    assert measure_cast(round_to_nearest, Dtype.float32, Dtype.bool) == {"true": "all but zero"}
    by_int = measure_cast(lambda input, out: np.trunc(np.nan_to_num(input)) != 0, Dtype.float32, Dtype.bool)
    assert by_int == {"true": "all but zero, wrong for 0.25, 1.4013e-45, nan"}


def twice_rounded(input: Array, tensor1: Array, tensor2: Array, value: float) -> Array:
    """Compute `diopiAddcmul` with a rounded product."""
    return input + tensor1.dtype.type(value) * tensor1 * tensor2


def once_rounded(input: Array, tensor1: Array, tensor2: Array, value: float) -> Array:
    """Compute `diopiAddcmul` with an exact product, as a fused operation does."""
    wide = np.longdouble
    return (input.astype(wide) + value * tensor1.astype(wide) * tensor2.astype(wide)).astype(input.dtype)


@pytest.mark.parametrize("dtype", [Dtype.float16, Dtype.bfloat16, Dtype.float32])
@pytest.mark.parametrize(("addcmul", "words"), [(twice_rounded, "rounded"), (once_rounded, "unrounded")])
def test_fused_multiply_add_is_detected(dtype: Dtype, addcmul: Callable[..., Array], words: str) -> None:
    probe = probe_of(fusion.PROBES, "diopiAddcmul")
    assert measure(small_vendor(diopiAddcmul=addcmul), probe, dtype) == {"added": words}


def test_fused_add_and_addcdiv_are_detected() -> None:
    def add(input: Array, other: Array, alpha: float) -> Array:
        return (input.astype(np.float64) + other.astype(np.float64) * alpha).astype(input.dtype)

    def addcdiv(input: Array, tensor1: Array, tensor2: Array, value: float) -> Array:
        return input + tensor1 / tensor2

    vendor = small_vendor(diopiAdd=add, diopiAddcdiv=addcdiv)
    observations = [
        measure(vendor, probe_of(fusion.PROBES, name), Dtype.float32) for name in ("diopiAdd", "diopiAddcdiv")
    ]
    assert observations == [{"added": "unrounded"}, {"added": "rounded"}]


def test_a_wrong_multiply_add_is_shown() -> None:
    observations = measure(
        small_vendor(diopiAddcmul=lambda input, tensor1, tensor2, value: input / 0),
        probe_of(fusion.PROBES, "diopiAddcmul"),
        Dtype.float32,
    )
    assert observations == {"added": "-inf, -inf"}


def canonicalize_nans(x: Array) -> Array:
    """Replace every NaN by the default NaN."""
    return np.where(np.isnan(x), np.array(np.nan, x.dtype), x)


def first_nan(input: Array, other: Array) -> Array:
    """Multiply; if both factors are NaN, return the first one."""
    return np.where(np.isnan(input), input, np.where(np.isnan(other), other, input * other))


def second_nan(input: Array, other: Array) -> Array:
    """Multiply; if both factors are NaN, return the second one."""
    return first_nan(other, input)


@pytest.mark.parametrize("dtype", [Dtype.float16, Dtype.bfloat16, Dtype.float32, Dtype.float64])
@pytest.mark.parametrize(
    ("mul", "expected"),
    [
        (first_nan, ("kept", "kept", "the first")),
        (second_nan, ("kept", "kept", "the second")),
        (lambda input, other: canonicalize_nans(input * other), ("default", "default", "default")),
    ],
    ids=["first", "second", "canonical"],
)
def test_the_nan_that_two_operands_give_is_reported(
    dtype: Dtype, mul: Callable[..., Array], expected: tuple[str, ...]
) -> None:
    observations = measure(Truthful(mul), probe_of(nans.PROBES, "diopiMul"), dtype)
    assert tuple(observations[aspect] for aspect in ("quiet", "signaling", "of two")) == expected


def on_bits(change: Callable[[Array, nans.Bits], Array]) -> Vendor:
    """Return a vendor with functions that change the bits of their argument."""

    def compute(input: Array) -> Array:
        bits = nans.Bits(from_numpy(input.dtype))
        return change(input.view(f"u{input.itemsize}"), bits).view(input.dtype)

    return Truthful(compute)


@pytest.mark.parametrize(
    ("change", "quiet", "signaling"),
    [
        (lambda x, bits: x | bits.quiet, "kept", "payload kept, made quiet"),
        (lambda x, bits: x ^ bits.sign, "payload kept, sign flipped", "payload kept, sign flipped"),
        (lambda x, bits: x & (bits.sign - 1), "payload kept, sign cleared", "payload kept, sign cleared"),
        (lambda x, bits: x | bits.sign, "payload kept, sign set", "payload kept, sign set"),
        (lambda x, bits: x | (bits.quiet - 1) | bits.sign, "all bits set", "0xffbfffff"),
        (lambda x, bits: x * 0 + 1, "0x00000001, no NaN", "0x00000001, no NaN"),
        (lambda x, bits: x ^ (np.arange(len(x)) == 3).astype(x.dtype), None, None),
    ],
)
def test_bits_of_nan_are_reported(
    change: Callable[[Array, nans.Bits], Array], quiet: str | None, signaling: str | None
) -> None:
    observations = measure(on_bits(change), probe_of(nans.PROBES, "diopiSqrt"), Dtype.float32)
    if quiet is None:
        assert observations["quiet"].startswith("different from place to place / 0xff")
    else:
        assert (observations["quiet"], observations["signaling"]) == (quiet, signaling)


def test_the_nan_that_a_function_creates_is_reported() -> None:
    default_nans = {"diopiSqrt": 0x7FC00000, "diopiLog": 0xFFC00000, "diopiAdd": 0x7FC12345}
    words = {"diopiSqrt": "default", "diopiLog": "default, negative", "diopiAdd": "0x7fc12345"}
    for function, bits in default_nans.items():
        number = np.array(bits, np.uint32).view(np.float32)
        observations = measure(
            Truthful(lambda *x, number=number: number), probe_of(nans.PROBES, function), Dtype.float32
        )
        assert observations["made"] == words[function]


def test_nan_in_conversions_is_reported() -> None:
    probe = probe_of(nans.PROBES, "diopiCastDtype", Dtype.float32, Dtype.bfloat16)
    assert measure(make_casting_vendor(truncate_to_bfloat16), probe, Dtype.float32, Dtype.bfloat16) == {
        "quiet": "kept",
        "signaling": "kept",
    }
    observations = measure(
        make_casting_vendor(round_to_nearest), probe, Dtype.float32, Dtype.bfloat16
    )  # ml_dtypes keeps the sign alone
    assert observations == {"quiet": "default / default, negative", "signaling": "default / default, negative"}


def quotient(input: Array, other: Array) -> Array:
    """Divide in float64 and round the quotient."""
    return (input.astype(np.float64) / np.asarray(other, np.float64)).astype(input.dtype)


def by_inverse(input: Array, other: Array) -> Array:
    """Multiply by the rounded reciprocal."""
    return input * (1 / np.asarray(other, input.dtype)).astype(input.dtype)


def one_off(input: Array, other: Array) -> Array:
    """Divide, and make one quotient wrong by one ulp."""
    result = quotient(input, other)
    result[100] = np.nextafter(result[100], np.inf, dtype=result.dtype)
    return result


@pytest.mark.parametrize("function", ["diopiDiv", "diopiDivScalar"])
@pytest.mark.parametrize(
    ("dtype", "divide", "words"),
    [
        (Dtype.float32, quotient, "correctly rounded"),
        (Dtype.float64, quotient, "correctly rounded"),
        (Dtype.float16, quotient, "correctly rounded"),
        (Dtype.bfloat16, quotient, "correctly rounded"),
        (Dtype.float32, by_inverse, "multiplied with the rounded inverse"),
        (Dtype.float16, by_inverse, "multiplied with the rounded inverse"),
    ],
)
def test_correct_rounding_of_division_is_detected(
    function: str, dtype: Dtype, divide: Callable[[Array, Array], Array], words: str
) -> None:
    def div(input: Array, other: Array, rounding_mode: RoundMode) -> Array:
        return divide(input, other)

    assert measure(small_vendor(diopiDiv=div), probe_of(division.PROBES, function), dtype) == {"quotients": words}


def test_errors_of_division_are_reported() -> None:
    vendor = small_vendor(diopiDiv=lambda input, other, rounding_mode: one_off(input, other))
    observations = measure(vendor, probe_of(division.PROBES, "diopiDiv"), Dtype.float32)
    assert observations["quotients"].startswith("1 of 65536 not the nearest, up to ")


def test_errors_of_inverses_are_reported() -> None:
    vendor = small_vendor(diopiReciprocal=lambda input: quotient(np.ones_like(input), input))
    observations = measure(vendor, probe_of(division.PROBES, "diopiReciprocal"), Dtype.float32)
    assert observations == {"quotients": "correctly rounded"}

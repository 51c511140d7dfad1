"""The references of the binary and ternary functions: special values, exactness and conversions.

`diopi-test run --vendor torch_cpu` compares their values and gradients with PyTorch.
"""

import math
from typing import Any

import numpy as np
import pytest

from diopi_proto.types import RoundMode
from diopi_test.oracle.reference import Exact, WithTerms, find_reference

NAN, INF = math.nan, math.inf


def _call(name: str, *arguments: Any) -> Any:
    """Return the plain result of a reference, without declared terms."""
    function = find_reference(name)
    assert function is not None
    with np.errstate(all="ignore"):
        result = function(*arguments)
    return result.value if isinstance(result, Exact | WithTerms) else result


@pytest.mark.parametrize(
    ("input", "divisor", "expected"),
    [(-1.0, INF, INF), (1.0, -INF, -INF), (2.0, INF, 2.0), (1.0, 0.0, NAN), (INF, 2.0, NAN), (-4.0, 2.0, -0.0)],
)
def test_remainder_handles_special_values(input: float, divisor: float, expected: float) -> None:
    np.testing.assert_equal(float(_call("diopiRemainder", input, np.array(divisor))), expected)  # and the sign of zero


@pytest.mark.parametrize(
    ("mode", "input", "divisor", "expected"),
    [
        (RoundMode.floor, -1.0, INF, -1.0),
        (RoundMode.floor, INF, 2.0, NAN),
        (RoundMode.floor, -1.0, 0.0, -INF),
        (RoundMode.trunc, -1.0, INF, -0.0),
        (RoundMode.none, 0.0, 0.0, NAN),
    ],
)
def test_quotient_handles_special_values(mode: RoundMode, input: float, divisor: float, expected: float) -> None:
    np.testing.assert_equal(float(_call("diopiDiv", np.array(input), divisor, mode)), expected)


def test_integer_quotient_is_exact_beyond_float64() -> None:
    assert _call("diopiDiv", np.array([2**62 + 1]), 1, RoundMode.trunc).tolist() == [2**62 + 1]


def test_integer_powers_wrap_around() -> None:
    expected = [(base**exponent + 2**63) % 2**64 - 2**63 for base, exponent in [(7, 30), (-3, 41)]]
    assert _call("diopiPowTensor", np.array([7, -3]), np.array([30, 41])).tolist() == expected


def test_negative_integer_powers_round_toward_zero() -> None:
    assert _call("diopiPowTensor", np.array([2, -3, 1, -1, -1]), np.array([-1, -2, -5, -3, -2])).tolist() == [
        0,
        0,
        1,
        -1,
        1,
    ]


@pytest.mark.parametrize(
    ("base", "exponent", "expected"), [(NAN, 0, 1), (1, NAN, 1), (0.0, -1.0, INF), (-8.0, 1 / 3, NAN), (-2.0, 3.0, -8)]
)
def test_power_handles_special_values(base: float, exponent: float, expected: float) -> None:
    np.testing.assert_equal(float(_call("diopiPowScalar", base, np.array(float(exponent)))), expected)


def test_sum_of_bools_is_their_or() -> None:
    input, addend = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert _call("diopiAdd", input, addend, -1).tolist() == [True, True, True, False]
    assert _call("diopiAdd", input, addend, 0).tolist() == input.tolist()
    assert _call("diopiAdd", input, 2, -1).tolist() == [-1, -1, -2, -2]


def test_only_integers_truncate_the_value() -> None:
    whole = np.array([3])
    assert _call("diopiAddcmul", whole, whole, whole, 2.75).tolist() == [21]
    assert _call("diopiAddcmul", whole, whole, whole * 1.0, 2.75).tolist() == [27.75]


def test_lerp_is_exact_at_both_ends() -> None:
    input, end = np.random.default_rng(5).normal(size=(2, 100))
    np.testing.assert_array_equal(_call("diopiLerpTensor", input, end, 0), input)
    np.testing.assert_array_equal(_call("diopiLerpTensor", input, end, 1.0), end)
    np.testing.assert_allclose(_call("diopiLerpTensor", input, end, -0.25), 1.25 * input - 0.25 * end)


def test_clamp_returns_max_if_min_is_larger() -> None:
    assert _call("diopiClamp", np.array([0, 5, 9]), 7, 3).tolist() == [3, 3, 3]
    assert _call("diopiClamp", np.array([0, 5, 9]), None, 6).tolist() == [0, 5, 6]
    np.testing.assert_equal(_call("diopiClamp", np.array([1.0, NAN]), NAN, 3.0), [NAN, NAN])


@pytest.mark.parametrize("bound", [0.0, -0.0])
def test_clamp_keeps_the_sign_of_zero_at_a_scalar_bound_of_zero(bound: float) -> None:
    zeros = np.array([0.0, -0.0])
    for clamped in (
        _call("diopiClamp", zeros, bound, 1.0),
        _call("diopiClamp", zeros, -1.0, bound),
        _call("diopiClampMin", zeros, bound),
        _call("diopiClampMax", zeros, bound),
    ):
        assert np.signbit(clamped).tolist() == [False, True]
    assert np.signbit(_call("diopiClampMin", np.array([-3.0]), bound)).item() is bool(np.signbit(bound))


@pytest.mark.parametrize("name", ["diopiClampMin", "diopiClampMax", "diopiMaximum", "diopiMinimum"])
def test_sign_of_zero_is_open_if_tensors_have_zeros_of_both_signs(name: str) -> None:
    input, bound = np.array([0.0, -0.0, 0.0, -0.0, 2.0]), np.array([0.0, -0.0, -0.0, 0.0, 0.0])
    function = find_reference(name)
    assert function is not None
    result = function(input, bound)
    assert result.specified.tolist() == [True, True, False, False, True]
    assert np.signbit(result.value[:2]).tolist() == [False, True]
    assert isinstance(function(input[:2], bound[:2]), np.ndarray)


@pytest.mark.parametrize(
    ("input", "operand", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0], [1.0, 1.0], False),
        ([[]], [], False),
        ([], [], True),
        ([NAN], [NAN], False),
    ],
)
def test_equal_compares_shapes_and_elements(input: Any, operand: Any, expected: bool) -> None:
    assert _call("diopiEqual", np.array(input), np.array(operand)) is expected


def test_foreach_keeps_the_shapes_of_entries() -> None:
    inputs = [np.ones((2, 3)), np.array(2.0), np.ones((0, 4))]
    actual = _call("diopiForeachmulTensor", inputs, np.array([3.0]))
    assert [entry.shape for entry in actual] == [(2, 3), (), (0, 4)]
    assert _call("diopiForeachaddScalar", inputs, 3)[1] == 5


@pytest.mark.parametrize("base", [2, -3, 7, -1, 0])
@pytest.mark.parametrize("exponent", [0, 63, 64, 101, 2**40 + 1])
def test_large_integer_powers_wrap_around(base: int, exponent: int) -> None:
    wrapped = (pow(base, exponent, 2**64) + 2**63) % 2**64 - 2**63
    assert _call("diopiPowTensor", np.array([base]), np.array([exponent])).tolist() == [wrapped]


def test_large_negative_exponents_depend_on_parity() -> None:
    exponents = np.array([-(2**63), -3, -2])
    for base, powers in {1: [1, 1, 1], -1: [1, -1, 1], 2: [0, 0, 0]}.items():
        assert _call("diopiPowTensor", np.array([base]), exponents).tolist() == powers

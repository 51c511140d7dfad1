"""Number arguments of jax_cpu: their kinds and ranges, independent of earlier calls."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from diopi_impl.jax_cpu import vendor
from diopi_proto.types import Dtype, Error, Scalar
from lib_rt import Context, Tensor, is_poison
from lib_rt.dtypes import to_numpy

INF, NAN = float("inf"), float("nan")
F16, F32, F64, BF16 = Dtype.float16, Dtype.float32, Dtype.float64, Dtype.bfloat16
I8, I32, I64, U8, BOOL, C64 = Dtype.int8, Dtype.int32, Dtype.int64, Dtype.uint8, Dtype.bool, Dtype.complex64


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    """Yield a context on the device of `jax_cpu`."""
    with vendor.open_device() as device, Context(device) as context:
        yield context


def to_argument(context: Context, argument: Any) -> Any:
    """Return an argument: a list becomes a float32 tensor, a pair a tensor of its element type."""
    if isinstance(argument, list):
        argument = argument, F32
    if isinstance(argument, tuple) and argument and isinstance(argument[-1], Dtype):
        return Tensor.from_numpy(context, np.array(argument[0]).astype(to_numpy(argument[1])))
    return argument


def call_operator(
    context: Context, name: str, dtype: Dtype, shape: tuple[int, ...], *arguments: Any
) -> list[Any] | str:
    """Return the elements of the result, or the error message."""
    out = Tensor.empty(context, shape, dtype)
    values = [to_argument(context, argument) for argument in arguments]
    if vendor.call(name, context, out, *values) is Error.Success:
        elements: list[Any] = out.numpy().tolist()
        return elements
    assert is_poison(out.numpy()).all() or dtype is BOOL
    return vendor.last_error()


# Whatever was called before.


X, K, T = [-2.0], ([4], I32), ([True], BOOL)

GROUPS: dict[str, list[tuple[Any, ...]]] = {
    "kinds of an exponent": [
        ("diopiPow", F32, (1,), K, Scalar.from_number(-0.5), [0.5]),
        ("diopiPow", I32, (1,), K, Scalar.from_number(2), [16]),
        ("diopiPow", F32, (1,), K, Scalar.from_number(2.0), [16.0]),
    ],
    "truths": [
        ("diopiPow", BOOL, (1,), T, Scalar.from_number(True), [True]),
        ("diopiPow", I64, (1,), T, Scalar.from_number(1), [1]),
        ("diopiPow", F32, (1,), T, Scalar.from_number(1.0), [1.0]),
    ],
    "zeros and NaN in a program": [
        ("diopiLeakyRelu", F32, (1,), X, Scalar.from_number(0.0), [-0.0]),
        ("diopiLeakyRelu", F32, (1,), X, Scalar.from_number(-0.0), [0.0]),
        ("diopiLeakyRelu", F32, (1,), X, Scalar.from_number(NAN), [NAN]),
    ],
    "zeros in an integer": [
        ("diopiFill", F32, (1,), Scalar.from_number(-0.0), [-0.0]),
        ("diopiFill", F32, (1,), Scalar.from_number(0), [0.0]),
        ("diopiFill", F32, (1,), Scalar.from_number(False), [0.0]),
    ],
    "element types of a sum": [
        ("diopiSum", F32, (), [1.5, 1.5], (), 3.0),
        ("diopiSum", I32, (), [1.5, 1.5], (), 2),
        ("diopiSum", BOOL, (), [1.5, 1.5], (), True),
    ],
    "kinds of half precision": [
        ("diopiAdd", F16, (1,), ([2049], I32), ([0], F16), Scalar.from_number(1), [2048.0]),
        ("diopiAdd", BF16, (1,), ([2049], I32), ([0], BF16), Scalar.from_number(1), [2048.0]),
        ("diopiAdd", F32, (1,), ([2049], I32), ([0], F32), Scalar.from_number(1), [2049.0]),
    ],
}
"""Calls that a cache's key might confuse, with their results."""


@pytest.mark.parametrize("group", GROUPS)
def test_results_do_not_depend_on_earlier_calls(context: Context, group: str) -> None:
    for order in permutations(GROUPS[group]):
        for *call, expected in order:
            found = call_operator(context, *call)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_error_message_belongs_to_its_call(context: Context) -> None:
    """A program that failed to compile for a form is not cached for another form."""
    for _ in range(2):
        assert str(call_operator(context, "diopiMul", F32, (3,), [1.0, 2.0], [1.0, 2.0])).startswith(
            "diopiMul: out has shape"
        )
        invalid = [to_argument(context, argument) for argument in ([1.0, 2.0, 3.0], [1.0, 2.0])]
        invalid[1] = to_argument(context, [[1.0, 2.0, 3.0]] * 2)
        assert vendor.call("diopiMulInp", context, *invalid) is Error.ErrorOccurred
        assert vendor.last_error().startswith("diopiMulInp: input has shape")


# In which range and of which kind.


EXPECTED_RESULTS: dict[str, tuple[Any, ...]] = {
    "power beyond the bits": (
        "diopiPow",
        I64,
        (3,),
        ([2, -3, 1], I64),
        Scalar.from_number(64),
        [0, 8733086111712066817, 1],
    ),
    "power by a wider exponent": (
        "diopiPow",
        I8,
        (1,),
        ([3], I8),
        Scalar.from_number(257),
        [(3**257 + 128) % 256 - 128],
    ),
    "powers of unsigned": ("diopiPowTensor", U8, (2,), ([3, 255], U8), ([70, 255], U8), [217, 255]),
    "negative powers": ("diopiPowTensor", I8, (3,), ([-1, -1, 2], I8), ([-128, -127, -128], I8), [1, -1, 0]),
    "common type is half": ("diopiEq", BOOL, (1,), ([2049], I32), ([2048], F16), [True]),
    "beyond half": ("diopiAdd", F16, (1,), ([70000], I32), ([-60000], F16), Scalar.from_number(1), [INF]),
    "divided in double": ("diopiDiv", F64, (1,), ([2**40 + 1], I64), ([3], F64), 0, [(2**40 + 1) / 3]),
    "compared in float32": ("diopiEqScalar", BOOL, (2,), [0.1, 0.2], Scalar.from_number(0.1), [True, False]),
    "alpha lifts nothing": ("diopiAdd", BOOL, (1,), T, T, Scalar.from_number(3), [True]),
    "a value is cut": ("diopiAddcmul", I32, (1,), ([1], I32), ([2], I32), ([3], I32), Scalar.from_number(1.7), [7]),
    "absolute truth": ("diopiAbs", BOOL, (2,), ([True, False], BOOL), [True, False]),
    "remainder of truths": ("diopiRemainderScalar", I64, (2,), ([True, False], BOOL), Scalar.from_number(3), [1, 0]),
    "product in uint8": ("diopiProd", U8, (), [1.7, -2.7], None, 254),
    "sum in uint8": ("diopiSum", U8, (), [1.7, -2.7], (), 255),
    "sum of real parts": ("diopiSum", F32, (), ([1.5 + 2j, 1j], C64), (), 1.5),
    "running sum in int8": ("diopiCumsum", I8, (2,), ([100, 100], I32), 0, [100, -56]),
    "cut bounds": (
        "diopiClampScalar",
        I32,
        (3,),
        ([-9, 2**24 + 1, 0], I32),
        Scalar.from_number(-1.5),
        None,
        [-1, 2**24 + 1, 0],
    ),
    "cut bound": ("diopiClampMaxScalar", I64, (2,), ([2**62 + 1, 3], I64), Scalar.from_number(2.5), [2, 2]),
    "bound beyond": ("diopiClampMaxScalar", I64, (1,), ([2**62 + 1], I64), Scalar.from_number(INF), [2**62 + 1]),
    "counted": ("diopiLinspace", I64, (50,), Scalar.from_number(0), Scalar.from_number(49), 50, list(range(50))),
    "counted once": ("diopiLinspace", I32, (1,), Scalar.from_number(3.9), Scalar.from_number(49), 1, [3]),
    "uint8, beginning below": ("diopiLinspace", U8, (2,), Scalar.from_number(-1), Scalar.from_number(9), 2, [255, 9]),
    "filled modulo 256": ("diopiFill", U8, (1,), Scalar.from_number(-1), [255]),
    "filled to the end": ("diopiFill", I8, (1,), Scalar.from_number(127), [127]),
    "filled beyond half": ("diopiFill", F16, (1,), Scalar.from_number(1e300), [INF]),
    "cast": ("diopiCastDtype", U8, (3,), [-2.7, 300.0, NAN], [254, 44, 0]),
    "cast to int32": ("diopiCastDtype", I32, (3,), ([3e9, -1.5, INF], F64), [-(2**31), -1, -(2**31)]),
    "copied": ("diopiCastDtype", I64, (2,), [1e20, -2.7], [-(2**63), -2]),
    "complex parts": ("diopiCastDtype", I8, (2,), ([300 + 1j, -2.7j], C64), [44, 0]),
}


@pytest.mark.parametrize("case", EXPECTED_RESULTS)
def test_operators_return_the_expected_numbers(context: Context, case: str) -> None:
    *call, expected = EXPECTED_RESULTS[case]
    assert call_operator(context, *call) == expected


def test_results_are_cast_like_floating_numbers(context: Context) -> None:
    tensor = to_argument(context, ([1, 5, 100], I32))
    assert (
        vendor.call("diopiAddInpScalar", context, tensor, Scalar.from_number(3e9), Scalar.from_number(1))
        is Error.Success
    )
    assert tensor.numpy().tolist() == [-(2**31)] * 3


# Rejected.


REJECTED: dict[str, tuple[Any, ...]] = {
    "negative power": ("diopiPow", I32, (1,), K, Scalar.from_number(-1), "exponent is -1"),
    "negative power of truth": ("diopiPow", I64, (1,), T, Scalar.from_number(-1), "exponent is -1"),
    "floating alpha": ("diopiAdd", BOOL, (1,), T, T, Scalar.from_number(1.0), "alpha is 1.0, expected an integer"),
    "floating bounded in integers": ("diopiClampScalar", I32, (1,), [1.0], Scalar.from_number(1), None, "out is int32"),
    "mean in integers": ("diopiMean", I32, (), [1.0, 2.0], (), "out is int32, expected one of float16"),
    "running sum of truths": ("diopiCumsum", BOOL, (1,), T, 0, "out is bool, expected one of"),
    "softmax in integers": ("diopiSoftmax", I32, (2,), [1.0, 2.0], 0, "out is int32, expected one of float16"),
    "filled beyond int8": ("diopiFill", I8, (1,), Scalar.from_number(128), "value is 128, out of the range of int8"),
    "filled below int8": ("diopiFill", I8, (1,), Scalar.from_number(-128.5), "value is -128.5, out of the range"),
    "filled below uint8": ("diopiFill", U8, (1,), Scalar.from_number(-256), "value is -256, out of the range"),
    "filled with no number": ("diopiFill", I64, (1,), Scalar.from_number(NAN), "value is nan, out of the range"),
    "filled beyond int64": ("diopiFill", I64, (1,), Scalar.from_number(2.0**63), "out of the range"),
    "filled beyond float32": ("diopiFill", F32, (1,), Scalar.from_number(1e300), "value is 1e+300, out of the range"),
    "filled beyond complex64": ("diopiFill", C64, (1,), Scalar.from_number(-1e300), "out of the range"),
    "no step": (
        "diopiArange",
        F32,
        (3,),
        Scalar.from_number(0),
        Scalar.from_number(3),
        Scalar.from_number(0),
        "step is 0",
    ),
    "no whole step": (
        "diopiArange",
        I64,
        (3,),
        Scalar.from_number(0),
        Scalar.from_number(3),
        Scalar.from_number(0.5),
        "step is 0",
    ),
    "away": (
        "diopiArange",
        F32,
        (3,),
        Scalar.from_number(0),
        Scalar.from_number(3),
        Scalar.from_number(-1),
        "from 0 to 3 can't be listed",
    ),
    "away downwards": (
        "diopiArange",
        I32,
        (3,),
        Scalar.from_number(5),
        Scalar.from_number(0),
        Scalar.from_number(1),
        "from 5 to 0 can't be",
    ),
    "endless": (
        "diopiArange",
        F32,
        (3,),
        Scalar.from_number(0),
        Scalar.from_number(INF),
        Scalar.from_number(1),
        "can't be listed",
    ),
    "no step at all": (
        "diopiArange",
        F32,
        (3,),
        Scalar.from_number(0),
        Scalar.from_number(3),
        Scalar.from_number(NAN),
        "can't be listed",
    ),
    "spaced beyond int8": (
        "diopiLinspace",
        I8,
        (2,),
        Scalar.from_number(0),
        Scalar.from_number(300),
        2,
        "end is 300, out of the range",
    ),
    "no spaces": ("diopiLinspace", F32, (0,), Scalar.from_number(0), Scalar.from_number(1), -1, "steps is -1"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_invalid_numbers_are_rejected(context: Context, case: str) -> None:
    *call, reason = REJECTED[case]
    found = call_operator(context, *call)
    assert isinstance(found, str)
    assert reason in found


def test_values_are_checked_without_compiling_for_each(context: Context) -> None:
    from diopi_impl.jax_cpu import jit

    call_operator(context, "diopiPow", F32, (1,), X, Scalar.from_number(2.0))
    programs = len(jit._programs._programs)
    for exponent in (3.0, 4.5, -1.0):
        call_operator(context, "diopiPow", F32, (1,), X, Scalar.from_number(exponent))
    assert len(jit._programs._programs) == programs

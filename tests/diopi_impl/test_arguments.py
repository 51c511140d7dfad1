"""The checks of a call's arguments before a Python implementation runs, functional or raw."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from diopi_impl import Box, Vendor
from diopi_impl.arguments import _PreparedCalls
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.dtypes import category
from diopi_proto.types import Dtype, Error, Reduction, Scalar
from lib_rt import Context, Generator, Tensor, is_poison


@pytest.fixture
def vendor() -> Vendor:
    """A vendor whose functions do nothing, so that every call that passes the checks succeeds."""
    vendor = Vendor("idle", "1", HostRuntime().functions(), host_addressable=True)

    @vendor.implements_raw("diopiAdd")
    def add(ctx: Any, out: Any, input: Any, other: Any, alpha: Any) -> None: ...

    @vendor.implements_raw("diopiAddInp")
    def add_inp(ctx: Any, input: Any, other: Any, alpha: Any) -> None: ...

    @vendor.implements_raw("diopiAddScalar")
    def add_scalar(ctx: Any, out: Any, input: Any, other: Any, alpha: Any) -> None: ...

    @vendor.implements_raw("diopiCat")
    def cat(tensors: Any) -> None: ...

    @vendor.implements_raw("diopiForeachmulScalar")
    def foreach(inputs: Any) -> None: ...

    @vendor.implements_raw("diopiIndex")
    def index(input: Any, indices: Any) -> None: ...

    @vendor.implements_raw("diopiPolar")
    def polar(ctx: Any, out: Any, abs: Any, angle: Any) -> None: ...

    @vendor.implements_raw("diopiCastDtype")
    def cast(ctx: Any, out: Any, input: Any) -> None: ...

    @vendor.implements_raw("diopiArgmax")
    def argmax(ctx: Any, out: Any, input: Any, dim: Any, keepdim: Any) -> None: ...

    @vendor.implements_raw("diopiSum")
    def sum_(ctx: Any, out: Any, input: Any, dim: Any) -> None: ...

    @vendor.implements_raw("diopiMean")
    def mean(ctx: Any, out: Any, input: Any, dim: Any) -> None: ...

    @vendor.implements_raw("diopiAddmm")
    def addmm(ctx: Any, out: Any, input: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> None: ...

    return vendor


@pytest.fixture
def context(vendor: Vendor) -> Iterator[Context]:
    """Yield a context on the device of the vendor."""
    with vendor.open_device() as device, Context(device) as opened:
        yield opened


SCALAR_ONE = Scalar.from_number(1)
HALF = Scalar.from_number(0.5)


def arguments(context: Context, words: list[Any]) -> list[Any]:
    """Return the arguments of a call: a dtype stands for a tensor of that type, a list for an array."""
    if isinstance(words, list):
        return [arguments(context, word) for word in words]  # type: ignore[misc]  # itself, one level down
    return Tensor.empty(context, (2,), words) if isinstance(words, Dtype) else words


F32, F16, I32, I64, BOOL, C64, U16 = (
    *(Dtype.float32, Dtype.float16, Dtype.int32, Dtype.int64, Dtype.bool, Dtype.complex64),
    Dtype.uint16,
)

GOOD: dict[str, tuple[str, list[Any]]] = {
    "as the standard has it": ("diopiAdd", [F32, F32, F32, SCALAR_ONE]),
    "promoted": ("diopiAdd", [F32, I32, F32, SCALAR_ONE]),
    "narrower": ("diopiAdd", [F16, F32, F32, SCALAR_ONE]),
    "wider": ("diopiAdd", [C64, F32, I32, SCALAR_ONE]),
    "in place, converted": ("diopiAddInp", [I32, F32, SCALAR_ONE]),
    "a whole number with integers": ("diopiAddScalar", [I32, I32, SCALAR_ONE, SCALAR_ONE]),
    "integers into floats": ("diopiAddScalar", [F32, I32, HALF, HALF]),
    "as many as counted": ("diopiCat", [F32, [F32, F32], 2, 0]),
    "entries of several types": ("diopiForeachmulScalar", [[F32, I32], [F32, I32], 2, SCALAR_ONE]),
    "no entry where none is needed": ("diopiIndex", [Box(), F32, [None, I64], 2]),
    "complex of real": ("diopiPolar", [C64, F32, F32]),
    "as the caller chooses": ("diopiCastDtype", [BOOL, F32]),
    "narrower positions": ("diopiArgmax", [I32, F32, None, False]),
    "a factor of any kind": ("diopiAdd", [BOOL, BOOL, BOOL, HALF]),
    "a truth beside truths": ("diopiAddScalar", [BOOL, BOOL, Scalar.from_number(True), SCALAR_ONE]),
    "as the caller orders": ("diopiSum", [BOOL, C64, ()]),
    "as the caller orders, floating": ("diopiMean", [F32, C64, ()]),
}


@pytest.mark.parametrize("call", GOOD)
def test_valid_calls_succeed(vendor: Vendor, context: Context, call: str) -> None:
    name, words = GOOD[call]
    assert vendor.call(name, context, *arguments(context, words)) is Error.Success, vendor.last_error()


INVALID, DTYPE = Error.ErrorOccurred, Error.DtypeNotSupported

BAD: list[tuple[str, list[Any], Error, str]] = [
    ("diopiAdd", [None, F32, F32, SCALAR_ONE], INVALID, "out is required, NULL was given"),
    ("diopiAdd", [F32, None, F32, SCALAR_ONE], INVALID, "input is required, NULL was given"),
    ("diopiAdd", [F32, F32, F32, None], INVALID, "alpha is required, NULL was given"),
    ("diopiAdd", [F32, F32, U16, SCALAR_ONE], DTYPE, "other is uint16, expected one of float16, bfloat16, float32"),
    ("diopiAddInp", [None, F32, SCALAR_ONE], INVALID, "input is required, NULL was given"),
    ("diopiCat", [F32, None, 2, 0], INVALID, "tensors is required, NULL was given"),
    ("diopiCat", [F32, [F32, None], 2, 0], INVALID, "tensors[1] is required, NULL was given"),
    ("diopiCat", [F32, [F32, U16], 2, 0], DTYPE, "tensors is uint16, expected one of"),
    ("diopiCat", [F32, [F32, F32], -1, 0], INVALID, "tensors has 2 entries, the count is -1"),
    ("diopiCat", [I32, [I32, F32], 2, 0], INVALID, "out is int32, the result is float32"),
    ("diopiForeachmulScalar", [[F32], [F32, F32], 2, SCALAR_ONE], INVALID, "outs has 1 entries, the count is 2"),
    ("diopiForeachmulScalar", [[F32, None], [F32, F32], 2, SCALAR_ONE], INVALID, "outs[1] is required, NULL was given"),
    ("diopiForeachmulScalar", [[F32, I32], [I32, F32], 2, SCALAR_ONE], INVALID, "outs is int32, the result is float32"),
    ("diopiIndex", [Box(), F32, [None], 2], INVALID, "indices has 1 entries, the count is 2"),
    ("diopiAdd", [I32, F32, I32, SCALAR_ONE], INVALID, "out is int32, the result is float32"),
    ("diopiAdd", [BOOL, I32, I32, SCALAR_ONE], INVALID, "out is bool, the result is int32"),
    ("diopiAddScalar", [I32, I32, HALF, SCALAR_ONE], INVALID, "out is int32, the result is float32"),
    ("diopiPolar", [F32, F32, F32], INVALID, "out is float32, the result is complex64"),
    ("diopiArgmax", [BOOL, F32, None, False], INVALID, "out is bool, the result is int64"),
    ("diopiAddScalar", [BOOL, BOOL, SCALAR_ONE, SCALAR_ONE], INVALID, "out is bool, the result is int64"),
    ("diopiMean", [I32, F32, ()], INVALID, "out is int32, expected one of float16, bfloat16, float32"),
]


@pytest.mark.parametrize(("name", "words", "code", "message"), BAD)
def test_invalid_calls_are_rejected(
    vendor: Vendor, context: Context, name: str, words: list[Any], code: Error, message: str
) -> None:
    values = arguments(context, words)
    assert vendor.call(name, context, *values) is code
    assert vendor.last_error().startswith(f"{name}: {message}")


KINDS: dict[str, tuple[Scalar, Dtype]] = {
    "bool": (Scalar.from_number(False), BOOL),
    "int": (Scalar.from_number(0), I64),
    "float": (Scalar.from_number(0.0), F32),
    "negative zero": (Scalar.from_number(-0.0), F32),
    "not a number": (Scalar.from_number(float("nan")), F32),
    "true": (Scalar.from_number(True), BOOL),
    "one": (Scalar.from_number(1), I64),
    "one as a float32": (Scalar(Dtype.float32, 1), F32),
}
"""Numbers that compare equal to each other, or not even to themselves, with the result type of bool and each."""


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_result_types_follow_from_the_kinds_of_numbers(
    vendor: Vendor, context: Context, first: str, second: str
) -> None:
    for kind in (first, second):
        number, result = KINDS[kind]
        for dtype in (BOOL, I64, F32):
            code = vendor.call("diopiAddScalar", context, *arguments(context, [dtype, BOOL, number, SCALAR_ONE]))
            assert (code is Error.Success) == (category(dtype) >= category(result))


def test_functional_implementations_and_their_forms_are_checked(context: Context) -> None:
    vendor = Vendor("small", "1", HostRuntime().functions(), host_addressable=True)
    vendor.implements("diopiMul")(lambda input, other: input * other)
    tensor, out = Tensor.from_numpy(context, np.float32([1, 2])), Tensor.empty(context, (2,), Dtype.int32)
    for name, values in {
        "diopiMul": [out, tensor, tensor],
        "diopiMulInp": [tensor, None],
        "diopiMulScalar": [out, tensor, Scalar.from_number(2)],
        "diopiMulInpScalar": [tensor, None],
    }.items():
        assert vendor.call(name, context, *values) is Error.ErrorOccurred
    assert tensor.numpy().tolist() == [1, 2]
    assert is_poison(out.numpy()).all()


@pytest.fixture
def notes() -> tuple[Vendor, list[tuple[Any, ...]]]:
    """A vendor of gradients that records its arguments, and the records."""
    vendor, received_arguments = Vendor("notes", "1", HostRuntime().functions(), host_addressable=True), []

    @vendor.implements("diopiLayerNormBackward")
    def layer_norm(
        grad_output: Any, input: Any, weight: Any, bias: Any, mean: Any, rstd: Any, normalized_shape: Any
    ) -> Any:
        received_arguments.append((bias,))
        return input, input, input

    @vendor.implements_raw("diopiNLLLossV2Backward")
    def nll_loss(
        ctx: Any,
        grad_input: Any,
        grad_output: Any,
        input: Any,
        target: Any,
        weight: Any,
        totalWeight: Any,
        reduction: Any,
        ignore_index: Any,
    ) -> None:
        received_arguments.append((totalWeight, reduction))

    return vendor, received_arguments


@pytest.mark.parametrize("bias", [None, F32, I32, U16])
def test_unread_argument_may_be_anything(
    notes: tuple[Vendor, list[tuple[Any, ...]]], context: Context, bias: Dtype | None
) -> None:
    vendor, received_arguments = notes
    words = [F32, F32, F32, F32, F32, None, bias, F32, F32, (2,)]
    code = vendor.call("diopiLayerNormBackward", context, *arguments(context, words))
    assert code is Error.Success, vendor.last_error()
    assert received_arguments == [(None,)]


def test_unread_argument_does_not_affect_type_inference(
    notes: tuple[Vendor, list[tuple[Any, ...]]], context: Context
) -> None:
    """Without a weight, the third tensor must not be taken for a bias that determines the type of grad_weight."""
    vendor, _ = notes
    values = arguments(context, [F32, F32, F32, F32, F32, None, C64, F32, F32, (2,)])
    assert vendor.call("diopiLayerNormBackward", context, *values) is Error.Success, vendor.last_error()


def test_argument_is_checked_when_it_is_read(notes: tuple[Vendor, list[tuple[Any, ...]]], context: Context) -> None:
    vendor, received_arguments = notes
    for reduction in (Reduction.none, Reduction.sum):
        values = arguments(context, [F32, F32, F32, I64, None, C64, reduction, 0])
        assert vendor.call("diopiNLLLossV2Backward", context, *values) is Error.Success, vendor.last_error()
    assert received_arguments == [(None, Reduction.none), (None, Reduction.sum)]
    for total, code in ((C64, DTYPE), (None, INVALID)):
        values = arguments(context, [F32, F32, F32, I64, None, total, Reduction.mean, 0])
        assert vendor.call("diopiNLLLossV2Backward", context, *values) is code
        assert "totalWeight is" in vendor.last_error()


@pytest.mark.parametrize(
    ("sizes", "numbers", "message"),
    [
        (((2, 3, 8), (2, 5), (2, 3, 5)), (2, 3, 8, 5), ""),
        (((2, 3, 9), (2, 5), (2, 3, 5)), (2, 3, 8, 5), "points has shape (2, 3, 9), expected [b, c, n] with n = 8"),
        (((2, 24), (2, 5), (2, 3, 5)), (2, 3, 8, 5), "points has shape (2, 24), expected [b, c, n]"),
        (((2, 3, 8), (4, 5), (2, 3, 5)), (2, 3, 8, 5), "idx has shape (4, 5), expected [b, npoints] with b = 2"),
        (((2, 3, 8), (2, 5), (2, 3, 5)), (2, 3, 8, 4), "idx has shape (2, 5), expected [b, npoints] with npoints = 4"),
    ],
)
def test_declared_shapes_are_checked(
    context: Context, sizes: tuple[tuple[int, ...], ...], numbers: tuple[int, ...], message: str
) -> None:
    vendor = Vendor("shapes", "1", HostRuntime().functions(), host_addressable=True)

    @vendor.implements_raw("diopiGatherPointsMmcv")
    def gather(points: Any, idx: Any) -> None: ...

    points, idx, out = (
        Tensor.empty(context, shape, dtype) for shape, dtype in zip(sizes, (F32, I32, F32), strict=True)
    )
    code = vendor.call("diopiGatherPointsMmcv", context, out, points, idx, *numbers)
    assert code is (INVALID if message else Error.Success)
    assert message in vendor.last_error()


def test_each_form_of_call_is_checked(vendor: Vendor, context: Context) -> None:
    """Calls of one form are checked once, so the form must contain everything that the checks depend on."""
    three, four, whole = (
        Tensor.from_numpy(context, array) for array in (np.ones(3, np.float32), np.ones(4), np.ones(3, np.int64))
    )
    for _ in range(2):
        assert vendor.call("diopiAdd", context, three, three, three, SCALAR_ONE) is Error.Success
        assert vendor.call("diopiAdd", context, whole, three, three, SCALAR_ONE) is not Error.Success
        assert vendor.call("diopiAdd", context, three, three, None, SCALAR_ONE) is not Error.Success
        assert vendor.call("diopiAddScalar", context, whole, whole, SCALAR_ONE, SCALAR_ONE) is Error.Success
        assert vendor.call("diopiAddScalar", context, whole, whole, HALF, SCALAR_ONE) is not Error.Success
        assert vendor.call("diopiCat", context, four, [four, four], 2, 0) is Error.Success
        assert vendor.call("diopiCat", context, four, [four, four], 3, 0) is not Error.Success
        assert vendor.call("diopiCat", context, four, [four, None], 2, 0) is not Error.Success


def test_prepared_call_keeps_no_tensor_alive(vendor: Vendor) -> None:
    @vendor.implements_raw("diopiRandperm")
    def randperm(ctx: Any, out: Any, n: Any, generator: Any) -> None: ...

    with vendor.open_device() as device, Context(device) as context:
        generator, out = Generator(context, 0), Tensor.empty(context, (3,), Dtype.int64)
        assert vendor.call("diopiRandperm", context, out, 3, generator) is Error.Success
        references = weakref.ref(generator), weakref.ref(out)
        del generator, out
        assert [reference() for reference in references] == [None, None]


def test_cache_of_prepared_calls_is_bounded(vendor: Vendor, context: Context) -> None:
    tensor = Tensor.from_numpy(context, np.ones(3))
    for number in (*range(3 * _PreparedCalls.LIMIT), 0):
        assert vendor.call("diopiAdd", context, tensor, tensor, tensor, Scalar.from_number(number)) is Error.Success

"""What is checked of a call before a Python implementation sees it, functional or raw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from diopi_impl import Box, Vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Dtype, Error, Scalar
from lib_rt import Context, Tensor, is_poison


@pytest.fixture
def vendor() -> Vendor:
    """Its functions do nothing, so that whatever gets through to them succeeds."""
    vendor = Vendor("idle", "1", HostRuntime().functions(), host_addressable=True)

    @vendor.implements_raw("diopiAdd")
    def add(ctx: Any, out: Any, input: Any, other: Any, alpha: Any) -> None: ...

    @vendor.implements_raw("diopiAddInp")
    def add_inp(ctx: Any, input: Any, other: Any, alpha: Any) -> None: ...

    @vendor.implements_raw("diopiAddScalar")
    def add_scalar(ctx: Any, out: Any, input: Any, other: Any, alpha: Any) -> None: ...

    @vendor.implements_raw("diopiCat")
    def cat(ctx: Any, out: Any, tensors: Any, num_inputs: Any, dim: Any) -> None: ...

    @vendor.implements_raw("diopiForeachmulScalar")
    def foreach(ctx: Any, outs: Any, inputs: Any, inputSize: Any, other: Any) -> None: ...

    @vendor.implements_raw("diopiIndex")
    def index(ctx: Any, out: Any, input: Any, indices: Any, nums: Any) -> None: ...

    @vendor.implements_raw("diopiPolar")
    def polar(ctx: Any, out: Any, abs: Any, angle: Any) -> None: ...

    @vendor.implements_raw("diopiCastDtype")
    def cast(ctx: Any, out: Any, input: Any) -> None: ...

    @vendor.implements_raw("diopiArgmax")
    def argmax(ctx: Any, out: Any, input: Any, dim: Any, keepdim: Any) -> None: ...

    @vendor.implements_raw("diopiAddmm")
    def addmm(ctx: Any, out: Any, input: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> None: ...

    return vendor


@pytest.fixture
def context(vendor: Vendor) -> Iterator[Context]:
    with vendor.open_device() as device, Context(device) as made:
        yield made


ONE = Scalar.of(1)
HALF = Scalar.of(0.5)


def arguments(context: Context, words: list[Any]) -> list[Any]:
    """Values of a call: a dtype stands for a tensor of it, a list for an array of them."""
    if isinstance(words, list):
        return [arguments(context, word) for word in words]  # type: ignore[misc]  # itself, one level down
    return Tensor.empty(context, (2,), words) if isinstance(words, Dtype) else words


F32, F16, I32, I64, BOOL, C64, U16 = (
    *(Dtype.float32, Dtype.float16, Dtype.int32, Dtype.int64, Dtype.bool, Dtype.complex64),
    Dtype.uint16,
)

GOOD: dict[str, tuple[str, list[Any]]] = {
    "as the standard has it": ("diopiAdd", [F32, F32, F32, ONE]),
    "promoted": ("diopiAdd", [F32, I32, F32, ONE]),
    "narrower": ("diopiAdd", [F16, F32, F32, ONE]),
    "wider": ("diopiAdd", [C64, F32, I32, ONE]),
    "in place, converted": ("diopiAddInp", [I32, F32, ONE]),
    "a whole number with integers": ("diopiAddScalar", [I32, I32, ONE, ONE]),
    "integers into floats": ("diopiAddScalar", [F32, I32, HALF, HALF]),
    "as many as counted": ("diopiCat", [F32, [F32, F32], 2, 0]),
    "entries of several types": ("diopiForeachmulScalar", [[F32, I32], [F32, I32], 2, ONE]),
    "no entry where none is needed": ("diopiIndex", [Box(), F32, [None, I64], 2]),
    "complex of real": ("diopiPolar", [C64, F32, F32]),
    "as the caller chooses": ("diopiCastDtype", [BOOL, F32]),
    "narrower positions": ("diopiArgmax", [I32, F32, None, False]),
}


@pytest.mark.parametrize("call", GOOD)
def test_calls_that_get_through(vendor: Vendor, context: Context, call: str) -> None:
    name, words = GOOD[call]
    assert vendor.call(name, context, *arguments(context, words)) is Error.Success, vendor.last_error()


WRONG, DTYPE = Error.ErrorOccurred, Error.DtypeNotSupported

BAD: list[tuple[str, list[Any], Error, str]] = [
    ("diopiAdd", [None, F32, F32, ONE], WRONG, "out is required, NULL was given"),
    ("diopiAdd", [F32, None, F32, ONE], WRONG, "input is required, NULL was given"),
    ("diopiAdd", [F32, F32, F32, None], WRONG, "alpha is required, NULL was given"),
    ("diopiAdd", [F32, F32, U16, ONE], DTYPE, "other is uint16, expected one of float16, bfloat16, float32"),
    ("diopiAddInp", [None, F32, ONE], WRONG, "input is required, NULL was given"),
    ("diopiCat", [F32, None, 2, 0], WRONG, "tensors is required, NULL was given"),
    ("diopiCat", [F32, [F32, None], 2, 0], WRONG, "tensors[1] is required, NULL was given"),
    ("diopiCat", [F32, [F32, U16], 2, 0], DTYPE, "tensors is uint16, expected one of"),
    ("diopiCat", [F32, [F32, F32], -1, 0], WRONG, "tensors has 2 entries, the count is -1"),
    ("diopiCat", [I32, [I32, F32], 2, 0], WRONG, "out is int32, the result is float32"),
    ("diopiForeachmulScalar", [[F32], [F32, F32], 2, ONE], WRONG, "outs has 1 entries, the count is 2"),
    ("diopiForeachmulScalar", [[F32, None], [F32, F32], 2, ONE], WRONG, "outs[1] is required, NULL was given"),
    ("diopiForeachmulScalar", [[F32, I32], [I32, F32], 2, ONE], WRONG, "outs is int32, the result is float32"),
    ("diopiIndex", [Box(), F32, [None], 2], WRONG, "indices has 1 entries, the count is 2"),
    ("diopiAdd", [I32, F32, I32, ONE], WRONG, "out is int32, the result is float32"),
    ("diopiAdd", [BOOL, I32, I32, ONE], WRONG, "out is bool, the result is int32"),
    ("diopiAddScalar", [I32, I32, HALF, ONE], WRONG, "out is int32, the result is float32"),
    ("diopiPolar", [F32, F32, F32], WRONG, "out is float32, the result is complex64"),
    ("diopiArgmax", [BOOL, F32, None, False], WRONG, "out is bool, the result is int64"),
]


@pytest.mark.parametrize(("name", "words", "code", "message"), BAD)
def test_calls_that_do_not(
    vendor: Vendor, context: Context, name: str, words: list[Any], code: Error, message: str
) -> None:
    values = arguments(context, words)
    assert vendor.call(name, context, *values) is code
    assert vendor.last_error().startswith(f"{name}: {message}")


def test_functional_implementations_and_their_forms_are_checked_too(context: Context) -> None:
    vendor = Vendor("small", "1", HostRuntime().functions(), host_addressable=True)
    vendor.implements("diopiMul")(lambda input, other: input * other)
    tensor, out = Tensor.from_numpy(context, np.float32([1, 2])), Tensor.empty(context, (2,), Dtype.int32)
    for name, values in {
        "diopiMul": [out, tensor, tensor],
        "diopiMulInp": [tensor, None],
        "diopiMulScalar": [out, tensor, Scalar.of(2)],
        "diopiMulInpScalar": [tensor, None],
    }.items():
        assert vendor.call(name, context, *values) is Error.ErrorOccurred
    assert tensor.numpy().tolist() == [1, 2]
    assert is_poison(out.numpy()).all()

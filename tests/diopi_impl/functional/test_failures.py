"""Failures of functional implementations return an error code and a message, and write nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from functional_calls import Array, floats

from diopi_impl import UnsupportedDtypeError, Vendor
from diopi_proto.types import Dtype, Error, Scalar
from lib_rt import Context, Tensor, is_poison


def fails(error: Exception) -> Callable[[Array], Any]:
    """Return an implementation that raises an error."""

    def function(input: Array) -> Any:
        raise error

    return function


FAILURES: dict[str, tuple[Callable[[Array], Any], Error, str]] = {
    "an exception": (fails(ValueError("x is odd")), Error.ErrorOccurred, "x is odd"),
    "an exception without text": (fails(ZeroDivisionError()), Error.ErrorOccurred, "ZeroDivisionError"),
    "not implemented": (fails(NotImplementedError("not yet")), Error.NoImplement, "not yet"),
    "unsupported": (fails(UnsupportedDtypeError("no halves")), Error.DtypeNotSupported, "no halves"),
    "a wrong shape": (lambda input: input[:2], Error.ErrorOccurred, "{out} has shape (3,), the result has (2,)"),
    "no result": (lambda input: None, Error.ErrorOccurred, "{out} has shape (3,), the result has ()"),
    "text": (lambda input: ["a", "b", "c"], Error.ErrorOccurred, "could not convert string to float"),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize(("name", "result"), [("diopiSqrt", "out"), ("diopiSqrtInp", "input")])
def test_failing_implementation_returns_an_error(
    vendor: Vendor, context: Context, failure: str, name: str, result: str
) -> None:
    function, code, message = FAILURES[failure]
    vendor.implements("diopiSqrt")(lambda input: function(input))
    tensor, out = Tensor.from_numpy(context, floats(1, 4, 9)), Tensor.empty(context, (3,), Dtype.float32)
    arguments = [tensor] if result == "input" else [out, tensor]
    assert vendor.call(name, context, *arguments) is code
    assert vendor.last_error().startswith(f"{name}: {message.format(out=result)}")
    assert tensor.numpy().tolist() == [1, 4, 9]
    assert is_poison(out.numpy()).all()


PAIRS: dict[str, tuple[Any, str]] = {
    "the second has the wrong shape": (
        (np.ones(2), np.ones(3)),
        "max_indices has shape (2,), the result has (3,)",
    ),
    "one is missing": ((np.ones(2),), "1 results were returned, the prototype has 2"),
    "one too many": ((np.ones(2),) * 3, "3 results were returned, the prototype has 2"),
}


@pytest.mark.parametrize("results", PAIRS)
def test_failing_call_writes_none_of_several_results(vendor: Vendor, context: Context, results: str) -> None:
    returned, message = PAIRS[results]

    @vendor.implements("diopiMax")
    def max(input: Array, dim: int) -> Any:
        return returned

    values, indices = (Tensor.empty(context, (2,), dtype) for dtype in (Dtype.float32, Dtype.int64))
    input = Tensor.from_numpy(context, np.ones((2, 2), np.float32))
    assert vendor.call("diopiMax", context, values, indices, input, 1) is Error.ErrorOccurred
    assert vendor.last_error() == f"diopiMax: {message}"
    assert is_poison(values.numpy()).all()
    assert is_poison(indices.numpy()).all()


def test_failing_call_writes_no_entry_of_a_list(vendor: Vendor, context: Context) -> None:
    @vendor.implements("diopiForeachmulScalar")
    def foreach(inputs: list[Array], other: float) -> list[Array]:
        return [input * other for input in inputs[:-1]]

    tensors = [Tensor.from_numpy(context, floats(1, 2)) for _ in range(3)]
    assert vendor.call("diopiForeachmulInpScalar", context, tensors, 3, Scalar.from_number(2)) is Error.ErrorOccurred
    assert [tensor.numpy().tolist() for tensor in tensors] == [[1, 2]] * 3


class CountingImplementation:
    """An implementation that must not be called."""

    def __init__(self) -> None:
        self.calls = 0

    def unary(self, input: Array) -> Array:
        """Count the call; stands for a function of one array."""
        self.calls += 1
        return input

    def binary(self, input: Array, other: Array) -> Array:
        """Count the call; stands for a function of two arrays."""
        self.calls += 1
        return input

    def cat(self, tensors: list[Array], dim: int) -> Array:
        """Count the call; stands for a function of a list of arrays and an axis."""
        self.calls += 1
        return tensors[0]


@pytest.fixture
def untouched(vendor: Vendor) -> Iterator[CountingImplementation]:
    """Implement functions with a recorder; assert at the end that none of them was called."""
    recorder = CountingImplementation()
    vendor.implements("diopiSqrt")(recorder.unary)
    vendor.implements("diopiMul")(recorder.binary)
    vendor.implements("diopiCat")(recorder.cat)
    yield recorder
    assert recorder.calls == 0


def test_missing_required_argument_is_an_error(
    vendor: Vendor, context: Context, untouched: CountingImplementation
) -> None:
    tensor = Tensor.from_numpy(context, floats(1, 2, 3))
    calls: dict[str, tuple[str, tuple[Any, ...]]] = {
        "diopiMul: other is required, NULL was given": ("diopiMul", (tensor, tensor, None)),
        "diopiMul: input is required, NULL was given": ("diopiMul", (tensor, None, tensor)),
        "diopiMul: out is required, NULL was given": ("diopiMul", (None, tensor, tensor)),
        "diopiSqrtInp: input is required, NULL was given": ("diopiSqrtInp", (None,)),
        "diopiMulScalar: other is required, NULL was given": ("diopiMulScalar", (tensor, tensor, None)),
        "diopiCat: tensors is required, NULL was given": ("diopiCat", (tensor, None, 0, 0)),
        "diopiCat: dim is required, NULL was given": ("diopiCat", (tensor, [tensor], 1, None)),
    }
    for message, (name, arguments) in calls.items():
        assert vendor.call(name, context, *arguments) is Error.ErrorOccurred
        assert vendor.last_error() == message
    assert tensor.numpy().tolist() == [1, 2, 3]


def test_unsupported_dtype_is_an_error(vendor: Vendor, context: Context, untouched: CountingImplementation) -> None:
    out = Tensor.empty(context, (2,), Dtype.float32)
    fine, odd = Tensor.from_numpy(context, floats(1, 2)), Tensor.empty(context, (2,), Dtype.complex32)
    calls: dict[str, tuple[Any, ...]] = {
        "diopiSqrt": (out, odd),
        "diopiSqrtInp": (odd,),
        "diopiMul": (out, fine, odd),
        "diopiCat": (out, [fine, odd], 2, 0),
    }
    for name, arguments in calls.items():
        assert vendor.call(name, context, *arguments) is Error.DtypeNotSupported
        assert f"{name}: " in vendor.last_error()
        assert " is complex32, expected one of " in vendor.last_error()
    assert is_poison(out.numpy()).all()

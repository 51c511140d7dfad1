"""Vendors: registration against the prototypes, calls and their error codes, waivers, devices."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from diopi_impl import UnsupportedDtypeError, Vendor, VendorError, Waiver, find_vendor
from diopi_impl.base import TEXT_QUERIES
from diopi_impl.host_runtime import HostRuntime
from diopi_impl.specs import ResultSpec
from diopi_proto.interface import prototypes
from diopi_proto.types import Dtype, Error, Scalar
from lib_rt import Context, Tensor

Array = np.ndarray


@pytest.fixture
def vendor() -> Vendor:
    """Return a vendor without functions, with host-addressable memory."""
    return Vendor("small", "1.2", HostRuntime().functions(), host_addressable=True)


@pytest.fixture
def context(vendor: Vendor) -> Iterator[Context]:
    """Yield a context on the device of the vendor."""
    with vendor.open_device() as device, Context(device) as opened:
        yield opened


# Registration.

SIGNATURES: dict[str, tuple[Callable[..., Any], str]] = {
    "diopiMul": (lambda input, other, alpha: input, "declares 'alpha', the prototype has (input, other)."),
    "diopiSoftmax": (lambda inptu: inptu, "declares 'inptu', the prototype has (input, dim). Did you mean 'input'?"),
    "diopiSqrt": (lambda out, input: input, "declares 'out', the prototype has (input)."),
    "diopiNeg": (
        lambda *input: input,
        "declares '*input' as variadic positional, expected parameters by name, and only `out` as keyword-only; "
        "the prototype has (input)",
    ),
    "diopiClamp": (
        lambda input, *, min: input,
        "declares 'min' as keyword-only, expected parameters by name, and only `out` as keyword-only; "
        "the prototype has (input, min, max)",
    ),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_implements_rejects_unknown_parameters(vendor: Vendor, name: str) -> None:
    function, message = SIGNATURES[name]
    with pytest.raises(VendorError) as caught:
        vendor.implements(name)(function)
    assert str(caught.value) == f"{name}: the implementation {message}"
    assert not vendor.has(name)


def test_implements_raw_rejects_unknown_parameters(vendor: Vendor) -> None:
    with pytest.raises(VendorError) as caught:
        vendor.implements_raw("diopiSqrt")(lambda context, input, out: None)
    assert str(caught.value).endswith("declares 'context', the prototype has (ctx, out, input). Did you mean 'ctx'?")
    assert not vendor.has("diopiSqrt")


def test_implementation_declares_the_parameters_it_uses_in_any_order(vendor: Vendor, context: Context) -> None:
    received: dict[str, Any] = {}

    @vendor.implements("diopiSoftmaxBackward")
    def gradient(dim: int, grad_output: Array) -> Array:
        received.update(dim=dim, grad_output=grad_output)
        return grad_output

    @vendor.implements("diopiClamp")
    def clamp(max: Array, *, out: ResultSpec) -> Array:
        received.update(max=max, out=out)
        return max

    @vendor.implements("diopiRandperm")
    def order(*, out: ResultSpec) -> Array:
        return np.arange(*out.shape)

    @vendor.implements_raw("diopiNegInp")
    def negate(input: Tensor, ctx: Context) -> None:
        received.update(ctx=ctx)
        input.write(-input.numpy())

    grad, other, out = (Tensor.from_numpy(context, np.float32([[1, 2]]) * factor) for factor in (1, 2, 0))
    assert vendor.call("diopiSoftmaxBackward", context, out, grad, other, -1) is Error.Success
    assert (received["dim"], received["grad_output"].tolist(), out.numpy().tolist()) == (-1, [[1, 2]], [[1, 2]])
    assert vendor.call("diopiClamp", context, out, grad, None, other) is Error.Success
    assert received["out"].shape == (1, 2)
    assert (received["max"].tolist(), out.numpy().tolist()) == ([[2, 4]], [[2, 4]])
    assert vendor.call("diopiNegInp", context, out) is Error.Success
    assert (received["ctx"], out.numpy().tolist()) == (context, [[-2, -4]])
    positions = Tensor.empty(context, (3,), Dtype.int64)
    assert vendor.call("diopiRandperm", context, positions, 3, None) is Error.Success
    assert positions.numpy().tolist() == [0, 1, 2]


def test_implements_registers_a_function_under_several_names(vendor: Vendor) -> None:
    vendor.implements("diopiSin", "diopiCos")(lambda input: input)
    assert [vendor.has(name) for name in ("diopiSin", "diopiCosInp", "diopiTan")] == [True, True, False]


@pytest.mark.parametrize("register", [Vendor.implements, Vendor.implements_raw])
def test_implements_rejects_unknown_functions(vendor: Vendor, register: Callable[..., Any]) -> None:
    with pytest.raises(VendorError, match=r"'diopiSqrrt'.*'diopiSqrt'"):
        register(vendor, "diopiSqrrt")(lambda input: input)


def test_implements_rejects_a_second_implementation(vendor: Vendor) -> None:
    vendor.implements("diopiSqrt")(lambda input: input)
    with pytest.raises(VendorError, match="small: diopiSqrt"):
        vendor.implements("diopiSqrt")(lambda input: input)
    with pytest.raises(VendorError, match="diopiSqrt"):
        vendor.implements_raw("diopiSqrt")(lambda ctx, out, input: None)


def test_a_compiled_function_has_no_source_module(vendor: Vendor) -> None:
    compiled = partial(math.hypot)
    compiled.__signature__ = inspect.signature(lambda input, other: None)  # type: ignore[attr-defined]  # inspect reads it
    vendor.implements("diopiMul")(compiled)
    assert vendor.source_modules["diopiMul"] == ""
    compiled.__module__ = __name__
    assert vendor.source_modules["diopiMul"] == __name__


def test_implements_returns_the_function_unchanged(vendor: Vendor) -> None:
    def sqrt(input: Array) -> Array:
        return np.sqrt(input)

    def inp(ctx: Context, input: Tensor) -> None: ...

    assert vendor.implements("diopiSqrt")(sqrt) is sqrt
    assert vendor.implements_raw("diopiNegInp")(inp) is inp


def test_forms_are_derived(vendor: Vendor) -> None:
    forms = ("diopiAdd", "diopiAddInp", "diopiAddScalar", "diopiAddInpScalar")
    assert not any(map(vendor.has, forms))
    vendor.implements("diopiAdd")(lambda input, other, alpha: input + alpha * other)
    assert all(map(vendor.has, forms))
    assert not vendor.has("diopiSub")
    assert repr(vendor) == "<Vendor small 1.2: 4 functions>"


def test_a_raw_implementation_has_no_forms(vendor: Vendor) -> None:
    vendor.implements_raw("diopiSqrt")(lambda ctx, out, input: None)
    assert vendor.has("diopiSqrt")
    assert not vendor.has("diopiSqrtInp")


@pytest.mark.parametrize("derived_first", [True, False])
def test_form_may_have_a_separate_implementation(vendor: Vendor, context: Context, derived_first: bool) -> None:
    """A separately implemented form replaces the derived form, in either order of registration."""

    def inplace(ctx: Context, input: Tensor) -> None:
        input.write(np.float32([7]))

    steps: list[Callable[[], Any]] = [
        lambda: vendor.implements("diopiNeg")(lambda input: -input),
        lambda: vendor.implements_raw("diopiNegInp")(inplace),
    ]
    for step in steps if derived_first else reversed(steps):
        step()
    tensor = Tensor.from_numpy(context, np.float32([1]))
    assert vendor.call("diopiNegInp", context, tensor) is Error.Success
    assert tensor.numpy() == 7
    with pytest.raises(VendorError, match="diopiNegInp"):
        vendor.implements_raw("diopiNegInp")(inplace)


# Calls.


def test_raw_implementation_receives_the_caller_objects(vendor: Vendor, context: Context) -> None:
    received: list[Any] = []

    @vendor.implements_raw("diopiAddScalar")
    def add(ctx: Context, out: Tensor, input: Tensor, other: Scalar, alpha: Scalar) -> None:
        received.extend([ctx, out, input, other, alpha])

    out, input = Tensor.empty(context, (2,), Dtype.float32), Tensor.empty(context, (2,), Dtype.int32)
    arguments = [out, input, Scalar.from_number(1), Scalar.from_number(2.5)]
    assert vendor.call("diopiAddScalar", context, *arguments) is Error.Success
    assert all(actual is expected for actual, expected in zip(received, [context, *arguments], strict=True))


RETURNED_CODES: dict[str, tuple[Any, Error]] = {
    "nothing": (None, Error.Success),
    "success": (Error.Success, Error.Success),
    "a code": (Error.ForceFallbackToCPU, Error.ForceFallbackToCPU),
    "a number": (13, Error.NoImplement),
    "no code": (77, Error.ErrorOccurred),
}


@pytest.mark.parametrize("label", RETURNED_CODES)
def test_call_returns_the_code_of_a_raw_implementation(vendor: Vendor, context: Context, label: str) -> None:
    returned, expected = RETURNED_CODES[label]
    vendor.implements_raw("diopiSqrt")(lambda ctx, out, input: returned)
    tensor = Tensor.empty(context, (1,), Dtype.float32)
    assert vendor.call("diopiSqrt", context, tensor, tensor) is expected


EXCEPTIONS: dict[Exception, Error] = {
    ValueError("dim 4 is out of range for a 3-d input"): Error.ErrorOccurred,
    NotImplementedError("only contiguous"): Error.NoImplement,
    UnsupportedDtypeError("no int8"): Error.DtypeNotSupported,
    TypeError("a type"): Error.ErrorOccurred,
    MemoryError(): Error.ErrorOccurred,
}


@pytest.mark.parametrize("error", EXCEPTIONS, ids=lambda error: type(error).__name__)
def test_exceptions_become_error_codes(vendor: Vendor, context: Context, error: Exception) -> None:
    @vendor.implements_raw("diopiSqrt")
    def sqrt(ctx: Context, out: Tensor, input: Tensor) -> None:
        raise error

    tensor = Tensor.empty(context, (1,), Dtype.float32)
    assert vendor.call("diopiSqrt", context, tensor, tensor) is EXCEPTIONS[error]
    assert vendor.last_error() == f"diopiSqrt: {error}" if str(error) else f"diopiSqrt: {type(error).__name__}"


def test_call_propagates_keyboard_interrupt(vendor: Vendor, context: Context) -> None:
    @vendor.implements_raw("diopiSqrt")
    def sqrt(ctx: Context, out: Tensor, input: Tensor) -> None:
        raise KeyboardInterrupt

    tensor = Tensor.empty(context, (1,), Dtype.float32)
    with pytest.raises(KeyboardInterrupt):
        vendor.call("diopiSqrt", context, tensor, tensor)


def test_missing_function_returns_no_implement(vendor: Vendor, context: Context) -> None:
    assert vendor.last_error() == ""
    assert vendor.call("diopiSqrt", context, None, None) is Error.NoImplement
    assert vendor.last_error() == "small does not implement diopiSqrt"


def test_vendor_returns_its_texts(vendor: Vendor, context: Context) -> None:
    assert [vendor.has(name) for name in TEXT_QUERIES] == [True] * 3
    assert [vendor.query(name) for name in TEXT_QUERIES] == ["small", "1.2", ""]
    vendor.call("diopiSqrt", context, None, None)
    assert vendor.query("diopiGetLastErrorString") == "small does not implement diopiSqrt"
    with pytest.raises(KeyError):
        vendor.query("diopiSqrt")


def test_the_queries_are_those_of_the_standard() -> None:
    assert tuple(name for name, prototype in prototypes().items() if prototype.family == "query") == TEXT_QUERIES


@pytest.mark.parametrize("name", ["jax_cpu", "torch_cpu"])
def test_built_in_vendors_return_their_texts(name: str) -> None:
    package = name.removesuffix("_cpu")
    library = pytest.importorskip(package)
    vendor = find_vendor(name)
    assert vendor.query("diopiGetVendorName") == name
    assert vendor.query("diopiGetImplVersion") == library.__version__
    with vendor.open_device() as device, Context(device) as context:
        assert vendor.call("diopiSqrt", context, None, None) is not Error.Success
    assert vendor.query("diopiGetLastErrorString").startswith("diopiSqrt: ")


def test_last_error_persists_until_the_next_failure(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiNeg")(lambda input: -input)
    tensor = Tensor.from_numpy(context, np.float32([1]))
    assert vendor.call("diopiSqrt", context, tensor, tensor) is Error.NoImplement
    assert vendor.call("diopiNegInp", context, tensor) is Error.Success
    assert vendor.last_error() == "small does not implement diopiSqrt"


def test_wrong_number_of_arguments_is_an_error(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiNeg")(lambda input: -input)
    assert vendor.call("diopiNeg", context) is Error.ErrorOccurred
    assert vendor.last_error().startswith("diopiNeg: ")


# Devices.


@pytest.mark.parametrize("addressable", [True, False])
def test_vendor_opens_several_devices(addressable: bool) -> None:
    vendor = Vendor("small", "1", HostRuntime().functions(), host_addressable=addressable)
    with vendor.open_device() as device1, vendor.open_device() as device2:
        assert device1 is not device2
        assert device1.host_addressable is device2.host_addressable is addressable
        with Context(device1) as context:
            tensor = Tensor.from_numpy(context, np.arange(3))
            assert (device1.live_blocks, device2.live_blocks) == (1, 0)
            device2.close()
            assert tensor.numpy().tolist() == [0, 1, 2]


# Waivers.


@pytest.mark.parametrize(
    ("pattern", "case", "covered"),
    [
        ("diopiErf[bfloat16-special]", "diopiErf[bfloat16-special]", True),
        ("diopiErf[bfloat16-special]", "diopiErfInp[bfloat16-special]", False),
        ("diopiErf*[bfloat16-*]", "diopiErfInp[bfloat16-special]", True),
        ("diopierf*", "diopiErf[float32-matrix]", False),
        ("*", "anything", True),
        ("diopiErf[?float16-*]", "diopiErf[bfloat16-special]", True),
        ("diopiErf[b]", "diopiErfb", False),
        ("diopiErf.b]", "diopiErf[b]", False),
    ],
)
def test_a_waiver_covers_what_its_pattern_matches(pattern: str, case: str, covered: bool) -> None:
    assert Waiver(pattern, "because").matches(case) is covered

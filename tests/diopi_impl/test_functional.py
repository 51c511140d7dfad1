"""Functional implementations: what they receive, where their results go, what happens when something is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from diopi_impl import Box, UnsupportedDtypeError, Vendor
from diopi_impl.functional import ResultSpec
from diopi_impl.host_runtime import HostRuntime
from diopi_impl.results import Deferred
from diopi_proto.types import Device, Dtype, Error, RoundMode, Scalar
from lib_rt import Context, Tensor, is_poison

Array = np.ndarray


@pytest.fixture(params=[True, False], ids=["host-addressable", "remote"])
def vendor(request: pytest.FixtureRequest) -> Vendor:
    return Vendor("small", "1", HostRuntime().functions(), host_addressable=request.param)


@pytest.fixture
def context(vendor: Vendor) -> Iterator[Context]:
    with vendor.open_device() as device, Context(device) as made:
        yield made


def call(vendor: Vendor, name: str, context: Context, *arguments: Any) -> None:
    code = vendor.call(name, context, *arguments)
    assert code is Error.Success, vendor.last_error()


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


# What an implementation receives.


def test_operands_in_their_common_type(vendor: Vendor, context: Context) -> None:
    received: list[Any] = []

    @vendor.implements("diopiEq")
    def equal(input: Array, other: Any) -> Array:
        received.append((input.dtype.name, input.tolist(), other if isinstance(other, float) else other.tolist()))
        return input == other

    whole = Tensor.from_numpy(context, np.array([2049, 70000], np.int32))
    half, out = Tensor.from_numpy(context, np.float16([2048, 1])), Tensor.empty(context, (2,), Dtype.bool)
    call(vendor, "diopiEq", context, out, whole, half)
    call(vendor, "diopiEqScalar", context, out, half, Scalar.of(0.1))
    nearest = float(np.float16(0.1))
    assert received == [("float16", [2048, np.inf], [2048, 1]), ("float16", [2048, 1], nearest)]


def test_the_input_in_the_type_the_caller_orders(vendor: Vendor, context: Context) -> None:
    @vendor.implements("diopiSum")
    def sum_(input: Array, dim: tuple[int, ...]) -> Array:
        assert input.dtype == np.uint8
        return input.sum(dtype=np.uint8)

    out = Tensor.empty(context, (), Dtype.uint8)
    call(vendor, "diopiSum", context, out, Tensor.from_numpy(context, floats(1.7, -2.7)), ())
    assert out.numpy().item() == 255


def test_arrays_and_numbers(vendor: Vendor, context: Context) -> None:
    received: list[Any] = []

    @vendor.implements("diopiTopk")
    def topk(input: Array, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Array, Array]:
        received.extend([np.array(input), k, dim, largest, sorted])
        return floats(4, 3), np.array([2, 0])

    given = np.array([3, 1, 4], np.float32)
    values, indices = (Tensor.empty(context, (2,), dtype) for dtype in (Dtype.float32, Dtype.int64))
    call(vendor, "diopiTopk", context, values, indices, Tensor.from_numpy(context, given), 2, -1, True, False)
    np.testing.assert_array_equal(received[0], given)
    assert received[0].dtype == np.float32
    assert received[1:] == [2, -1, True, False]
    assert values.numpy().tolist() == [4, 3]
    assert indices.numpy().tolist() == [2, 0]


def test_sizes_and_what_is_left_out(vendor: Vendor, context: Context) -> None:
    received: list[Any] = []

    @vendor.implements("diopiClamp")
    def clamp(input: Array, min: Array | None, max: Array | None) -> Array:
        received.append((min is None, max is None))
        return np.minimum(input, max)

    @vendor.implements("diopiFlip")
    def flip(input: Array, dims: tuple[int, ...]) -> Array:
        received.append(dims)
        return np.flip(input, dims)

    out = Tensor.empty(context, (2, 3), Dtype.int32)
    input = Tensor.from_numpy(context, np.arange(6, dtype=np.int32).reshape(2, 3))
    call(vendor, "diopiClamp", context, out, input, None, Tensor.from_numpy(context, np.int32([3])))
    assert out.numpy().tolist() == [[0, 1, 2], [3, 3, 3]]
    call(vendor, "diopiFlip", context, out, input, (0, 1))
    assert out.numpy().tolist() == [[5, 4, 3], [2, 1, 0]]
    assert received == [(True, False), (0, 1)]


def test_enumerations_stay_what_they_are(vendor: Vendor, context: Context) -> None:
    received: list[Any] = []

    @vendor.implements("diopiDiv")
    def div(input: Array, other: Array, rounding_mode: RoundMode) -> Array:
        received.append(rounding_mode)
        return np.floor(input / other)

    out = Tensor.empty(context, (), Dtype.float32)
    seven, two = (Tensor.from_numpy(context, np.float32(value)) for value in (7, 2))
    call(vendor, "diopiDiv", context, out, seven, two, RoundMode.floor)
    assert received == [RoundMode.floor]
    assert out.numpy() == 3


def test_strided_arguments_and_results(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiSqrt")(lambda input: np.sqrt(input))
    squares = np.arange(12, dtype=np.float64).reshape(3, 4) ** 2
    input = Tensor.from_numpy(context, squares, strides=(1, 3), offset=2, storage_elements=20)
    out = Tensor.empty(context, (3, 4), Dtype.float64, strides=(8, 2), offset=3, storage_elements=40)
    call(vendor, "diopiSqrt", context, out, input)
    np.testing.assert_array_equal(out.numpy(), np.sqrt(squares))
    assert is_poison(out.storage().view(np.float64)).sum() == 40 - 12


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_unusual_shapes(vendor: Vendor, context: Context, shape: tuple[int, ...]) -> None:
    vendor.implements("diopiNeg")(lambda input: -input)
    out = Tensor.empty(context, shape, Dtype.int16)
    call(vendor, "diopiNeg", context, out, Tensor.from_numpy(context, np.full(shape, 5, np.int16)))
    np.testing.assert_array_equal(out.numpy(), np.full(shape, -5, np.int16))


def test_lists_of_tensors(vendor: Vendor, context: Context) -> None:
    @vendor.implements("diopiCat")
    def cat(tensors: list[Array], dim: int) -> Array:
        return np.concatenate(tensors, dim)

    @vendor.implements("diopiSplitWithSizes")
    def split(input: Array, splitSizes: tuple[int, ...], dim: int) -> list[Array]:
        return np.split(input, np.cumsum(splitSizes)[:-1], dim)

    parts = [np.arange(n, dtype=np.int64) for n in (2, 0, 3)]
    whole = Tensor.empty(context, (5,), Dtype.int64)
    call(vendor, "diopiCat", context, whole, [Tensor.from_numpy(context, part) for part in parts], 3, 0)
    assert whole.numpy().tolist() == [0, 1, 0, 1, 2]
    outs = [Tensor.empty(context, (n,), Dtype.int64) for n in (4, 1)]
    call(vendor, "diopiSplitWithSizes", context, outs, 2, whole, (4, 1), 0)
    assert [out.numpy().tolist() for out in outs] == [[0, 1, 0, 1], [2]]


def test_entries_left_out_of_a_list(vendor: Vendor, context: Context) -> None:
    @vendor.implements("diopiIndexPut")
    def index_put(input: Array, values: Array, indices: list[Array | None], accumulate: bool) -> Array:
        result = np.array(input)
        result[tuple(slice(None) if index is None else index for index in indices)] = values
        return result

    out, input = Tensor.empty(context, (2, 3), Dtype.int8), Tensor.from_numpy(context, np.zeros((2, 3), np.int8))
    values, column = Tensor.from_numpy(context, np.int8([[7], [8]])), Tensor.from_numpy(context, np.int64([1]))
    call(vendor, "diopiIndexPut", context, out, input, values, [None, column], 2, False)
    assert out.numpy().tolist() == [[0, 7, 0], [0, 8, 0]]


def test_it_waits_for_its_stream(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiNeg")(lambda input: -input)
    input, out = Tensor.empty(context, (3,), Dtype.float32), Tensor.empty(context, (3,), Dtype.float32)
    input.write(floats(1, 2, 3))
    call(vendor, "diopiNeg", context, out, input)
    assert out.numpy().tolist() == [-1, -2, -3]


# What it is told of its results.


def test_specs_of_results(vendor: Vendor, context: Context) -> None:
    received: list[Any] = []

    @vendor.implements("diopiExpand")
    def expand(input: Array, *, out: ResultSpec) -> Array:
        received.append(out)
        return np.broadcast_to(input, out.shape)

    @vendor.implements("diopiSplitWithSizes")
    def split(input: Array, splitSizes: tuple[int, ...], dim: int, *, out: Any) -> list[Array]:
        received.append(out)
        return [input[:2], input[2:]]

    matrix = Tensor.empty(context, (4, 3), Dtype.float32)
    row = Tensor.from_numpy(context, floats(1, 2, 3))
    call(vendor, "diopiExpand", context, matrix, row)
    assert matrix.numpy().tolist() == [[1, 2, 3]] * 4
    outs = [Tensor.empty(context, (n,), Dtype.float64) for n in (2, 1)]
    call(vendor, "diopiSplitWithSizes", context, outs, 2, row, (2, 1), 0)
    matrix_spec = ResultSpec((4, 3), Dtype.float32)
    assert received == [matrix_spec, (ResultSpec((2,), Dtype.float64), ResultSpec((1,), Dtype.float64))]
    assert matrix_spec.ndim == 2


def test_results_the_caller_leaves_out(vendor: Vendor, context: Context) -> None:
    received: list[Any] = []

    @vendor.implements("diopiLinearBackward")
    def backward(grad_output: Array, input: Array, weight: Array, *, out: Any) -> tuple[Any, ...]:
        received.extend(out)
        return None, grad_output.T @ input, grad_output.sum(0)

    grad, input, weight = (Tensor.from_numpy(context, np.ones(s, np.float32)) for s in ((2, 4), (2, 5), (4, 5)))
    grad_bias = Tensor.empty(context, (4,), Dtype.float32)
    call(vendor, "diopiLinearBackward", context, None, None, grad_bias, grad, input, weight)
    assert received == [None, None, ResultSpec((4,), Dtype.float32)]
    assert grad_bias.numpy().tolist() == [2, 2, 2, 2]


# Where results go.


def test_results_are_converted_to_the_tensor_they_go_to(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiSqrt")(lambda input: np.sqrt(input.astype(np.float64)))
    input = Tensor.from_numpy(context, floats(2, 1e38, 4e-46))
    out = Tensor.empty(context, (3,), Dtype.float16)
    with warnings.catch_warnings(action="error"):
        call(vendor, "diopiSqrt", context, out, input)
    np.testing.assert_array_equal(out.numpy(), np.array([np.sqrt(2), np.inf, 0], np.float16))


def test_infinities_are_results_like_any_other(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiReciprocal")(lambda input: 1 / input)
    tensor = Tensor.from_numpy(context, floats(0, -0.0, np.inf))
    with warnings.catch_warnings(action="error"):
        call(vendor, "diopiReciprocalInp", context, tensor)
    assert tensor.numpy().tolist() == [np.inf, -np.inf, 0]


@pytest.mark.parametrize(("shape", "dtype"), [((3,), Dtype.float32), ((3,), Dtype.float16), ((1, 3), Dtype.float32)])
def test_results_that_are_made_where_they_are_due(
    vendor: Vendor, context: Context, shape: tuple[int, ...], dtype: Dtype
) -> None:
    places: list[Array] = []

    def fill(place: Array) -> None:
        places.append(place)
        place[...] = (1, 2, 3)

    vendor.implements("diopiSqrt")(lambda input: Deferred((3,), np.dtype(np.float32), fill))
    out = Tensor.empty(context, shape, dtype)
    call(vendor, "diopiSqrt", context, out, Tensor.from_numpy(context, floats(1, 4, 9)))
    assert out.numpy().ravel().tolist() == [1, 2, 3]
    (place,) = places
    is_the_result = (shape, dtype) == ((3,), Dtype.float32)
    assert (place.ctypes.data == out.data_ptr) == (vendor.host_addressable and is_the_result)


def test_axes_of_length_one_do_not_count(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiNeg")(lambda input: -input.reshape(-1))
    out = Tensor.empty(context, (1, 3, 1), Dtype.float32)
    call(vendor, "diopiNeg", context, out, Tensor.from_numpy(context, floats(1, 2, 3)))
    assert out.numpy().tolist() == [[[-1], [-2], [-3]]]


def test_numbers_and_tensors_the_callee_makes(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiEqual")(lambda input, other: np.array_equal(input, other))
    vendor.implements("diopiNonzero")(lambda input: np.argwhere(input))

    @vendor.implements("diopiClipGradNorm")
    def clip(grads: list[Array], max_norm: float, norm_type: float, error_if_nonfinite: bool) -> Any:
        return np.float64(2.5), [grad * max_norm for grad in grads]

    given = Tensor.from_numpy(context, floats(0, 3, 4))
    equal, where, norm = Box(), Box(), Box()
    call(vendor, "diopiEqual", context, equal, given, given)
    call(vendor, "diopiNonzero", context, where, given)
    call(vendor, "diopiClipGradNorm", context, norm, [given], 1, 2.0, 2.0, False)
    assert (equal.value, norm.value) == (True, 2.5)
    assert type(equal.value) is bool
    assert (where.value.dtype, where.value.numpy().tolist()) == (Dtype.int64, [[1], [2]])
    assert [tensor.data_ptr for tensor in context.required] == [where.value.data_ptr]
    assert given.numpy().tolist() == [0, 6, 8]


def test_arrays_of_tensors_the_callee_makes(vendor: Vendor, context: Context) -> None:
    @vendor.implements("diopiDynamicPointToVoxelMmcv")
    def reduce(feats: Array, coors: Array, reduce_type: int, *, out: Any) -> Any:
        assert out is None
        made = [feats[1:], coors[:1], np.int32([4, 5]), np.int32([6])]
        return made[: reduce_type + 2]

    feats, coors = (
        Tensor.from_numpy(context, floats(1, 2, 3)[:, None]),
        Tensor.from_numpy(context, np.int32([[7], [8], [9]])),
    )
    boxes = [Box() for _ in range(4)]
    assert vendor.call("diopiDynamicPointToVoxelMmcv", context, boxes, feats, coors, 1) is Error.ErrorOccurred
    assert "outlist has 4 entries, the result has 3" in vendor.last_error()
    assert not any(box.value for box in boxes)
    call(vendor, "diopiDynamicPointToVoxelMmcv", context, boxes, feats, coors, 2)
    assert [box.value.numpy().tolist() for box in boxes] == [[[2], [3]], [[7]], [4, 5], [6]]
    assert [box.value.dtype for box in boxes] == [Dtype.float32, *[Dtype.int32] * 3]


def test_tensors_in_host_memory(vendor: Vendor, context: Context) -> None:
    """What goes there is there when the call returns, though the stream was not waited for."""

    @vendor.implements("diopiHardVoxelizeMmcv")
    def voxelize(
        voxels: Array,
        coors: Array,
        num_points_per_voxel: Array,
        points: Array,
        voxel_size: Array,
        coors_range: Array,
        max_points: int,
        max_voxels: int,
        NDim: int,
        deterministic: bool,
    ) -> Any:
        return voxels + points, coors, num_points_per_voxel, np.int64(voxel_size.sum() + coors_range.sum())

    single = Tensor.from_numpy(context, np.zeros((1, 1, 3), np.float32))
    coors, counts = (Tensor.from_numpy(context, np.zeros(shape, np.int32)) for shape in ((1, 3), (1,)))
    points = Tensor.from_numpy(context, floats(1, 2, 3)[None])
    size, bounds = (Tensor.from_numpy(context, floats(*range(count)), where=Device.host) for count in (3, 6))
    told, elsewhere = (Tensor.empty(context, (), Dtype.int64, where=where) for where in Device)
    rest = points, size, bounds, 1, 1, 3, True
    assert vendor.call("diopiHardVoxelizeMmcv", context, single, coors, counts, elsewhere, *rest) is Error.ErrorOccurred
    assert vendor.last_error() == "diopiHardVoxelizeMmcv: voxel_num lies on the device, expected it in host memory"
    call(vendor, "diopiHardVoxelizeMmcv", context, single, coors, counts, told, *rest)
    assert told.view() == 18
    assert single.numpy().tolist() == [[[1, 2, 3]]]


# Derived forms.


def test_in_place(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiNeg")(lambda input: -input)
    tensor = Tensor.from_numpy(context, floats(1, 2, 3, 4), strides=(2,), offset=1, storage_elements=9)
    before = tensor.storage()
    call(vendor, "diopiNegInp", context, tensor)
    assert tensor.numpy().tolist() == [-1, -2, -3, -4]
    assert (tensor.storage() != before).sum() == 4  # the byte of each sign


def test_in_place_by_a_view_of_the_input(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiNeg")(lambda input: input[::-1])
    tensor = Tensor.from_numpy(context, floats(*range(1000)))
    call(vendor, "diopiNegInp", context, tensor)
    assert tensor.numpy().tolist() == list(range(999, -1, -1))


@pytest.mark.parametrize(("scalar", "given"), [(Scalar.of(2), 2), (Scalar.of(0.5), 0.5), (Scalar(Dtype.int32, 3), 3)])
def test_scalar(vendor: Vendor, context: Context, scalar: Scalar, given: float) -> None:
    received: list[Any] = []

    @vendor.implements("diopiMul")
    def mul(input: Array, other: Any) -> Array:
        received.append(other)
        return input * other

    tensor, out = Tensor.from_numpy(context, floats(1, 2)), Tensor.empty(context, (2,), Dtype.float32)
    call(vendor, "diopiMulScalar", context, out, tensor, scalar)
    call(vendor, "diopiMulInpScalar", context, tensor, scalar)
    assert out.numpy().tolist() == tensor.numpy().tolist() == [given, 2 * given]
    assert received == [given, given]
    assert type(received[0]) is type(given)


def test_in_place_on_a_list(vendor: Vendor, context: Context) -> None:
    @vendor.implements("diopiForeachmulScalar")
    def foreach(inputs: list[Array], other: float) -> list[Array]:
        return [input * other for input in inputs]

    tensors = [Tensor.from_numpy(context, floats(*range(n))) for n in (0, 1, 3)]
    call(vendor, "diopiForeachmulInpScalar", context, tensors, 3, Scalar.of(2))
    assert [tensor.numpy().tolist() for tensor in tensors] == [[], [0], [0, 2, 4]]


# What goes wrong: each way an error code, a message, and nothing written.


def fails(error: Exception) -> Callable[[Array], Any]:
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
def test_a_failing_implementation(vendor: Vendor, context: Context, failure: str, name: str, result: str) -> None:
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
def test_several_results_are_written_together_or_not_at_all(vendor: Vendor, context: Context, results: str) -> None:
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


def test_lists_are_written_together_or_not_at_all(vendor: Vendor, context: Context) -> None:
    @vendor.implements("diopiForeachmulScalar")
    def foreach(inputs: list[Array], other: float) -> list[Array]:
        return [input * other for input in inputs[:-1]]

    tensors = [Tensor.from_numpy(context, floats(1, 2)) for _ in range(3)]
    assert vendor.call("diopiForeachmulInpScalar", context, tensors, 3, Scalar.of(2)) is Error.ErrorOccurred
    assert [tensor.numpy().tolist() for tensor in tensors] == [[1, 2]] * 3


class Untouched:
    """An implementation that must not be called."""

    def __init__(self) -> None:
        self.calls = 0

    def unary(self, input: Array) -> Array:
        self.calls += 1
        return input

    def binary(self, input: Array, other: Array) -> Array:
        self.calls += 1
        return input

    def cat(self, tensors: list[Array], dim: int) -> Array:
        self.calls += 1
        return tensors[0]


@pytest.fixture
def untouched(vendor: Vendor) -> Iterator[Untouched]:
    made = Untouched()
    vendor.implements("diopiSqrt")(made.unary)
    vendor.implements("diopiMul")(made.binary)
    vendor.implements("diopiCat")(made.cat)
    yield made
    assert made.calls == 0


def test_required_arguments(vendor: Vendor, context: Context, untouched: Untouched) -> None:
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


def test_unsupported_dtypes(vendor: Vendor, context: Context, untouched: Untouched) -> None:
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


# Adapters.


def test_a_vendors_own_adapter(context: Context, vendor: Vendor) -> None:
    """What lies between the vendor layer's arrays and the vendor's functions is the vendor's choice."""
    adapted_names: list[str] = []

    def on_lists(prototype: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        adapted_names.append(prototype.name)
        return lambda arguments, out: [np.array(function(*(argument.tolist() for argument in arguments)))]

    listing = Vendor("lists", "1", vendor.runtime, host_addressable=vendor.host_addressable, adapt=on_lists)
    listing.implements("diopiNeg")(lambda input: [-value for value in input])
    vendor.implements("diopiNeg", adapt=on_lists)(lambda input: [2 * value for value in input])
    assert adapted_names == ["diopiNeg", "diopiNeg"]
    for one, expected in ((listing, [-1, -2]), (vendor, [2, 4])):
        tensor = Tensor.from_numpy(context, floats(1, 2))
        call(one, "diopiNegInp", context, tensor)
        assert tensor.numpy().tolist() == expected

"""The results of functional implementations: their specs, their delivery, and derived forms."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from functional_calls import Array, call, floats

from diopi_impl import Box, Vendor
from diopi_impl.results import DeferredResult
from diopi_impl.specs import ResultSpec
from diopi_proto.types import Device, Dtype, Error, Scalar
from lib_rt import Context, Tensor


def test_implementations_receive_specs_of_the_results(vendor: Vendor, context: Context) -> None:
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


def test_omitted_results_have_no_spec(vendor: Vendor, context: Context) -> None:
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


def test_results_are_converted_to_the_type_of_their_tensor(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiSqrt")(lambda input: np.sqrt(input.astype(np.float64)))
    input = Tensor.from_numpy(context, floats(2, 1e38, 4e-46))
    out = Tensor.empty(context, (3,), Dtype.float16)
    with warnings.catch_warnings(action="error"):
        call(vendor, "diopiSqrt", context, out, input)
    np.testing.assert_array_equal(out.numpy(), np.array([np.sqrt(2), np.inf, 0], np.float16))


def test_infinite_results_cause_no_warning(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiReciprocal")(lambda input: 1 / input)
    tensor = Tensor.from_numpy(context, floats(0, -0.0, np.inf))
    with warnings.catch_warnings(action="error"):
        call(vendor, "diopiReciprocalInp", context, tensor)
    assert tensor.numpy().tolist() == [np.inf, -np.inf, 0]


@pytest.mark.parametrize(("shape", "dtype"), [((3,), Dtype.float32), ((3,), Dtype.float16), ((1, 3), Dtype.float32)])
def test_deferred_results_are_written_to_their_tensor(
    vendor: Vendor, context: Context, shape: tuple[int, ...], dtype: Dtype
) -> None:
    places: list[Array] = []

    def fill(place: Array) -> None:
        places.append(place)
        place[...] = (1, 2, 3)

    vendor.implements("diopiSqrt")(lambda input: DeferredResult((3,), np.dtype(np.float32), fill))
    out = Tensor.empty(context, shape, dtype)
    call(vendor, "diopiSqrt", context, out, Tensor.from_numpy(context, floats(1, 4, 9)))
    assert out.numpy().ravel().tolist() == [1, 2, 3]
    (place,) = places
    is_the_result = (shape, dtype) == ((3,), Dtype.float32)
    assert (place.ctypes.data == out.data_ptr) == (vendor.host_addressable and is_the_result)


def test_axes_of_length_one_are_ignored(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiNeg")(lambda input: -input.reshape(-1))
    out = Tensor.empty(context, (1, 3, 1), Dtype.float32)
    call(vendor, "diopiNeg", context, out, Tensor.from_numpy(context, floats(1, 2, 3)))
    assert out.numpy().tolist() == [[[-1], [-2], [-3]]]


def test_callee_returns_numbers_and_new_tensors(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiEqual")(lambda input, other: np.array_equal(input, other))
    vendor.implements("diopiNonzero")(lambda input: np.argwhere(input))

    @vendor.implements("diopiClipGradNorm")
    def clip(grads: list[Array], max_norm: float, norm_type: float, error_if_nonfinite: bool) -> Any:
        return np.float64(2.5), [grad * max_norm for grad in grads]

    tensor = Tensor.from_numpy(context, floats(0, 3, 4))
    equal, positions, norm = Box(), Box(), Box()
    call(vendor, "diopiEqual", context, equal, tensor, tensor)
    call(vendor, "diopiNonzero", context, positions, tensor)
    call(vendor, "diopiClipGradNorm", context, norm, [tensor], 1, 2.0, 2.0, False)
    assert (equal.value, norm.value) == (True, 2.5)
    assert type(equal.value) is bool
    assert (positions.value.dtype, positions.value.numpy().tolist()) == (Dtype.int64, [[1], [2]])
    assert [tensor.data_ptr for tensor in context.required] == [positions.value.data_ptr]
    assert tensor.numpy().tolist() == [0, 6, 8]


def test_callee_returns_arrays_of_new_tensors(vendor: Vendor, context: Context) -> None:
    @vendor.implements("diopiDynamicPointToVoxelMmcv")
    def reduce(feats: Array, coors: Array, reduce_type: int, *, out: Any) -> Any:
        assert out is None
        results = [feats[1:], coors[:1], np.int32([4, 5]), np.int32([6])]
        return results[: reduce_type + 2]

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


def test_tensors_in_host_memory_are_supported(vendor: Vendor, context: Context) -> None:
    """A result in host memory is complete when the call returns, without synchronizing the stream."""

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
    size, bounds = (Tensor.from_numpy(context, floats(*range(count)), memory_kind=Device.host) for count in (3, 6))
    host_count, device_count = (Tensor.empty(context, (), Dtype.int64, memory_kind=kind) for kind in Device)
    attributes = points, size, bounds, 1, 1, 3, True
    assert (
        vendor.call("diopiHardVoxelizeMmcv", context, single, coors, counts, device_count, *attributes)
        is Error.ErrorOccurred
    )
    assert vendor.last_error() == "diopiHardVoxelizeMmcv: voxel_num is in device memory, expected it in host memory"
    call(vendor, "diopiHardVoxelizeMmcv", context, single, coors, counts, host_count, *attributes)
    assert host_count.view() == 18
    assert single.numpy().tolist() == [[[1, 2, 3]]]


def test_the_in_place_form_overwrites_its_argument(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiNeg")(lambda input: -input)
    tensor = Tensor.from_numpy(context, floats(1, 2, 3, 4), strides=(2,), offset=1, storage_elements=9)
    before = tensor.storage()
    call(vendor, "diopiNegInp", context, tensor)
    assert tensor.numpy().tolist() == [-1, -2, -3, -4]
    assert (tensor.storage() != before).sum() == 4  # the byte of each sign


def test_in_place_result_may_be_a_view_of_the_input(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiNeg")(lambda input: input[::-1])
    tensor = Tensor.from_numpy(context, floats(*range(1000)))
    call(vendor, "diopiNegInp", context, tensor)
    assert tensor.numpy().tolist() == list(range(999, -1, -1))


@pytest.mark.parametrize(
    ("scalar", "number"), [(Scalar.from_number(2), 2), (Scalar.from_number(0.5), 0.5), (Scalar(Dtype.int32, 3), 3)]
)
def test_the_scalar_form_receives_a_number(vendor: Vendor, context: Context, scalar: Scalar, number: float) -> None:
    received: list[Any] = []

    @vendor.implements("diopiMul")
    def mul(input: Array, other: Any) -> Array:
        received.append(other)
        return input * other

    tensor, out = Tensor.from_numpy(context, floats(1, 2)), Tensor.empty(context, (2,), Dtype.float32)
    call(vendor, "diopiMulScalar", context, out, tensor, scalar)
    call(vendor, "diopiMulInpScalar", context, tensor, scalar)
    assert out.numpy().tolist() == tensor.numpy().tolist() == [number, 2 * number]
    assert received == [number, number]
    assert type(received[0]) is type(number)


def test_in_place_on_a_list(vendor: Vendor, context: Context) -> None:
    @vendor.implements("diopiForeachmulScalar")
    def foreach(inputs: list[Array], other: float) -> list[Array]:
        return [input * other for input in inputs]

    tensors = [Tensor.from_numpy(context, floats(*range(n))) for n in (0, 1, 3)]
    call(vendor, "diopiForeachmulInpScalar", context, tensors, 3, Scalar.from_number(2))
    assert [tensor.numpy().tolist() for tensor in tensors] == [[], [0], [0, 2, 4]]


def test_vendor_uses_its_adapter(context: Context, vendor: Vendor) -> None:
    """The adapter between arrays and implementations belongs to the vendor."""
    adapted_names: list[str] = []

    def on_lists(prototype: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        adapted_names.append(prototype.name)
        return lambda arguments, out: [np.array(function(*(argument.tolist() for argument in arguments)))]

    listing = Vendor("lists", "1", vendor.runtime, host_addressable=vendor.host_addressable, adapt=on_lists)
    listing.implements("diopiNeg")(lambda input: [-value for value in input])
    vendor.implements("diopiNeg", adapt=on_lists)(lambda input: [2 * value for value in input])
    assert adapted_names == ["diopiNeg", "diopiNeg"]
    for adapting_vendor, expected in ((listing, [-1, -2]), (vendor, [2, 4])):
        tensor = Tensor.from_numpy(context, floats(1, 2))
        call(adapting_vendor, "diopiNegInp", context, tensor)
        assert tensor.numpy().tolist() == expected

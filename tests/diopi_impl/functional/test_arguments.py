"""The arguments that functional implementations receive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from functional_calls import Array, call, floats

from diopi_impl import Vendor
from diopi_proto.types import Dtype, RoundMode, Scalar
from lib_rt import Context, Tensor, is_poison


def test_operands_are_promoted_to_a_common_type(vendor: Vendor, context: Context) -> None:
    received: list[Any] = []

    @vendor.implements("diopiEq")
    def equal(input: Array, other: Any) -> Array:
        received.append((input.dtype.name, input.tolist(), other if isinstance(other, float) else other.tolist()))
        return input == other

    whole = Tensor.from_numpy(context, np.array([2049, 70000], np.int32))
    half, out = Tensor.from_numpy(context, np.float16([2048, 1])), Tensor.empty(context, (2,), Dtype.bool)
    call(vendor, "diopiEq", context, out, whole, half)
    call(vendor, "diopiEqScalar", context, out, half, Scalar.from_number(0.1))
    nearest = float(np.float16(0.1))
    assert received == [("float16", [2048, np.inf], [2048, 1]), ("float16", [2048, 1], nearest)]


def test_input_is_converted_to_the_requested_type(vendor: Vendor, context: Context) -> None:
    @vendor.implements("diopiSum")
    def sum_(input: Array, dim: tuple[int, ...]) -> Array:
        assert input.dtype == np.uint8
        return input.sum(dtype=np.uint8)

    out = Tensor.empty(context, (), Dtype.uint8)
    call(vendor, "diopiSum", context, out, Tensor.from_numpy(context, floats(1.7, -2.7)), ())
    assert out.numpy().item() == 255


def test_implementation_receives_arrays_and_numbers(vendor: Vendor, context: Context) -> None:
    received: list[Any] = []

    @vendor.implements("diopiTopk")
    def topk(input: Array, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Array, Array]:
        received.extend([np.array(input), k, dim, largest, sorted])
        return floats(4, 3), np.array([2, 0])

    array = np.array([3, 1, 4], np.float32)
    values, indices = (Tensor.empty(context, (2,), dtype) for dtype in (Dtype.float32, Dtype.int64))
    call(vendor, "diopiTopk", context, values, indices, Tensor.from_numpy(context, array), 2, -1, True, False)
    np.testing.assert_array_equal(received[0], array)
    assert received[0].dtype == np.float32
    assert received[1:] == [2, -1, True, False]
    assert values.numpy().tolist() == [4, 3]
    assert indices.numpy().tolist() == [2, 0]


def test_implementation_receives_sizes_and_none_for_omitted_arguments(vendor: Vendor, context: Context) -> None:
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


def test_implementation_receives_enumerations(vendor: Vendor, context: Context) -> None:
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


def test_strided_arguments_and_results_are_supported(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiSqrt")(lambda input: np.sqrt(input))
    squares = np.arange(12, dtype=np.float64).reshape(3, 4) ** 2
    input = Tensor.from_numpy(context, squares, strides=(1, 3), offset=2, storage_elements=20)
    out = Tensor.empty(context, (3, 4), Dtype.float64, strides=(8, 2), offset=3, storage_elements=40)
    call(vendor, "diopiSqrt", context, out, input)
    np.testing.assert_array_equal(out.numpy(), np.sqrt(squares))
    assert is_poison(out.storage().view(np.float64)).sum() == 40 - 12


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_unusual_shapes_are_supported(vendor: Vendor, context: Context, shape: tuple[int, ...]) -> None:
    vendor.implements("diopiNeg")(lambda input: -input)
    out = Tensor.empty(context, shape, Dtype.int16)
    call(vendor, "diopiNeg", context, out, Tensor.from_numpy(context, np.full(shape, 5, np.int16)))
    np.testing.assert_array_equal(out.numpy(), np.full(shape, -5, np.int16))


def test_lists_of_tensors_are_passed_and_returned(vendor: Vendor, context: Context) -> None:
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


def test_omitted_list_entries_are_none(vendor: Vendor, context: Context) -> None:
    @vendor.implements("diopiIndexPut")
    def index_put(input: Array, values: Array, indices: list[Array | None], accumulate: bool) -> Array:
        result = np.array(input)
        result[tuple(slice(None) if index is None else index for index in indices)] = values
        return result

    out, input = Tensor.empty(context, (2, 3), Dtype.int8), Tensor.from_numpy(context, np.zeros((2, 3), np.int8))
    values, column = Tensor.from_numpy(context, np.int8([[7], [8]])), Tensor.from_numpy(context, np.int64([1]))
    call(vendor, "diopiIndexPut", context, out, input, values, [None, column], 2, False)
    assert out.numpy().tolist() == [[0, 7, 0], [0, 8, 0]]


def test_call_synchronizes_its_stream(vendor: Vendor, context: Context) -> None:
    vendor.implements("diopiNeg")(lambda input: -input)
    input, out = Tensor.empty(context, (3,), Dtype.float32), Tensor.empty(context, (3,), Dtype.float32)
    input.write(floats(1, 2, 3))
    call(vendor, "diopiNeg", context, out, input)
    assert out.numpy().tolist() == [-1, -2, -3]

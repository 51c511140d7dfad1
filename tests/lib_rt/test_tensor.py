"""Tensors: values with any strides, reading, writing, cloning, views, and misuse."""

import gc
from dataclasses import replace

import numpy as np
import pytest
from host_runtime import HostRuntime

from diopi_proto import types
from diopi_proto.types import Dtype, Error
from lib_rt import CallError, Context, Device, ForeignObjectError, ReleasedError, Tensor, is_poison
from lib_rt.dtypes import NUMPY
from lib_rt.library import ffi, last_error, lib

PLACES = [types.Device.device, types.Device.host]

LAYOUTS = [
    # shape, strides, offset, storage elements
    ((2, 3), None, 0, None),
    ((2, 3), (3, 1), 0, None),
    ((2, 3), (1, 2), 0, None),
    ((2, 3), (4, 1), 5, 20),
    ((2, 3), (10, 3), 1, None),
    ((2, 1, 3), (3, 77, 1), 0, None),
    ((2, 3, 4, 5), (60, 1, 15, 3), 0, None),
    ((), None, 0, None),
    ((), (), 3, 9),
    ((0, 4), None, 0, None),
    ((0, 4), (4, 1), 2, 2),
    ((5,), (2,), 0, None),
]


def distinct_elements(shape: tuple[int, ...], dtype: Dtype = Dtype.float32) -> np.ndarray:
    """Return distinct nonzero bytes viewed as elements, no two of which are equal."""
    size = NUMPY[dtype].itemsize
    count = int(np.prod(shape))
    return (np.arange(count * size) % 251 + 1).astype(np.uint8).view(NUMPY[dtype]).reshape(shape)


@pytest.mark.parametrize("location", PLACES)
@pytest.mark.parametrize(("shape", "strides", "offset", "elements"), LAYOUTS)
def test_values_survive_a_round_trip_and_gaps_stay_poison(
    context: Context, shape, strides, offset, elements, location
) -> None:
    values = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    placed = {"strides": strides, "offset": offset, "storage_elements": elements, "memory_kind": location}
    tensor = Tensor.from_numpy(context, values, **placed)
    assert (tensor.shape, tensor.storage_offset, tensor.memory_kind) == (shape, offset, location)
    np.testing.assert_array_equal(tensor.numpy(), values)
    storage = tensor.storage().view(np.float32)
    assert tensor.storage_nbytes == storage.nbytes
    assert is_poison(storage).sum() == storage.size - values.size
    assert set(storage[~is_poison(storage)]) == set(values.ravel())
    assert tensor.data_ptr - tensor.storage_ptr == 4 * offset

    tensor.write(values + 100)
    np.testing.assert_array_equal(tensor.numpy(), values + 100)
    np.testing.assert_array_equal(is_poison(tensor.storage().view(np.float32)), is_poison(storage))
    tensor.check_guards()


@pytest.mark.parametrize("dtype", NUMPY, ids=lambda dtype: dtype.name)
def test_every_dtype_survives_a_round_trip(context: Context, dtype: Dtype) -> None:
    values = distinct_elements((3, 4), dtype)
    for strides in (None, (1, 3)):
        tensor = Tensor.from_numpy(context, values, dtype=dtype, strides=strides)
        assert (tensor.dtype, tensor.element_size, tensor.numel) == (dtype, values.itemsize, 12)
        assert tensor.numpy().dtype == values.dtype
        assert tensor.numpy().tobytes() == values.tobytes()


def test_non_contiguous_arrays_are_copied(context: Context) -> None:
    values = np.arange(12.0).reshape(3, 4)
    for array in (values.T, values[::2, ::-1], np.broadcast_to(values[:1], (3, 4))):
        tensor = Tensor.from_numpy(context, array)
        assert tensor.is_contiguous
        np.testing.assert_array_equal(tensor.numpy(), array)


def test_large_arrays_are_copied(context: Context) -> None:
    values = np.arange(12_000.0).reshape(30, 400)
    for array in (values, values.T, values[::2, ::-1], np.broadcast_to(values[:1], (30, 400))):
        np.testing.assert_array_equal(Tensor.from_numpy(context, array).numpy(), array)


def test_expanded_and_overlapping_layouts_are_stored_compactly(context: Context) -> None:
    expanded = np.broadcast_to(np.arange(3, dtype=np.int32), (4, 3))
    tensor = Tensor.from_numpy(context, expanded, strides=(0, 1))
    assert tensor.storage_nbytes == 12
    np.testing.assert_array_equal(tensor.numpy(), expanded)
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3)
    tensor = Tensor.from_numpy(context, windows, strides=(1, 1))
    assert tensor.storage_nbytes == 48
    np.testing.assert_array_equal(tensor.numpy(), windows)
    with pytest.raises(ValueError, match=r"strides \(0, 1\)"):
        Tensor.from_numpy(context, np.arange(12.0).reshape(4, 3), strides=(0, 1))


@pytest.mark.parametrize(
    ("strides", "offset", "elements"),
    [((3, 1), 0, 5), ((3, 1), 1, 6), ((-3, 1), 6, 20), ((3, 1), -1, 20)],
)
def test_layouts_that_exceed_the_storage_are_rejected(context: Context, strides, offset, elements) -> None:
    with pytest.raises(ValueError, match="storage"):
        Tensor.from_numpy(context, np.ones((2, 3)), strides=strides, offset=offset, storage_elements=elements)


def test_the_dtype_must_match_the_array(context: Context) -> None:
    with pytest.raises(TypeError, match=r"float64.*float32"):
        Tensor.from_numpy(context, np.ones(3), dtype=Dtype.float32)
    assert Tensor.from_numpy(context, np.ones(3, np.float32), dtype=Dtype.tfloat32).dtype is Dtype.tfloat32


def test_write_checks_dtype_and_shape(context: Context) -> None:
    tensor = Tensor.from_numpy(context, np.zeros((1, 3, 2)))
    with pytest.raises(TypeError, match=r"int64.*float64"):
        tensor.write(np.ones((1, 3, 2), np.int64))
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(1, 3, 2\)"):
        tensor.write(np.ones((2, 3)))
    np.testing.assert_array_equal(tensor.numpy(), np.zeros((1, 3, 2)))
    tensor.write(np.ones((3, 1, 2)))
    np.testing.assert_array_equal(tensor.numpy(), np.ones((1, 3, 2)))


def test_write_copies_the_values_before_it_returns(context: Context) -> None:
    values = np.zeros(4)
    tensor = Tensor.from_numpy(context, values)
    values[:] = 1
    tensor.write(values)
    values[:] = 2
    np.testing.assert_array_equal(tensor.numpy(), np.ones(4))


@pytest.mark.parametrize("location", PLACES)
def test_clone_copies_the_whole_storage(context: Context, location: types.Device) -> None:
    values = np.arange(6.0).reshape(2, 3)
    tensor = Tensor.from_numpy(context, values, strides=(4, 1), offset=2, storage_elements=12, memory_kind=location)
    clone = tensor.clone()
    assert (clone.strides, clone.storage_offset, clone.memory_kind) == (tensor.strides, 2, location)
    assert clone.storage().tobytes() == tensor.storage().tobytes()
    clone.write(values + 1)
    np.testing.assert_array_equal(tensor.numpy(), values)


def test_a_failed_clone_leaves_no_memory(host: HostRuntime) -> None:
    functions = replace(host.functions(), d2d=lambda *copy: 4)
    with Device(functions) as device, Context(device) as context:
        tensor = Tensor.from_numpy(context, np.ones(3))
        with pytest.raises(CallError, match=r"device-to-device.*4"):
            tensor.clone()
        assert (device.live_blocks, device.allocations, len(host.memory)) == (1, 1, 1)


@pytest.mark.parametrize(("shape", "strides"), [((2, 3), None), ((2, 3), (1, 2)), ((), None), ((0, 2), None)])
def test_views_share_the_memory_of_the_tensor(context: Context, shape, strides) -> None:
    tensor = Tensor.from_numpy(context, np.zeros(shape), strides=strides)
    tensor.view()[...] = 7
    np.testing.assert_array_equal(tensor.numpy(), np.full(shape, 7.0))


def test_views_require_memory_that_the_host_can_address(host: HostRuntime) -> None:
    with Device(host.functions()) as device, Context(device) as context:
        with pytest.raises(TypeError, match="host"):
            Tensor.from_numpy(context, np.ones(3)).view()
        with pytest.raises(TypeError, match="host"):
            Tensor.from_numpy(context, np.ones(3)).storage_view()
        on_host = Tensor.from_numpy(context, np.ones(3), strides=(2,), memory_kind=types.Device.host)
        assert on_host.view().sum() == 3
        on_host.storage_view()[...] = 0
        assert not on_host.storage().any()


def test_the_c_functions_return_the_properties_of_the_tensor(context: Context) -> None:
    tensor = Tensor.from_numpy(
        context, distinct_elements((2, 3), Dtype.bfloat16), strides=(1, 4), offset=3, storage_elements=20
    )

    def query(name: str, kind: str) -> object:
        result = ffi.new(f"{kind}*")
        assert getattr(lib, f"diopiGetTensor{name}")(tensor.handle, result) == 0
        value = result[0]
        return tuple(value.data[0 : value.len]) if kind == "diopiSize_t" else value

    assert query("Shape", "diopiSize_t") == (2, 3)
    assert query("Stride", "diopiSize_t") == (1, 4)
    assert query("Dtype", "diopiDtype_t") == Dtype.bfloat16
    assert query("Device", "diopiDevice_t") == types.Device.device
    assert query("Numel", "int64_t") == 6
    assert query("ElemSize", "int64_t") == 2
    assert query("StorageOffset", "int64_t") == 3
    assert query("StorageNbytes", "size_t") == 40
    assert query("DeviceIndex", "diopiDeviceIndex_t") == 0
    storage = int(ffi.cast("uintptr_t", query("StoragePtr", "void*")))
    assert int(ffi.cast("uintptr_t", query("Data", "void*"))) == storage + 6 == tensor.data_ptr
    assert Tensor.from_handle(context, tensor.handle).numpy().tobytes() == tensor.numpy().tobytes()


@pytest.mark.parametrize(
    ("shape", "strides", "message"),
    [
        ((2, -1), None, "axis 1 of a shape has negative size -1"),
        ((2, 2), (1,), "1 strides for a 2-d tensor"),
        ((2, 2), (1, -2), "stride of axis 1 is negative: -2"),
        ((1 << 40, 1 << 40), None, "more than 2\\^63 elements"),
        ((1 << 62,), None, "more than 2\\^63 bytes"),
        ((0, 1 << 40, 1 << 40), None, "the axes of a shape behind an empty one are too large"),
        ((1,) * 1025, None, "a shape has 1025 axes, more than 1024"),
        ((2, 2), (1 << 62, 1 << 62), "reach over more than 2\\^63 elements"),
    ],
)
def test_impossible_geometry_is_rejected(device: Device, context: Context, shape, strides, message: str) -> None:
    with pytest.raises(CallError, match=message):
        Tensor.empty(context, shape, Dtype.int32, strides=strides)
    assert device.live_blocks == 0


def test_a_missing_layout_is_rejected(context: Context) -> None:
    assert lib.diopirt_tensor_open(context.handle, ffi.NULL, ffi.NULL) == ffi.NULL
    assert lib.diopirt_last_code() == Error.ErrorOccurred
    assert "the layout is NULL" in last_error()


def test_an_unknown_dtype_has_a_distinct_error_code(context: Context) -> None:
    for number in (17, 255, 1 << 20):
        with pytest.raises(CallError, match=f"{number}.*element type") as caught:
            context.require_tensor((2,), number)  # as an operator in C might
        assert caught.value.code is Error.DtypeNotSupported


def test_an_unknown_kind_of_memory_is_rejected(context: Context) -> None:
    with pytest.raises(CallError, match=r"^.*2.*device"):
        context.require_tensor((2,), Dtype.int8, memory_kind=2)


def test_use_after_close_is_an_error(context: Context) -> None:
    tensor = Tensor.from_numpy(context, np.ones((2, 2)))
    tensor.close()
    tensor.close()
    uses = [tensor.numpy, tensor.storage, tensor.view, tensor.clone, tensor.check_guards, lambda: tensor.data_ptr]
    for use in [*uses, lambda: tensor.write(np.ones((2, 2))), lambda: context.accept(tensor)]:
        with pytest.raises(ReleasedError, match=r"\(2, 2\)"):
            use()


def test_use_after_the_context_is_closed_is_an_error(device: Device) -> None:
    context = Context(device)
    tensor = Tensor.from_numpy(context, np.ones(2))
    context.close()
    with pytest.raises(ReleasedError, match="context"):
        tensor.numpy()
    tensor.close()
    with pytest.raises(ReleasedError, match="context"):
        Tensor.empty(context, (1,), Dtype.int8)


def test_tensors_of_other_devices_are_rejected(context: Context, host: HostRuntime) -> None:
    with Device(host.functions()) as other_device, Context(other_device) as other_context:
        tensor = Tensor.from_numpy(other_context, np.ones(2))
        with pytest.raises(ForeignObjectError, match=r"Tensor\(float64, shape \(2,\).*another device"):
            context.accept(tensor)
        assert other_context.accept(tensor) == tensor.handle


def test_tensors_without_references_are_released(device: Device, context: Context) -> None:
    Tensor.from_numpy(context, np.ones(2))
    gc.collect()
    assert device.live_blocks == 0


def test_a_tensor_over_the_callers_memory_neither_guards_nor_frees_it(device: Device) -> None:
    memory = device.malloc(64)
    with Context(device) as context:
        stream = context.stream
        image = np.arange(16, dtype=np.float32)
        stream.h2d(memory, image.__array_interface__["data"][0], image.nbytes)
        over = Tensor.from_memory(context, memory, 64, (2, 3), Dtype.float32, (1, 4), offset=2)
        assert (over.storage_ptr, over.storage_nbytes, over.data_ptr) == (memory, 64, memory + 8)
        np.testing.assert_array_equal(over.numpy(), [[2, 6, 10], [3, 7, 11]])
        over.write(np.full((2, 3), -1, np.float32))
        assert over.storage().view(np.float32).tolist() == [0, 1, -1, -1, 4, 5, -1, -1, 8, 9, -1, -1, 12, 13, 14, 15]
        copy = over.clone()
        np.testing.assert_array_equal(copy.numpy(), over.numpy())
        over.check_guards()
        over.close()
        copy.close()
        assert (device.live_blocks, device.allocations) == (0, 1)
        Tensor.from_memory(context, memory, 64, (16,), Dtype.float32, (1,))  # the context closes it
    device.free(memory)
    assert device.allocations == 0


@pytest.mark.parametrize(
    ("memory", "nbytes", "dtype", "message"),
    [(0, 24, Dtype.float32, "24 bytes of memory at"), (8, -1, Dtype.float32, "-1 bytes of memory")],
)
def test_missing_memory_of_the_caller_is_rejected(context: Context, memory, nbytes, dtype, message) -> None:
    with pytest.raises(CallError, match=message):
        Tensor.from_memory(context, memory, nbytes, (2, 3), dtype, (3, 1))


def test_too_small_memory_of_the_caller_is_rejected(device: Device, context: Context) -> None:
    memory = device.malloc(20)
    with pytest.raises(CallError, match=r"6 elements.*5"):
        Tensor.from_memory(context, memory, 20, (2, 3), Dtype.float32, (3, 1))
    with pytest.raises(CallError, match="255"):
        Tensor.from_memory(context, memory, 20, (2, 3), Dtype.unsupported, (3, 1))
    device.free(memory)

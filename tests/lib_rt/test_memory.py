"""Guarded memory: damage is found to the byte on either side, and fresh memory contains poison."""

import ctypes

import numpy as np
import pytest
from host_runtime import HostRuntime

from diopi_proto import types
from diopi_proto.types import Dtype
from lib_rt import Context, Device, GuardError, Tensor, is_poison, poison_of
from lib_rt.dtypes import NUMPY

PLACES = [types.Device.device, types.Device.host]
GUARD = 256


def flip(address: int) -> None:
    """Flip a bit of the byte at an address."""
    byte = ctypes.c_ubyte.from_address(address)
    byte.value ^= 1


@pytest.mark.parametrize("location", PLACES)
@pytest.mark.parametrize("nbytes", [0, 1, 3, 8, 1000])
@pytest.mark.parametrize("distance", [0, 1, 100, GUARD - 1])
@pytest.mark.parametrize("side", ["before", "behind"])
def test_check_names_the_damaged_byte(
    device: Device, context: Context, location: types.Device, nbytes: int, distance: int, side: str
) -> None:
    offset = -1 - distance if side == "before" else nbytes + distance
    tensor = Tensor.empty(context, (nbytes,), Dtype.uint8, memory_kind=location)
    tensor.check_guards()
    flip(tensor.storage_ptr + offset)
    with pytest.raises(GuardError, match=rf"{nbytes} bytes.*byte {offset}$") as checked:
        tensor.check_guards()
    with pytest.raises(GuardError) as closed:
        tensor.close()
    assert checked.value.offset == closed.value.offset == offset
    assert tensor.closed
    assert device.live_blocks == 0
    tensor.close()


def test_check_reports_the_first_damaged_byte(context: Context) -> None:
    tensor = Tensor.empty(context, (4,), Dtype.uint8)
    for offset in (7, 5, -2, -9):
        flip(tensor.storage_ptr + offset)
    with pytest.raises(GuardError) as caught:
        tensor.close()
    assert caught.value.offset == -9


@pytest.mark.parametrize("value", range(0, 256, 15))
def test_a_constant_written_past_the_end_is_detected(context: Context, value: int) -> None:
    """No byte value equals two adjacent guard bytes."""
    tensor = Tensor.empty(context, (4,), Dtype.uint8)
    ctypes.memset(tensor.storage_ptr + 4, value, 2)
    with pytest.raises(GuardError):
        tensor.close()


def test_closing_a_context_reports_damaged_tensors(device: Device, host: HostRuntime) -> None:
    context = Context(device)
    tensors = [Tensor.from_numpy(context, np.ones(3, np.int8)) for _ in range(3)]
    required = context.require_tensor((5,), Dtype.int8)
    flip(required.storage_ptr + 5)
    flip(tensors[1].storage_ptr - 4)
    with pytest.raises(GuardError) as caught:
        context.close()
    assert caught.value.offset == -4
    assert context.closed
    assert context.stream.closed
    assert (host.memory, host.streams) == ({}, set())


def test_writing_inside_a_tensor_damages_no_guard(context: Context) -> None:
    tensor = Tensor.empty(context, (64,), Dtype.uint8)
    ctypes.memset(tensor.storage_ptr, 0xFF, 64)
    tensor.check_guards()
    tensor.close()


@pytest.mark.parametrize("location", PLACES)
@pytest.mark.parametrize("dtype", NUMPY, ids=lambda dtype: dtype.name)
def test_new_memory_is_filled_with_poison(context: Context, dtype: Dtype, location: types.Device) -> None:
    tensor = Tensor.empty(context, (3, 5), dtype, memory_kind=location)
    assert tensor.storage().tobytes() == poison_of(dtype) * 15
    required = context.require_tensor((7,), dtype, memory_kind=location)
    assert required.storage().tobytes() == poison_of(dtype) * 7


@pytest.mark.parametrize("dtype", [Dtype.float16, Dtype.bfloat16, Dtype.float32, Dtype.float64, Dtype.complex64])
def test_floating_point_poison_is_nan(context: Context, dtype: Dtype) -> None:
    values = Tensor.empty(context, (9,), dtype).numpy()
    with np.errstate(invalid="ignore"):  # the NaN is signaling
        assert np.isnan(values).all()
    assert is_poison(values).all()


@pytest.mark.parametrize("location", PLACES)
def test_memory_is_aligned(context: Context, location: types.Device) -> None:
    for size in (0, 1, 17, 300):
        assert Tensor.empty(context, (size,), Dtype.uint8, memory_kind=location).storage_ptr % 256 == 0


def test_large_memory_is_written_and_read_back(context: Context) -> None:
    values = np.arange(1 << 20, dtype=np.int32)
    with Tensor.from_numpy(context, values) as tensor:
        np.testing.assert_array_equal(tensor.numpy(), values)

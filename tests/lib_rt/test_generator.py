"""Generators: seed, offset and state."""

import numpy as np
import pytest

from diopi_proto import types
from diopi_proto.types import Dtype
from lib_rt import Context, Device, ForeignObjectError, Generator, ReleasedError, Tensor
from lib_rt.library import ffi, last_error, lib

LARGEST = 2**64 - 1


def state_of(context: Context, generator: Generator) -> Tensor:
    """Return the tensor with the state of a generator."""
    result = ffi.new("diopiTensorHandle_t*")
    assert lib.diopiGeneratorGetState(context.handle, generator.handle, result) == 0
    return Tensor.from_handle(context, result[0])


@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (1, 2), (LARGEST, LARGEST - 1)])
def test_seed_and_offset_can_be_read_and_set(context: Context, seed: int, offset: int) -> None:
    with Generator(context, seed, offset) as generator:
        assert (generator.seed, generator.offset) == (seed, offset)
        generator.seed = 5
        assert (generator.seed, generator.offset) == (5, offset)
        generator.offset = 6
        assert (generator.seed, generator.offset) == (5, 6)


def test_the_state_is_a_host_tensor_of_the_context(context: Context) -> None:
    generator = Generator(context, 0x0102030405060708, 0x11)
    state = state_of(context, generator)
    assert (state.shape, state.dtype, state.memory_kind) == ((16,), Dtype.uint8, types.Device.host)
    assert state.numpy().tolist() == [8, 7, 6, 5, 4, 3, 2, 1, 0x11, 0, 0, 0, 0, 0, 0, 0]
    assert [tensor.handle for tensor in context.required] == [state.handle]


@pytest.mark.parametrize("location", list(types.Device))
def test_the_state_can_be_restored_from_host_or_device(context: Context, location: types.Device) -> None:
    source, target = Generator(context, LARGEST - 3, 99), Generator(context, 0)
    state = Tensor.from_numpy(context, state_of(context, source).numpy(), offset=5, memory_kind=location)
    assert lib.diopiGeneratorSetState(target.handle, state.handle) == 0
    assert (target.seed, target.offset) == (LARGEST - 3, 99)


@pytest.mark.parametrize("values", [np.zeros(15, np.uint8), np.zeros(16, np.int8), np.zeros((2, 8), np.uint8)])
def test_tensors_that_are_not_a_state_are_rejected(context: Context, values: np.ndarray) -> None:
    generator = Generator(context, 3, 4)
    assert lib.diopiGeneratorSetState(generator.handle, Tensor.from_numpy(context, values).handle) == 1
    assert "contiguous uint8 tensor of 16 elements" in last_error()
    assert (generator.seed, generator.offset) == (3, 4)


def test_invalid_calls_of_a_generator_are_rejected(context: Context, device: Device) -> None:
    generator = Generator(device, 1)
    with Device() as other_device:
        foreign = Generator(other_device, 1)
        with pytest.raises(ForeignObjectError):
            context.accept(foreign)
        foreign.close()
    assert context.accept(generator) == generator.handle
    generator.close()
    generator.close()
    with pytest.raises(ReleasedError, match="generator"):
        _ = generator.seed
    for invalid in (-1, 2**64):
        with pytest.raises(OverflowError):
            Generator(device, invalid)

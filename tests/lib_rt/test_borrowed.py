"""Handles of a framework are read and written with the vendor's functions, and never released."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from host_runtime import HostRuntime

from diopi_proto.types import Device as Where
from diopi_proto.types import Dtype, Error
from lib_rt import CallError, Context, Device, Generator, RuntimeFunctions, Tensor
from lib_rt.borrowed import BorrowedContext, BorrowedDevice, BorrowedGenerator
from lib_rt.library import lib

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(params=[True, False], ids=["addressable", "remote"])
def lent(request: pytest.FixtureRequest, host: HostRuntime, context: Context) -> BorrowedContext:
    """Return a context that borrows the handle of another context."""
    device = BorrowedDevice(host.functions(), lib, host_addressable=request.param)
    return BorrowedContext(device, context.handle)


@pytest.fixture(params=list(Where), ids=[location.name for location in Where])
def owned(request: pytest.FixtureRequest, context: Context) -> Iterator[Tensor]:
    """Yield a strided tensor in each kind of memory."""
    with Tensor.from_numpy(context, VALUES, strides=(5, 2), offset=3, memory_kind=request.param) as tensor:
        yield tensor


def test_a_borrowed_tensor_can_be_read_and_written(lent: BorrowedContext, owned: Tensor) -> None:
    tensor = Tensor.from_handle(lent, owned.handle)
    assert (tensor.shape, tensor.strides, tensor.dtype) == (owned.shape, owned.strides, owned.dtype)
    np.testing.assert_array_equal(tensor.numpy(), VALUES)
    np.testing.assert_array_equal(tensor.storage(), owned.storage())
    tensor.write(VALUES + 10)
    np.testing.assert_array_equal(owned.numpy(), VALUES + 10)
    owned.check_guards()


def test_closing_a_borrowed_object_releases_nothing(lent: BorrowedContext, owned: Tensor) -> None:
    with Tensor.from_handle(lent, owned.handle):
        pass
    lent.close()
    np.testing.assert_array_equal(owned.numpy(), VALUES)


def test_the_stream_of_the_framework_is_used(lent: BorrowedContext, context: Context, host: HostRuntime) -> None:
    assert lent.stream.native == context.stream.native
    before = host.synchronized
    lent.stream.synchronize()
    assert host.synchronized == before + 1


def test_tensors_required_by_the_callee_are_created_by_the_framework(lent: BorrowedContext, context: Context) -> None:
    allocated = lent.require_tensor((2, 3), Dtype.float32)
    allocated.write(VALUES)
    np.testing.assert_array_equal(context.required[0].numpy(), VALUES)


def test_the_generator_of_the_framework_is_shared(lent: BorrowedContext, context: Context) -> None:
    with Generator(context, seed=3) as owned:
        assert isinstance(lent.device, BorrowedDevice)
        generator = BorrowedGenerator(lent.device, owned.handle)
        generator.offset += 7
        generator.close()
        assert (owned.seed, owned.offset) == (3, 7)


def test_the_error_explains_a_failed_service(device: Device, host: HostRuntime) -> None:
    with Context(device) as context, Tensor.from_numpy(context, VALUES) as owned:
        failing = replace(host.functions(), d2h=lambda *arguments: 3, last_error=lambda: "the cable is out")
        lent = BorrowedContext(BorrowedDevice(failing, lib), context.handle)
        with pytest.raises(CallError, match="d2h returned 3"):
            Tensor.from_handle(lent, owned.handle).numpy()
        lacking = BorrowedContext(BorrowedDevice(RuntimeFunctions(), lib), context.handle)
        with pytest.raises(CallError) as caught:
            lacking.stream.synchronize()
        assert caught.value.code is Error.NoRegisteredStreamSyncFunction


def test_a_borrowed_sparse_tensor_returns_its_parts(lent: BorrowedContext, context: Context) -> None:
    arrays = (np.array([0, 1, 3]), np.array([1, 0, 2]), np.array([2, 3, 4], np.float32))
    sparse = Tensor.sparse_csr(*(Tensor.from_numpy(context, array) for array in arrays), (2, 3))
    borrowed = Tensor.from_handle(lent, sparse.handle)
    assert borrowed.is_sparse
    for part, array in zip(borrowed.parts, arrays, strict=True):
        np.testing.assert_array_equal(part.numpy(), array)

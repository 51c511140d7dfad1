"""CSR tensors: their parts, and the properties that they do not have."""

import numpy as np
import pytest
from host_runtime import HostRuntime

from diopi_proto.types import Dtype
from lib_rt import CallError, Context, Device, ForeignObjectError, Tensor
from lib_rt.library import ffi, last_error, lib


@pytest.fixture
def parts(context: Context) -> list[Tensor]:
    """Return the parts of [[0, 5, 0], [7, 0, 9]]."""
    arrays = (np.array([0, 1, 3]), np.array([1, 0, 2]), np.array([5, 7, 9], np.float32))
    return [Tensor.from_numpy(context, array) for array in arrays]


def test_a_sparse_tensor_returns_its_parts(context: Context, parts: list[Tensor]) -> None:
    sparse = Tensor.sparse_csr(*parts, shape=(2, 3))
    assert sparse.is_sparse
    assert not parts[0].is_sparse
    assert (sparse.shape, sparse.dtype, sparse.numel) == ((2, 3), Dtype.float32, 6)
    part = ffi.new("diopiConstTensorHandle_t*")
    for name, expected in zip(("CrowIndices", "ColIndices", "Values"), parts, strict=True):
        assert getattr(lib, f"diopiGetTensor{name}")(sparse.handle, part) == 0
        assert part[0] == expected.handle
        assert getattr(lib, f"diopiGetTensor{name}")(parts[0].handle, part) == 1
        assert "the tensor is not sparse" in last_error()
    borrowed = Tensor.from_handle(context, sparse.handle)
    assert (borrowed.is_sparse, borrowed.shape) == (True, (2, 3))


def test_a_sparse_tensor_has_no_dense_memory(parts: list[Tensor]) -> None:
    sparse = Tensor.sparse_csr(*parts, shape=(2, 3))
    for question in (sparse.clone, sparse.storage, sparse.check_guards, lambda: sparse.data_ptr):
        with pytest.raises(CallError, match="sparse"):
            question()


def test_releasing_a_sparse_tensor_does_not_release_its_parts(device: Device, parts: list[Tensor]) -> None:
    Tensor.sparse_csr(*parts, shape=(2, 3)).close()
    assert device.live_blocks == 3
    np.testing.assert_array_equal(parts[2].numpy(), [5, 7, 9])


def test_a_context_releases_its_sparse_tensors(device: Device, host: HostRuntime) -> None:
    with Context(device) as context:
        part = Tensor.from_numpy(context, np.zeros(2))
        Tensor.sparse_csr(part, part, part, (1, 2))
    assert host.memory == {}


def test_parts_must_be_dense_tensors_of_the_device(parts: list[Tensor], host: HostRuntime) -> None:
    sparse = Tensor.sparse_csr(*parts, shape=(2, 3))
    with pytest.raises(CallError, match="dense"):
        Tensor.sparse_csr(*parts[:2], sparse, shape=(2, 3))
    with Device(host.functions()) as other_device, Context(other_device) as other_context:
        foreign = Tensor.from_numpy(other_context, np.ones(3))
        with pytest.raises(ForeignObjectError):
            Tensor.sparse_csr(*parts[:2], foreign, shape=(2, 3))

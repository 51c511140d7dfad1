"""Access to the tensors of a call as PyTorch tensors over the caller's memory."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, final

import numpy as np
import torch

from diopi_impl.errors import UnsupportedDtypeError
from diopi_impl.results import Write, check_shape
from diopi_impl.torch_cpu.adapter import DTYPES
from diopi_impl.torch_cpu.device_runtime import TorchDevice
from diopi_proto import types
from diopi_proto.types import Dtype
from lib_rt import Context, Tensor
from lib_rt.dtypes import to_numpy
from lib_rt.layout import TensorMetadata, view_memory

_BFLOAT16 = to_numpy(Dtype.bfloat16)
"""NumPy's element type for bfloat16, which PyTorch does not know."""


@final
class TorchTensorAccess:
    """Access for implementations with tensors of PyTorch, which may change arguments that are also results."""

    def read(self, tensor: Tensor) -> Any:
        """Return a tensor over the memory of an argument; three tensors for a sparse matrix."""
        return [_tensor_over(part) for part in tensor.parts] if tensor.is_sparse else _tensor_over(tensor)

    def read_updated(self, tensor: Tensor) -> Any:
        """Return a copy of an argument that is also a result, so that a call that fails changes nothing."""
        return _tensor_over(tensor).clone()

    def plan_write(self, name: str, target: Tensor, result: Any) -> Write:
        """Return the write of a result to a tensor, which the caller executes when all results are known.

        Args:
            name: the name of the result, for messages.
            target: the caller's tensor.
            result: the result of the implementation, with the same shape or the same sizes except for axes of size 1.

        Returns:
            The write: a function and its arguments after the context.

        Raises:
            ValueError: if the shape does not fit.
        """
        place, value = _tensor_over(target), result.detach() if result.requires_grad else result
        if value.shape != place.shape:
            check_shape(name, place.shape, value.shape)
            value = value.reshape(place.shape)
        if value.is_complex() and not place.is_complex() and place.dtype is not torch.bool:
            value = value.real  # PyTorch warns about the conversion
        return (_copy, place, value)

    def number(self, result: Any) -> Any:
        """Return a result of one element as a number of Python."""
        return result.item() if isinstance(result, torch.Tensor) else result

    def new_tensor(self, context: Context, result: Any) -> Tensor:
        """Return a new tensor of the context with the elements and the memory layout of a result."""
        dense = result.detach().clone()
        tensor = context.require_tensor(dense.shape, Dtype[str(dense.dtype).removeprefix("torch.")], dense.stride())
        context.synchronize()  # the runtime fills new memory in stream order
        _tensor_over(tensor).copy_(dense)
        return tensor


def _copy(context: Context, place: torch.Tensor, value: torch.Tensor) -> None:
    """Copy a result to the memory of the caller's tensor."""
    place.copy_(value)


def _tensor_over(tensor: Tensor) -> torch.Tensor:
    """Return a tensor of PyTorch over the memory of a tensor of the runtime."""
    device = tensor.device
    if isinstance(device, TorchDevice) and tensor.memory_kind is not types.Device.host:
        return device.runtime.tensor_over(tensor.data_ptr, tensor.layout, _require_dtype(tensor.dtype))
    return _host_tensor(tensor.data_ptr, tensor.layout)


@lru_cache(maxsize=4096)
def _host_tensor(address: int, layout: TensorMetadata) -> torch.Tensor:
    """Return a tensor over host memory; cached, because callers reuse addresses."""
    _require_dtype(layout.dtype)
    array = view_memory(address, layout)
    if array.dtype == _BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _require_dtype(dtype: Dtype) -> torch.dtype:
    """Return PyTorch's element type; raise UnsupportedDtypeError if there is none."""
    if dtype not in DTYPES:
        raise UnsupportedDtypeError(f"PyTorch has no element type {dtype.name}")
    return DTYPES[dtype]

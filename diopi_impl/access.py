"""Access to the tensors of a call as NumPy arrays.

A `Write` is a function with its arguments after the context. The caller executes all writes of a call when all results
are known.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from diopi_impl.conversion import convert_array
from diopi_impl.results import Array, DeferredResult, Write, check_shape
from lib_rt import Context, Tensor
from lib_rt.dtypes import from_numpy, to_numpy


@final
class ArrayAccess:
    """Access for implementations with NumPy arrays; they must not change the elements of their arguments."""

    def read(self, tensor: Tensor) -> Any:
        """Return the elements of a tensor: a view if the host can address the memory, else a copy.

        For a sparse tensor, return a list with the elements of each of its parts.
        """
        if tensor.is_sparse:
            return [self.read(part) for part in tensor.parts]
        return tensor.view() if tensor.device.host_addressable else tensor.numpy()

    read_updated = read

    def plan_write(self, name: str, target: Tensor, result: Any) -> Write:
        """Return the write of a result to the caller's tensor `target`.

        The result may have other axes of size 1 than the tensor, and another element type, from which it is converted.

        Args:
            name: the name of the result, for messages.
            target: the caller's tensor.
            result: the result of the implementation.

        Returns:
            The write.

        Raises:
            ValueError: if the shape does not fit.
        """
        dtype, addressable = to_numpy(target.dtype), target.device.host_addressable
        if isinstance(result, DeferredResult) and addressable and (result.shape, result.dtype) == (target.shape, dtype):
            return (_fill_view, target.view(), result)
        array = np.asarray(result)
        if array.shape != target.shape:
            check_shape(name, target.shape, array.shape)
            array = array.reshape(target.shape)
        if array.dtype != dtype:
            array = convert_array(array, dtype)
        return (_copy_to_view, target.view(), array) if addressable else (_write_tensor, target, array)

    def number(self, result: Any) -> Any:
        """Return a result of one element as a number of Python."""
        return np.asarray(result).item()

    def new_tensor(self, context: Context, result: Any) -> Tensor:
        """Return a new tensor of the context with the elements and the memory layout of a result."""
        dense = np.copy(np.asarray(result), order="K")
        strides = [stride // dense.itemsize for stride in dense.strides] if dense.size else None
        tensor = context.require_tensor(dense.shape, from_numpy(dense.dtype), strides)
        tensor.write(dense)
        return tensor


ARRAYS = ArrayAccess()
"""The access that vendors use unless they choose another one."""


def _copy_to_view(context: Context, place: Array, array: Array) -> None:
    """Copy an array to a view of the memory of a tensor."""
    place[...] = array


def _fill_view(context: Context, place: Array, result: DeferredResult) -> None:
    """Let a deferred result write to a view of the memory of a tensor."""
    result.fill(place)


def _write_tensor(context: Context, tensor: Tensor, array: Array) -> None:
    """Copy an array to a tensor in device memory."""
    tensor.write(array)

"""Copies of the contents of tensors at one moment.

A copy consists of the bytes in host memory. CPU tensors, NumPy arrays and records of the suite are created from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from diopi_proto.parameters import Role
from diopi_proto.types import Dtype
from diopi_test.cases.case import TensorSpec
from diopi_test.cases.layouts import Layout, contiguous, strides
from diopi_test.execution.call_record import Bytes, TensorRecord
from diopi_test.oracle.data import TensorData
from diopi_torch.layout import DTYPES, contiguous_strides, span_size
from diopi_torch.tensors import is_on_device, read_to_host, stored_elements


def read_span(tensor: torch.Tensor) -> Bytes:
    """Return a copy of the bytes from the first element of a tensor to the last, after waiting for the device."""
    length = span_size(tensor.shape, tensor.stride())
    if not length:
        return np.empty(0, np.uint8)
    stored = stored_elements(read_to_host(tensor) if is_on_device(tensor) else tensor.detach())
    return stored.as_strided([length], [1]).cpu().view(torch.uint8).numpy().copy()


def infer_layout(shape: tuple[int, ...], steps: tuple[int, ...]) -> Layout:
    """Return the suite's layout of a tensor with this shape and these strides in elements.

    The strides of axes of size 1 are ignored to decide whether the tensor is contiguous, as in PyTorch.
    """
    usual = contiguous_strides(shape)
    is_usual = 0 in shape or all(n == 1 or a == b for n, a, b in zip(shape, steps, usual, strict=True))
    return contiguous if is_usual else strides(*steps)


@final
@dataclass(frozen=True, kw_only=True)
class TensorContent:
    """The content of a tensor at one moment.

    Attributes:
        tensor: the tensor itself, whose content and size may have changed since.
        shape: the shape at that moment.
        strides: the strides at that moment, in elements.
        stored: the bytes at that moment, from the first element to the last.
        address: the address of the first element.
        is_conjugated: whether the elements are the conjugates of those stored.
        is_negated: whether the elements are the negatives of those stored.
    """

    tensor: torch.Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    stored: Bytes
    address: int
    is_conjugated: bool
    is_negated: bool

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor) -> TensorContent:
        """Return the current content of a tensor on any device."""
        return cls(
            tensor=tensor,
            shape=tuple(tensor.shape),
            strides=tuple(tensor.stride()),
            stored=read_span(tensor),
            address=tensor.data_ptr(),
            is_conjugated=tensor.is_conj(),
            is_negated=tensor.is_neg(),
        )

    @property
    def dtype(self) -> Dtype:
        """The element type."""
        return DTYPES[self.tensor.dtype]

    @cached_property
    def data(self) -> TensorData:
        """The elements in the suite's representation; conjugation and negation are applied."""
        spec = TensorSpec(self.shape, self.dtype, layout=infer_layout(self.shape, self.strides))
        values = self.make_record("", Role.input, self.stored).values
        values = np.conj(values) if self.is_conjugated else values
        return TensorData(-values if self.is_negated else values, spec)

    def make_record(self, name: str, role: Role, after: Bytes, expected: Any = None) -> TensorRecord:
        """Return the suite's record of the tensor before and after a call.

        Args:
            name: the name of the tensor in the call.
            role: whether the tensor is an input, a result, or both.
            after: the bytes after the call, from the first element to the last; `stored` has those before it.
            expected: the expected result; None if there is none.
        """
        return TensorRecord(
            name=name,
            role=role,
            dtype=self.dtype,
            shape=self.shape,
            strides=self.strides,
            offset=0,
            before=self.stored,
            after=after,
            expected=expected,
        )

    def read_again(self, written: Iterable[TensorContent]) -> Bytes:
        """Return the current bytes of the tensor, without the effect of permitted writes.

        Args:
            written: the contents of tensors that the call may write. If their memory overlaps this tensor, the bytes
                from before the call are returned for their elements.

        Returns:
            The bytes from the first element to the last.
        """
        now = read_span(self.tensor)
        for content in written:
            begin = max(self.address, content.address)
            end = min(self.address + now.size, content.address + content.stored.size)
            if begin < end:
                common, start = slice(begin - self.address, end - self.address), begin - content.address
                is_element = ~content.make_record("", Role.output, content.stored).gaps[start:][: end - begin]
                now[common] = np.where(is_element, self.stored[common], now[common])
        return now

    def to_cpu(self) -> torch.Tensor:
        """Return a CPU tensor with the same elements and strides, lazily conjugated or negated as the tensor was."""
        if not self.stored.size:
            return torch.empty(self.shape, dtype=self.tensor.dtype)
        memory = torch.from_numpy(self.stored.copy()).view(self.tensor.dtype).as_strided(self.shape, self.strides)
        memory = torch._conj(memory) if self.is_conjugated else memory
        return torch._neg_view(memory) if self.is_negated else memory


def read_elements(tensor: torch.Tensor) -> NDArray[Any]:
    """Return the elements of a tensor on any device as an array in the corresponding NumPy type."""
    return TensorContent.from_tensor(tensor.detach()).data.values


def map_tensors(change: Callable[[str, torch.Tensor], Any], value: Any, name: str) -> Any:
    """Return an argument in which each tensor is replaced.

    Args:
        change: a function that receives the name and the tensor, and returns the replacement.
        value: the argument: a tensor, a list or tuple that may contain tensors, or any other value.
        name: the name of the argument. Elements of a list have names such as `tensors.0`.

    Returns:
        The argument with replacements; tuples become lists.
    """
    if isinstance(value, torch.Tensor):
        return change(name, value)
    if isinstance(value, list | tuple):
        return [map_tensors(change, entry, f"{name}.{number}") for number, entry in enumerate(value)]
    return value


def iterate_tensors(named: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Iterate over the tensors among arguments or results.

    Args:
        named: the arguments or results by name; lists of tensors are searched as well.

    Returns:
        An iterator over pairs of a name, such as `other` or `tensors.0`, and the tensor.
    """
    tensors: list[tuple[str, torch.Tensor]] = []
    for name, value in named.items():
        map_tensors(lambda path, tensor: tensors.append((path, tensor)), value, name)
    return iter(tensors)

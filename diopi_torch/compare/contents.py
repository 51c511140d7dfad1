"""Tensors as they are at a moment: bytes on the host, of which tensors of the CPU and arrays are made."""

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
from diopi_test.cases.data import TensorData
from diopi_test.cases.layouts import Layout, contiguous, strides
from diopi_test.cases.model import TensorSpec
from diopi_test.execution.call_record import Bytes, TensorRecord
from diopi_torch.layout import DTYPES, contiguous_strides, extent
from diopi_torch.tensors import is_ours, on_host


def span(tensor: torch.Tensor) -> Bytes:
    """The bytes from the first element of a tensor to the last, after waiting: a copy."""
    length = extent(tensor.shape, tensor.stride())
    if not length:
        return np.empty(0, np.uint8)
    host = on_host(tensor) if is_ours(tensor) else tensor
    return host.as_strided([length], [1]).view(torch.uint8).numpy().copy()


def layout_of(shape: tuple[int, ...], steps: tuple[int, ...]) -> Layout:
    """The layout of a tensor with these strides; those of axes of one element mean nothing."""
    usual = contiguous_strides(shape)
    is_usual = 0 in shape or all(n == 1 or a == b for n, a, b in zip(shape, steps, usual, strict=True))
    return contiguous if is_usual else strides(*steps)


@final
@dataclass(frozen=True)
class Content:
    """A tensor as it was.

    Attributes:
        tensor: it itself, which may have changed since, also in size.
        shape, strides: that it had then; strides in elements.
        stored: its bytes then, from the first element to the last.
        address: of the first.
    """

    tensor: torch.Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    stored: Bytes
    address: int

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor) -> Content:
        """A tensor of the device, or of the CPU, as it is now."""
        return cls(tensor, tuple(tensor.shape), tuple(tensor.stride()), span(tensor), tensor.data_ptr())

    @property
    def dtype(self) -> Dtype:
        """Its element type."""
        return DTYPES[self.tensor.dtype]

    @cached_property
    def data(self) -> TensorData:
        """Its elements, and their form."""
        spec = TensorSpec(self.shape, self.dtype, layout=layout_of(self.shape, self.strides))
        return TensorData(self.record("", Role.input, self.stored).values, spec)

    def record(self, name: str, role: Role, after: Bytes, expected: Any = None) -> TensorRecord:
        """What a call left of it."""
        return TensorRecord(name, role, self.dtype, self.shape, self.strides, 0, self.stored, after, expected)

    def read_again(self, written: Iterable[Content]) -> Bytes:
        """The bytes as they are now; those that are elements of other tensors, which are written, as they were."""
        now = span(self.tensor)
        for content in written:
            begin = max(self.address, content.address)
            end = min(self.address + now.size, content.address + content.stored.size)
            if begin < end:
                here, there = slice(begin - self.address, end - self.address), slice(begin - content.address, None)
                is_its = ~content.record("", Role.output, content.stored).gaps[there][: end - begin]
                now[here] = np.where(is_its, self.stored[here], now[here])
        return now

    def on_cpu(self) -> torch.Tensor:
        """A tensor of the CPU with the same elements and strides."""
        if not self.stored.size:
            return torch.empty(self.shape, dtype=self.tensor.dtype)
        memory = torch.from_numpy(self.stored.copy()).view(self.tensor.dtype)
        return memory.as_strided(self.shape, self.strides)


def array_of(tensor: torch.Tensor) -> NDArray[Any]:
    """The elements of a tensor, of the device or the CPU, in NumPy's type for theirs."""
    plain = tensor.detach() if is_ours(tensor) else tensor.detach().resolve_conj().resolve_neg()
    return Content.from_tensor(plain).data.values


def mapped(change: Callable[[str, torch.Tensor], Any], value: Any, name: str) -> Any:
    """An argument with each tensor replaced, which `change` knows by a name: `other`, or `tensors.0` in a list."""
    if isinstance(value, torch.Tensor):
        return change(name, value)
    if isinstance(value, list | tuple):
        return [mapped(change, entry, f"{name}.{number}") for number, entry in enumerate(value)]
    return value


def tensors_in(named: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors among arguments or results, by such names."""
    found: list[tuple[str, torch.Tensor]] = []
    for name, value in named.items():
        mapped(lambda path, tensor: found.append((path, tensor)), value, name)
    return iter(found)

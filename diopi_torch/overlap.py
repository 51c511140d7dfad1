"""Tensors of one call that overlap in memory, and CPU tensors that overlap in the same way.

PyTorch refuses to write some overlapping tensors, and each operator has its own rule. The device follows the CPU: it
runs the operator there, with tensors that overlap in the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, final

import torch

from diopi_torch.parts import is_sparse
from diopi_torch.storage import view_bytes
from diopi_torch.tensors import copy_bytes, is_dense, is_on_device, read_to_host


@final
@dataclass(frozen=True)
class Overlap:
    """The ways in which the tensors of a call overlap.

    Attributes:
        within_tensor: whether several elements of a written tensor are at one address.
        between_tensors: whether a written tensor may share elements with another tensor of the call.
    """

    within_tensor: bool
    between_tensors: bool

    def __bool__(self) -> bool:
        return self.within_tensor or self.between_tensors


def find_overlap(operator: torch._ops.OpOverload, named: Mapping[str, Any]) -> Overlap:
    """Return how the tensors of a call overlap, as far as PyTorch examines it.

    Args:
        operator: the operator.
        named: its arguments by name.

    Returns:
        The overlap. Tensors with gaps between their elements do not count as overlapping other tensors.
    """
    tensors = [
        (tensor, argument.alias_info is not None and argument.alias_info.is_write)
        for argument in operator._schema.arguments
        for tensor in _device_tensors(named.get(argument.name))
    ]
    by_storage: defaultdict[int, list[tuple[torch.Tensor, bool]]] = defaultdict(list)
    for tensor, writes in tensors:
        by_storage[tensor.untyped_storage().data_ptr()].append((tensor, writes))
    return Overlap(
        within_tensor=any(writes and overlaps_itself(tensor) for tensor, writes in tensors),
        between_tensors=any(
            (writes or writes_too) and share_elements(tensor, neighbor)
            for group in by_storage.values()
            for (tensor, writes), (neighbor, writes_too) in combinations(group, 2)
        ),
    )


def _device_tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the dense tensors of the device in an argument."""
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _device_tensors(entry)
    elif is_on_device(value) and not is_sparse(value):
        yield value


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Return whether several elements of a tensor are at one address because of a stride of 0."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return bool(tensor.numel()) and any(size > 1 and step == 0 for size, step in steps)


def share_elements(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors without gaps between their elements have common elements."""
    if first.untyped_storage().data_ptr() != second.untyped_storage().data_ptr():
        return False
    if not (first.numel() and second.numel() and is_dense(first) and is_dense(second)):
        return False
    ends = [tensor.data_ptr() + tensor.numel() * tensor.dtype.itemsize for tensor in (first, second)]
    return max(first.data_ptr(), second.data_ptr()) < min(ends)


@final
class HostMemory:
    """Memory of the CPU with copies of tensors, which share storages as on the device."""

    def __init__(self) -> None:
        self._storages: dict[int, torch.UntypedStorage] = {}

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the CPU tensor with the contents, shape, strides and lazy bits of a tensor of the device."""
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        if address not in self._storages:
            self._storages[address] = read_to_host(view_bytes(storage)).clone().untyped_storage()
        host = torch.empty(0, dtype=tensor.dtype)
        host.set_(self._storages[address], tensor.storage_offset(), tensor.shape, tensor.stride())
        host = torch._conj(host) if tensor.is_conj() else host
        return torch._neg_view(host) if tensor.is_neg() else host


def write_storage(tensor: torch.Tensor, host: torch.Tensor) -> None:
    """Copy the storage of a CPU tensor to that of a tensor of the device, as far as the latter reaches."""
    target, source = view_bytes(tensor.untyped_storage()), view_bytes(host.untyped_storage())
    length = min(target.numel(), source.numel())
    copy_bytes(target[:length], source[:length])

"""Detect tensors of one call that overlap in memory, and create CPU tensors that overlap in the same way.

PyTorch rejects some calls that write overlapping tensors, and each operator has a different rule. Therefore the device
executes such calls on the CPU, which applies PyTorch's rule. The CPU tensors must overlap like those of the device.
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
    """Return how the strided tensors of a call overlap; sparse tensors are ignored.

    Args:
        operator: the operator.
        named: the arguments by name.

    Returns:
        The overlap. As in PyTorch's check, a tensor with gaps between its elements does not overlap other tensors.
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
    """Yield the tensors of the device in an argument, except sparse tensors."""
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _device_tensors(entry)
    elif is_on_device(value) and not is_sparse(value):
        yield value


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has several elements at one address, because the stride of an axis is 0."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return bool(tensor.numel()) and any(size > 1 and step == 0 for size, step in steps)


def share_elements(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors have common elements; False if a tensor has gaps between its elements."""
    if first.untyped_storage().data_ptr() != second.untyped_storage().data_ptr():
        return False
    if not (first.numel() and second.numel() and is_dense(first) and is_dense(second)):
        return False
    ends = [tensor.data_ptr() + tensor.numel() * tensor.dtype.itemsize for tensor in (first, second)]
    return max(first.data_ptr(), second.data_ptr()) < min(ends)


@final
class HostMemory:
    """CPU copies of device tensors. Copies share a storage if the device tensors do."""

    def __init__(self) -> None:
        self._storages: dict[int, torch.UntypedStorage] = {}

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a CPU tensor with the elements, shape, strides and lazy bits of a device tensor."""
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        if address not in self._storages:
            self._storages[address] = read_to_host(view_bytes(storage)).clone().untyped_storage()
        host = torch.empty(0, dtype=tensor.dtype)
        host.set_(self._storages[address], tensor.storage_offset(), tensor.shape, tensor.stride())
        host = torch._conj(host) if tensor.is_conj() else host
        return torch._neg_view(host) if tensor.is_neg() else host


def write_storage(tensor: torch.Tensor, host: torch.Tensor) -> None:
    """Copy the storage of a CPU tensor to the storage of a device tensor, up to the size of the smaller one."""
    target, source = view_bytes(tensor.untyped_storage()), view_bytes(host.untyped_storage())
    length = min(target.numel(), source.numel())
    copy_bytes(target[:length], source[:length])

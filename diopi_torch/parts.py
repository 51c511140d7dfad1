"""PyTorch's sparse tensors as the tensors of indices and values that they consist of."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

_PARTS: Mapping[torch.layout, tuple[str, ...]] = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}
"""The names of the methods that return the parts, by layout."""


def is_sparse(tensor: torch.Tensor) -> bool:
    """Return whether a tensor consists of other tensors."""
    return tensor.layout in _PARTS


def sparse_parts(tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the indices and values of a sparse tensor by name; for CSR: row pointers, columns and values."""
    return {name: getattr(tensor, name)() for name in _PARTS[tensor.layout]}


def replace_parts(tensor: torch.Tensor, changed: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return a sparse tensor like `tensor` with each part replaced by `changed(part)`."""
    *indices, values = map(changed, sparse_parts(tensor).values())
    if tensor.layout is torch.sparse_coo:
        is_coalesced = tensor.is_coalesced()
        return torch.sparse_coo_tensor(
            indices[0], values, tensor.shape, is_coalesced=is_coalesced, check_invariants=False
        )
    pointers, places = indices
    return torch.sparse_compressed_tensor(
        pointers, places, values, tensor.shape, layout=tensor.layout, check_invariants=False
    )


def overwrite(tensor: torch.Tensor, source: torch.Tensor) -> None:
    """Overwrite a sparse tensor with the shape and elements of another one with the same layout and device."""
    if tensor.layout is not torch.sparse_coo:
        torch.ops.aten.resize_as_sparse_(tensor, source)
    tensor.copy_(source)

"""Operators on sparse tensors of PyTorch whose indices and values are tensors of the device.

- Operators that create or inspect a sparse tensor only handle the tensors of its indices and values, not their
  elements. Therefore PyTorch's kernels for the CPU also work for tensors of the device, and the device uses them.
- `diopiSpMM` multiplies CSR matrices by dense matrices.
- All other operators fall back to the CPU: the operands are copied to the CPU, and the result is copied back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor

from diopi_proto.interface import lookup
from diopi_proto.types import Error
from diopi_torch.backend import backend
from diopi_torch.fallback import fall_back
from diopi_torch.functions import UnsupportedCallError, make_error
from diopi_torch.layout import DTYPES
from diopi_torch.operators import overload
from diopi_torch.parts import sparse_parts
from diopi_torch.tensors import allocate_on_current_stream
from lib_rt import Tensor as NativeTensor

STRUCTURE_OPERATORS: Mapping[str, Collection[str]] = {
    "SparsePrivateUse1": (
        *("_sparse_coo_tensor_with_dims", "_sparse_coo_tensor_with_dims_and_tensors", "empty.memory_format", "clone"),
        *("_indices", "_values", "indices", "values", "_nnz", "is_coalesced", "_coalesced_", "sparse_dim", "dense_dim"),
        *("sparse_resize_", "sparse_resize_and_clear_", "copy_sparse_to_sparse_", "copy_", "permute", "unsqueeze"),
    ),
    "SparseCsrPrivateUse1": (
        *("crow_indices", "col_indices", "ccol_indices", "row_indices", "values", "_nnz", "sparse_dim", "dense_dim"),
        *("empty.memory_format", "clone", "copy_", "resize_as_sparse_"),
    ),
}
"""Operators that create, copy or inspect sparse tensors, by the device's dispatch key.

The key `SparsePrivateUse1` is for COO tensors, and `SparseCsrPrivateUse1` for compressed tensors (CSR, CSC, BSR, BSC).
"""

CPU_DISPATCH_KEYS = {"SparsePrivateUse1": "SparseCPU", "SparseCsrPrivateUse1": "SparseCsrCPU"}
"""The dispatch key of the CPU for the same kind of sparse tensor, by the dispatch key of the device."""


def mm(self: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices: CSR times dense by `diopiSpMM`, all other layouts by falling back."""
    try:
        return _multiply_csr(self, mat2)
    except UnsupportedCallError:
        return fall_back(torch.ops.aten.mm.default, self, mat2)


def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return beta · self + alpha · mat1 @ mat2, computed as `mm` does; self is not read if beta is 0."""
    try:
        product = _multiply_csr(mat1, mat2)
    except UnsupportedCallError:
        return fall_back(torch.ops.aten.addmm.default, self, mat1, mat2, beta=beta, alpha=alpha)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else torch.add(product, self, alpha=beta)


def _multiply_csr(sparse: Tensor, dense: Tensor) -> Tensor:
    """Return a CSR matrix [M, K] times a dense matrix [K, N]; raise UnsupportedCallError if that is not supported."""
    fits = sparse.dim() == dense.dim() == 2 and sparse.shape[1] == dense.shape[0] and sparse.dtype == dense.dtype
    if sparse.layout is not torch.sparse_csr or dense.layout is not torch.strided or not fits:
        raise UnsupportedCallError(f"the product of {sparse.layout} and {dense.layout}")
    product = allocate_on_current_stream((sparse.shape[0], dense.shape[1]), dense.dtype)
    with ExitStack() as opened:
        tensors = (product, dense, *sparse_parts(sparse).values())
        out, mat2, crow, col, values = (opened.enter_context(_as_native(tensor)) for tensor in tensors)
        matrix = opened.enter_context(NativeTensor.sparse_csr(crow, col, values, tuple(sparse.shape)))
        _call_function("diopiSpMM", out, matrix, mat2)
    return product


def _as_native(tensor: Tensor) -> NativeTensor:
    """Return a `lib_rt` tensor that has the same memory, shape and strides, to pass to a function of the standard."""
    storage, dtype = tensor.untyped_storage(), DTYPES[tensor.dtype]
    first = int(tensor.storage_offset()) if tensor.numel() else 0
    context, memory = backend().stream.context, (storage.data_ptr(), storage.nbytes())
    return NativeTensor.from_memory(context, *memory, tuple(tensor.shape), dtype, tensor.stride(), first)


def _call_function(function: str, *arguments: NativeTensor) -> None:
    """Call a function; raise UnsupportedCallError if the vendor does not support it, and RuntimeError if it fails."""
    device = backend()
    if not device.vendor.has(function) or arguments[0].dtype not in lookup(function).dtypes:
        raise UnsupportedCallError(f"{device.vendor.name} has no {function} of {arguments[0].dtype.name}")
    code = device.vendor.call(function, device.stream.context, *arguments)
    if code is not Error.Success:
        raise make_error(device, function, code)


PRODUCTS: Mapping[str, Callable[..., Tensor]] = {"mm": mm, "addmm": addmm}
"""The implementations of the products of compressed tensors, by operator name."""


def kernels(key: str, names: Collection[str]) -> Mapping[str, Callable[..., Any]]:
    """Return the kernels that the device registers for sparse tensors.

    Args:
        key: A key of `CPU_DISPATCH_KEYS`, the dispatch key of the device for a kind of sparse tensor.
        names: The names of all operators of ATen.

    Returns:
        A kernel per operator for which the CPU has a kernel, by operator name. Operators that create, copy or inspect
        tensors (`STRUCTURE_OPERATORS`) call the kernel of the CPU with the device's tensors. Products of compressed
        tensors call `mm` and `addmm` of this module. All other operators fall back to the CPU.

    Raises:
        KeyError: The CPU has no kernel for one of `STRUCTURE_OPERATORS`.
    """
    keys = torch._C.DispatchKeySet(torch._C._dispatch_key_parse(CPU_DISPATCH_KEYS[key]))
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    on_cpu = {name: overload(name) for name in names if has(f"aten::{name}", CPU_DISPATCH_KEYS[key])}
    structural = {name: partial(on_cpu[name].redispatch, keys) for name in STRUCTURE_OPERATORS[key]}
    fallbacks = {name: partial(fall_back, operator) for name, operator in on_cpu.items()}
    return {**fallbacks, **structural, **(PRODUCTS if key == "SparseCsrPrivateUse1" else {})}

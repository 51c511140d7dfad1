"""Products with sparse matrices.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results.
"""

from __future__ import annotations

import torch

from diopi_impl.torch_cpu import vendor


@vendor.implements("diopiSpMM")
def spmm(input, mat2):
    """Return the product of a sparse matrix in CSR format and a dense matrix."""
    if not isinstance(input, list) or isinstance(mat2, list):
        raise NotImplementedError("input must be sparse, and mat2 dense")
    crow, col, values = (part.contiguous() for part in input)  # PyTorch's kernel reads beyond strided parts
    matrix = torch.sparse_csr_tensor(crow, col, values, (len(crow) - 1, len(mat2)), check_invariants=False)
    return matrix @ mat2

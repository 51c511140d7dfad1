"""Products with sparse matrices.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from diopi_impl.jax_cpu import vendor


@vendor.implements("diopiSpMM")
def spmm(input, mat2):
    """Return the product of a sparse matrix in CSR format and a dense matrix."""
    if not isinstance(input, list) or isinstance(mat2, list):
        raise NotImplementedError("input must be sparse, and mat2 dense")
    crow, col, values = input
    for name, part in (("row pointers", crow), ("columns", col)):
        if not jnp.issubdtype(part.dtype, jnp.integer):
            raise ValueError(f"the {name} of input are {part.dtype}, expected integers")
    if mat2.ndim != 2:
        raise ValueError(f"mat2 has shape {mat2.shape}, expected 2 axes")
    rows = jnp.searchsorted(crow, jnp.arange(len(col)), side="right") - 1
    entries = mat2[col] if values is None else values[:, None] * mat2[col]
    return jax.ops.segment_sum(entries, rows, len(crow) - 1, indices_are_sorted=True)

"""Products with sparse matrices.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import reference
from diopi_test.oracle.reference.products import sum_products

Array = NDArray[Any]


@reference("diopiSpMM")
def spmm(input, mat2):
    """Return the product of a sparse matrix in CSR format and a dense matrix."""
    crow, col, values = input
    rows = np.repeat(np.arange(len(crow) - 1), np.diff(crow))

    def product(entries: Array, dense: Array) -> Array:
        """Return the product, linear in the entries and in the dense matrix."""
        out = np.zeros_like(dense, shape=(len(crow) - 1, dense.shape[1]))
        np.add.at(out, rows, entries[:, np.newaxis] * dense[col])
        return out

    return sum_products(product, values, mat2)

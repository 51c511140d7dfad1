"""Products with sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import reference
from diopi_test.oracle.reference.products import sum_products

Array = NDArray[Any]


@reference("diopiSpMM")
def spmm(input, mat2):
    crow, col, values = input
    rows = np.repeat(np.arange(len(crow) - 1), np.diff(crow))

    def product(entries: Array, dense: Array) -> Array:
        out = np.zeros((len(crow) - 1, dense.shape[1]))
        np.add.at(out, rows, entries[:, np.newaxis] * dense[col])
        return out

    return sum_products(product, values, mat2)

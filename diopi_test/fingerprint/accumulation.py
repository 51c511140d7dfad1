"""Probes of accumulation in sums and dot products: width and rounding of partial sums, order, exactness of products.

The *width* of a partial sum is the number of its significant bits. To find it, a probe sums three numbers: a large
number 2^t, a small number, and −2^t. The exact result is the small number. If partial sums are too narrow for 2^t plus
the small number, rounding changes the result. The exponent t is called the *top* exponent.

Source: M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer
Science 7:e330, 2021. The module `trees` finds the order of the additions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import floating
from diopi_proto.types import Dtype
from diopi_test.fingerprint.orders import describe
from diopi_test.fingerprint.probe import Observations, Probe, ProbedOperator, single_variants
from diopi_test.fingerprint.trees import NoTreeError, reveal
from lib_rt.dtypes import Array, from_numpy, to_numpy
from lib_rt.formats import FORMATS, Format

TERMS = 128
"""Number of terms of every sum: twice the number that a processor with 16 lanes and four registers adds at a time."""

ROWS = 64
"""Number of sums that one call computes, for operators that compute several sums in a call."""

MOST_BITS = 128
"""The largest width of partial sums that is tried; it exceeds the 107 bits of a pair of float64 numbers."""

WIDTHS = {8: "bfloat16", 11: "float16", 24: "float32", 53: "float64", 64: "extended"}
"""The names of floating-point formats by their number of significant bits."""

Floats = NDArray[np.float64]
RowSum = Callable[[ProbedOperator, Array], Array]
"""A function that lets an operator compute the sum of each row of an array; a row has `TERMS` terms.

The array has the shape (number of sums, `TERMS`), and the result has the shape (number of sums,).
"""


@final
@dataclass(frozen=True)
class Sums:
    """Computes sums of `TERMS` terms with an operator of a vendor; call the object with the rows to sum.

    Attributes:
        operator: the operator.
        row_sum: the function that calls the operator to sum rows.
        dtype: the element type of the terms.
    """

    operator: ProbedOperator
    row_sum: RowSum
    dtype: Dtype

    @property
    def form(self) -> Format:
        """The floating-point format of the terms: its precision and range."""
        return FORMATS[self.dtype]

    def __call__(self, rows: Sequence[Floats]) -> Floats:
        """Return the sum of each row as float64; a row has `TERMS` terms, which `dtype` represents exactly."""
        terms = np.stack(rows).astype(to_numpy(self.dtype))
        return self.row_sum(self.operator, terms).astype(np.float64)


def sum_vectors(operator: ProbedOperator, rows: Array) -> Array:
    """Return the sum of each row by diopiSum; each row is summed in a separate call, as a vector."""
    return np.stack([operator(row, (0,), shape=(), dtype=_dtype(rows)) for row in rows])


def sum_matrix_rows(operator: ProbedOperator, rows: Array) -> Array:
    """Return the sum of each row by diopiSum along the rows of matrices."""
    return _in_blocks(rows, lambda block: operator(block, (1,), shape=(ROWS,), dtype=_dtype(rows)))


def sum_matrix_columns(operator: ProbedOperator, rows: Array) -> Array:
    """Return the sum of each row by diopiSum along the columns of transposed matrices."""
    return _in_blocks(
        rows, lambda block: operator(np.ascontiguousarray(block.T), (0,), shape=(ROWS,), dtype=_dtype(rows))
    )


def sum_by_dot_products(operator: ProbedOperator, rows: Array) -> Array:
    """Return the sum of each row by diopiMm, as the product of the row and a column of ones, in separate calls."""
    ones = np.ones((TERMS, 1), rows.dtype)
    return np.stack([operator(row[None], ones, shape=(1, 1), dtype=_dtype(rows))[0, 0] for row in rows])


def sum_by_matrix_products(operator: ProbedOperator, rows: Array) -> Array:
    """Return the sum of each row by diopiMm: the first column of the product of a matrix and a matrix of ones."""
    ones = np.ones((TERMS, ROWS), rows.dtype)
    return _in_blocks(rows, lambda block: operator(block, ones, shape=(ROWS, ROWS), dtype=_dtype(rows))[:, 0])


def _in_blocks(rows: Array, sums: Callable[[Array], Array]) -> Array:
    """Return the sum of each row; `sums` computes those of a block of `ROWS` rows. Zeros fill the last block."""
    filled = np.zeros((-(-len(rows) // ROWS) * ROWS, TERMS), rows.dtype)
    filled[: len(rows)] = rows
    return np.concatenate([sums(filled[start : start + ROWS]) for start in range(0, len(filled), ROWS)])[: len(rows)]


def _dtype(array: Array) -> Dtype:
    """Return the element type of an array."""
    return from_numpy(array.dtype)


def measure_sums(operator: ProbedOperator, dtype: Dtype, *, row_sum: RowSum) -> Observations:
    """Observe width, rounding and order of an operator's sums.

    Args:
        operator: the operator.
        dtype: the element type of the terms.
        row_sum: the function that calls the operator to sum rows.

    Returns:
        The observations in words, under the names `partial sums`, `rounded` and `order`. If sums of three terms are
        wrong, there is only `partial sums`. If no partial sum is rounded, `rounded` is missing.
    """
    sums = Sums(operator, row_sum, dtype)
    top = find_top(sums)
    if top is None:
        return {"partial sums": "not seen: sums of three terms are wrong"}
    bits = width(sums, top)
    if bits is None:
        return {"partial sums": "wider than can be seen", "order": "not seen: no partial sum is rounded"}
    name = f"{WIDTHS[bits]} ({bits} bits)" if bits in WIDTHS else f"{bits} bits"
    return {"partial sums": name, "rounded": _rounding(sums, top, bits), "order": _order(sums, top, bits)}


TOPS = (126, 14)
"""The top exponents that are tried, in this order.

The sum of two terms 2^126 is finite in float32, and the sum of two terms 2^14 is finite in float16.
"""


def find_top(sums: Sums) -> int | None:
    """Return the first top exponent t of `TOPS` for which the sums 2^t + 2^(t−1) − 2^t are correct, or None.

    The other measurements of these sums use this exponent.
    """
    for top in TOPS:
        half = np.ldexp(1.0, top - 1)
        if top < sums.form.max_exponent and (sums(_rows_with(2 * half, half, -2 * half)) == half).all():
            return top
    return None


PLACES = ((0, 1, 2), (0, TERMS // 2, TERMS - 1))
"""The positions of the three nonzero terms in a row: side by side, and far apart."""


def _rows_with(*terms: float) -> list[Floats]:
    """Return rows that contain three terms, in every order and at all `PLACES`, and zeros elsewhere.

    The order of additions is not known yet. The rows contain every order of the terms, so that any two of the terms are
    added first in at least one row.
    """
    rows = []
    for places in PLACES:
        for order in permutations(terms):
            row = np.zeros(TERMS)
            row[list(places)] = order
            rows.append(row)
    return rows


def width(sums: Sums, top: int) -> int | None:
    """Return the significant bits of the narrowest partial sums.

    2^top + 2^(top−k) needs k + 1 bits. The width is therefore the first k for which 2^top + 2^(top−k) − 2^top differs
    from 2^(top−k) in at least one order of the terms.

    Args:
        sums: computes sums with the operator.
        top: the top exponent.

    Returns:
        The number of bits; None if no sum is rounded for any number k of bits that the element type permits.
    """
    for k in range(1, min(top - sums.form.min_exponent, MOST_BITS) + 1):
        term = np.ldexp(1.0, top - k)
        if (sums(_rows_with(2.0**top, term, -(2.0**top))) != term).any():
            return k
    return None


def _rounding(sums: Sums, top: int, bits: int) -> str:
    """Return in words whether partial sums are rounded to nearest or towards zero.

    A term of 3/4 of the last place of the partial sum is added. Rounding to nearest rounds it up, and rounding towards
    zero loses it.

    Args:
        sums: computes sums with the operator.
        top: the top exponent.
        bits: the width of partial sums.

    Returns:
        "to nearest" or "towards zero".
    """
    remainders = sums(_rows_with(2.0**top, 1.5 * 2.0 ** (top - bits), -(2.0**top)))
    return "to nearest" if (remainders > 0).all() else "towards zero"


def _order(sums: Sums, top: int, bits: int) -> str:
    """Return the order of the additions in words, or the reason why the sums do not show it.

    Args:
        sums: computes sums with the operator.
        top: the top exponent.
        bits: the width of partial sums.
    """
    # All terms but two are this unit. It is so small that rounding loses even the sum of all units beside 2^top.
    unit = np.ldexp(1.0, min(0, top - bits - 1 - TERMS.bit_length()))
    if sums([np.full(TERMS, unit)])[0] != TERMS * unit:
        return f"not seen: the sum of {TERMS} times {unit:g} is wrong"

    def sizes(first: int, later: Sequence[int]) -> list[int]:
        """Return the sizes of the smallest subtrees that contain `first` and each of `later`, as `trees.Sizes`.

        Raises:
            NoTreeError: The measured sums do not follow from a tree of additions.
        """
        rows = np.full((len(later), TERMS), unit)
        rows[:, first] = 2.0**top
        rows[np.arange(len(later)), list(later)] = -(2.0**top)
        remaining_sums = sums(list(rows)) / unit
        if not (np.isfinite(remaining_sums).all() and (remaining_sums == np.rint(remaining_sums)).all()):
            raise NoTreeError("what remains of a sum is not a number of terms")
        return [TERMS - int(count) for count in remaining_sums]

    later_terms = range(1, TERMS)
    try:
        if sizes(0, later_terms) != sizes(0, later_terms):
            return "varies from call to call"
        return describe(reveal(sizes, TERMS))
    except NoTreeError as error:
        return f"not seen: {error}"


def measure_products(
    operator: ProbedOperator, dtype: Dtype, *, row_sum: RowSum, shape: tuple[int, int]
) -> Observations:
    """Observe the precision of the factors and products of dot products, and everything that `measure_sums` observes.

    Args:
        operator: an operator that multiplies matrices.
        dtype: the element type of the factors.
        row_sum: the function that calls the operator to sum rows.
        shape: the shape of the matrix products with which factors and products are observed.

    Returns:
        The observations in words. This function adds the names `factors` and `products` to those of `measure_sums`.
    """
    factors, products = _factors(operator, dtype, shape), _products(operator, dtype, shape)
    return {"factors": factors, "products": products, **measure_sums(operator, dtype, row_sum=row_sum)}


def _product(
    operator: ProbedOperator, dtype: Dtype, shape: tuple[int, int], pairs: Mapping[int, tuple[float, float]]
) -> float:
    """Let the operator compute a dot product of `TERMS` pairs of factors, as every element of a matrix product.

    Args:
        operator: an operator that multiplies matrices.
        dtype: the element type of the factors.
        shape: the shape of the matrix product.
        pairs: the pairs of factors by their position in the dot product; all other factors are 0.

    Returns:
        The sum of the products of the pairs.
    """
    rows, columns = np.zeros((shape[0], TERMS)), np.zeros((TERMS, shape[1]))
    for place, pair in pairs.items():
        rows[:, place], columns[place, :] = pair
    factors = [factor.astype(to_numpy(dtype)) for factor in (rows, columns)]
    return float(operator(*factors, shape=shape, dtype=dtype)[0, 0])


def _factors(operator: ProbedOperator, dtype: Dtype, shape: tuple[int, int]) -> str:
    """Return in words how many bits of a factor the operator uses: "kept" for all bits, or "rounded to 11 bits".

    The numbers 1 + 2^−k are multiplied by 1, for k from 1 to the last bit of the element type.
    """
    for bits in range(2, FORMATS[dtype].precision + 1):
        factor = 1 + 2.0 ** (1 - bits)
        if _product(operator, dtype, shape, {0: (factor, 1.0)}) != factor:
            return f"rounded to {bits - 1} bits"
    return "kept"


def _products(operator: ProbedOperator, dtype: Dtype, shape: tuple[int, int]) -> str:
    """Return in words whether products are rounded before they are added.

    The dot product x · x + (−r) · 1 is computed, where r is x² rounded to the element type. If the operator rounds x²
    before the addition, the result is zero; otherwise it is the rounding error of r.
    """
    step = 2.0 ** -((FORMATS[dtype].precision + 1) // 2)
    square, rounded = (1 + step, 1 + step), (-(1 + 2 * step), 1.0)
    rests = {
        _product(operator, dtype, shape, {first: square, second: rounded})
        for places in PLACES
        for first, second in permutations(places, 2)
    }
    return "exact until they are added" if step * step in rests else "rounded before they are added"


def _sum_probe(subject: str, row_sum: RowSum) -> Probe:
    """Return the probe of the sums of diopiSum; `subject` states in words what is summed."""
    return Probe(
        function="diopiSum",
        measure=partial(measure_sums, row_sum=row_sum),
        variants=single_variants(*floating),
        subject=subject,
    )


def _dot_product_probe(subject: str, row_sum: RowSum, shape: tuple[int, int]) -> Probe:
    """Return the probe of the dot products of diopiMm with results of this shape; `subject` names them in words."""
    return Probe(
        function="diopiMm",
        measure=partial(measure_products, row_sum=row_sum, shape=shape),
        variants=single_variants(*floating),
        subject=subject,
    )


SUMS = (
    _sum_probe("of a vector", sum_vectors),
    _sum_probe("of rows", sum_matrix_rows),
    _sum_probe("of columns", sum_matrix_columns),
)
"""The probes of the sums of diopiSum: of a vector, and along the rows and columns of matrices."""

DOT_PRODUCTS = (
    _dot_product_probe("of a row and a column", sum_by_dot_products, (1, 1)),
    _dot_product_probe("of matrices", sum_by_matrix_products, (ROWS, ROWS)),
)
"""The probes of the dot products of diopiMm: of one row and one column, and of `ROWS` × `ROWS` matrices."""

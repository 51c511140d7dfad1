"""Probes of accumulation in sums and dot products: width and rounding of partial sums, order, exactness of products.

The module `trees` finds the order. To find width and rounding, a small term is added beside a large one that cancels,
following M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer
Science 7:e330, 2021.
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
"""Terms of every sum: two rounds of what a processor with 16 lanes and four registers takes at a time."""

ROWS = 64
"""Sums made by one call where it makes several."""

MOST_BITS = 128
"""The largest width of partial sums that is tried; it exceeds double double."""

WIDTHS = {8: "bfloat16", 11: "float16", 24: "float32", 53: "float64", 64: "extended"}

Floats = NDArray[np.float64]
Way = Callable[[ProbedOperator, Array], Array]
"""A way to use an operator for sums: an array of rows of `TERMS` terms → the sum of each."""


@final
@dataclass(frozen=True)
class Sums:
    """Sums of `TERMS` terms of a type, as one operator makes them."""

    operator: ProbedOperator
    way: Way
    dtype: Dtype

    @property
    def form(self) -> Format:
        """The format of the terms."""
        return FORMATS[self.dtype]

    def __call__(self, rows: Sequence[Floats]) -> Floats:
        """Return the sum of each row's terms as float64."""
        terms = np.stack(rows).astype(to_numpy(self.dtype))
        return self.way(self.operator, terms).astype(np.float64)


def one_by_one(operator: ProbedOperator, rows: Array) -> Array:
    """Return the sums of the rows, where each row is summed as a separate vector."""
    return np.stack([operator(row, (0,), shape=(), dtype=_dtype(rows)) for row in rows])


def along_rows(operator: ProbedOperator, rows: Array) -> Array:
    """Matrices summed along their rows."""
    return _in_blocks(rows, lambda block: operator(block, (1,), shape=(ROWS,), dtype=_dtype(rows)))


def along_columns(operator: ProbedOperator, rows: Array) -> Array:
    """Matrices summed along their columns."""
    return _in_blocks(
        rows, lambda block: operator(np.ascontiguousarray(block.T), (0,), shape=(ROWS,), dtype=_dtype(rows))
    )


def dot_products(operator: ProbedOperator, rows: Array) -> Array:
    """Every row multiplied with a column of ones."""
    ones = np.ones((TERMS, 1), rows.dtype)
    return np.stack([operator(row[None], ones, shape=(1, 1), dtype=_dtype(rows))[0, 0] for row in rows])


def products_of_matrices(operator: ProbedOperator, rows: Array) -> Array:
    """Matrices multiplied with a matrix of ones: the first column."""
    ones = np.ones((TERMS, ROWS), rows.dtype)
    return _in_blocks(rows, lambda block: operator(block, ones, shape=(ROWS, ROWS), dtype=_dtype(rows))[:, 0])


def _in_blocks(rows: Array, sums: Callable[[Array], Array]) -> Array:
    """The sums of any number of rows, `ROWS` at a time; what lacks at the end is filled with zeros."""
    filled = np.zeros((-(-len(rows) // ROWS) * ROWS, TERMS), rows.dtype)
    filled[: len(rows)] = rows
    return np.concatenate([sums(filled[start : start + ROWS]) for start in range(0, len(filled), ROWS)])[: len(rows)]


def _dtype(array: Array) -> Dtype:
    return from_numpy(array.dtype)


def measure_sums(operator: ProbedOperator, dtype: Dtype, *, way: Way) -> Observations:
    """Width, rounding and order of an operator's sums."""
    sums = Sums(operator, way, dtype)
    top = find_top(sums)
    if top is None:
        return {"partial sums": "not seen: sums of three terms are wrong"}
    bits = width(sums, top)
    if bits is None:
        return {"partial sums": "wider than can be seen", "order": "not seen: no partial sum is rounded"}
    name = f"{WIDTHS[bits]} ({bits} bits)" if bits in WIDTHS else f"{bits} bits"
    return {"partial sums": name, "rounded": _rounding(sums, top, bits), "order": _order(sums, top, bits)}


TOPS = (126, 14)
"""Exponents of large terms: what float32, and what float16 can still add up."""


def find_top(sums: Sums) -> int | None:
    """Return the largest of `TOPS` whose terms can be added; None if even the simplest sums are wrong."""
    for top in TOPS:
        half = np.ldexp(1.0, top - 1)
        if top < sums.form.max_exponent and (sums(_placed(2 * half, half, -2 * half)) == half).all():
            return top
    return None


PLACES = ((0, 1, 2), (0, TERMS // 2, TERMS - 1))
"""The positions of the three nonzero terms: side by side, and far apart."""


def _placed(*terms: float) -> list[Floats]:
    """Rows with three terms in every order, so that in one of them any two meet first, and all others zero."""
    rows = []
    for places in PLACES:
        for order in permutations(terms):
            row = np.zeros(TERMS)
            row[list(places)] = order
            rows.append(row)
    return rows


def width(sums: Sums, top: int) -> int | None:
    """Return the significant bits of the narrowest partial sums.

    2^top + 2^(top−k) needs k + 1 bits: the first k at which 2^top + 2^(top−k) − 2^top is not 2^(top−k) in every order.

    Args:
        sums: the sums of an operator.
        top: the exponent of the largest term.

    Returns:
        The number of bits; None if terms of the type can't reveal it.
    """
    for k in range(1, min(top - sums.form.min_exponent, MOST_BITS) + 1):
        small = np.ldexp(1.0, top - k)
        if (sums(_placed(2.0**top, small, -(2.0**top))) != small).any():
            return k
    return None


def _rounding(sums: Sums, top: int, bits: int) -> str:
    """Return how partial sums are rounded, from whether three quarters of the last place are rounded up."""
    remainders = sums(_placed(2.0**top, 1.5 * 2.0 ** (top - bits), -(2.0**top)))
    return "to nearest" if (remainders > 0).all() else "towards zero"


def _order(sums: Sums, top: int, bits: int) -> str:
    """The order in words, or why none shows."""
    unit = np.ldexp(1.0, min(0, top - bits - 1 - TERMS.bit_length()))  # all terms together are lost beside 2^top
    if sums([np.full(TERMS, unit)])[0] != TERMS * unit:
        return f"not seen: the sum of {TERMS} times {unit:g} is wrong"

    def sizes(first: int, later: Sequence[int]) -> list[int]:
        rows = np.full((len(later), TERMS), unit)
        rows[:, first] = 2.0**top
        rows[np.arange(len(later)), list(later)] = -(2.0**top)
        outside = sums(list(rows)) / unit
        if not (np.isfinite(outside).all() and (outside == np.rint(outside)).all()):
            raise NoTreeError("what remains of a sum is not a number of terms")
        return [TERMS - int(count) for count in outside]

    everything = range(1, TERMS)
    try:
        if sizes(0, everything) != sizes(0, everything):
            return "varies from call to call"
        return describe(reveal(sizes, TERMS))
    except NoTreeError as error:
        return f"not seen: {error}"


def measure_products(operator: ProbedOperator, dtype: Dtype, *, way: Way, shape: tuple[int, int]) -> Observations:
    """Observe dot products of `shape` results: as `measure_sums`, and the precision of factors and products."""
    factors, products = _factors(operator, dtype, shape), _products(operator, dtype, shape)
    return {"factors": factors, "products": products, **measure_sums(operator, dtype, way=way)}


def _product(
    operator: ProbedOperator, dtype: Dtype, shape: tuple[int, int], pairs: Mapping[int, tuple[float, float]]
) -> float:
    """The sum of the products of some pairs of numbers, by place, made in every element of a result of `shape`."""
    rows, columns = np.zeros((shape[0], TERMS)), np.zeros((TERMS, shape[1]))
    for place, pair in pairs.items():
        rows[:, place], columns[place, :] = pair
    factors = [factor.astype(to_numpy(dtype)) for factor in (rows, columns)]
    return float(operator(*factors, shape=shape, dtype=dtype)[0, 0])


def _factors(operator: ProbedOperator, dtype: Dtype, shape: tuple[int, int]) -> str:
    """Return the number of bits of the factor 1 + 2^−k that survive a multiplication by 1."""
    for bits in range(2, FORMATS[dtype].precision + 1):
        factor = 1 + 2.0 ** (1 - bits)
        if _product(operator, dtype, shape, {0: (factor, 1.0)}) != factor:
            return f"rounded to {bits - 1} bits"
    return "kept"


def _products(operator: ProbedOperator, dtype: Dtype, shape: tuple[int, int]) -> str:
    """Return whether x · x is rounded before −(x · x, rounded) is added; if it is exact, a remainder is left."""
    step = 2.0 ** -((FORMATS[dtype].precision + 1) // 2)
    square, rounded = (1 + step, 1 + step), (-(1 + 2 * step), 1.0)
    rests = {
        _product(operator, dtype, shape, {first: square, second: rounded})
        for places in PLACES
        for first, second in permutations(places, 2)
    }
    return "exact until they are added" if step * step in rests else "rounded before they are added"


def _sums(subject: str, way: Way) -> Probe:
    return Probe(
        function="diopiSum",
        measure=partial(measure_sums, way=way),
        variants=single_variants(*floating),
        subject=subject,
    )


def _dots(subject: str, way: Way, shape: tuple[int, int]) -> Probe:
    return Probe(
        function="diopiMm",
        measure=partial(measure_products, way=way, shape=shape),
        variants=single_variants(*floating),
        subject=subject,
    )


SUMS = (
    _sums("of a vector", one_by_one),
    _sums("of rows", along_rows),
    _sums("of columns", along_columns),
)

DOT_PRODUCTS = (
    _dots("of a row and a column", dot_products, (1, 1)),
    _dots("of matrices", products_of_matrices, (ROWS, ROWS)),
)

"""Measure how a vendor rounds the factors of float32 products, for instance to the 11 significant bits of TF32.

Numbers with 24 significant bits are multiplied by 1 in matrix products, convolutions and attention, in which all other
terms are 0. Without rounding of factors, the result equals the number. A result that differs from its factor therefore
shows how the factor was rounded.

Source: M. Fasi et al., "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7:e330, 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from diopi_impl.numerics.declaration import Products
from diopi_proto.types import Dtype
from diopi_test.fingerprint.numerics.operators import Operators
from diopi_test.fingerprint.probe import ProbeFailedError
from diopi_test.fingerprint.samples import significands
from lib_rt.dtypes import Array
from lib_rt.formats import FORMATS

SIZE = 64
"""The number of rows and columns of matrices, large enough for vendors to use their kernels for large products."""

PRECISION = FORMATS[Dtype.float32].precision
"""The significant bits of float32."""

UNROUNDED_BITS = 20
"""Factors that keep at least this many bits count as not rounded.

The results contain other errors as well, for example those of a convolution by a Fourier transform.
"""

FORMAT_OF_BITS: Mapping[int, Products] = {17: "bf16x3", 12: "hf32", 11: "tf32", 8: "bf16"}
"""The formats that can be declared, by the number of significant bits of factors, the most precise first."""


@final
@dataclass(frozen=True)
class FactorPrecision:
    """How the factors of a product are rounded.

    Attributes:
        operator: the operator, in words.
        bits: the significant bits that factors keep; `PRECISION` if they are not rounded.
        is_truncated: whether factors are truncated to these bits instead of rounded to nearest.
    """

    operator: str
    bits: int
    is_truncated: bool = False

    @property
    def products(self) -> Products | None:
        """The most precise format that permits these factors: the value to declare; None if there is none."""
        if self.bits >= UNROUNDED_BITS:
            return "ieee"
        return next((name for bits, name in FORMAT_OF_BITS.items() if self.bits >= bits), None)

    def __str__(self) -> str:
        if self.products == "ieee":
            return f"{self.operator}: factors of float32 are not rounded"
        truncated = ", truncated" if self.is_truncated else ""
        name = f": {NAMES[self.products]}" if self.products else ", which no declaration permits"
        return f"{self.operator}: factors of float32 keep {self.bits} significant bits{truncated}{name}"


NAMES: Mapping[Products, str] = {
    "ieee": "IEEE",
    "tf32": "TF32",
    "hf32": "HF32",
    "bf16x3": "three products of bfloat16",
    "bf16": "bfloat16",
}
"""The declared formats in words."""


Pair = tuple[Array, Array]
"""The exact result of multiplications by 1, and the result of an operator; both have the same shape."""

# Each of the following functions lets an operator multiply the numbers of a matrix of shape (SIZE, SIZE) by 1, once as
# the first and once as the second factor, and returns the exact results with the results of the operator.


def _multiply_matrices(operators: Operators, factor: Array) -> list[Pair]:
    """Return the products of the matrix `factor` and the identity matrix, from the left and from the right."""
    identity = np.eye(SIZE, dtype=np.float32)
    return [(factor, operators.multiply(factor, identity)), (factor, operators.multiply(identity, factor))]


def _convolve(operators: Operators, factor: Array) -> list[Pair]:
    """Convolve images with kernels that contain a single 1, and images that contain a single 1 with kernels.

    The last pair also uses a kernel of 3 × 3 and a stride of 2, for which vendors can have other algorithms.

    Returns:
        The pairs of exact and actual results.
    """
    identity = np.eye(SIZE, dtype=np.float32)
    image, ones = (matrix.reshape(1, SIZE, 8, 8) for matrix in (factor, identity))
    padded_kernel = np.zeros((SIZE, SIZE, 3, 3), np.float32)
    padded_kernel[:, :, 0, 0] = identity
    return [
        (image, operators.convolve(image, identity[..., None, None])),
        (image, operators.convolve(ones, factor[..., None, None])),
        (image[..., :6:2, :6:2], operators.convolve(image, padded_kernel, stride=2)),
    ]


def _attend_to_one_key(operators: Operators, factor: Array) -> list[Pair]:
    """Compute attention with a single key, in which the logsumexp equals the score and the result equals the value.

    The score is the product of a query and the key.

    Returns:
        The pairs of exact and actual results.
    """
    q, v = factor.reshape(1, SIZE, 1, SIZE), factor.reshape(SIZE, 1, 1, SIZE)
    unit = np.zeros((1, 1, 1, SIZE), np.float32)
    unit[..., 0] = 1
    units = np.repeat(unit, SIZE, 0)
    _, scores = operators.attend(q, unit, unit)
    attention, _ = operators.attend(units, units, v)
    return [(factor[:, 0], scores.ravel()), (v, attention)]


_PROBES: Mapping[str, tuple[str, Callable[[Operators, Array], list[Pair]]]] = {
    "linalg": ("matrix products", _multiply_matrices),
    "conv": ("convolutions", _convolve),
    "attention": ("attention", _attend_to_one_key),
}
"""For each family of functions, the name of its products in words, and the function that computes them."""


def measure_factors(operators: Operators) -> dict[str, FactorPrecision]:
    """Return the precision of factors by family of functions; families that the vendor lacks are left out."""
    factor = significands(Dtype.float32, 3)[: SIZE * SIZE].reshape(SIZE, SIZE)
    precisions = {}
    for family, (name, compute) in _PROBES.items():
        try:
            precisions[family] = _find_precision(name, compute(operators, factor))
        except ProbeFailedError:
            continue
    return precisions


def _find_precision(operator: str, pairs: Sequence[Pair]) -> FactorPrecision:
    """Derive the precision of factors from products of numbers in [1, 2) with 1.

    Args:
        operator: the operator, in words.
        pairs: the exact results and the results of the operator.

    Returns:
        The precision. It follows from the largest error. The number of bits is that of a format in `FORMAT_OF_BITS`
        under two conditions: the lowest bit that is set in any result is the last bit of the format, and the error
        agrees with the format.
    """
    exact, results = (np.concatenate([pair[i].ravel() for pair in pairs]).astype(np.float64) for i in (0, 1))
    error = float(np.abs(results - exact).max())
    if error == 0:
        return FactorPrecision(operator, PRECISION)
    if not error < 1:  # NaN, or a wrong product
        return FactorPrecision(operator, 0)
    by_error = int(-np.log2(error))
    places = int(np.bitwise_or.reduce((results * 2.0 ** (PRECISION - 1)).astype(np.int64)))
    by_spacing = PRECISION + 1 - (places & -places).bit_length()
    if by_spacing in FORMAT_OF_BITS and by_spacing - 1 <= by_error <= by_spacing:
        return FactorPrecision(operator, by_spacing, is_truncated=by_error < by_spacing)
    return FactorPrecision(operator, by_error)

"""Unary element-wise functions, and the gradient of tanh.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from diopi_test.oracle.reference import WithTerms, reference

Array = NDArray[Any]

FLOAT64_FUNCTIONS = {
    "diopiSqrt": np.sqrt,
    "diopiRsqrt": lambda x: 1 / np.sqrt(x),
    "diopiReciprocal": lambda x: 1 / x,
    "diopiSin": np.sin,
    "diopiCos": np.cos,
    "diopiTan": np.tan,
    "diopiAsin": np.arcsin,
    "diopiAcos": np.arccos,
    "diopiAtan": np.arctan,
    "diopiSinh": np.sinh,
    "diopiCosh": np.cosh,
    "diopiTanh": np.tanh,
    "diopiAsinh": np.arcsinh,
    "diopiAcosh": np.arccosh,
    "diopiAtanh": np.arctanh,
    "diopiExp": np.exp,
    "diopiExpm1": np.expm1,
    "diopiLog": np.log,
    "diopiLog2": np.log2,
    "diopiLog10": np.log10,
    "diopiLog1p": np.log1p,
    "diopiErf": special.erf,
    "diopiErfinv": lambda x: np.copysign(special.erfinv(x), x),
}
"""The NumPy function for each standard function that is computed in float64 for every element type of the input."""

EXACT_FUNCTIONS = {
    "diopiNeg": np.negative,
    "diopiFloor": np.floor,
    "diopiCeil": np.ceil,
    "diopiIsNan": np.isnan,
    "diopiBitwiseNot": np.invert,
    "diopiLogicalNot": np.logical_not,
}
"""The NumPy function for each standard function with exact results, computed in the type of the input array.

This type is float64, complex128, int64 or bool.
"""


def _in_float64(function: Any) -> Any:
    """Return a reference that converts the input to float64 and applies a function."""

    def apply(input: Array) -> Any:
        """Apply the function in float64."""
        return function(input.astype(np.float64))

    return apply


def _in_input_dtype(function: Any) -> Any:
    """Return a reference that applies a function to the input without converting it."""

    def apply(input: Array) -> Any:
        """Apply the function."""
        return function(input)

    return apply


for _name, _function in FLOAT64_FUNCTIONS.items():
    reference(_name)(_in_float64(_function))
for _name, _function in EXACT_FUNCTIONS.items():
    reference(_name)(_in_input_dtype(_function))


@reference("diopiAbs")
def abs(input):
    """Return |x|, also of complex numbers."""
    modulus = np.abs(input)
    return WithTerms(modulus, 0) if np.iscomplexobj(input) else modulus


@reference("diopiSign")
def sign(input):
    """Return −1, 0 or 1; 0 for NaN."""
    return (input > 0).astype(np.float64) - (input < 0)


@reference("diopiSgn")
def sgn(input):
    """Return x / |x|, and 0 for 0; the sign if x is real."""
    if not np.iscomplexobj(input):
        return sign(input)
    return WithTerms(np.where(input == 0, 0, input / np.abs(input)), 0)


@reference("diopiTanhBackward")
def tanh_backward(grad_output, output):
    """Return grad_output · (1 − y²), where y is the result of tanh."""
    return grad_output * (1 - output * output)

"""Unary element-wise functions, and the gradient of tanh."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from diopi_test.reference import reference

Array = NDArray[Any]

UNARY = {
    "diopiAbs": np.abs,
    "diopiNeg": np.negative,
    "diopiFloor": np.floor,
    "diopiCeil": np.ceil,
    "diopiSqrt": np.sqrt,
    "diopiRsqrt": lambda x: 1 / np.sqrt(x),
    "diopiReciprocal": lambda x: 1 / np.asarray(x, np.float64),
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
    "diopiErfinv": special.erfinv,
    "diopiIsNan": np.isnan,
    "diopiBitwiseNot": np.invert,
    "diopiLogicalNot": np.logical_not,
}
"""Functions of one number that NumPy or SciPy has under a name of its own."""


def _unary(function: Any) -> Any:
    def apply(input: Array) -> Any:
        return function(input)

    return apply


for _name, _function in UNARY.items():
    reference(_name)(_unary(_function))


@reference("diopiSign")
def sign(input: Array) -> Array:
    return (input > 0).astype(np.float64) - (input < 0)


@reference("diopiSgn")
def sgn(input: Array) -> Array:
    if not np.iscomplexobj(input):
        return sign(input)
    return np.where(input == 0, 0, input / np.abs(input))


@reference("diopiTanhBackward")
def tanh_backward(grad_output: Array, output: Array) -> Array:
    return grad_output * (1 - output * output)

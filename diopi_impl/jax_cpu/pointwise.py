"""Unary element-wise functions, and the gradient of tanh."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array
from jax.scipy.special import erf, erfinv

from diopi_impl.jax_cpu import vendor

FLOATING: dict[str, Callable[[Array], Array]] = {
    "diopiSqrt": jnp.sqrt,
    "diopiRsqrt": lambda x: 1 / jnp.sqrt(x),
    "diopiReciprocal": lambda x: 1 / x,
    "diopiSin": jnp.sin,
    "diopiCos": jnp.cos,
    "diopiTan": jnp.tan,
    "diopiAsin": jnp.arcsin,
    "diopiAcos": jnp.arccos,
    "diopiAtan": jnp.arctan,
    "diopiSinh": jnp.sinh,
    "diopiCosh": jnp.cosh,
    "diopiTanh": jnp.tanh,
    "diopiAsinh": jnp.arcsinh,
    "diopiAcosh": jnp.arccosh,
    "diopiAtanh": jnp.arctanh,
    "diopiExp": jnp.exp,
    "diopiExpm1": jnp.expm1,
    "diopiLog": jnp.log,
    "diopiLog2": jnp.log2,
    "diopiLog10": jnp.log10,
    "diopiLog1p": jnp.log1p,
    "diopiErf": erf,
    "diopiErfinv": erfinv,
}
"""Functions of a real number; integers and bool are computed in float32."""

ANY_DTYPE: dict[str, Callable[[Array], Array]] = {
    "diopiAbs": jnp.abs,
    "diopiNeg": jnp.negative,
    "diopiFloor": lambda x: jnp.floor(x) if jnp.issubdtype(x.dtype, jnp.floating) else x,
    "diopiCeil": lambda x: jnp.ceil(x) if jnp.issubdtype(x.dtype, jnp.floating) else x,
    "diopiIsNan": lambda x: jnp.isnan(x) if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.zeros(x.shape, bool),
    "diopiBitwiseNot": jnp.invert,
    "diopiLogicalNot": jnp.logical_not,
}
"""Functions that work in the type of their input."""


def _unary(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def apply(input: Array) -> Array:
        return function(input)

    return apply


def _floating(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def apply(input: Array) -> Array:
        return function(input if jnp.issubdtype(input.dtype, jnp.floating) else input.astype(jnp.float32))

    return apply


for _name, _function in FLOATING.items():
    vendor.implements(_name)(_floating(_function))
for _name, _function in ANY_DTYPE.items():
    vendor.implements(_name)(_unary(_function))


@vendor.implements("diopiSign")
def sign(input: Array) -> Array:
    if input.dtype == bool:
        return input
    return jnp.where(jnp.isnan(input), 0, jnp.sign(input)).astype(input.dtype)


@vendor.implements("diopiSgn")
def sgn(input: Array) -> Array:
    if not jnp.issubdtype(input.dtype, jnp.complexfloating):
        return sign(input)
    modulus = jnp.abs(input)
    return jnp.where(modulus == 0, 0, input / modulus)


@vendor.implements("diopiTanhBackward")
def tanh_backward(grad_output: Array, output: Array) -> Array:
    return grad_output * (1 - output * output)

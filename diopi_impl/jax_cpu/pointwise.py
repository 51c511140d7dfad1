"""Unary element-wise functions, and the gradient of tanh.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.special import erf, erfc, erfinv

from diopi_impl.jax_cpu import vendor


def log1p(x: Array) -> Array:
    """Return ln(1 + x); in float64 by Kahan's correction of log(1 + x), because XLA's function is 127 ulp off."""
    if x.dtype != jnp.float64:
        return jnp.log1p(x)
    u = lax.optimization_barrier(1 + x)  # otherwise XLA simplifies u - 1 to x
    return jnp.where(u == 1, x, jnp.where(u == jnp.inf, u, jnp.log(u) * (x / (u - 1))))


def _tanh(x: Array) -> Array:
    """Return tanh(x), computed in float64 and by exp if |x| ≥ ½, because XLA's function is up to 6 ulp off."""
    x64 = x.astype(jnp.float64)
    large = jnp.copysign(1 - 2 / (jnp.exp(2 * jnp.abs(x64)) + 1), x64)
    return jnp.where(jnp.abs(x64) < 0.5, jnp.tanh(x64), large).astype(x.dtype)


def _erf(x: Array) -> Array:
    """Return erf(x); by its complement if |x| ≥ 1, where XLA's function is up to 5 ulp off in float32."""
    size = jnp.abs(x)
    return jnp.where(size < 1, erf(x), jnp.copysign(1 - erfc(size), x))


def _erfinv(x: Array) -> Array:
    """Return the inverse of erf, computed in float64, because JAX's float32 function is up to 64 ulp off near ±1.

    JAX's float64 function is up to 19 ulp off. A Newton step corrects float64 results.
    """
    y = erfinv(x.astype(jnp.float64))
    if x.dtype != jnp.float64:
        return y.astype(x.dtype)
    slope = 2 / jnp.sqrt(jnp.pi) * jnp.exp(-y * y)
    return jnp.where(jnp.isfinite(y) & (y != 0), y - (erf(y) - x) / slope, y)


def _halves_of_exponentials(x: Array) -> tuple[Array, Array]:
    """Return exp(|x|) / 2 and exp(-|x|) / 2, computed from exp(|x| / 2), which does not overflow before they do.

    XLA computes exp(|x| + ln(1/2)). The rounded sum makes its results up to 24 ulp off in float32, and more in float64.
    """
    root = jnp.exp(jnp.abs(x) / 2)
    return root / 2 * root, 0.5 / root / root


def _sinh(x: Array) -> Array:
    """Return sinh(x), computed in float64; by exponentials if |x| ≥ 1."""
    x64 = x.astype(jnp.float64)
    large, small = _halves_of_exponentials(x64)
    return jnp.where(jnp.abs(x64) < 1, jnp.sinh(x64), jnp.copysign(large - small, x64)).astype(x.dtype)


def _cosh(x: Array) -> Array:
    """Return cosh(x), computed in float64 by exponentials."""
    large, small = _halves_of_exponentials(x.astype(jnp.float64))
    return (large + small).astype(x.dtype)


ARCSINE = [math.comb(2 * k, k) / (4**k * (2 * k + 1)) for k in range(11)]
"""The coefficients c of arcsin(s) = s · Σ c[k] · s^2k that matter in float32 for |s| ≤ ½."""


def _arcsine_of_half(x: Array) -> tuple[Array, Array]:
    """Return whether |x| ≤ ½, and arcsin(|x|) there, elsewhere arccos(|x|) / 2 = arcsin(√((1 - |x|) / 2))."""
    size = jnp.abs(x)
    square = jnp.where(size <= 0.5, size * size, (1 - size) / 2)
    s = jnp.where(size <= 0.5, size, jnp.sqrt(square))
    return size <= 0.5, s + s * square * jnp.polyval(jnp.asarray(ARCSINE[:0:-1], x.dtype), square)


def _arcsin(x: Array) -> Array:
    """Return arcsin(x); in float32 by a series, because XLA calls a routine for each element."""
    if x.dtype != jnp.float32:
        return jnp.arcsin(x)
    small, angle = _arcsine_of_half(x)
    return jnp.copysign(jnp.where(small, angle, jnp.pi / 2 - 2 * angle), x)


def _arccos(x: Array) -> Array:
    """Return arccos(x); in float32 by the series of arcsin."""
    if x.dtype != jnp.float32:
        return jnp.arccos(x)
    small, angle = _arcsine_of_half(x)
    return jnp.where(small, jnp.pi / 2 - jnp.copysign(angle, x), jnp.where(x > 0, 2 * angle, jnp.pi - 2 * angle))


FLOATING: dict[str, Callable[[Array], Array]] = {
    "diopiSqrt": jnp.sqrt,
    "diopiRsqrt": lambda x: 1 / jnp.sqrt(x),
    "diopiReciprocal": lambda x: 1 / x,
    "diopiSin": jnp.sin,
    "diopiCos": jnp.cos,
    "diopiTan": jnp.tan,
    "diopiAsin": _arcsin,
    "diopiAcos": _arccos,
    "diopiAtan": jnp.arctan,
    "diopiSinh": _sinh,
    "diopiCosh": _cosh,
    "diopiTanh": _tanh,
    "diopiAsinh": jnp.arcsinh,
    "diopiAcosh": jnp.arccosh,
    "diopiAtanh": lambda x: (log1p(x) - log1p(-x)) / 2,
    "diopiExp": jnp.exp,
    "diopiExpm1": jnp.expm1,
    "diopiLog": jnp.log,
    "diopiLog2": jnp.log2,
    "diopiLog10": jnp.log10,
    "diopiLog1p": log1p,
    "diopiErf": _erf,
    "diopiErfinv": _erfinv,
}
"""Functions of a real number; integers and bool are computed in float32."""

ANY_DTYPE: dict[str, Callable[[Array], Array]] = {
    "diopiNeg": jnp.negative,
    "diopiFloor": lambda x: jnp.floor(x) if jnp.issubdtype(x.dtype, jnp.floating) else x,
    "diopiCeil": lambda x: jnp.ceil(x) if jnp.issubdtype(x.dtype, jnp.floating) else x,
    "diopiIsNan": lambda x: jnp.isnan(x) if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.zeros(x.shape, bool),
    "diopiBitwiseNot": jnp.invert,
    "diopiLogicalNot": jnp.logical_not,
}
"""Functions that compute in the type of their input."""


def _in_input_dtype(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return an implementation that applies a function to the input in its element type."""

    def apply(input: Array) -> Array:
        """Apply the function."""
        return function(input)

    return apply


def _in_floating_dtype(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return an implementation that applies a function; integers and bool are converted to float32 first."""

    def apply(input: Array) -> Array:
        """Apply the function."""
        return function(input if jnp.issubdtype(input.dtype, jnp.floating) else input.astype(jnp.float32))

    return apply


for _name, _function in FLOATING.items():
    vendor.implements(_name)(_in_floating_dtype(_function))
for _name, _function in ANY_DTYPE.items():
    vendor.implements(_name)(_in_input_dtype(_function))


@vendor.implements("diopiAbs")
def absolute(input):
    """Return |x|, also of complex numbers."""
    if not jnp.issubdtype(input.dtype, jnp.complexfloating):
        return jnp.abs(input)
    infinite = jnp.isinf(input.real) | jnp.isinf(input.imag)  # even if the other part is NaN
    return jnp.where(infinite, jnp.inf, jnp.abs(input))


@vendor.implements("diopiSign")
def sign(input):
    """Return −1, 0 or 1; 0 for NaN."""
    if input.dtype == bool:
        return input
    return ((input > 0).astype(input.dtype) - (input < 0).astype(input.dtype)).astype(input.dtype)


@vendor.implements("diopiSgn")
def sgn(input):
    """Return x / |x|, and 0 for 0; the sign if x is real."""
    if not jnp.issubdtype(input.dtype, jnp.complexfloating):
        return sign(input)
    modulus = jnp.abs(input)
    return jnp.where(modulus == 0, 0, input / modulus)


@vendor.implements("diopiTanhBackward")
def tanh_backward(grad_output, output):
    """Return grad_output · (1 − y²), where y is the result of tanh."""
    return grad_output * (1 - output * output)

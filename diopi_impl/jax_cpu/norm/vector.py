"""Vector norms, normalization of vectors, and their gradients.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and element
types.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.axes import normalize_axes
from diopi_impl.jax_cpu.extremes import nan_propagating_max, nan_propagating_min
from diopi_impl.jax_cpu.sizes import check_shapes
from diopi_impl.specs import ResultSpec
from diopi_proto.types import Dtype

Axes = tuple[int, ...]
"""The axes over which norms are computed."""


def _norm_axes(input: Array, dim: Sequence[int]) -> Axes:
    """Return the axes in `dim`, or all axes if it is empty."""
    return normalize_axes(input, dim) if dim else tuple(range(input.ndim))


def _check_elements(x: Array, p: float, axes: Axes) -> None:
    """Raise ValueError if vectors have no elements and their norm of order p is undefined."""
    if (p < 0 or p == math.inf) and not all(x.shape[axis] for axis in axes):
        raise ValueError(f"input has shape {x.shape}, expected vectors with elements for the norm of order {p}")


def vector_norm(x: Array, p: float, axes: Axes) -> Array:
    """Return the norm of order p along the axes, which have size 1 in the result."""
    _check_elements(x, p, axes)
    modulus = jnp.abs(x)
    if p == 0:
        return (x != 0).sum(axes, keepdims=True).astype(x.dtype)
    if math.isinf(p):
        return (nan_propagating_max if p > 0 else nan_propagating_min)(modulus, axes, keepdims=True)
    if p == 1:
        return modulus.sum(axes, keepdims=True)
    if p == 2:
        return jnp.sqrt(jnp.square(x).sum(axes, keepdims=True))
    return jnp.power(jnp.power(modulus, p).sum(axes, keepdims=True), 1 / p)


def _norm_slope(x: Array, norm: Array, p: float, axes: Axes) -> Array:
    """Return ∂norm/∂x; the reduced axes have size 1 in `norm`."""
    if p == 0:
        return jnp.zeros_like(x)
    if math.isinf(p):
        largest = (jnp.abs(x) == norm) | (jnp.isnan(x) & jnp.isnan(norm))
        signs = jnp.where(jnp.isnan(x), 0, jnp.sign(x))
        return signs * largest / largest.sum(axes, keepdims=True)
    slope = jnp.sign(x) if p == 1 else x / norm if p == 2 else jnp.sign(x) * jnp.power(jnp.abs(x) / norm, p - 1)
    return jnp.where((x == 0) | (norm == 0), 0, slope)


def _widen(input: Array, out: ResultSpec) -> Array:
    """Return input in float64 if the result is float64, else unchanged."""
    return input.astype(jnp.float64) if out.dtype is Dtype.float64 else input


@vendor.implements("diopiNorm")
def norm(input, p, dim, *, out):
    """Return the p-norm along the axes `dim`."""
    return vector_norm(_widen(input, out), p, _norm_axes(input, dim)).reshape(out.shape)


@vendor.implements("diopiLinalgVecNorm")
def linalg_vec_norm(input, ord, dim, *, out):
    """Return the norm of order `ord` along the axes `dim`."""
    return norm(input, ord, dim, out=out)


@vendor.implements("diopiForeachnormScalar")
def foreachnorm_scalar(inputs, ord, *, out):
    """Return the norm of each tensor."""
    return [norm(x, ord, (), out=spec) for x, spec in zip(inputs, out, strict=True)]


@vendor.implements("diopiNormBackward")
def norm_backward(grad_output, self, norm, dim, p):
    """Return grad_output times the derivative of the p-norm."""
    axes = _norm_axes(self, dim)
    _check_elements(self, p, axes)
    keepdims_shape = [1 if axis in axes else length for axis, length in enumerate(self.shape)]
    return grad_output.reshape(keepdims_shape) * _norm_slope(self, norm.reshape(keepdims_shape), p, axes)


@vendor.implements("diopiNormalize")
def normalize(input, p, axis, eps):
    """Return x / max(‖x‖_p, eps) along an axis."""
    return input / jnp.maximum(vector_norm(input, p, normalize_axes(input, (axis,))), eps)


@vendor.implements("diopiNormalizeBackward")
def normalize_backward(grad_output, input, p, axis, eps):
    """Return the gradient of the input of `normalize`."""
    check_shapes(input.shape, grad_output=grad_output)
    axes = normalize_axes(input, (axis,))
    r = vector_norm(input, p, axes)
    projection = (grad_output * input).sum(axes, keepdims=True) / lax.square(r)
    return jnp.where(r < eps, grad_output / eps, grad_output / r - _norm_slope(input, r, p, axes) * projection)

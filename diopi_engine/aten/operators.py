"""Core ATen operators on elements, along axes and on matrices; the graph determines the types of their results.

Each function implements the ATen operator that its decorator names, for JAX arrays, with the operator's parameters.
`dim` is an axis, several axes, or None for all; with `keepdim`, reduced axes remain with size 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.special import erf

from diopi_engine.aten.table import OPERATORS, Function, operator
from diopi_impl.jax_cpu.extremes import nan_propagating_max, nan_propagating_min

Axes = int | Sequence[int] | None
"""The axes of a reduction: one axis, several, or all (None or an empty list)."""

OPERATORS.update(
    {
        **{name: getattr(jnp, name) for name in ("abs", "ceil", "cos", "cosh", "exp", "expm1", "floor", "isinf")},
        **{name: getattr(jnp, name) for name in ("isnan", "log", "log10", "log1p", "log2", "round", "sign", "sin")},
        **{
            name: getattr(jnp, name) for name in ("sinh", "sqrt", "tan", "tanh", "trunc", "atan2", "maximum", "minimum")
        },
        **{
            name: getattr(jnp, name)
            for name in ("logical_and", "logical_not", "logical_or", "logical_xor", "bitwise_not")
        },
        **{name: getattr(jnp, f"arc{name[1:]}") for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh")},
        "erf": erf,
        "neg": lambda x: -x,
        "reciprocal": lambda x: 1 / x,
        "relu": lambda x: jnp.maximum(x, 0),
        "rsqrt": lambda x: 1 / jnp.sqrt(x),
        "sigmoid": jax.nn.sigmoid,
        "clone": lambda x, **_: x,
        "alias": lambda x: x,
        "_to_copy": lambda x, **_: x,
        "fmod.Scalar": jnp.fmod,
        "fmod.Tensor": jnp.fmod,
        "remainder.Scalar": jnp.remainder,
        "remainder.Tensor": jnp.remainder,
        "pow.Scalar": jnp.power,
        "pow.Tensor_Scalar": jnp.power,
        "pow.Tensor_Tensor": jnp.power,
        "where.self": jnp.where,
        "mm": jnp.matmul,
        "bmm": jnp.matmul,
        "scalar_tensor": lambda value, **_: jnp.asarray(value),
        "full": lambda size, value, **_: jnp.full(tuple(size), value),
        "full_like": lambda x, value, **_: jnp.full(x.shape, value),
        "fill.Scalar": lambda x, value: jnp.full(x.shape, value),
        "sym_size.int": lambda x, dim: x.shape[dim],
        "sym_numel": lambda x: x.size,
    }
)

_WITH_SCALAR_OVERLOADS: dict[str, Function] = {
    "eq": jnp.equal,
    "ne": jnp.not_equal,
    "lt": jnp.less,
    "le": jnp.less_equal,
    "gt": jnp.greater,
    "ge": jnp.greater_equal,
    "mul": jnp.multiply,
    "bitwise_and": jnp.bitwise_and,
    "bitwise_or": jnp.bitwise_or,
    "bitwise_xor": jnp.bitwise_xor,
}
"""Functions whose second operand may be a tensor or a number, by the ATen name without the overload."""

for _name, _function in _WITH_SCALAR_OVERLOADS.items():
    OPERATORS.update({f"{_name}.Scalar": _function, f"{_name}.Tensor": _function})


@operator("add.Tensor", "add.Scalar")
def add(x: Array, other: Any, alpha: float = 1) -> Array:
    """Return x + alpha · other; for bool, the logical or."""
    is_logical = jnp.result_type(x, other) == jnp.bool_
    return jnp.logical_or(x, other) if is_logical else x + alpha * other


@operator("sub.Tensor", "sub.Scalar")
def sub(x: Array, other: Any, alpha: float = 1) -> Array:
    """Return x − alpha · other."""
    return x - alpha * other


@operator("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode")
def div(x: Array, other: Any, rounding_mode: str | None = None) -> Array:
    """Return x / other, rounded as `rounding_mode` says ("floor", "trunc", or None for no rounding)."""
    if rounding_mode == "floor":
        return jnp.floor_divide(x, other)
    if rounding_mode == "trunc" and not jnp.issubdtype(jnp.result_type(x, other), jnp.floating):
        return _divide_truncated(x, other)
    return jnp.trunc(x / other) if rounding_mode == "trunc" else x / other


def _divide_truncated(x: Array, other: Any) -> Array:
    """Return the quotient of integers, truncated toward zero."""
    dtype = jnp.result_type(x, other)
    pair = jnp.broadcast_arrays(jnp.asarray(x, dtype), jnp.asarray(other, dtype))
    return lax.div(*pair)


@operator("clamp", "clamp.Tensor")
def clamp(x: Array, lower: Any = None, upper: Any = None) -> Array:
    """Return x, limited to the bounds that are not None."""
    x = x if lower is None else jnp.maximum(x, lower)
    return x if upper is None else jnp.minimum(x, upper)


@operator("hardtanh")
def hardtanh(x: Array, lower: float = -1, upper: float = 1) -> Array:
    """Return x, limited to both bounds."""
    return clamp(x, lower, upper)


@operator("gelu")
def gelu(x: Array, approximate: str = "none") -> Array:
    """Return x · Φ(x), with Φ approximated by tanh if `approximate` is "tanh"."""
    return jax.nn.gelu(x, approximate=approximate == "tanh")


@operator("leaky_relu")
def leaky_relu(x: Array, slope: float = 0.01) -> Array:
    """Return x where it is positive, and slope · x elsewhere."""
    return jnp.where(x > 0, x, slope * x)


@operator("elu")
def elu(x: Array, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Array:
    """Return scale · x where x is positive, and scale · alpha · (exp(input_scale · x) − 1) elsewhere."""
    return scale * jnp.where(x > 0, x, alpha * jnp.expm1(jnp.minimum(x, 0) * input_scale))


@operator("_softmax")
def softmax(x: Array, dim: int, half_to_float: bool) -> Array:
    """Return the softmax of x along an axis, in float32 for half precision."""
    return jax.nn.softmax(_to_float32(x), dim)


@operator("_log_softmax")
def log_softmax(x: Array, dim: int, half_to_float: bool) -> Array:
    """Return the logarithm of the softmax of x along an axis, in float32 for half precision."""
    return jax.nn.log_softmax(_to_float32(x), dim)


def _to_float32(x: Array) -> Array:
    """Return half precision as float32, in which PyTorch computes sums; other types are unchanged."""
    return x.astype(jnp.float32) if x.dtype in (jnp.float16, jnp.bfloat16) else x


def reduction_axes(dim: Axes) -> Any:
    """Return the axes of a reduction; in ATen, an empty list means all axes."""
    return None if dim is None or dim == [] else tuple(dim) if isinstance(dim, list | tuple) else dim


@operator("sum.dim_IntList", "sum")
def total(x: Array, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> Array:
    """Return the sum of x along axes, in float32 for half precision."""
    return jnp.sum(_to_float32(x), reduction_axes(dim), keepdims=keepdim)


@operator("mean.dim", "mean")
def mean(x: Array, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> Array:
    """Return the mean of x along axes, in float32 for half precision."""
    return jnp.mean(_to_float32(x), reduction_axes(dim), keepdims=keepdim)


@operator("prod", "prod.dim_int")
def prod(x: Array, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> Array:
    """Return the product of x along axes, in float32 for half precision."""
    return jnp.prod(_to_float32(x), reduction_axes(dim), keepdims=keepdim)


@operator("var.correction", "var.dim")
def var(x: Array, dim: Axes = None, correction: int | None = None, keepdim: bool = False) -> Array:
    """Return the variance of x along axes; `correction` (1 by default) is subtracted from the number of elements."""
    return jnp.var(_to_float32(x), reduction_axes(dim), ddof=1 if correction is None else correction, keepdims=keepdim)


@operator("amax")
def amax(x: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    """Return the maximum of x along axes, which is NaN if an element is NaN."""
    return nan_propagating_max(x, reduction_axes(dim), keepdims=keepdim)


@operator("amin")
def amin(x: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    """Return the minimum of x along axes, which is NaN if an element is NaN."""
    return nan_propagating_min(x, reduction_axes(dim), keepdims=keepdim)


@operator("any", "any.dim", "any.dims")
def any_of(x: Array, dim: Axes = None, keepdim: bool = False) -> Array:
    """Return whether any element of x along axes is not zero."""
    return jnp.any(x, reduction_axes(dim), keepdims=keepdim)


@operator("argmax")
def argmax(x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Return the position of the maximum of x along an axis, or in the flattened array."""
    return jnp.argmax(x, dim, keepdims=keepdim)


@operator("argmin")
def argmin(x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Return the position of the minimum of x along an axis, or in the flattened array."""
    return jnp.argmin(x, dim, keepdims=keepdim)


@operator("max.dim")
def max_along(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """Return the maximum of x along an axis, and its position."""
    return nan_propagating_max(x, dim, keepdims=keepdim), jnp.argmax(x, dim, keepdims=keepdim)


@operator("min.dim")
def min_along(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """Return the minimum of x along an axis, and its position."""
    return nan_propagating_min(x, dim, keepdims=keepdim), jnp.argmin(x, dim, keepdims=keepdim)


@operator("cumsum")
def cumsum(x: Array, dim: int, dtype: Any = None) -> Array:
    """Return the running sum of x along an axis, in float32 for half precision."""
    return jnp.cumsum(_to_float32(x), dim)


@operator("sort")
def sort(x: Array, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    """Return x sorted along an axis, and the positions of the sorted elements."""
    order = jnp.argsort(x, dim, stable=True, descending=descending)
    return jnp.take_along_axis(x, order, dim), order


@operator("topk")
def topk(x: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Array, Array]:
    """Return the `k` largest (or smallest) elements of x along an axis in order, and their positions."""
    values, order = sort(x, dim, largest)
    return lax.slice_in_dim(values, 0, k, axis=dim), lax.slice_in_dim(order, 0, k, axis=dim)


@operator("addmm")
def addmm(x: Array, a: Array, b: Array, beta: float = 1, alpha: float = 1) -> Array:
    """Return beta · x + alpha · (a @ b)."""
    return (x if beta == 1 else beta * x) + (a @ b if alpha == 1 else alpha * (a @ b))

"""Matrix products, decompositions, triangular systems and distances, with their gradients.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and element
types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from diopi_impl.functional import Adapted
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.extremes import flush_subnormals, nan_propagating_max
from diopi_impl.jax_cpu.jit import adapt_by_compiling
from diopi_impl.jax_cpu.lapack import with_lapack
from diopi_impl.jax_cpu.registration import implements_product
from diopi_impl.jax_cpu.sizes import check_rank
from diopi_impl.specs import OutSpec
from diopi_proto.prototype import Prototype


def _transpose(a: Array) -> Array:
    """Return `a` with the last two axes swapped."""
    return jnp.swapaxes(a, -1, -2)


def _adjoint(a: Array) -> Array:
    """Return the conjugate transpose of the last two axes."""
    return _transpose(a).conj()


def _conjugate_vjp(function: Callable[..., Array], *primals: Array) -> Callable[[Array], tuple[Array, ...]]:
    """Return a function from the gradient of the result to the gradients of the arguments, conjugated as in PyTorch."""
    _, pull = jax.vjp(function, *primals)
    return lambda grad: tuple(grad_input.conj() for grad_input in pull(grad.conj()))


@implements_product("diopiMm")
def mm(input, mat2):
    """Return the product of two matrices."""
    check_rank(2, input=input, mat2=mat2)
    return jnp.matmul(input, mat2)


@implements_product("diopiBmm")
def bmm(input, mat2):
    """Return the products of two batches of matrices."""
    check_rank(3, input=input, mat2=mat2)
    return lax.batch_matmul(input, mat2)


def _add_product(input: Array, product: Array, beta: float, alpha: float) -> Array:
    """Return beta · input + alpha · product; factors are truncated for integers; if beta is 0, input is ignored."""
    if jnp.issubdtype(input.dtype, jnp.integer):
        beta, alpha = int(beta), int(alpha)
    scaled = alpha * product
    return scaled if beta == 0 else beta * jnp.broadcast_to(input, product.shape) + scaled


@implements_product("diopiBaddbmm")
def baddbmm(input, batch1, batch2, beta, alpha):
    """Return beta · input + alpha · batch1 batch2, for batches of matrices."""
    return _add_product(input, bmm(batch1, batch2), beta, alpha)


@implements_product("diopiAddmm")
def addmm(input, mat1, mat2, beta, alpha):
    """Return beta · input + alpha · mat1 mat2."""
    return _add_product(input, mm(mat1, mat2), beta, alpha)


@implements_product("diopiMatmul")
def matmul(input, other):
    """Return the matrix product, with broadcasting of batches and with vectors, as NumPy defines it."""
    return jnp.matmul(input, other)


@implements_product("diopiLinear")
def linear(input, weight, bias):
    """Return input weightᵀ + bias."""
    check_rank(2, weight=weight)
    if input.shape[-1:] != weight.shape[1:]:
        raise ValueError(f"rows of input have {input.shape[-1:]} elements, those of weight {weight.shape[1:]}")
    rows = input.reshape(prod(input.shape[:-1]), weight.shape[1])
    return _add_bias(_matmul_transposed(rows, weight).reshape(*input.shape[:-1], len(weight)), bias)


def _add_bias(product: Array, bias: Array | None) -> Array:
    """Return the product plus the bias, if there is one."""
    return product if bias is None else product + jnp.broadcast_to(bias, product.shape)


def _matmul_transposed(a: Array, b: Array) -> Array:
    """Return a·bᵀ of matrices; the operand with fewer elements is transposed first, which makes the product faster."""
    if a.size + len(a) * len(b) > b.size:
        return jnp.matmul(a, lax.optimization_barrier(b.T))
    return lax.optimization_barrier(jnp.matmul(b, lax.optimization_barrier(a.T))).T


@vendor.implements("diopiLinearBackward")
def linear_backward(grad_output, input, weight, *, out):
    """Return the gradients of input, weight and bias."""
    bias = jnp.zeros(weight.shape[:1] if out[2] is None else out[2].shape, weight.dtype)
    return _conjugate_vjp(lambda x, w, b: _add_bias(jnp.matmul(x, w.T), b), input, weight, bias)(grad_output)


def _raise_on_info(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
    """Adapt a decomposition: raise ValueError for a nonzero `info` if `checkerror`, the last argument, is set.

    Args:
        prototype: the prototype of the decomposition.
        function: the implementation, which returns the factor and `info`.

    Returns:
        The adapted form.
    """
    factorize = adapt_by_compiling(prototype, function)

    def call_and_check_info(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        """Call the decomposition and check `info`."""
        results = factorize(arguments, out)
        orders = np.asarray(results[1])
        if arguments[-1] and orders.any():
            raise ValueError(f"mat is not positive definite: its leading minor of order {orders[orders > 0][0]} is not")
        return results

    return call_and_check_info


@vendor.implements("diopiCholesky", adapt=_raise_on_info)
def cholesky(mat, upper):
    """Return the Cholesky factor of each matrix, and the order of its first minor that is not positive, or 0."""
    factor, info = jnp.vectorize(_cholesky_factor, signature="(n,n)->(n,n),()")(_adjoint(mat) if upper else mat)
    return (_adjoint(factor) if upper else factor), info


def _cholesky_factor(mat: Array) -> tuple[Array, Array]:
    """Return the lower factor, and the order of the first minor that is not positive definite, or 0.

    LAPACK's factorization in lax does not return this order, so columns are eliminated one after another.

    Args:
        mat: a matrix, of which only the lower triangle is read.

    Returns:
        The factor and a 0-d int64 array.
    """
    rows = jnp.arange(len(mat))

    def eliminate(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        """Compute column k of the factor, and update the order of the failing minor."""
        factor, info = state
        remaining = mat[:, k] - factor @ factor[k].conj()
        pivot = remaining[k].real
        info = jnp.where((info == 0) & ~(pivot > 0), k + 1, info)
        root = jnp.sqrt(pivot)
        column = jnp.where(rows > k, remaining / root, jnp.where(rows == k, root, 0))
        return factor.at[:, k].set(column.astype(mat.dtype)), info

    state = jnp.zeros_like(mat), jnp.zeros((), jnp.int64)
    return lax.fori_loop(0, len(mat), eliminate, state) if len(mat) else state


@vendor.implements("diopiCholeskyBackward", adapt=with_lapack)
def cholesky_backward(grad_output, L, upper):
    """Return the gradient of mat: the Hermitian part of L⁻ᴴ Φ(Lᴴ g) L⁻¹ (Φ: lower triangle, half the diagonal)."""
    factor, grad = (_adjoint(L), _adjoint(grad_output)) if upper else (L, grad_output)
    product = jnp.tril(_adjoint(factor) @ jnp.tril(grad))
    halved = jnp.where(jnp.eye(L.shape[-1], dtype=bool), product / 2, product)
    solve = partial(lax.linalg.triangular_solve, factor, lower=True)
    left = solve(halved, left_side=True, transpose_a=True, conjugate_a=True)
    grad_mat = solve(left, left_side=False)
    return (grad_mat + _adjoint(grad_mat)) / 2


@vendor.implements("diopiTriangularSolve", adapt=with_lapack)
def triangular_solve(b, mat, upper, transpose, unitriangular):
    """Return the solution of the triangular system, and the matrix broadcast to the batch."""
    return _solve(b, mat, upper, transpose, unitriangular), _broadcast_batch(mat, b)


def _broadcast_batch(matrix: Array, like: Array) -> Array:
    """Return `matrix` with batch axes that are broadcast against the batch axes of `like`."""
    batch = jnp.broadcast_shapes(matrix.shape[:-2], like.shape[:-2])
    return jnp.broadcast_to(matrix, batch + matrix.shape[-2:])


def _solve(b: Array, mat: Array, upper: bool, transpose: bool, unitriangular: bool) -> Array:
    """Return the solutions x of triangular systems mat x = b, or matᵀ x = b if `transpose`; batch axes broadcast."""
    return lax.linalg.triangular_solve(
        _broadcast_batch(mat, b),
        _broadcast_batch(b, mat),
        left_side=True,
        lower=not upper,
        transpose_a=transpose,
        unit_diagonal=unitriangular,
    )


@vendor.implements("diopiTriangularSolveBackward", adapt=with_lapack)
def triangular_solve_backward(grad_x, grad_cloned_mat, x, mat, upper, transpose, unitriangular, *, out):
    """Return the gradients of b and of the triangle of mat."""
    grad, grad_mat = jnp.zeros_like(x), jnp.zeros(mat.shape, mat.dtype)
    if grad_x is not None:
        grad = _solve(grad_x, mat.conj(), upper, not transpose, unitriangular)
        product = x.conj() @ _transpose(grad) if transpose else grad @ _adjoint(x)
        triangle = partial(jnp.triu, k=int(unitriangular)) if upper else partial(jnp.tril, k=-int(unitriangular))
        grad_mat = _sum_to(triangle(-product), mat.shape)
    if grad_cloned_mat is not None:
        grad_mat += _sum_to(grad_cloned_mat, mat.shape)
    return _sum_to(grad, out[0].shape if out[0] else grad.shape), grad_mat


def _sum_to(array: Array, shape: tuple[int, ...]) -> Array:
    """Return the sum of `array` over the axes along which `shape` was broadcast: the adjoint of broadcasting."""
    (summed,) = jax.linear_transpose(lambda a: jnp.broadcast_to(a, array.shape), jnp.zeros(shape, array.dtype))(array)
    return jnp.asarray(summed)


@vendor.implements("diopiLinalgQR", adapt=with_lapack)
def qr(A, mode):
    """Return Q and R in a mode: "reduced", "complete", or "r" without Q."""
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"mode is {mode!r}, expected 'reduced', 'complete' or 'r'")
    scaled, scale = _scale_columns(A)
    if mode == "r":
        return jnp.zeros(0, A.dtype), jnp.linalg.qr(scaled, "r") / scale
    q, r = jnp.linalg.qr(scaled, mode)
    return q, r / scale


def _scale_columns(matrix: Array) -> tuple[Array, Array]:
    """Return the matrix with columns scaled to a largest element near 1, and the scales, which are powers of two.

    XLA flushes subnormal numbers to zero, also those that LAPACK computes from small columns.

    Args:
        matrix: a matrix or a batch of matrices.

    Returns:
        The scaled matrix, and the scale of each column.
    """
    parts = (matrix.real, matrix.imag) if jnp.iscomplexobj(matrix) else (matrix,)
    real, *imaginary = map(flush_subnormals, parts)
    largest = jnp.max(jnp.stack([jnp.abs(part) for part in (real, *imaginary)]), (0, -2), keepdims=True, initial=0)[0]
    limit = jnp.finfo(real.dtype).maxexp - 8
    exponent = jnp.clip(jnp.frexp(largest)[1], -limit, limit)
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), jnp.ldexp(jnp.ones_like(largest), -exponent), 1)
    flushed = lax.complex(real, *imaginary) if imaginary else real
    return flushed * scale, scale


@vendor.implements("diopiCdist")
def cdist(input1, input2, p, compute_mode):
    """Return the p-norm of the difference of each row of input1 and each row of input2."""
    if not p >= 0:
        raise ValueError(f"p is {p}, expected a number that is not negative")
    if compute_mode not in (None, 0, 1, 2):
        raise ValueError(f"compute_mode is {compute_mode}, expected NULL, 0, 1 or 2")
    if input1.shape[-1] != input2.shape[-1]:
        raise ValueError(f"rows of input1 have {input1.shape[-1]} elements, those of input2 {input2.shape[-1]}")
    x, y = input1[..., :, None, :], input2[..., None, :, :]
    differences = jnp.abs(x - y)
    if p == 0:
        return jnp.sum(jnp.where(jnp.isnan(differences), differences, x != y), axis=-1)
    if p == jnp.inf:
        return nan_propagating_max(differences, -1) if differences.shape[-1] else jnp.zeros(differences.shape[:-1])
    if p == 2:
        return jnp.sqrt(jnp.sum(jnp.square(differences), axis=-1))
    if p < 1:  # small differences, which may be subnormal, have a large share in the sum
        differences, scale = _scaled_differences(x, y)
        return (jnp.sum(differences**p * scale**-p, axis=-1) ** (1 / p)).astype(input1.dtype)
    return jnp.sum(differences**p, axis=-1) ** (1 / p)


def _scaled_differences(x: Array, y: Array) -> tuple[Array, Array]:
    """Return |x − y| in float64, multiplied by powers of two, and these powers; no difference is subnormal.

    XLA flushes subnormal differences to zero. Subnormal operands are flushed here, since XLA flushes them sometimes.
    """
    x, y = (flush_subnormals(operand).astype(jnp.float64) for operand in (x, y))
    scale = jnp.where(jnp.maximum(jnp.abs(x), jnp.abs(y)) < 2.0**-500, 2.0**500, 1.0)
    return jnp.abs(x * scale - y * scale), scale


@vendor.implements("diopiCdistBackward")
def cdist_backward(grad_output, input1, input2, p, cdist):
    """Return the gradient of input1."""
    x, y = input1[..., :, None, :], input2[..., None, :, :]
    difference = x - y
    if p == 0:
        return jnp.zeros_like(difference).sum(axis=-2)
    # XLA flushes a subnormal difference to zero, but compares its operands exactly
    slope = jnp.where(x == y, 0, jnp.where(jnp.isnan(difference), difference, jnp.where(x > y, 1, -1)))
    if cdist is not None:
        size, scale = _scaled_differences(x, y) if p < 1 else (jnp.abs(difference), 1.0)
        distance = cdist[..., None]
        weight = size == distance if p == jnp.inf else (size / distance) ** (p - 1) * scale ** (1 - p)
        slope = jnp.where((size == 0) | (distance == 0), 0, slope * weight)
    return jnp.sum(grad_output[..., None] * slope, axis=-2).astype(input1.dtype)

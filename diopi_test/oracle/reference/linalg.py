"""Matrix products, decompositions, triangular systems and distances, with their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.model import ResultOverride
from diopi_test.oracle.reference import Exact, PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.products import plus, sum_to, times, with_terms
from diopi_test.oracle.reference.sums import norm_terms

Array = NDArray[Any]


def _transpose(a: Array) -> Array:
    return np.swapaxes(a, -1, -2)


def _adjoint(a: Array) -> Array:
    return _transpose(a).conj()


@reference("diopiMm", "diopiBmm")
def mm(input: Array, mat2: Array) -> WithTerms:
    return with_terms(np.matmul, input, mat2)


@reference("diopiMatmul")
def matmul(input: Array, other: Array) -> WithTerms:
    return with_terms(np.matmul, input, other)


def _add_product(input: Array, a: Array, b: Array, beta: float, alpha: float) -> WithTerms:
    """beta · input + alpha · a b, the factors truncated for integers; an input times 0 is not read."""
    if input.dtype.kind == "i":
        beta, alpha = int(beta), int(alpha)
    product = times(alpha, with_terms(np.matmul, a, b))
    return product if beta == 0 else plus(product, beta * input)


@reference("diopiAddmm")
def addmm(input: Array, mat1: Array, mat2: Array, beta: float, alpha: float) -> WithTerms:
    return _add_product(input, mat1, mat2, beta, alpha)


@reference("diopiBaddbmm")
def baddbmm(input: Array, batch1: Array, batch2: Array, beta: float, alpha: float) -> WithTerms:
    return _add_product(input, batch1, batch2, beta, alpha)


@reference("diopiMatmulBackward")
def matmul_backward(grad_out: Array, input: Array, other: Array) -> tuple[WithTerms, WithTerms]:
    a = input[np.newaxis] if input.ndim == 1 else input
    b = other[:, np.newaxis] if other.ndim == 1 else other
    g = grad_out[..., np.newaxis] if other.ndim == 1 else grad_out
    g = g[..., np.newaxis, :] if input.ndim == 1 else g
    return (
        with_terms(lambda g, b: sum_to(g @ _adjoint(b), a.shape).reshape(input.shape), g, b),
        with_terms(lambda a, g: sum_to(_adjoint(a) @ g, b.shape).reshape(other.shape), a, g),
    )


@reference("diopiLinear")
def linear(input: Array, weight: Array, bias: Array | None) -> WithTerms:
    product = with_terms(lambda x, w: x @ w.T, input, weight)
    return product if bias is None else plus(product, bias)


@reference("diopiLinearBackward")
def linear_backward(
    grad_output: Array, input: Array, weight: Array, *, out: Sequence[ResultOverride | None]
) -> tuple[WithTerms, WithTerms, WithTerms]:
    shape = out[2].shape if out[2] else None
    rows = math.prod(input.shape[:-1])
    g, x = (array.reshape(rows, array.shape[-1]) for array in (grad_output, input))
    return (
        with_terms(lambda g, w: g @ w.conj(), grad_output, weight),
        with_terms(lambda g, x: g.T @ x.conj(), g, x),
        with_terms(lambda g, one: np.tensordot(one, g, 1), g, np.ones(len(g)))
        if shape is None
        else with_terms(lambda g, one: sum_to(g * one, shape), grad_output, np.ones(())),
    )


@reference("diopiCholesky")
def cholesky(mat: Array, upper: bool, checkerror: bool) -> tuple[PartlySpecified, Array]:
    lower = _adjoint(mat) if upper else mat
    factors, info = np.zeros_like(mat), np.zeros(mat.shape[:-2], np.int64)
    for batch in np.ndindex(info.shape):
        factors[batch], info[batch] = _cholesky_factor(lower[batch])
    succeeded = np.broadcast_to(info[..., np.newaxis, np.newaxis] == 0, mat.shape)
    return PartlySpecified(_adjoint(factors) if upper else factors, succeeded), info


def _cholesky_factor(mat: Array) -> tuple[Array, int]:
    """The lower factor, column by column, and the order of the first minor that is not positive definite, or 0."""
    factor = np.zeros_like(mat)
    for k in range(len(mat)):
        row = factor[k, :k]
        pivot = mat[k, k].real - (row @ row.conj()).real
        if not pivot > 0:
            return factor, k + 1
        factor[k, k] = np.sqrt(pivot)
        factor[k + 1 :, k] = (mat[k + 1 :, k] - factor[k + 1 :, :k] @ row.conj()) / factor[k, k]
    return factor, 0


@reference("diopiCholeskyBackward")
def cholesky_backward(grad_output: Array, L: Array, upper: bool) -> WithTerms:
    factor, grad = (_adjoint(L), _adjoint(grad_output)) if upper else (L, grad_output)
    product = with_terms(np.matmul, _adjoint(factor), np.tril(grad))
    lower = np.tril(np.ones(L.shape)) - np.eye(L.shape[-1]) / 2
    inverse = np.linalg.inv(factor)
    left = _solved(_adjoint(inverse), WithTerms(lower * product.value, lower * product.terms))
    right = _solved(_adjoint(inverse), WithTerms(_adjoint(left.value), _transpose(left.terms)))
    value, terms = (right.value + _adjoint(right.value)) / 2, np.hypot(right.terms, _transpose(right.terms)) / 2
    return WithTerms(value, terms)


def _solved(inverse: Array, right: WithTerms) -> WithTerms:
    """The inverse of a triangular matrix times the right side of a system.

    Substitution adds up a row of the matrix times the solution, an error of which moves what is found after it.
    """
    solution = inverse @ right.value
    residual = with_terms(np.matmul, np.linalg.inv(inverse), solution)
    errors = residual.terms**2 + np.square(right.terms)
    return WithTerms(solution, np.sqrt(np.abs(inverse) ** 2 @ errors))


@reference("diopiTriangularSolve")
def triangular_solve(b: Array, mat: Array, upper: bool, transpose: bool, unitriangular: bool) -> tuple[Array, Exact]:
    batch = np.broadcast_shapes(b.shape[:-2], mat.shape[:-2])
    return _solve(b, mat, upper, transpose, unitriangular), Exact(np.broadcast_to(mat, batch + mat.shape[-2:]))


def _solve(b: Array, mat: Array, upper: bool, transpose: bool, unitriangular: bool) -> Array:
    """X of op(mat) X = b, by substitution from the row that has one unknown to the row that has all."""
    matrix = _transpose(mat) if transpose else mat
    size = mat.shape[-1]
    batch = np.broadcast_shapes(b.shape[:-2], mat.shape[:-2])
    solution = np.zeros(batch + b.shape[-2:], np.result_type(b, mat))
    for i in reversed(range(size)) if upper != transpose else range(size):
        known = slice(i + 1, size) if upper != transpose else slice(0, i)
        products = matrix[..., i, np.newaxis, known] @ solution[..., known, :]
        diagonal = 1 if unitriangular else matrix[..., i, i, np.newaxis]
        solution[..., i, :] = (b[..., i, :] - products[..., 0, :]) / diagonal
    return solution


@reference("diopiTriangularSolveBackward")
def triangular_solve_backward(
    grad_x: Array | None,
    grad_cloned_mat: Array | None,
    x: Array,
    b: Array,
    mat: Array,
    upper: bool,
    transpose: bool,
    unitriangular: bool,
) -> tuple[Any, Any]:
    grad = np.zeros_like(x)
    if grad_x is not None:
        grad = _solve(grad_x, mat.conj(), upper, not transpose, unitriangular)

    def outer(left: Array, right: Array) -> Array:
        product = left @ _transpose(right)
        triangle = np.triu(product, int(unitriangular)) if upper else np.tril(product, -int(unitriangular))
        return sum_to(triangle, mat.shape)

    product = with_terms(outer, -x.conj(), grad) if transpose else with_terms(outer, -grad, x.conj())
    grad_mat = product if grad_cloned_mat is None else plus(product, sum_to(grad_cloned_mat, mat.shape))
    return sum_to(grad, b.shape), grad_mat


@reference("diopiLinalgQR")
def qr(A: Array, mode: str) -> tuple[Any, WithTerms]:
    q, r = _decompose(A, mode)
    q_terms, r_terms = _response(A, mode)
    q_terms = q_terms + np.eye(*q.shape[-2:])  # reflections are subtracted from the identity
    return (np.zeros(0, A.dtype) if mode == "r" else WithTerms(q, q_terms)), WithTerms(r, r_terms)


def _decompose(a: Array, mode: str) -> tuple[Array, Array]:
    """NumPy's decomposition, which is LAPACK's geqrf and orgqr, so that the signs agree."""
    q, r = np.linalg.qr(a, "complete" if mode == "complete" else "reduced")
    return q, r


DIRECTIONS = 64
"""In so many directions an input is moved; more would change the estimate by less than a tenth."""


def _response(a: Array, mode: str, step: float = 2.0**-26) -> tuple[Array, Array]:
    """How much Q and R change, to first order, if every element of a column changes by the column's norm, at random.

    Reflections disturb a column by eps times its norm, small elements as much as large ones (N. Higham, "Accuracy and
    Stability of Numerical Algorithms", theorem 19.4), not each element by its own ulp. As many reflect a column as
    there are columns up to it, and each rounds a product and a difference. The root mean square over random signs is
    what all elements, changed one by one, add up to.
    """
    m, n = a.shape[-2:]
    reflections = np.minimum(np.arange(1, n + 1), m)
    norms = np.linalg.norm(a, axis=-2, keepdims=True) * np.sqrt((1 + 2 * reflections / 12) / max(m, 1))
    q, r = _decompose(a, mode)
    q_squares, r_squares = np.zeros(q.shape), np.zeros(r.shape)
    rng = np.random.Generator(np.random.Philox(0))  # the same directions each time
    for _ in range(DIRECTIONS):
        signs = rng.choice([-1.0, 1.0], a.shape)
        moved_q, moved_r = _decompose(a + step * signs * norms, mode)
        q_squares += np.abs((moved_q - q) / step) ** 2
        r_squares += np.abs((moved_r - r) / step) ** 2
    return np.sqrt(q_squares / DIRECTIONS), np.sqrt(r_squares / DIRECTIONS)


@reference("diopiCdist")
def cdist(input1: Array, input2: Array, p: float, compute_mode: int | None) -> Any:
    x, y = input1[..., :, np.newaxis, :], input2[..., np.newaxis, :, :]
    differences = np.abs(x - y)
    if p == 0:
        return Exact(np.sum(differences > 0, axis=-1, dtype=np.float64))
    if p == np.inf:
        return differences.max(axis=-1, initial=0)
    powers = np.sum(differences**p, axis=-1)
    distances = powers ** (1 / p)
    if p == 2 and _may_multiply(input1, input2, compute_mode):
        # √(|x|² + |y|² − 2 x·y): what cancels in the radicand, halved and divided by the root; the two squares
        # enter it as single rounded terms, so their errors do not average out
        return WithTerms(distances, np.sum((np.abs(x) + np.abs(y)) ** 2, axis=-1) / (2 * distances))
    return WithTerms(distances, distances * norm_terms(differences, p, -1)[..., 0], signed=True)


def _may_multiply(input1: Array, input2: Array, compute_mode: int | None) -> bool:
    many = input1.shape[-2] > 25 or input2.shape[-2] > 25
    return compute_mode == 1 or (compute_mode in (None, 0) and many)


@reference("diopiCdistBackward")
def cdist_backward(grad_output: Array, input1: Array, input2: Array, p: float, cdist: Array) -> WithTerms:
    difference = input1[..., :, np.newaxis, :] - input2[..., np.newaxis, :, :]
    g, distance = grad_output[..., np.newaxis], cdist[..., np.newaxis]
    if p == 0:
        weight = np.zeros_like(difference)
    elif p == np.inf:
        weight = np.where(np.abs(difference) == distance, np.sign(difference), 0)
    else:
        weight = np.sign(difference) * (np.abs(difference) / distance) ** (p - 1)
    weight = np.where(difference == 0, 0, weight)
    terms = np.sum(np.abs(g * weight), axis=-2) / np.sqrt(max(difference.shape[-2], 1))
    return WithTerms(np.sum(g * weight, axis=-2), terms)

"""Matrix products, decompositions, triangular systems and distances, with their gradients.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Source for the error bounds: N. Higham, "Accuracy and Stability of Numerical Algorithms", 2002.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import Exact, PartlySpecified, WithTerms, mark_unspecified, reference
from diopi_test.oracle.reference.products import add_rounded, scale_result, sum_products, sum_to_shape
from diopi_test.oracle.reference.sums import norm_terms, sum_terms

Array = NDArray[Any]


def _transpose(a: Array) -> Array:
    """Return `a` with its last two axes exchanged."""
    return np.swapaxes(a, -1, -2)


def _adjoint(a: Array) -> Array:
    """Return the conjugate transpose of the last two axes."""
    return _transpose(a).conj()


@reference("diopiMm", "diopiBmm")
def mm(input, mat2):
    """Return the product of two matrices, or of batches of matrices."""
    return sum_products(np.matmul, input, mat2)


@reference("diopiMatmul")
def matmul(input, other):
    """Return the matrix product, with broadcasting of batches and with vectors, as NumPy defines it."""
    return sum_products(np.matmul, input, other)


def _add_product(input: Array, a: Array, b: Array, beta: float, alpha: float) -> WithTerms:
    """Return beta · input + alpha · a b; factors are truncated for integers; if beta is 0, input is ignored."""
    if input.dtype.kind == "i":
        beta, alpha = int(beta), int(alpha)
    product = scale_result(alpha, sum_products(np.matmul, a, b))
    return product if beta == 0 else add_rounded(product, beta * input)


@reference("diopiAddmm")
def addmm(input, mat1, mat2, beta, alpha):
    """Return beta · input + alpha · mat1 mat2."""
    return _add_product(input, mat1, mat2, beta, alpha)


@reference("diopiBaddbmm")
def baddbmm(input, batch1, batch2, beta, alpha):
    """Return beta · input + alpha · batch1 batch2, for batches of matrices."""
    return _add_product(input, batch1, batch2, beta, alpha)


@reference("diopiMatmulBackward")
def matmul_backward(grad_out, input, other):
    """Return the gradients of both factors: g bᴴ and aᴴ g, summed over broadcast batches."""
    a = input[np.newaxis] if input.ndim == 1 else input
    b = other[:, np.newaxis] if other.ndim == 1 else other
    g = grad_out[..., np.newaxis] if other.ndim == 1 else grad_out
    g = g[..., np.newaxis, :] if input.ndim == 1 else g
    return (
        sum_products(lambda g, b: sum_to_shape(g @ _adjoint(b), a.shape).reshape(input.shape), g, b),
        sum_products(lambda a, g: sum_to_shape(_adjoint(a) @ g, b.shape).reshape(other.shape), a, g),
    )


@reference("diopiLinear")
def linear(input, weight, bias):
    """Return input weightᵀ + bias."""
    product = sum_products(lambda x, w: x @ w.T, input, weight)
    return product if bias is None else add_rounded(product, bias)


@reference("diopiLinearBackward")
def linear_backward(grad_output, input, weight, *, out):
    """Return the gradients of input, weight and bias."""
    shape = out[2].shape if out[2] else None
    rows = math.prod(input.shape[:-1])
    g, x = (array.reshape(rows, array.shape[-1]) for array in (grad_output, input))
    return (
        sum_products(lambda g, w: g @ w.conj(), grad_output, weight),
        sum_products(lambda g, x: g.T @ x.conj(), g, x),
        sum_products(lambda g, ones: np.tensordot(ones, g, 1), g, np.ones(len(g)))
        if shape is None
        else sum_products(lambda g, ones: sum_to_shape(g * ones, shape), grad_output, np.ones(())),
    )


@reference("diopiCholesky")
def cholesky(mat, upper):
    """Return the Cholesky factor of each matrix, and the order of its first minor that is not positive, or 0."""
    lower = _adjoint(mat) if upper else mat
    factors, info = np.zeros_like(mat), np.zeros(mat.shape[:-2], np.int64)
    terms = np.zeros(mat.shape)
    for batch in np.ndindex(info.shape):
        factors[batch], info[batch] = _cholesky_factor(lower[batch])
        if info[batch] == 0:
            terms[batch] = _factor_terms(factors[batch])
    if upper:
        factors, terms = _adjoint(factors), _transpose(terms)
    succeeded = np.broadcast_to(info[..., np.newaxis, np.newaxis] == 0, mat.shape)
    return PartlySpecified(WithTerms(factors, terms, signed=True), succeeded), info


def _cholesky_factor(mat: Array) -> tuple[Array, int]:
    """Return the lower Cholesky factor of a matrix, and 0; or the order of its first minor that is not positive."""
    factor = np.zeros_like(mat)
    for k in range(len(mat)):
        row = factor[k, :k]
        pivot = mat[k, k].real - (row @ row.conj()).real
        if not pivot > 0:
            return factor, k + 1
        factor[k, k] = np.sqrt(pivot)
        factor[k + 1 :, k] = (mat[k + 1 :, k] - factor[k + 1 :, :k] @ row.conj()) / factor[k, k]
    return factor, 0


def _factor_terms(factor: Array) -> Array:
    """Return the terms of a lower Cholesky factor: the effect of rounding errors in the sums of the algorithm.

    The algorithm computes factors of L Lᴴ + E, where E are the errors of the sums (Higham, theorem 10.3). To first
    order they change L by L Φ(L⁻¹ E L⁻ᴴ), where Φ takes the lower triangle and half the diagonal. In column b this
    change is Σ (I − Σ_(c < b) L_c M_c − L_b M_b / 2)_ai E_ij M_bj, where M is L⁻¹, L_c a column and M_c a row.

    Args:
        factor: the lower factor L.

    Returns:
        The terms of each element of L.
    """
    inverse = np.linalg.inv(factor)
    errors = sum_products(lambda a, b: np.tril(a) @ np.triu(b), factor, _adjoint(factor)).terms ** 2
    weighted_errors = errors @ _transpose(np.abs(inverse) ** 2)
    squares, left = np.zeros(errors.shape), np.eye(len(factor), dtype=factor.dtype)
    for b in range(len(factor)):
        outer = np.outer(factor[:, b], inverse[b])
        squares[:, b] = np.abs(left - outer / 2) ** 2 @ weighted_errors[:, b]
        left -= outer
    return np.sqrt(np.tril(squares))


@reference("diopiCholeskyBackward")
def cholesky_backward(grad_output, L, upper):
    """Return the gradient of mat: the Hermitian part of L⁻ᴴ Φ(Lᴴ g) L⁻¹, with the terms of both solutions.

    Φ takes the lower triangle of a matrix with half its diagonal (I. Murray, "Differentiation of the Cholesky
    decomposition", 2016).
    """
    factor, grad = (_adjoint(L), _adjoint(grad_output)) if upper else (L, grad_output)
    product = sum_products(np.matmul, _adjoint(factor), np.tril(grad))
    lower = np.tril(np.ones(L.shape)) - np.eye(L.shape[-1]) / 2
    system = TriangularSystem(factor.conj(), upper=False, transpose=True)
    first_solution = system.solve(WithTerms(lower * product.value, lower * product.terms))
    second_solution = system.solve(WithTerms(_adjoint(first_solution.value), _transpose(first_solution.terms)))
    value, terms = (
        (second_solution.value + _adjoint(second_solution.value)) / 2,
        np.hypot(second_solution.terms, _transpose(second_solution.terms)) / 2,
    )
    return WithTerms(value, terms)


@final
class TriangularSystem:
    """Triangular systems op(mat) X = b, where op is the transpose or the identity, for a batch of matrices.

    Args:
        mat: The matrices; only one triangle is read.
        upper: Whether this triangle of `mat` is the upper one.
        transpose: Whether op is the transpose.
        unitriangular: Whether the diagonal counts as 1 and is not read.
    """

    def __init__(self, mat: Array, upper: bool, transpose: bool, unitriangular: bool = False) -> None:
        self._upper = upper != transpose
        cut = np.triu if self._upper else np.tril
        triangle = cut(_transpose(mat) if transpose else mat, (1 if self._upper else -1) * int(unitriangular))
        self._matrix = triangle + np.eye(mat.shape[-1], dtype=mat.dtype) if unitriangular else triangle
        self._cut = cut

    def solve(self, rhs: WithTerms) -> WithTerms:
        """Return the solution and its terms.

        Args:
            rhs: the right-hand side b with its terms.

        Returns:
            The solution. An error of a row times X, or of b, changes all later rows (Higham, theorem 8.5).
        """
        solution = self._substitute(rhs.value)
        residual = sum_products(lambda matrix, x: self._cut(matrix) @ x, self._matrix, solution)
        inverse = self._substitute(np.eye(self._matrix.shape[-1]))
        errors = residual.terms**2 + np.square(rhs.terms)
        return WithTerms(solution, np.sqrt(np.abs(inverse) ** 2 @ errors), signed=True)

    def _substitute(self, b: Array) -> Array:
        """Return the solution by substitution, from the row with one unknown to the row with all unknowns."""
        matrix, size = self._matrix, self._matrix.shape[-1]
        batch = np.broadcast_shapes(b.shape[:-2], matrix.shape[:-2])
        solution = np.zeros_like(matrix, np.result_type(b, matrix), shape=batch + b.shape[-2:])
        for i in reversed(range(size)) if self._upper else range(size):
            known = slice(i + 1, size) if self._upper else slice(0, i)
            products = matrix[..., i, np.newaxis, known] @ solution[..., known, :]
            solution[..., i, :] = (b[..., i, :] - products[..., 0, :]) / matrix[..., i, i, np.newaxis]
        return solution


@reference("diopiTriangularSolve")
def triangular_solve(b, mat, upper, transpose, unitriangular):
    """Return the solution of the triangular system, and the matrix broadcast to the batch."""
    batch = np.broadcast_shapes(b.shape[:-2], mat.shape[:-2])
    solution = TriangularSystem(mat, upper, transpose, unitriangular).solve(WithTerms(b, 0.0))
    return solution, Exact(np.broadcast_to(mat, batch + mat.shape[-2:]))


@reference("diopiTriangularSolveBackward")
def triangular_solve_backward(grad_x, grad_cloned_mat, x, b, mat, upper, transpose, unitriangular):
    """Return the gradients of b and of the triangle of mat."""
    grad = WithTerms(np.zeros_like(x), np.zeros(x.shape))
    if grad_x is not None:
        grad = TriangularSystem(mat.conj(), upper, not transpose, unitriangular).solve(WithTerms(grad_x, 0.0))

    def outer(u: Array, v: Array) -> Array:
        """Return the triangle of u vᵀ, summed over broadcast batches."""
        product = u @ _transpose(v)
        triangle = np.triu(product, int(unitriangular)) if upper else np.tril(product, -int(unitriangular))
        return sum_to_shape(triangle, mat.shape)

    factors = (-x.conj(), grad.value) if transpose else (-grad.value, x.conj())
    product, squares = sum_products(outer, *factors), (np.abs(x) ** 2, grad.terms**2)
    of_grad = np.sqrt(outer(*(squares if transpose else reversed(squares))))
    product = WithTerms(product.value, np.hypot(product.terms, of_grad))
    grad_mat = product if grad_cloned_mat is None else add_rounded(product, sum_to_shape(grad_cloned_mat, mat.shape))
    grad_b = WithTerms(sum_to_shape(grad.value, b.shape), np.sqrt(sum_to_shape(grad.terms**2, b.shape)), signed=True)
    return grad_b, grad_mat


@reference("diopiLinalgQR")
def qr(A, mode):
    """Return Q and R in a mode: "reduced", "complete", or "r" without Q."""
    q, r = _decompose(A, mode)
    q_terms, r_terms = _perturbation_response(A, mode)
    q_terms = q_terms + np.eye(*q.shape[-2:])  # reflections are subtracted from the identity
    return (np.zeros(0, A.dtype) if mode == "r" else WithTerms(q, q_terms)), WithTerms(r, r_terms)


def _decompose(a: Array, mode: str) -> tuple[Array, Array]:
    """Return Q and R as NumPy computes them: by LAPACK's geqrf and orgqr, whose signs the standard expects."""
    q, r = np.linalg.qr(a, "complete" if mode == "complete" else "reduced")
    return q, r


DIRECTIONS = 64
"""The number of random perturbations of a matrix; more would change the estimate by less than a tenth."""


def _perturbation_response(a: Array, mode: str, step: float = 2.0**-26) -> tuple[Array, Array]:
    """Return the terms of Q and R: their change, to first order, by the rounding errors of Householder reflections.

    Reflections change a column by eps times its norm, small elements as much as large ones (N. Higham, "Accuracy and
    Stability of Numerical Algorithms", theorem 19.4). The number of reflections of a column is the number of columns up
    to it, and each rounds a product and a difference. Every element is therefore changed by such an error, with random
    signs. The root mean square over the signs is the root of the sum of the squared effects of the elements. It is
    estimated from `DIRECTIONS` random perturbations.

    Args:
        a: The matrices.
        mode: The mode of the decomposition.
        step: The size of a perturbation, relative to the rounding error for an eps of 1.
    """
    m, n = a.shape[-2:]
    reflections = np.minimum(np.arange(1, n + 1), m)
    norms = np.linalg.norm(a, axis=-2, keepdims=True) * np.sqrt((1 + 2 * reflections / 12) / max(m, 1))
    q, r = _decompose(a, mode)
    q_squares, r_squares = np.zeros(q.shape), np.zeros(r.shape)
    rng = np.random.Generator(np.random.Philox(0))  # the same directions in every call
    for _ in range(DIRECTIONS):
        signs = rng.choice([-1.0, 1.0], a.shape)
        moved_q, moved_r = _decompose(a + step * signs * norms, mode)
        q_squares += np.abs((moved_q - q) / step) ** 2
        r_squares += np.abs((moved_r - r) / step) ** 2
    return np.sqrt(q_squares / DIRECTIONS), np.sqrt(r_squares / DIRECTIONS)


@reference("diopiCdist")
def cdist(input1, input2, p, compute_mode):
    """Return the p-norm of the difference of each row of input1 and each row of input2."""
    x, y = input1[..., :, np.newaxis, :], input2[..., np.newaxis, :, :]
    differences = np.abs(x - y)
    if p == 0:
        unequal = np.where(np.isnan(differences), np.nan, differences > 0)
        return Exact(np.sum(unequal, axis=-1))
    if p == np.inf:  # PyTorch ignores NaN here
        return mark_unspecified(np.isnan(differences).any(axis=-1), differences.max(axis=-1, initial=0))
    powers = np.sum(differences**p, axis=-1)
    distances = np.sqrt(powers) if p == 2 else powers ** (1 / p)
    if p == 2 and _may_use_matrix_product(input1, input2, compute_mode):
        # √(|x|² + |y|² − 2 x·y): the addends cancel in the radicand, and the root halves and divides their error; the
        # two squares are single rounded values, so their errors do not average out
        return WithTerms(distances, np.sum((np.abs(x) + np.abs(y)) ** 2, axis=-1) / (2 * distances))
    return WithTerms(distances, distances * norm_terms(differences, p, -1)[..., 0], signed=True)


def _may_use_matrix_product(input1: Array, input2: Array, compute_mode: int | None) -> bool:
    """Return whether cdist may compute distances from a matrix product, as PyTorch does for more than 25 rows."""
    is_large = input1.shape[-2] > 25 or input2.shape[-2] > 25
    return compute_mode == 1 or (compute_mode in (None, 0) and is_large)


@reference("diopiCdistBackward")
def cdist_backward(grad_output, input1, input2, p, cdist):
    """Return the gradient of input1, where `cdist` has the distances."""
    difference = input1[..., :, np.newaxis, :] - input2[..., np.newaxis, :, :]
    g, distance = grad_output[..., np.newaxis], cdist[..., np.newaxis]
    if p == 0:
        return WithTerms(np.zeros_like(difference).sum(axis=-2), 0.0)  # zeros even if grad_output is not finite
    if p == np.inf:
        weight = np.where(np.abs(difference) == distance, np.sign(difference), 0)
    else:
        weight = np.sign(difference) * (np.abs(difference) / distance) ** (p - 1)
    weight = np.where(difference == 0, 0, weight)
    gradient = WithTerms(np.sum(g * weight, axis=-2), sum_terms(g * weight, -2))
    return mark_unspecified(np.isnan(difference).any(axis=-2) & (p == np.inf), gradient)

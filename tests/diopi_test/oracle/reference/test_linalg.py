"""The references of linear algebra: error terms, unread arguments and limits.

`diopi-test run --vendor torch_cpu` compares their values and gradients with PyTorch.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest
from references import call_reference, without_remarks

from diopi_test.oracle.reference import PartlySpecified, find_reference

Array = np.ndarray[Any, Any]


class Draw:
    """A generator of random arrays, complex ones if `is_complex`."""

    def __init__(self, is_complex: bool) -> None:
        self.is_complex = is_complex
        self._rng = np.random.default_rng(5)

    def __call__(self, *shape: int) -> Array:
        real, imaginary = self._rng.normal(size=(2, *shape))
        return real + 1j * imaginary if self.is_complex else real

    def positive_definite(self, *shape: int) -> Array:
        """Return positive definite matrices."""
        root = self(*shape)
        return root @ _adjoint(root) + np.eye(shape[-1])

    def regular(self, *shape: int) -> Array:
        """Return matrices whose diagonal is shifted by 2, so that they are far from singular."""
        return self(*shape) / 3 + 2 * np.eye(shape[-1])


@pytest.fixture(params=[False, True], ids=["real", "complex"])
def draw(request: pytest.FixtureRequest) -> Draw:
    """Return a source of random matrices, real or complex."""
    return Draw(request.param)


def _adjoint(a: Array) -> Array:
    """Return the conjugate transpose of the last two axes."""
    return np.swapaxes(a, -1, -2).conj()


def test_input_with_beta_zero_is_not_read() -> None:
    unread, matrix = np.full((2, 2), np.nan), np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_equal(call_reference("diopiAddmm", unread, matrix, matrix, 0, 2), 2 * matrix @ matrix)


def test_factors_are_truncated_for_integers() -> None:
    ones = np.ones((1, 2, 2), np.int64)
    np.testing.assert_equal(call_reference("diopiBaddbmm", ones, ones, ones, 2.9, -1.9), np.zeros((1, 2, 2)))


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_cholesky_reports_the_first_indefinite_minor(order: int, draw: Draw) -> None:
    mat = draw.positive_definite(4, 4)
    mat[order - 1, order - 1] = -1
    assert call_reference("diopiCholesky", mat, False, False)[1] == order


FLAGS = list(product([False, True], repeat=3))


def test_qr_perturbation_response_combines_single_elements() -> None:
    a, step = np.random.default_rng(4).normal(size=(6, 3)), 2.0**-20
    function = find_reference("diopiLinalgQR")
    assert function is not None
    q, r = function(a, "reduced")
    sizes = np.linalg.norm(a, axis=0) * np.sqrt((1 + np.arange(1, 4) / 6) / 6)
    squares = np.zeros(q.value.shape), np.zeros(r.value.shape)
    for i, j in np.ndindex(a.shape):
        moved = a.copy()
        moved[i, j] += step * sizes[j]
        for square, moved_factor, factor in zip(
            squares, call_reference("diopiLinalgQR", moved, "reduced"), (q, r), strict=True
        ):
            square += ((moved_factor - factor.value) / step) ** 2
    np.testing.assert_allclose(q.terms - np.eye(6, 3), np.sqrt(squares[0]), rtol=0.35)
    np.testing.assert_allclose(r.terms, np.sqrt(squares[1]), rtol=0.35, atol=1e-12)


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_gradient_errors_are_within_its_terms(upper: bool) -> None:
    """The result in float32 is compared with the result in float64."""
    rng = np.random.default_rng(5)
    root = rng.normal(size=(40, 40))
    factor = np.linalg.cholesky(root @ root.T + 40 * np.eye(40)).astype(np.float32)
    factor, grad = (factor.T if upper else factor), rng.normal(size=(40, 40)).astype(np.float32)
    function = find_reference("diopiCholeskyBackward")
    assert function is not None
    exact = function(grad.astype(np.float64), factor.astype(np.float64), upper)
    rounded = without_remarks(function(grad, factor, upper))
    assert np.sqrt(np.mean(((rounded - exact.value) / (exact.terms * 2.0**-23)) ** 2)) < 1


def _units(function: str, result: int, *arguments: Array, flags: tuple[bool, ...]) -> Array:
    """Return the errors of a result in float32 as multiples of eps times its terms, where these are positive."""
    reference = find_reference(function)
    assert reference is not None
    exact, rounded = (
        reference(*(argument.astype(dtype) for argument in arguments), *flags)[result]
        for dtype in (np.float64, np.float32)
    )
    exact = exact.value if isinstance(exact, PartlySpecified) else exact
    has_terms = exact.terms > 0
    return np.asarray((without_remarks(rounded) - exact.value)[has_terms] / (exact.terms[has_terms] * 2.0**-23))


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_errors_match_its_terms(upper: bool) -> None:
    rng = np.random.default_rng(6)
    root = rng.normal(size=(90, 90)).astype(np.float32)
    units = _units("diopiCholesky", 0, root @ root.T + 3 * np.eye(90, dtype=np.float32), flags=(upper, False))
    assert 0.1 < np.sqrt(np.mean(units**2)) < 1


@pytest.mark.parametrize(("upper", "transpose", "unitriangular"), FLAGS)
def test_triangular_system_errors_match_their_terms(upper: bool, transpose: bool, unitriangular: bool) -> None:
    rng = np.random.default_rng(7)
    mat = (rng.normal(size=(90, 90)) / 6 + 2 * np.eye(90)).astype(np.float32)
    b, grad_x = rng.normal(size=(2, 90, 5)).astype(np.float32)
    flags = (upper, transpose, unitriangular)
    x = call_reference("diopiTriangularSolve", b, mat, *flags)[0]
    units = [_units("diopiTriangularSolve", 0, b, mat, flags=flags)]
    cloned = np.zeros(mat.shape)
    units += [_units("diopiTriangularSolveBackward", i, grad_x, cloned, x, b, mat, flags=flags) for i in (0, 1)]
    for errors in units:
        assert 0.1 < np.sqrt(np.mean(errors**2)) < 1


def test_cdist_with_p_0_counts_unequal_coordinates() -> None:
    np.testing.assert_equal(
        call_reference("diopiCdist", np.array([[1.0, 2.0]]), np.array([[1.0, 3.0]]), 0.0, None), [[1]]
    )


def test_cdist_gradient_of_equal_rows_is_zero() -> None:
    rows = np.array([[1.0, 2.0], [1.0, 3.0]])
    for p in (0.0, 0.5, 1.0, 2.0, np.inf):
        distances = call_reference("diopiCdist", rows[:1], rows[:1], p, None)
        np.testing.assert_equal(
            call_reference("diopiCdistBackward", np.ones((1, 1)), rows[:1], rows[:1], p, distances), [[0, 0]]
        )


def test_cdist_with_p_0_propagates_nan() -> None:
    rows = np.array([[np.nan, 1.0], [np.inf, 1.0], [2.0, 1.0]])
    counts = call_reference("diopiCdist", rows, rows, 0.0, None)
    assert np.isnan(counts[0]).all()
    assert np.isnan(counts[:, 0]).all()
    assert np.isnan(counts[1, 1])
    assert counts[1, 2] == counts[2, 1] == 1
    assert not call_reference("diopiCdistBackward", np.ones((3, 3)), rows, rows, 0.0, counts).any()

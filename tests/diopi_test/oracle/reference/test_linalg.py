"""The references of linear algebra: gradients against finite differences, decompositions against what they mean."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from references import call, difference, value

from diopi_test.cases.model import ResultOverride
from diopi_test.oracle.reference import PartlySpecified, find_reference

Array = np.ndarray[Any, Any]


class Draw:
    """Random arrays, complex ones if `is_complex`."""

    def __init__(self, is_complex: bool) -> None:
        self.is_complex = is_complex
        self._rng = np.random.default_rng(5)

    def __call__(self, *shape: int) -> Array:
        real, imaginary = self._rng.normal(size=(2, *shape))
        return real + 1j * imaginary if self.is_complex else real

    def positive_definite(self, *shape: int) -> Array:
        root = self(*shape)
        return root @ _adjoint(root) + np.eye(shape[-1])

    def regular(self, *shape: int) -> Array:
        return self(*shape) / 3 + 2 * np.eye(shape[-1])


@pytest.fixture(params=[False, True], ids=["real", "complex"])
def draw(request: pytest.FixtureRequest) -> Draw:
    return Draw(request.param)


def _adjoint(a: Array) -> Array:
    return np.swapaxes(a, -1, -2).conj()


MATMUL_SHAPES = [
    ((4,), (4,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((3,), (2, 3, 2)),
    ((2, 2, 3), (3,)),
    ((2, 1, 2, 3), (3, 3, 2)),
]


@pytest.mark.parametrize(("first", "second"), MATMUL_SHAPES)
def test_matmul_gradients_match_differences(first: tuple[int, ...], second: tuple[int, ...], draw: Draw) -> None:
    a, b = draw(*first), draw(*second)
    grad = draw(*np.matmul(a, b).shape)
    grad_a, grad_b = call("diopiMatmulBackward", grad, a, b)
    np.testing.assert_allclose(grad_a, difference(lambda a: call("diopiMatmul", a, b), a, grad), atol=1e-9)
    np.testing.assert_allclose(grad_b, difference(lambda b: call("diopiMatmul", a, b), b, grad), atol=1e-9)


LINEAR_SHAPES: list[tuple[tuple[int, ...], tuple[int, ...] | None]] = [
    *(((), None), ((3,), None), ((2, 2), None)),
    *(((3,), ()), ((3,), (1,)), ((3,), (3, 1)), ((2, 2), (2, 2)), ((2, 2), (2, 1, 2))),
]
"""Leading axes of the input, and the shape of the bias where it is not that of one result."""


@pytest.mark.parametrize(("leading", "bias_shape"), LINEAR_SHAPES)
def test_linear_gradients_match_differences(
    leading: tuple[int, ...], bias_shape: tuple[int, ...] | None, draw: Draw
) -> None:
    shape = (2,) if bias_shape is None else bias_shape
    x, weight, bias, grad = draw(*leading, 3), draw(2, 3), np.asarray(draw(*shape)), draw(*leading, 2)
    out = (ResultOverride(), ResultOverride(), ResultOverride(shape=bias_shape))
    gradients = call("diopiLinearBackward", grad, x, weight, out=out)
    expected = (
        difference(lambda x: call("diopiLinear", x, weight, bias), x, grad),
        difference(lambda weight: call("diopiLinear", x, weight, bias), weight, grad),
        difference(lambda bias: call("diopiLinear", x, weight, bias), bias, grad),
    )
    for actual, wanted in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, atol=1e-9)


def test_input_with_beta_zero_is_not_read() -> None:
    unread, matrix = np.full((2, 2), np.nan), np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_equal(call("diopiAddmm", unread, matrix, matrix, 0, 2), 2 * matrix @ matrix)


def test_factors_are_truncated_for_integers() -> None:
    ones = np.ones((1, 2, 2), np.int64)
    np.testing.assert_equal(call("diopiBaddbmm", ones, ones, ones, 2.9, -1.9), np.zeros((1, 2, 2)))


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_factor_reproduces_the_matrix(upper: bool, draw: Draw) -> None:
    mat = draw.positive_definite(2, 4, 4)
    unread = np.tril(draw(4, 4), -1) if upper else np.triu(draw(4, 4), 1)
    factor, info = call("diopiCholesky", mat + unread, upper, False)
    np.testing.assert_allclose(_adjoint(factor) @ factor if upper else factor @ _adjoint(factor), mat)
    np.testing.assert_equal(factor, np.triu(factor) if upper else np.tril(factor))
    np.testing.assert_equal(info, [0, 0])


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_cholesky_reports_the_first_indefinite_minor(order: int, draw: Draw) -> None:
    mat = draw.positive_definite(4, 4)
    mat[order - 1, order - 1] = -1
    assert call("diopiCholesky", mat, False, False)[1] == order


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_gradient_matches_differences(upper: bool, draw: Draw) -> None:
    """A Hermitian matrix moves along Hermitian directions, of which its factor reads the one triangle."""
    mat, grad = draw.positive_definite(3, 3), draw(3, 3)

    def factor_of_hermitian(direction: Array) -> Array:
        factor: Array = call("diopiCholesky", mat + (direction + _adjoint(direction)) / 2, upper, False)[0]
        return factor

    factor = factor_of_hermitian(np.zeros_like(mat))
    expected = difference(factor_of_hermitian, np.zeros_like(mat), grad)
    np.testing.assert_allclose(call("diopiCholeskyBackward", grad, factor, upper), expected, atol=1e-8)


FLAGS = list(product([False, True], repeat=3))


@pytest.mark.parametrize(("upper", "transpose", "unitriangular"), FLAGS)
def test_triangular_solve_satisfies_the_system(upper: bool, transpose: bool, unitriangular: bool, draw: Draw) -> None:
    b, mat = draw(2, 4, 3), draw.regular(4, 4)
    x, cloned = call("diopiTriangularSolve", b, mat, upper, transpose, unitriangular)
    triangle = np.triu(mat) if upper else np.tril(mat)
    if unitriangular:
        np.fill_diagonal(triangle, 1)
    np.testing.assert_allclose((triangle.T if transpose else triangle) @ x, b)
    np.testing.assert_equal(cloned, [mat, mat])


@pytest.mark.parametrize(("upper", "transpose", "unitriangular"), FLAGS)
def test_triangular_solve_gradients_match_differences(
    upper: bool, transpose: bool, unitriangular: bool, draw: Draw
) -> None:
    flags = upper, transpose, unitriangular
    b, mat = draw(2, 3, 2), draw.regular(3, 3)
    grad_x, grad_cloned = draw(2, 3, 2), draw(2, 3, 3)
    x, _ = call("diopiTriangularSolve", b, mat, *flags)
    grad_b, grad_mat = call("diopiTriangularSolveBackward", grad_x, grad_cloned, x, b, mat, *flags)
    of_b = difference(lambda b: call("diopiTriangularSolve", b, mat, *flags)[0], b, grad_x)
    of_mat = difference(lambda mat: call("diopiTriangularSolve", b, mat, *flags)[0], mat, grad_x)
    np.testing.assert_allclose(grad_b, of_b, atol=1e-8)
    np.testing.assert_allclose(grad_mat, of_mat + grad_cloned.sum(0), atol=1e-8)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4), (4, 1)])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr_reconstructs_the_matrix(shape: tuple[int, ...], mode: str, draw: Draw) -> None:
    a = draw(*shape)
    q, r = call("diopiLinalgQR", a, mode)
    np.testing.assert_allclose(q @ r, a)
    np.testing.assert_allclose(
        _adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), r.shape[:-1] + q.shape[-1:]), atol=1e-14
    )
    np.testing.assert_equal(r, np.triu(r))
    np.testing.assert_equal(call("diopiLinalgQR", a, "r")[1], r[..., : min(shape[-2:]), :])


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
        for square, moved_factor, factor in zip(squares, call("diopiLinalgQR", moved, "reduced"), (q, r), strict=True):
            square += ((moved_factor - factor.value) / step) ** 2
    np.testing.assert_allclose(q.terms - np.eye(6, 3), np.sqrt(squares[0]), rtol=0.35)
    np.testing.assert_allclose(r.terms, np.sqrt(squares[1]), rtol=0.35, atol=1e-12)


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_gradient_errors_are_within_its_terms(upper: bool) -> None:
    """In float32, against the same in float64."""
    rng = np.random.default_rng(5)
    root = rng.normal(size=(40, 40))
    factor = np.linalg.cholesky(root @ root.T + 40 * np.eye(40)).astype(np.float32)
    factor, grad = (factor.T if upper else factor), rng.normal(size=(40, 40)).astype(np.float32)
    function = find_reference("diopiCholeskyBackward")
    assert function is not None
    exact = function(grad.astype(np.float64), factor.astype(np.float64), upper)
    rounded = value(function(grad, factor, upper))
    assert np.sqrt(np.mean(((rounded - exact.value) / (exact.terms * 2.0**-23)) ** 2)) < 1


def _units(function: str, result: int, *arguments: Array, flags: tuple[bool, ...]) -> Array:
    """Errors of a result that is computed in float32, in eps times its terms."""
    reference = find_reference(function)
    assert reference is not None
    exact, rounded = (
        reference(*(argument.astype(dtype) for argument in arguments), *flags)[result]
        for dtype in (np.float64, np.float32)
    )
    exact = exact.value if isinstance(exact, PartlySpecified) else exact
    within = exact.terms > 0
    return np.asarray((value(rounded) - exact.value)[within] / (exact.terms[within] * 2.0**-23))


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
    x = call("diopiTriangularSolve", b, mat, *flags)[0]
    units = [_units("diopiTriangularSolve", 0, b, mat, flags=flags)]
    cloned = np.zeros(mat.shape)
    units += [_units("diopiTriangularSolveBackward", i, grad_x, cloned, x, b, mat, flags=flags) for i in (0, 1)]
    for errors in units:
        assert 0.1 < np.sqrt(np.mean(errors**2)) < 1


def test_qr_signs_match_lapack() -> None:
    """Where something is to eliminate, the sign of the diagonal turns over; where nothing is, it stays."""
    _, r = call("diopiLinalgQR", np.array([[3.0, 1.0], [4.0, 2.0]]), "r")
    assert r[0, 0] == pytest.approx(-5)
    _, r = call("diopiLinalgQR", np.array([[-3.0, 1.0], [4.0, 2.0]]), "r")
    assert r[0, 0] == pytest.approx(5)
    _, r = call("diopiLinalgQR", np.array([[-3.0, 1.0], [0.0, 2.0]]), "r")
    np.testing.assert_equal(r, [[-3.0, 1.0], [0.0, 2.0]])


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, np.inf])
def test_cdist_matches_numpy_norms(p: float) -> None:
    x, y = Draw(False)(2, 1, 3, 4), Draw(False)(3, 2, 4)
    expected = [[[[np.linalg.norm(a - b, p) for b in second] for a in first[0]] for second in y] for first in x]
    np.testing.assert_allclose(call("diopiCdist", x, y, p, None), expected)


def test_cdist_with_p_0_counts_unequal_coordinates() -> None:
    np.testing.assert_equal(call("diopiCdist", np.array([[1.0, 2.0]]), np.array([[1.0, 3.0]]), 0.0, None), [[1]])


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, np.inf])
def test_cdist_gradient_matches_differences(p: float) -> None:
    draw = Draw(False)
    x, y, grad = draw(2, 3, 4), draw(2, 2, 4), draw(2, 3, 2)
    expected = difference(lambda x: call("diopiCdist", x, y, p, None), x, grad)
    distances = call("diopiCdist", x, y, p, None)
    np.testing.assert_allclose(call("diopiCdistBackward", grad, x, y, p, distances), expected, atol=1e-6)


def test_cdist_gradient_of_equal_rows_is_zero() -> None:
    rows = np.array([[1.0, 2.0], [1.0, 3.0]])
    for p in (0.0, 0.5, 1.0, 2.0, np.inf):
        distances = call("diopiCdist", rows[:1], rows[:1], p, None)
        np.testing.assert_equal(call("diopiCdistBackward", np.ones((1, 1)), rows[:1], rows[:1], p, distances), [[0, 0]])


def test_cdist_with_p_0_propagates_nan() -> None:
    rows = np.array([[np.nan, 1.0], [np.inf, 1.0], [2.0, 1.0]])
    counts = call("diopiCdist", rows, rows, 0.0, None)
    assert np.isnan(counts[0]).all()
    assert np.isnan(counts[:, 0]).all()
    assert np.isnan(counts[1, 1])
    assert counts[1, 2] == counts[2, 1] == 1
    assert not call("diopiCdistBackward", np.ones((3, 3)), rows, rows, 0.0, counts).any()

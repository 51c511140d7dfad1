"""The rules of elementary functions whose results have declared errors.

The result of an operation moves by the declared bound, in a random direction. A reference may use another function than
an implementation: it evaluates the logistic function where an implementation divides by 1 + exp(−x), and divides where
an implementation multiplies by a reciprocal. `BOUNDS` lists for each NumPy operation the declared functions from which
an implementation may compute it. The largest of their errors counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, final

import numpy as np
from scipy import special

from diopi_impl.numerics.declaration import ErrorBound
from diopi_proto.types import Dtype
from diopi_test.oracle.arithmetic.array import Array, Operation, Rule
from diopi_test.oracle.arithmetic.signs import Signs
from diopi_test.oracle.reference.activation import tanh_weight
from lib_rt.formats import FloatArray, ulp

Bounds = Mapping[str, Sequence[ErrorBound]]
"""The declared error bounds by the name of the function."""


@final
class DeclaredErrors:
    """The errors of elementary functions in float32, as declared; 0 for a function that is not declared."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def declares(self, *names: str) -> bool:
        """Return whether the errors of one of the functions are declared."""
        return any(self._bounds.get(name) for name in names)

    def error(self, name: str, argument: Array, result: Array) -> FloatArray:
        """Return the largest error of a function for each argument.

        Args:
            name: The name of the function.
            argument: The arguments that decide which bounds hold: a bound holds for a range of arguments.
            result: The exact results.

        Returns:
            The errors; 0 for arguments for which no bound is declared.
        """
        size, position = np.abs(result), np.abs(argument) if np.iscomplexobj(argument) else argument
        errors = np.zeros(np.broadcast_shapes(size.shape, position.shape))
        for bound in self._bounds.get(name, ()):
            largest = bound.ulp * ulp(result, Dtype.float32) + bound.relative * size + bound.absolute
            holds = (position >= bound.minimum) & (position <= bound.maximum) & np.isfinite(size)
            errors = np.maximum(errors, np.where(holds, largest, 0.0))
        return errors

    def relative_error(self, name: str, argument: Array, result: Array) -> FloatArray:
        """Return the largest error of a function for each argument, relative to the result; 0 for a result of 0."""
        size = np.abs(result)
        return np.where(size > 0, self.error(name, argument, result) / np.where(size > 0, size, 1.0), 0.0)

    def quotient_error(self, divisor: Array, result: Array) -> FloatArray:
        """Return the largest error of each quotient, or of the dividend times the reciprocal of the divisor.

        Args:
            divisor: The divisors.
            result: The exact quotients.

        Returns:
            The errors; 0 for divisors for which no bound is declared.
        """
        by_reciprocal = np.abs(result) * self.relative_error("reciprocal", divisor, 1 / divisor)
        return np.asarray(np.maximum(self.error("divide", divisor, result), by_reciprocal))


Bound = Callable[[DeclaredErrors, Sequence[Array], Array], FloatArray]
"""Returns the largest absolute error of an operation, from the declared errors, the operands and the exact result."""


def _direct(name: str, position: int = 0) -> Bound:
    """Return the bound of an operation that is the declared function `name`; operand `position` decides the range."""
    return lambda errors, operands, result: errors.error(name, operands[position], result)


def _sqrt(errors: DeclaredErrors, operands: Sequence[Array], result: Array) -> FloatArray:
    """Return the error of a square root, or of x · rsqrt(x)."""
    (x,) = operands
    return np.maximum(errors.error("sqrt", x, result), np.abs(result) * errors.relative_error("rsqrt", x, 1 / result))


def _divide(errors: DeclaredErrors, operands: Sequence[Array], result: Array) -> FloatArray:
    """Return the error of a quotient, or of the dividend times the reciprocal of the divisor."""
    return errors.quotient_error(operands[1], result)


def _reciprocal(errors: DeclaredErrors, operands: Sequence[Array], result: Array) -> FloatArray:
    """Return the error of a reciprocal, or of 1 divided by the operand."""
    (x,) = operands
    return np.maximum(errors.error("reciprocal", x, result), errors.error("divide", x, result))


def _logistic(errors: DeclaredErrors, operands: Sequence[Array], result: Array) -> FloatArray:
    """Return the error of the logistic function: its declared error, or the error of 1 / (1 + exp(−x)).

    A vendor that computes (1 + tanh(x / 2)) / 2 with an inexact tanh declares the error of `sigmoid`. That formula has
    a large relative error for negative x, which vendors with another formula must not have.
    """
    (x,) = operands
    quotient = _reciprocal(errors, (1 + np.exp(-x),), result)
    by_exponential = result * (1 - result) * errors.relative_error("exp", -x, np.exp(-x)) + quotient
    return np.asarray(np.maximum(errors.error("sigmoid", x, result), by_exponential))


def _tanh_weight(errors: DeclaredErrors, operands: Sequence[Array], result: Array) -> FloatArray:
    """Return the error of (1 + tanh(u)) / 2, or of the logistic function of 2u, which is equal."""
    (u,) = operands
    return np.asarray(np.maximum(errors.error("tanh", u, np.tanh(u)) / 2, _logistic(errors, (2 * u,), result)))


def _normal_distribution(errors: DeclaredErrors, operands: Sequence[Array], result: Array) -> FloatArray:
    """Return the error of the normal distribution function (1 + erf(x / √2)) / 2."""
    x = operands[0] / np.sqrt(2)
    return np.asarray(errors.error("erf", x, special.erf(x)) / 2)


def _logarithm_of_sum(errors: DeclaredErrors, operands: Sequence[Array], result: Array) -> FloatArray:
    """Return the error of log(eˣ + eʸ), computed as the larger operand plus log(1 + e^−|x − y|)."""
    x, y = operands
    distance = -np.abs(x - y)
    e = np.exp(distance)
    logarithm = np.log1p(e)
    by_log = np.maximum(errors.error("log1p", e, logarithm), errors.error("log", 1 + e, logarithm))
    return np.asarray(by_log + errors.error("exp", distance, e) / (1 + e))


BOUNDS: Mapping[np.ufunc, tuple[tuple[str, ...], Bound]] = {
    np.arccos: (("acos",), _direct("acos")),
    np.arccosh: (("acosh",), _direct("acosh")),
    np.arcsin: (("asin",), _direct("asin")),
    np.arcsinh: (("asinh",), _direct("asinh")),
    np.arctan: (("atan",), _direct("atan")),
    np.arctan2: (("atan2",), _direct("atan2")),
    np.arctanh: (("atanh",), _direct("atanh")),
    np.cos: (("cos",), _direct("cos")),
    np.cosh: (("cosh",), _direct("cosh")),
    np.divide: (("divide", "reciprocal"), _divide),
    special.erf: (("erf",), _direct("erf")),
    special.erfinv: (("erfinv",), _direct("erfinv")),
    np.exp: (("exp",), _direct("exp")),
    np.exp2: (("exp2",), _direct("exp2")),
    special.expit: (("sigmoid", "exp", "divide", "reciprocal"), _logistic),
    np.expm1: (("expm1",), _direct("expm1")),
    np.float_power: (("pow",), _direct("pow")),
    np.hypot: (("sqrt", "rsqrt"), lambda errors, operands, result: _sqrt(errors, (result**2,), result)),
    np.log: (("log",), _direct("log")),
    np.log10: (("log10",), _direct("log10")),
    np.log1p: (("log1p",), _direct("log1p")),
    np.log2: (("log2",), _direct("log2")),
    np.logaddexp: (("exp", "log", "log1p"), _logarithm_of_sum),
    special.ndtr: (("erf",), _normal_distribution),
    np.power: (("pow",), _direct("pow")),
    np.reciprocal: (("reciprocal", "divide"), _reciprocal),
    np.sin: (("sin",), _direct("sin")),
    np.sinh: (("sinh",), _direct("sinh")),
    np.sqrt: (("sqrt", "rsqrt"), _sqrt),
    np.tan: (("tan",), _direct("tan")),
    np.tanh: (("tanh",), _direct("tanh")),
}
"""For each NumPy operation, the declared functions from which an implementation may compute it, and its bound."""


def make_elementary_rules(bounds: Bounds, signs: Signs) -> dict[Operation, Rule]:
    """Return the rules of the operations that the declared functions affect.

    Args:
        bounds: The declared error bounds.
        signs: The directions of the round.

    Returns:
        The rules; none if nothing is declared.
    """
    errors = DeclaredErrors(bounds)
    rules: dict[Operation, Rule] = {
        (ufunc, "__call__"): partial(_move_result, errors, bound, signs)
        for ufunc, (names, bound) in BOUNDS.items()
        if errors.declares(*names)
    }
    if errors.declares("tanh", *BOUNDS[special.expit][0]):
        rules[tanh_weight, ""] = partial(_move_result, errors, _tanh_weight, signs)
    if errors.declares("sqrt", "rsqrt", "pow"):
        rules[np.linalg.norm, ""] = partial(_move_norm, errors, signs)
    return rules


def _move_norm(
    errors: DeclaredErrors, signs: Signs, function: Callable[..., Any], operands: list[Any], keywords: dict[str, Any]
) -> Any:
    """Return a norm, moved by the error of its root and its powers; NotImplemented if it needs neither."""
    x, order = (*operands, 2)[:2]
    if order in (0, 1) or np.isinf(order):
        return NotImplemented
    result = np.asarray(function(*operands, **keywords))
    with np.errstate(all="ignore"):
        if order == 2:
            size = _sqrt(errors, (result**2,), result)
        else:
            powers = errors.relative_error("pow", np.abs(x), np.abs(x) ** order)
            root = errors.relative_error("pow", result**order, result)
            size = np.abs(result) * (powers.max(initial=0.0) / abs(order) + root)
        return result + signs.draw(result.shape) * np.where(np.isfinite(size), size, 0.0)


def _move_result(
    errors: DeclaredErrors,
    bound: Bound,
    signs: Signs,
    function: Callable[..., Any],
    operands: list[Any],
    keywords: dict[str, Any],
) -> Any:
    """Return the result of an operation moved by its error; both parts of a complex result are moved."""
    result = np.asarray(function(*operands, **keywords))
    with np.errstate(all="ignore"):
        size = np.broadcast_to(bound(errors, [np.asarray(x) for x in operands], result), result.shape)
        size = np.where(np.isfinite(size) & np.isfinite(result), size, 0.0)
        if result.dtype.kind != "c":
            return result + signs.draw(result.shape) * size
        moved = result.copy()
        moved.real += signs.draw(result.shape) * size
        moved.imag += signs.draw(result.shape) * size
        return moved

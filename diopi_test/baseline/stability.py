"""Widen the budgets of random cases near a discontinuity, so that the results on both of its sides are accepted.

The inputs are moved by a *step*, which is so small that rounding may have the same effect, once halfway and once
completely. Where the function is smooth, both halves of the step change the result by almost the same amount. The
difference of the two changes, the *jump*, shows discontinuities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import random_generator
from diopi_test.oracle.budget import K
from diopi_test.oracle.evaluation import Evaluation
from diopi_test.oracle.records import BaselineCase, Expected, expected_arrays
from lib_rt.formats import format_of, is_inexact, ulp

ROUNDS = 3
"""The number of evaluations in which each element of the inputs moves in a random direction."""

MAX_COMBINED_INPUTS = 3
"""The number of inputs that are also moved as a whole: all elements of an input in one direction, in all combinations.

A quotient, for example, jumps if its dividend goes up and its divisor goes down."""


class UnstableError(ValueError):
    """The shape of a result depends on rounding, so the result can't be compared."""


def restrict_to_stable(computed: BaselineCase, evaluation: Evaluation) -> BaselineCase:
    """Accept the results on both sides of a discontinuity, such as a rounded quotient or the bound of a window.

    Authors keep the data of their cases away from discontinuities, but random data may be near one. The inputs are
    moved by K half-ulps, halfway and completely, where K is the factor of error budgets. If an element then jumps, its
    budget grows by the size of the jump, because the results on both sides are valid. An element becomes unspecified if
    it is an integer that changes, or if it changes between finite and infinite or NaN. Unspecified elements are not
    compared.

    Args:
        computed: The case with its arguments and expected results.
        evaluation: The evaluation of the case's reference.

    Returns:
        The case with wider budgets and unspecified elements; the same object unless its results may be rounded.

    Raises:
        UnstableError: The shape of a result depends on rounding.
    """
    if evaluation.prototype.guarantee != "rounded":
        return computed
    plain, rng = computed.plain_arguments(), random_generator(computed.id, "far")
    flat = [expected for value in computed.expected.values() for expected in expected_arrays(value)]
    dtypes = [expected.dtype for expected in flat if is_inexact(expected.dtype)]
    jumps: list[NDArray[Any]] = [np.zeros(expected.values.shape) for expected in flat]
    for signs in _draw_directions(plain, rng):
        steps = {n: _half_ulp_step(v, computed.arguments[n], dtypes, signs.get(n, np.ones)) for n, v in plain.items()}
        moved = [
            evaluation.moved_arrays(plain, {n: _move(v, steps[n], part) for n, v in plain.items()})
            for part in (0.5, 1.0)
        ]
        if any([array.shape for array in arrays] != [expected.values.shape for expected in flat] for arrays in moved):
            raise UnstableError("the shape of the result depends on rounding")
        jumps = [
            np.maximum(j, _second_difference(expected.values, *m))
            for j, expected, *m in zip(jumps, flat, *moved, strict=True)
        ]
    restricted = iter([_restrict_result(expected, jump) for expected, jump in zip(flat, jumps, strict=True)])
    return replace(
        computed,
        expected={
            name: [next(restricted) for _ in value] if isinstance(value, list) else value and next(restricted)
            for name, value in computed.expected.items()
        },
    )


Signs = Callable[[tuple[int, ...]], Any]
"""A function that returns an array of the given shape with signs 1 or −1, or a single sign for all elements."""


def _draw_directions(plain: Mapping[str, Any], rng: Generator) -> Iterator[Mapping[str, Signs]]:
    """Yield the directions of the inputs for each evaluation: a `Signs` function by input name.

    In the first evaluations, all elements of an input move in the same direction. In the last `ROUNDS` evaluations,
    each element moves in a random direction. Inputs without a function move up.
    """
    names = [name for name, value in plain.items() if isinstance(value, np.ndarray) and value.dtype.kind in "fc"]
    for combination in product((1, -1), repeat=min(len(names), MAX_COMBINED_INPUTS)):
        yield {name: partial(np.full, fill_value=sign) for name, sign in zip(names, combination, strict=False)}
    for _ in range(ROUNDS):
        yield {name: partial(rng.choice, [-1, 1]) for name in plain}


def _half_ulp_step(plain: Any, argument: Any, results: list[Dtype], signs: Signs) -> Any:
    """Return by how much each element of an argument moves: K half-ulps with a sign.

    The ulp is that of the most precise type among the argument's type and `results`.

    Args:
        plain: The values of the argument; a list for an array of tensors.
        argument: The argument, with its element type.
        results: The floating-point types of the results.
        signs: Returns the directions.

    Returns:
        The steps, with the shape of the values; None for an argument that does not consist of floating-point numbers.
    """
    if isinstance(plain, list):
        return [
            _half_ulp_step(entry, entry_argument, results, signs)
            for entry, entry_argument in zip(plain, argument, strict=True)
        ]
    if not isinstance(plain, np.ndarray) or plain.dtype.kind not in "fc" or not is_inexact(argument.dtype):
        return None
    dtype = max([argument.dtype, *results], key=lambda entry: format_of(entry).precision)
    steps = K / 2 * signs(plain.shape)
    with np.errstate(all="ignore"):
        if plain.dtype.kind == "c":
            return steps * (ulp(plain.real, dtype) + 1j * ulp(plain.imag, dtype))
        return np.where(np.isfinite(plain) & (plain != 0), steps * ulp(plain, dtype), 0)


def _move(plain: Any, step: Any, part: float) -> Any:
    """Return an argument moved by a fraction of a step.

    Args:
        plain: The argument: an array, a number, or a list of arguments.
        step: The step of each element; None for an argument that is not moved. A list has the steps of the entries.
        part: The fraction.
    """
    if isinstance(plain, list):
        return [_move(entry, entry_step, part) for entry, entry_step in zip(plain, step, strict=True)]
    with np.errstate(all="ignore"):
        return plain if step is None else plain + part * step


def _convert_like(values: NDArray[Any], array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in the type of `values`; if that is real, return only the real parts of complex numbers."""
    return (array if np.iscomplexobj(values) else array.real).astype(values.dtype)


def _second_difference(values: NDArray[Any], halfway: NDArray[Any], end: NDArray[Any]) -> NDArray[Any]:
    """Return how much a result jumps between the original inputs, inputs moved halfway and completely moved inputs.

    Args:
        values: The result for the original inputs.
        halfway: The result for inputs that were moved by half a step.
        end: The result for inputs that were moved by a whole step.

    Returns:
        The absolute second difference of each element, which is small for a smooth function. Infinite if an integer
        changes, or if some, but not all, of the three values are finite.
    """
    with np.errstate(all="ignore"):
        if values.dtype.kind not in "fc":
            is_unchanged = (values == _convert_like(values, halfway)) & (values == _convert_like(values, end))
            return np.where(is_unchanged, 0.0, np.inf)
        halfway, end = (_convert_like(values, array) for array in (halfway, end))  # they may be truth values
        jump = np.abs((end - halfway) - (halfway - values))
        finite = np.isfinite([values, halfway, end])
    return np.where(finite.all(0), jump, np.where(finite.any(0), np.inf, 0.0))


def _restrict_result(expected: Expected, jump: NDArray[Any]) -> Expected:
    """Return an expected result with budgets widened by the jump; elements with an infinite jump are unspecified."""
    is_lost = ~np.isfinite(jump)
    if is_lost.any():
        expected = replace(
            expected, specified=~is_lost if expected.specified is None else expected.specified & ~is_lost
        )
    if expected.budget is None:
        return expected
    with np.errstate(over="ignore"):  # a jump of the largest numbers, whose budget has no limit
        return replace(expected, budget=expected.budget.widen(np.where(is_lost, 0, jump)))

"""Restrict the expected results of random cases to what holds on both sides of a discontinuity."""

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
"""The number of times that inputs are moved by K half-ulps, each element in a random direction."""

MAX_COMBINED_INPUTS = 3
"""The number of inputs whose elements are also moved in one direction together, in all combinations.

A quotient, for example, jumps if its dividend goes up and its divisor goes down."""


class UnstableError(ValueError):
    """The shape of a result depends on rounding, so the result can't be compared."""


def restrict_to_stable(computed: BaselineCase, evaluation: Evaluation, case: BaselineCase) -> BaselineCase:
    """Restrict a case to what holds on both sides of a jump (a rounded quotient, the bound of a window).

    Authors keep the data of their cases away from jumps; random data may be near one. A jump within K half-ulps of the
    inputs widens the budget of an element, because both sides are valid. An integer or an infinity that changes is
    unspecified.

    Args:
        computed: The case with its expected results.
        evaluation: Evaluates the reference of the case.
        case: The case with its data.

    Returns:
        The restricted case.

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
        moved = [evaluation.arrays({n: _move(v, steps[n], part) for n, v in plain.items()}) for part in (0.5, 1.0)]
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
"""Returns the signs 1 or −1 for the elements of a tensor of this shape."""


def _draw_directions(plain: Mapping[str, Any], rng: Generator) -> Iterator[Mapping[str, Signs]]:
    """Yield the signs for each round by input name; inputs without signs are moved up."""
    names = [name for name, value in plain.items() if isinstance(value, np.ndarray) and value.dtype.kind in "fc"]
    for combination in product((1, -1), repeat=min(len(names), MAX_COMBINED_INPUTS)):
        yield {name: partial(np.full, fill_value=sign) for name, sign in zip(names, combination, strict=False)}
    for _ in range(ROUNDS):
        yield {name: partial(rng.choice, [-1, 1]) for name in plain}


def _half_ulp_step(plain: Any, argument: Any, results: list[Dtype], signs: Signs) -> Any:
    """Return a signed step of K half-ulps of an argument, in its type or the results' finer type; None if not moved."""
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
    """Return an argument moved by a fraction of a step."""
    if isinstance(plain, list):
        return [_move(entry, entry_step, part) for entry, entry_step in zip(plain, step, strict=True)]
    with np.errstate(all="ignore"):
        return plain if step is None else plain + part * step


def _convert_like(values: NDArray[Any], array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in the type of `values`; if that is real, return only the real parts of complex numbers."""
    return (array if np.iscomplexobj(values) else array.real).astype(values.dtype)


def _second_difference(values: NDArray[Any], halfway: NDArray[Any], end: NDArray[Any]) -> NDArray[Any]:
    """Return the second difference of a result: 0 where it is smooth, infinite where an integer or infinity changes."""
    with np.errstate(all="ignore"):
        if values.dtype.kind not in "fc":
            same = (values == _convert_like(values, halfway)) & (values == _convert_like(values, end))
            return np.where(same, 0.0, np.inf)
        halfway, end = (_convert_like(values, array) for array in (halfway, end))  # they may be truth values
        jump = np.abs((end - halfway) - (halfway - values))
        finite = np.isfinite([values, halfway, end])
    return np.where(finite.all(0), jump, np.where(finite.any(0), np.inf, 0.0))


def _restrict_result(expected: Expected, jump: NDArray[Any]) -> Expected:
    """Return an expected result with budgets widened by the jump; elements that jump infinitely are unspecified."""
    is_lost = ~np.isfinite(jump)
    if is_lost.any():
        expected = replace(
            expected, specified=~is_lost if expected.specified is None else expected.specified & ~is_lost
        )
    if expected.budget is None:
        return expected
    with np.errstate(over="ignore"):  # a jump of the largest numbers, whose budget has no limit
        return replace(expected, budget=expected.budget.widen(np.where(is_lost, 0, jump)))

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
from diopi_test.baseline.evaluate import Evaluation
from diopi_test.baseline.records import BaselineCase, Expected, entries_of
from diopi_test.cases.data import random_generator
from diopi_test.cases.formats import format_of, is_inexact, ulp
from diopi_test.oracle.budget import K

ROUNDS = 3
"""How often inputs are moved by K half-ulps, each element in a direction drawn for it."""

TOGETHER = 3
"""Of so many inputs, all elements are moved in one direction as well, in all combinations: a quotient jumps where one
goes up and the other down."""


class UnstableError(ValueError):
    """The shape of a result depends on rounding, so that nothing can be compared with it."""


def restrict_to_stable(made: BaselineCase, evaluation: Evaluation, case: BaselineCase) -> BaselineCase:
    """Restrict a case to what holds on both sides of a jump (a rounded quotient, the bound of a window).

    The author of a case keeps its data away from jumps; of drawn data nobody does. A jump within K half-ulps of the
    inputs is added to the unit of an element: either side is right, and as likely, so it is no more than R allows. A
    whole number, or an infinity, that changes is not specified.
    """
    if evaluation.prototype.guarantee != "rounded":
        return made
    plain, rng = made.plain_arguments(), random_generator(made.id, "far")
    flat = [one for value in made.expected.values() for one in entries_of(value)]
    dtypes = [one.dtype for one in flat if is_inexact(one.dtype)]
    jumps: list[NDArray[Any]] = [np.zeros(one.values.shape) for one in flat]
    for signs in _directions(plain, rng):
        steps = {n: _step(v, made.arguments[n], dtypes, signs.get(n, np.ones)) for n, v in plain.items()}
        moved = [evaluation.arrays({n: _moved(v, steps[n], part) for n, v in plain.items()}) for part in (0.5, 1.0)]
        if any([array.shape for array in arrays] != [one.values.shape for one in flat] for arrays in moved):
            raise UnstableError("the shape of its result hangs on rounding")
        jumps = [np.maximum(j, _jump(one.values, *m)) for j, one, *m in zip(jumps, flat, *moved, strict=True)]
    restricted = iter([_restrict(one, jump) for one, jump in zip(flat, jumps, strict=True)])
    return replace(
        made,
        expected={
            name: [next(restricted) for _ in value] if isinstance(value, list) else value and next(restricted)
            for name, value in made.expected.items()
        },
    )


Signs = Callable[[tuple[int, ...]], Any]
"""Up or down, 1 or −1, for the elements of a tensor of a shape."""


def _directions(plain: Mapping[str, Any], rng: Generator) -> Iterator[Mapping[str, Signs]]:
    """The directions in which the floating inputs are moved in each round, by name; the others are moved up."""
    names = [name for name, value in plain.items() if isinstance(value, np.ndarray) and value.dtype.kind in "fc"]
    for combination in product((1, -1), repeat=min(len(names), TOGETHER)):
        yield {name: partial(np.full, fill_value=sign) for name, sign in zip(names, combination, strict=False)}
    for _ in range(ROUNDS):
        yield {name: partial(rng.choice, [-1, 1]) for name in plain}


def _step(plain: Any, given: Any, results: list[Dtype], signs: Signs) -> Any:
    """K half-ulps of an argument as the reference takes it, in its own type, or the results' if finer; None if it is
    not moved."""
    if isinstance(plain, list):
        return [_step(one, its, results, signs) for one, its in zip(plain, given, strict=True)]
    if not isinstance(plain, np.ndarray) or plain.dtype.kind not in "fc" or not is_inexact(given.dtype):
        return None
    dtype = max([given.dtype, *results], key=lambda one: format_of(one).precision)
    steps = K / 2 * signs(plain.shape)
    with np.errstate(all="ignore"):
        if plain.dtype.kind == "c":
            return steps * (ulp(plain.real, dtype) + 1j * ulp(plain.imag, dtype))
        return np.where(np.isfinite(plain) & (plain != 0), steps * ulp(plain, dtype), 0)


def _moved(plain: Any, step: Any, part: float) -> Any:
    """An argument moved by a part of a step."""
    if isinstance(plain, list):
        return [_moved(one, its, part) for one, its in zip(plain, step, strict=True)]
    with np.errstate(all="ignore"):
        return plain if step is None else plain + part * step


def _jump(values: NDArray[Any], halfway: NDArray[Any], there: NDArray[Any]) -> NDArray[Any]:
    """By how much a result does not go on as it began: 0 where it is smooth, infinite where it changes its kind."""
    with np.errstate(all="ignore"):
        if values.dtype.kind not in "fc":
            same = (values == halfway.astype(values.dtype)) & (values == there.astype(values.dtype))
            return np.where(same, 0.0, np.inf)
        jump = np.abs((there - halfway) - (halfway - values))
        finite = np.isfinite([values, halfway, there])
    return np.where(finite.all(0), jump, np.where(finite.any(0), np.inf, 0.0))


def _restrict(one: Expected, jump: NDArray[Any]) -> Expected:
    lost = ~np.isfinite(jump)
    if lost.any():
        one = replace(one, specified=~lost if one.specified is None else one.specified & ~lost)
    return one if one.unit is None else replace(one, unit=one.unit + np.where(lost, 0, jump))

"""Random draws: range, moments and distribution, and independence from element to element and from call to call.

That one generator state gives one result, and that it advances, is the check `draws`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import norm

from diopi_proto.dtypes import is_floating
from diopi_proto.types import Dtype
from diopi_test.cases.domains import integer_range
from diopi_test.cases.formats import format_of, ulp
from diopi_test.oracle.budget import K
from diopi_test.oracle.validators import Answer, Array, Problems, validates
from diopi_test.oracle.validators.chance import (
    FEWEST,
    coins,
    counts,
    independent,
    law,
    of_others,
    permutation,
    standard_normal,
    whole_numbers,
)
from diopi_test.oracle.validators.kinds import all_where, distinct_positions, equal
from lib_rt.dtypes import to_numpy


def _name(answer: Answer) -> str:
    return next(iter(answer.results))


def _dtype(answer: Answer) -> Dtype:
    return answer.dtypes[_name(answer)]


def _is_flushed(result: Array, wanted: Array, dtype: Dtype) -> Array:
    """Return where a zero stands for a subnormal number."""
    flushed: Array = (result == 0) & (np.abs(wanted) < format_of(dtype).tiny)
    return flushed


# Bernoulli trials.


def _truths(name: str, values: Array) -> list[str]:
    return list(all_where(name, (values == 0) | (values == 1), values, "0 or 1"))


@validates("diopiBernoulli", "diopiBernoulliInp", "diopiBernoulliScalar")
def bernoulli(answer: Answer) -> Problems:
    given = answer.arguments
    (p,) = (given[name] for name in ("input", "inout", "p") if name in given)
    others = of_others(answer, lambda other: other.result)
    yield from _truths("the result", answer.result) or coins("the result", answer.result, np.asarray(p), others)


@validates("diopiDropout", "diopiDropoutInp")
def dropout(answer: Answer) -> Problems:
    """The mask, or where it is left out the elements kept, are coins, and the result follows from them."""
    p, input, (name, out) = answer.arguments["p"], answer.arguments["input"], next(iter(answer.results.items()))
    mask = _kept(answer)
    problems = _truths("mask", mask)
    if not problems:
        wanted = np.where(mask, input / (1 - p), 0)
        right = np.abs(out - wanted) <= np.where(mask, K * ulp(wanted, _dtype(answer)), 0)
        right |= _is_flushed(out, wanted, _dtype(answer))
        right |= (out == wanted) | (np.isnan(out) & (np.isnan(wanted) | ~np.isfinite(input)))  # 0 · ∞, or left out
        problems = list(all_where(name, right, out, "input · mask / (1 - p)"))
    yield from problems or coins("mask", mask, np.asarray(1 - p), of_others(answer, _kept))


def _kept(answer: Answer) -> Array:
    """The mask; where it is left out, 1 for the elements of the result that are not zero."""
    kept = answer.results["mask"] if "mask" in answer.results else answer.results[_name(answer)] != 0
    return kept.astype(np.int64)


# Numbers in a range.


@validates("diopiRandomInp")
def random(answer: Answer) -> Problems:
    drawn, low, last = answer.result, answer.arguments["from_"], answer.arguments["to"]
    last = _last_number(_dtype(answer)) if last is None else last - 1
    whole = (drawn >= low) & (drawn <= last) & (np.mod(drawn, 1) == 0 if drawn.dtype.kind == "f" else True)
    problems = list(all_where("the result", whole, drawn, f"whole numbers from {low} to {last}"))
    yield from problems or whole_numbers("the result", drawn.astype(np.int64), low, last - low + 1)
    yield from independent("the result", drawn, of_others(answer, lambda other: other.result))


def _last_number(dtype: Dtype) -> int:
    """The largest number drawn where no end is given."""
    return int(2 ** format_of(dtype).precision) if is_floating(dtype) else integer_range(dtype)[1]


@validates("diopiUniformInp")
def uniform(answer: Answer) -> Problems:
    """In [from, to), both rounded to the element type; rounding may move a number by an ulp of the larger of them."""
    drawn, form = answer.result, to_numpy(_dtype(answer)).type
    low, high = float(form(answer.arguments["from_"])), float(form(answer.arguments["to"]))
    inside = (drawn >= low) & (drawn < high)
    problems = list(all_where("the result", inside, drawn, f"numbers of [{low}, {high})"))
    slack = format_of(_dtype(answer)).epsilon * max(abs(low), abs(high))
    places, room = (drawn - low) / (high - low), slack / (high - low)
    yield from problems or law("the result", np.maximum(places - room, 0), np.minimum(places + room, 1))
    yield from independent("the result", drawn, of_others(answer, lambda other: other.result))


# The normal distribution.


@validates("diopiNormal", "diopiNormalInp", "diopiNormalTensorScalar", "diopiNormalScalarTensor", "diopiNormalTensor")
def normal(answer: Answer) -> Problems:
    drawn = answer.result
    mean = np.broadcast_to(answer.arguments["mean"], drawn.shape)
    std = np.broadcast_to(answer.arguments["std"], drawn.shape)
    free = _is_random(mean, std)
    certain = equal(drawn, mean) | _is_flushed(drawn, mean, _dtype(answer)) | np.isinf(std)
    right = np.where(free, np.isfinite(drawn), certain)
    wanted = "finite numbers, and the mean where std is 0 or the mean is not finite"
    problems = list(all_where("the result", right, drawn, wanted))
    if not problems:
        z = _deviations(drawn, mean, std)
        slack = format_of(_dtype(answer)).epsilon * (np.abs(mean[free]) / std[free] + np.abs(z) + 1)
        problems = list(standard_normal("the result", z, slack))
    others = of_others(answer, lambda other: norm.cdf(_deviations(other.result, mean, std)))
    yield from problems or independent("the result", norm.cdf(_deviations(drawn, mean, std)), others)


def _is_random(mean: Array, std: Array) -> Array:
    """Return where the distribution has more than one value, and finite ones."""
    result: Array = (std > 0) & np.isfinite(mean) & np.isfinite(std)
    return result


def _deviations(drawn: Array, mean: Array, std: Array) -> Array:
    """How many standard deviations each element is above its mean, where there is a deviation."""
    free = _is_random(mean, std)
    result: Array = (drawn[free] - mean[free]) / std[free]
    return result


# Positions.


@validates("diopiRandperm")
def randperm(answer: Answer) -> Problems:
    drawn = answer.result
    problems = list(all_where("out", np.isfinite(drawn), drawn, "positions"))
    problems = problems or list(distinct_positions("out", drawn, drawn.size, 0))
    problems = problems or list(all_where("out", np.isin(drawn, np.arange(drawn.size)), drawn, "whole numbers"))
    yield from problems or permutation("out", drawn)
    yield from independent("out", drawn, of_others(answer, lambda other: other.result))


@validates("diopiMultinomial")
def multinomial(answer: Answer) -> Problems:
    weights = np.atleast_2d(answer.arguments["input"])
    rows = np.atleast_2d(answer.result)
    inside = (rows >= 0) & (rows < weights.shape[1])
    problems = list(all_where("out", inside, rows, f"positions from 0 to {weights.shape[1] - 1}"))
    replacement = answer.arguments["replacement"]
    yield from problems or (_with_replacement(weights, rows) if replacement else _without_replacement(weights, rows))
    means = weights @ np.arange(weights.shape[1]) / weights.sum(1)
    independent_part = slice(None if replacement else 1)  # what was drawn is not drawn again

    def deviations(of: Answer) -> Array:
        result: Array = np.atleast_2d(of.result)[:, independent_part] - means[:, np.newaxis]
        return result

    yield from independent("out", deviations(answer), of_others(answer, deviations))


def _with_replacement(weights: Array, rows: Array) -> Problems:
    """Every draw of a row is one of its categories in proportion to the weights."""
    for row, drawn in _alike(weights, rows):
        hits = np.bincount(drawn.reshape(-1), minlength=row.size)
        yield from counts("out: a category is drawn", hits, drawn.size, row / row.sum())


def _without_replacement(weights: Array, rows: Array) -> Problems:
    """No category occurs twice in a row, those of weight 0 come last, and frequencies are those without replacement.

    The first of a row is the first that was drawn (torch.multinomial).
    """
    yield from distinct_positions("out", rows, weights.shape[1], 1)
    ranked = np.take_along_axis(weights, rows, 1) > 0
    left = np.minimum((weights > 0).sum(1), rows.shape[1])
    right = np.broadcast_to((ranked.sum(1) == left)[:, np.newaxis], rows.shape)
    yield from all_where("out", right, rows, "of weight above 0 while one is left")
    order = np.argsort(weights, 1)  # rows with the same weights in another order are drawn from alike
    for row, drawn in _alike(np.take_along_axis(weights, order, 1), np.take_along_axis(np.argsort(order, 1), rows, 1)):
        first = np.bincount(drawn[:, :1].reshape(-1), minlength=row.size)
        yield from counts("out: a category is drawn first", first, len(drawn), row / row.sum())
        if (row > 0).all() and row.size ** drawn.shape[1] <= FEWEST:
            hits = np.bincount(drawn.reshape(-1), minlength=row.size)
            yield from counts("out: a category is drawn", hits, len(drawn), np.array(_inclusion(row, drawn.shape[1])))


def _inclusion(weights: Array, draws: int) -> Array:
    """Probability of each category to be among that many draws without replacement."""
    included = np.zeros(weights.size)
    for first in np.flatnonzero(weights) if draws else ():
        rest = np.where(np.arange(weights.size) == first, 0, weights)
        later = _inclusion(rest, draws - 1)
        later[first] = 1
        included += weights[first] / weights.sum() * later
    return included


def _alike(weights: Array, rows: Array) -> Iterator[tuple[Array, Array]]:
    """Each distinct row of weights, and what was drawn from those that are equal to it."""
    distinct, groups = np.unique(weights, axis=0, return_inverse=True)
    return ((row, rows[groups.reshape(-1) == number]) for number, row in enumerate(distinct))

"""Validators of random numbers: range, moments and distribution, and independence between elements and between calls.

The module `statistics` contains the tests and describes their probability of a false alarm. *Redraws* are further calls
with the same arguments that must draw different numbers. The check `draws` of the suite tests separately that equal
generator states give equal results, and that the state advances.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import special

from diopi_proto.dtypes import is_floating
from diopi_proto.types import Dtype
from diopi_test.oracle.budget import K
from diopi_test.oracle.validators import Array, CompletedCall, Problems, validates
from diopi_test.oracle.validators.properties import check_distinct_positions, check_elements, is_equal
from diopi_test.oracle.validators.statistics import (
    MIN_ELEMENTS,
    check_coins,
    check_counts,
    check_distribution,
    check_independence,
    check_permutation,
    check_repeated_positions,
    check_standard_normal,
    check_uniform_integers,
    pool_draws,
    score_redraws,
)
from lib_rt.dtypes import integer_range, to_numpy
from lib_rt.formats import format_of, ulp

ALL_RESULTS = "the results of all calls"
"""The name in messages of all numbers that a call and its redraws draw together."""


def _result_name(call: CompletedCall) -> str:
    """Return the name of the first result."""
    return next(iter(call.results))


def _result_dtype(call: CompletedCall) -> Dtype:
    """Return the element type of the first result."""
    return call.dtypes[_result_name(call)]


def _is_flushed(result: Array, expected: Array, dtype: Dtype) -> Array:
    """Return a mask of the elements that are 0 although a subnormal number is expected, which vendors may flush to 0.

    Elements for which 0 is expected are included.
    """
    flushed: Array = (result == 0) & (np.abs(expected) < format_of(dtype).tiny)
    return flushed


# Bernoulli trials.


def _check_zeros_and_ones(name: str, values: Array) -> list[str]:
    """Return a list with a description of the elements other than 0 and 1; an empty list if there are none."""
    return list(check_elements(name, (values == 0) | (values == 1), values, "0 or 1"))


@validates("diopiBernoulli", "diopiBernoulliInp", "diopiBernoulliScalar")
def bernoulli(call: CompletedCall) -> Problems:
    """Check that the elements are 0 or 1, are 1 with probability p, and are independent."""
    arguments = call.arguments
    (p,) = (arguments[name] for name in ("input", "inout", "p") if name in arguments)
    redraws = score_redraws(call, lambda redraw: redraw.result)
    yield from _check_zeros_and_ones("the result", call.result) or check_coins(
        "the result", call.result, np.asarray(p), redraws
    )


@validates("diopiDropout", "diopiDropoutInp")
def dropout(call: CompletedCall) -> Problems:
    """Check that elements of the mask are independent and 1 with probability 1 − p, and that it determines the result.

    The result must be input · mask / (1 − p). If the call has no result for the mask, an element of the mask is 1 where
    the result is not 0.
    """
    p, input, (name, out) = call.arguments["p"], call.arguments["input"], next(iter(call.results.items()))
    mask = _dropout_mask(call)
    problems = _check_zeros_and_ones("mask", mask)
    if not problems:
        expected = np.where(mask, input / (1 - p), 0)
        change = call.errors.quotient_error(np.asarray(1 - p), expected)
        is_valid = np.abs(out - expected) <= np.where(mask, K * (ulp(expected, _result_dtype(call)) + change), 0)
        is_valid |= _is_flushed(out, expected, _result_dtype(call))
        is_valid |= (out == expected) | (
            np.isnan(out) & (np.isnan(expected) | ~np.isfinite(input))
        )  # 0 · ∞, or dropped
        problems = list(check_elements(name, is_valid, out, "input · mask / (1 - p)"))
    yield from problems or check_coins("mask", mask, np.asarray(1 - p), score_redraws(call, _dropout_mask))


def _dropout_mask(call: CompletedCall) -> Array:
    """Return the dropout mask as integers; if the call has no result for it, 1 where the result is not 0."""
    mask = call.results["mask"] if "mask" in call.results else call.results[_result_name(call)] != 0
    return mask.astype(np.int64)


# Numbers in a range.


@validates("diopiRandomInp")
def random(call: CompletedCall) -> Problems:
    """Check that the elements are independent uniform integers in [from, to).

    If `to` is None, the range ends with the largest integer that is drawn for the element type.
    """
    sample, low, last = call.result, call.arguments["from_"], call.arguments["to"]
    last = _largest_drawn_integer(_result_dtype(call)) if last is None else last - 1
    is_valid = (sample >= low) & (sample <= last) & (np.mod(sample, 1) == 0 if sample.dtype.kind == "f" else True)
    problems = list(check_elements("the result", is_valid, sample, f"integers from {low} to {last}"))
    yield from problems or check_uniform_integers("the result", sample.astype(np.int64), low, last - low + 1)
    if call.redraws and not problems:
        pooled = pool_draws(call, lambda draw: draw.result.astype(np.int64))
        yield from check_uniform_integers(ALL_RESULTS, pooled, low, last - low + 1)
    yield from check_independence("the result", sample, score_redraws(call, lambda redraw: redraw.result))


def _largest_drawn_integer(dtype: Dtype) -> int:
    """Return the largest integer that is drawn if the call states no upper bound.

    It is the largest integer of an integer type, and 2ᵖ for a floating-point type with p significant bits.
    """
    return int(2 ** format_of(dtype).precision) if is_floating(dtype) else integer_range(dtype)[1]


@validates("diopiUniformInp")
def uniform(call: CompletedCall) -> Problems:
    """Check that the elements are independent uniform numbers in [from, to).

    Rounding may have moved a number by eps times the larger magnitude of the bounds.
    """
    sample, form = call.result, to_numpy(_result_dtype(call)).type
    low, high = float(form(call.arguments["from_"])), float(form(call.arguments["to"]))
    inside = (sample >= low) & (sample < high)
    problems = list(check_elements("the result", inside, sample, f"numbers in [{low}, {high})"))
    slack = format_of(_result_dtype(call)).epsilon * max(abs(low), abs(high))
    samples = {} if problems else {"the result": sample}
    if call.redraws and not problems:
        samples[ALL_RESULTS] = pool_draws(call, lambda draw: draw.result)
    yield from problems
    for name, numbers in samples.items():
        places, room = (numbers - low) / (high - low), slack / (high - low)
        yield from check_distribution(name, np.clip(places - room, 0, 1), np.clip(places + room, 0, 1))
    yield from check_independence("the result", sample, score_redraws(call, lambda redraw: redraw.result))


# The normal distribution.


@validates("diopiNormal", "diopiNormalInp", "diopiNormalTensorScalar", "diopiNormalScalarTensor", "diopiNormalTensor")
def normal(call: CompletedCall) -> Problems:
    """Check that the elements are independent normal numbers, each with its own mean and standard deviation.

    An element whose standard deviation is 0, or whose mean is not finite, must be the mean. An element with an infinite
    standard deviation may have any value.
    """
    sample = call.result
    mean = np.broadcast_to(call.arguments["mean"], sample.shape)
    std = np.broadcast_to(call.arguments["std"], sample.shape)
    is_random = _is_random(mean, std)
    certain = is_equal(sample, mean) | _is_flushed(sample, mean, _result_dtype(call)) | np.isinf(std)
    is_valid = np.where(is_random, np.isfinite(sample), certain)
    expected = "finite numbers, and the mean where std is 0 or the mean is not finite"
    problems = list(check_elements("the result", is_valid, sample, expected))
    if not problems:
        samples = {"the result": _standard_scores(sample, mean, std)}
        if call.redraws:
            samples[ALL_RESULTS] = pool_draws(call, lambda draw: _standard_scores(draw.result, mean, std))
        relative_mean, epsilon = np.abs(mean[is_random]) / std[is_random], format_of(_result_dtype(call)).epsilon
        for name, z in samples.items():
            problems += check_standard_normal(name, z, epsilon * (relative_mean + np.abs(z) + 1))
    redraws = score_redraws(call, lambda redraw: special.ndtr(_standard_scores(redraw.result, mean, std)))
    yield from problems or check_independence("the result", special.ndtr(_standard_scores(sample, mean, std)), redraws)


def _is_random(mean: Array, std: Array) -> Array:
    """Return a mask of the elements whose distribution has a positive standard deviation and finite parameters."""
    result: Array = (std > 0) & np.isfinite(mean) & np.isfinite(std)
    return result


def _standard_scores(sample: Array, mean: Array, std: Array) -> Array:
    """Return (sample − mean) / std of each element for which `_is_random` is true, as a vector."""
    is_random = _is_random(mean, std)
    result: Array = (sample[is_random] - mean[is_random]) / std[is_random]
    return result


# Positions.


@validates("diopiRandperm")
def randperm(call: CompletedCall) -> Problems:
    """Check that the result is a random permutation of 0 … n − 1, independent of the permutations of the redraws."""
    sample = call.result
    problems = list(check_elements("out", np.isfinite(sample), sample, "positions"))
    problems = problems or list(check_distinct_positions("out", sample, sample.size, 0))
    problems = problems or list(check_elements("out", np.isin(sample, np.arange(sample.size)), sample, "integers"))
    yield from problems or check_permutation("out", sample)
    yield from problems or check_repeated_positions("out", pool_draws(call, lambda draw: draw.result))
    yield from check_independence("out", sample, score_redraws(call, lambda redraw: redraw.result))


@validates("diopiMultinomial")
def multinomial(call: CompletedCall) -> Problems:
    """Check that categories are drawn as often as their weights predict, and independently between draws and calls."""
    weights = np.atleast_2d(call.arguments["input"])
    rows = np.atleast_2d(call.result)
    inside = (rows >= 0) & (rows < weights.shape[1])
    problems = list(check_elements("out", inside, rows, f"positions from 0 to {weights.shape[1] - 1}"))
    replacement = call.arguments["replacement"]
    check_rows = _check_with_replacement if replacement else _check_without_replacement
    yield from problems or check_rows(weights, rows)
    if call.redraws and not problems:
        pooled = pool_draws(call, lambda draw: np.atleast_2d(draw.result))
        yield from check_rows(np.concatenate([weights] * len(pooled)), np.concatenate(pooled))
    means = weights @ np.arange(weights.shape[1]) / weights.sum(1)
    independent_part = slice(None if replacement else 1)  # without replacement, later draws depend on the first

    def deviations(sampled: CompletedCall) -> Array:
        """Return the difference of each independent draw from the mean category of its row."""
        result: Array = np.atleast_2d(sampled.result)[:, independent_part] - means[:, np.newaxis]
        return result

    yield from check_independence("out", deviations(call), score_redraws(call, deviations))


def _check_with_replacement(weights: Array, rows: Array) -> Problems:
    """Check draws with replacement: each category is drawn in proportion to its weight.

    Args:
        weights: the weight of each category, [rows, categories].
        rows: the drawn categories, [rows, draws].

    Yields:
        A description of each deviation.
    """
    for row, sample in _group_equal_rows(weights, rows):
        hits = np.bincount(sample.reshape(-1), minlength=row.size)
        yield from check_counts("out: a category is drawn", hits, sample.size, row / row.sum())


def _check_without_replacement(weights: Array, rows: Array) -> Problems:
    """Check draws without replacement: categories are distinct and have the expected frequencies.

    Categories of weight 0 are drawn only if no other categories remain. The first category of a row is the first that
    was drawn, as in torch.multinomial.

    Args:
        weights: the weight of each category, [rows, categories].
        rows: the drawn categories, [rows, draws].

    Yields:
        A description of each deviation.
    """
    yield from check_distinct_positions("out", rows, weights.shape[1], 1)
    ranked = np.take_along_axis(weights, rows, 1) > 0
    left = np.minimum((weights > 0).sum(1), rows.shape[1])
    is_valid = np.broadcast_to((ranked.sum(1) == left)[:, np.newaxis], rows.shape)
    yield from check_elements("out", is_valid, rows, "categories of weight above 0 as long as such categories remain")
    order = np.argsort(weights, 1)  # rows with the same weights in another order have the same distribution
    for row, sample in _group_equal_rows(
        np.take_along_axis(weights, order, 1), np.take_along_axis(np.argsort(order, 1), rows, 1)
    ):
        first = np.bincount(sample[:, :1].reshape(-1), minlength=row.size)
        yield from check_counts("out: a category is drawn first", first, len(sample), row / row.sum())
        if (row > 0).all() and row.size ** sample.shape[1] <= MIN_ELEMENTS:
            hits = np.bincount(sample.reshape(-1), minlength=row.size)
            yield from check_counts(
                "out: a category is drawn", hits, len(sample), np.array(_inclusion_probabilities(row, sample.shape[1]))
            )


def _inclusion_probabilities(weights: Array, draws: int) -> Array:
    """Return the probability of each category to be among `draws` draws without replacement."""
    included = np.zeros(weights.size)
    for first in np.flatnonzero(weights) if draws else ():
        remaining_weights = np.where(np.arange(weights.size) == first, 0, weights)
        later = _inclusion_probabilities(remaining_weights, draws - 1)
        later[first] = 1
        included += weights[first] / weights.sum() * later
    return included


def _group_equal_rows(weights: Array, rows: Array) -> Iterator[tuple[Array, Array]]:
    """Iterate over the distinct rows of `weights`, each with the draws in `rows` of all rows with these weights."""
    distinct, groups = np.unique(weights, axis=0, return_inverse=True)
    return ((row, rows[groups.reshape(-1) == number]) for number, row in enumerate(distinct))

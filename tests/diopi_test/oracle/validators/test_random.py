"""Test the validators of random draws: a correct vendor passes, and each way of drawing wrong numbers is rejected."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from drawing_vendors import (
    CORRECT,
    Array,
    Function,
    assert_fails_with,
    bernoulli,
    bernoulli_scalar,
    dropout,
    multinomial,
    normal,
    outcome,
    random,
    randperm,
    rng,
    uniform,
)
from numpy.random import Generator
from sampling import draw_sample, sampled

from diopi_proto.interface import prototypes
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import Verdict


@pytest.mark.parametrize(("name", "function"), CORRECT.items(), ids=list(CORRECT))
def test_validator_accepts_correct_random_numbers(name: str, function: Function) -> None:
    """Only one case is tested, because the runs on `jax_cpu` and `torch_cpu` validate all of them."""
    (case,) = draw_sample(select_cases(name, "smoke"), 1)
    result = outcome(name, function, case.label)
    assert result.verdict is Verdict.passed, result.message


def test_every_random_function_has_a_test() -> None:
    drawing_ones = {p.base for p in prototypes().values() if p.family == "random"}
    assert drawing_ones - set(CORRECT) == {"diopiDropoutInp", "diopiBernoulliInp"}  # other names for the same arguments


def wrong_dropout(change: Callable[[Array, Array, float, Generator], Any]) -> Function:
    """Return an implementation of dropout whose output and mask a function changes."""

    def modified_dropout(input: Array, p: float, train: bool, generator: Array, *, out: Any) -> Any:
        mask = dropout(input, p, train, generator, out=out)[1]
        return change(input, mask, p, rng(generator + np.uint64(7)))

    return modified_dropout


def apply_mask(input: Array, mask: Any, p: float) -> Any:
    """Return the output of dropout for this mask."""
    return np.where(mask, input / (1 - p), 0)


Fault = tuple[str, str, str, Function]


def faults() -> Iterator[Fault]:
    """Yield function, fault, expected words of the message and faulty implementation."""
    yield (
        "diopiDropout",
        "mask ignored",
        "input · mask",
        wrong_dropout(lambda i, m, p, r: (apply_mask(i, r.permuted(m), p), m)),
    )
    yield "diopiDropout", "unscaled", "input · mask", wrong_dropout(lambda i, m, p, r: (i * m, m))
    yield "diopiDropout", "scaled by p", "input · mask", wrong_dropout(lambda i, m, p, r: (i * m / p, m))
    yield "diopiDropout", "mask inverted", "input · mask", wrong_dropout(lambda i, m, p, r: (apply_mask(i, m, p), ~m))
    yield "diopiDropout", "p inverted", "ones", wrong_dropout(lambda i, m, p, r: (apply_mask(i, ~m, p), ~m))
    yield "diopiDropout", "all kept", "ones", wrong_dropout(lambda i, m, p, r: (i / (1 - p), np.ones_like(m)))
    yield "diopiDropout", "p ignored", "ones", dropout_of_half
    yield "diopiRandomInp", "to included", "integers from 3 to 11", random_to_included
    yield "diopiRandomInp", "last left out", "occurrences of a number", random_last_left_out
    yield "diopiRandomInp", "from ignored", "integers from 3 to 11", random_from_zero
    yield "diopiRandomInp", "fractions", "integers", random_fractions
    yield "diopiRandomInp", "constant", "occurrences of a number", random_constant
    yield "diopiUniformInp", "end too low", "upper end", uniform_end_too_low
    yield "diopiUniformInp", "end too high", "numbers in [-3.0, 0.5)", uniform_end_too_high
    yield "diopiUniformInp", "end itself", "numbers in [-3.0, 0.5)", uniform_end_itself
    yield "diopiUniformInp", "unit", "numbers in", uniform_unit
    yield "diopiUniformInp", "squared", "distribution", uniform_squared
    yield "diopiUniformInp", "rows alike", "elements of the same call", uniform_rows_alike
    yield "diopiUniformInp", "half of it repeated", "elements of the same call", uniform_repeated
    yield "diopiBernoulli", "p ignored", "ones", bernoulli_of_half
    yield "diopiBernoulli", "p in reverse", "ones", bernoulli_reversed
    yield "diopiBernoulli", "rounded", "ones", bernoulli_rounded
    yield "diopiBernoulliScalar", "p inverted", "ones", bernoulli_inverted
    yield "diopiBernoulliScalar", "not 0 or 1", "0 or 1", bernoulli_other_values
    yield "diopiNormal", "std ignored", "standard deviation", normal_std_ignored
    yield "diopiNormal", "variance for std", "standard deviation", normal_variance
    yield "diopiNormal", "mean ignored", "off its mean", normal_mean_ignored
    yield "diopiNormal", "uniform", "end of the distribution is not reached", normal_uniform
    yield "diopiNormal", "cut off", "end of the distribution", normal_cut_off
    yield "diopiNormal", "NaN", "finite numbers", normal_nan
    yield "diopiNormalTensorScalar", "one mean", "off its mean", normal_mean_of_first
    yield "diopiNormalTensor", "one std", "finite numbers, and the mean where std is 0", normal_std_of_last
    yield "diopiRandperm", "identity", "at the position of their value", permutation_identity
    yield "diopiRandperm", "reversed", "correlated with the order", permutation_reversed
    yield "diopiRandperm", "turned", "correlated with the order", permutation_turned
    yield "diopiRandperm", "repeated number", "occurs more than once", permutation_repeated
    yield "diopiRandperm", "from 1", "position from 0", permutation_from_one
    yield "diopiMultinomial", "weights ignored", "a category is drawn", multinomial_uniform
    yield "diopiMultinomial", "most likely", "a category is drawn", multinomial_most_likely


def dropout_of_half(input: Array, p: float, train: bool, generator: Array, *, out: Any) -> Any:
    """Drop elements with the probability 0.5 instead of `p`."""
    mask = dropout(input, 0.5, train, generator, out=out)[1]
    return apply_mask(input, mask, p), mask


def random_to_included(from_: int, to: int, generator: Array, *, out: Any) -> Any:
    """Draw integers up to and including the end."""
    return random(from_, to + 1, generator, out=out)


def random_last_left_out(from_: int, to: int, generator: Array, *, out: Any) -> Any:
    """Never draw the last integer of the range."""
    return random(from_, to - 1, generator, out=out)


def random_from_zero(from_: int, to: int, generator: Array, *, out: Any) -> Any:
    """Draw integers from 0 instead of the start."""
    return random(0, to, generator, out=out)


def random_fractions(from_: int, to: int, generator: Array, *, out: Any) -> Any:
    """Draw numbers that are not integers."""
    return uniform(from_, to - 1, generator, out=out)


def random_constant(from_: int, to: int, generator: Array, *, out: Any) -> Any:
    """Return the start of the range for every element."""
    return np.full(out.shape, from_)


def uniform_end_too_low(from_: float, to: float, generator: Array, *, out: Any) -> Any:
    """Draw from a range that ends too early."""
    return uniform(from_, to - 0.04, generator, out=out)


def uniform_end_too_high(from_: float, to: float, generator: Array, *, out: Any) -> Any:
    """Draw from a range that ends too late."""
    return uniform(from_, to + 0.04, generator, out=out)


def uniform_end_itself(from_: float, to: float, generator: Array, *, out: Any) -> Any:
    """Return samples in which one element in some thousands is the excluded bound."""
    sample = uniform(from_, to, generator, out=out)
    sample.flat[np.argmax(sample)] = to
    return sample


def uniform_unit(from_: float, to: float, generator: Array, *, out: Any) -> Any:
    """Draw from [0, 1) instead of the range."""
    return uniform(0, 1, generator, out=out)


def uniform_squared(from_: float, to: float, generator: Array, *, out: Any) -> Any:
    """Draw from a distribution with more small numbers."""
    return from_ + (to - from_) * rng(generator).random(out.shape) ** 1.2


def uniform_rows_alike(from_: float, to: float, generator: Array, *, out: Any) -> Any:
    """Return equal rows."""
    return np.broadcast_to(rng(generator).uniform(from_, to, out.shape[1:]), out.shape)


def uniform_repeated(from_: float, to: float, generator: Array, *, out: Any) -> Any:
    """Return the first half of the numbers again in the second half."""
    count = int(np.prod(out.shape))
    half = rng(generator).uniform(from_, to, (count + 1) // 2)
    return np.resize(half, out.shape)


def bernoulli_of_half(input: Array, generator: Array) -> Any:
    """Use the probability 0.5 unless the probability is 0 or 1."""
    return bernoulli(np.where((input == 0) | (input == 1), input, 0.5), generator)


def bernoulli_reversed(input: Array, generator: Array) -> Any:
    """Use the probabilities of the elements in reverse order."""
    return bernoulli(np.flip(input), generator)


def bernoulli_rounded(input: Array, generator: Array) -> Any:
    """Return the more likely value of each element."""
    return np.asarray(input > 0.5)


def bernoulli_inverted(p: float, generator: Array, *, out: Any) -> Any:
    """Use the probability 1 − p."""
    return ~bernoulli_scalar(p, generator, out=out)


def bernoulli_other_values(p: float, generator: Array, *, out: Any) -> Any:
    """Return values other than 0 and 1."""
    return bernoulli_scalar(p, generator, out=out) / (1 - p)


def normal_std_ignored(mean: Any, std: Any, generator: Array, *, out: Any) -> Any:
    """Use the standard deviation 1."""
    return normal(mean, 1, generator, out=out)


def normal_variance(mean: Any, std: Any, generator: Array, *, out: Any) -> Any:
    """Use the variance as standard deviation."""
    return normal(mean, std**2, generator, out=out)


def normal_mean_ignored(mean: Any, std: Any, generator: Array, *, out: Any) -> Any:
    """Use the mean 0."""
    return normal(0, std, generator, out=out)


def normal_uniform(mean: Any, std: Any, generator: Array, *, out: Any) -> Any:
    """Draw from a uniform distribution with the correct mean and standard deviation."""
    return mean + std * uniform(-np.sqrt(3), np.sqrt(3), generator, out=out)


def normal_cut_off(mean: Any, std: Any, generator: Array, *, out: Any) -> Any:
    """Clip the numbers above 1.5 standard deviations."""
    return np.minimum(normal(mean, std, generator, out=out), mean + 1.5 * std)


def normal_nan(mean: Any, std: Any, generator: Array, *, out: Any) -> Any:
    """Return NaN in the last element."""
    sample = normal(mean, std, generator, out=out)
    sample.flat[-1] = np.nan
    return sample


def normal_mean_of_first(mean: Any, std: Any, generator: Array, *, out: Any) -> Any:
    """Use the mean of the first element for all elements."""
    return normal(mean.flat[0], std, generator, out=out)


def normal_std_of_last(mean: Any, std: Any, generator: Array, *, out: Any) -> Any:
    """Use the largest standard deviation for all elements."""
    return normal(mean, std.max(), generator, out=out)


def permutation_identity(n: int, generator: Array) -> Any:
    """Return the numbers in order."""
    return np.arange(n)


def permutation_reversed(n: int, generator: Array) -> Any:
    """Return the numbers in reverse order."""
    return np.arange(n)[::-1]


def permutation_turned(n: int, generator: Array) -> Any:
    """Return a rotation of the numbers."""
    return np.roll(np.arange(n), rng(generator).integers(n // 3))


def permutation_repeated(n: int, generator: Array) -> Any:
    """Return numbers of which some occur several times."""
    return rng(generator).integers(0, n, n)


def permutation_from_one(n: int, generator: Array) -> Any:
    """Return a permutation of the numbers from 1."""
    return randperm(n, generator) + 1


def multinomial_uniform(input: Array, num_samples: int, replacement: bool, generator: Array) -> Any:
    """Ignore the probabilities."""
    return multinomial(np.ones_like(input), num_samples, replacement, generator)


def multinomial_the_other_way_round(input: Array, num_samples: int, replacement: bool, generator: Array) -> Any:
    """Apply Gumbel's method with the noise subtracted."""
    noise = rng(generator).gumbel(size=input.shape)
    return np.argsort(noise - np.log(input), -1)[..., :num_samples]


def multinomial_most_likely(input: Array, num_samples: int, replacement: bool, generator: Array) -> Any:
    """Return the most likely index for every sample."""
    return np.broadcast_to(np.argmax(input, -1, keepdims=True), (*input.shape[:-1], num_samples))


@pytest.mark.parametrize(("name", "fault", "words", "function"), list(faults()), ids=lambda value: str(value)[:25])
def test_validator_rejects_wrong_random_numbers(name: str, fault: str, words: str, function: Function) -> None:
    assert_fails_with(outcome(name, function), words)


def permutation_with_largest_last(n: int, generator: Array) -> Any:
    """Return a permutation that always ends with the largest number."""
    return np.append(randperm(n - 1, generator), n - 1)


def test_validator_rejects_a_bias_that_shows_only_in_several_calls() -> None:
    assert_fails_with(outcome("diopiRandperm", permutation_with_largest_last), "in all of 9 calls")

    def bernoulli_off_by_a_tenth(p: float, generator: Array, *, out: Any) -> Any:
        return rng(generator).random(out.shape) < 1.1 * p

    refused = outcome("diopiBernoulliScalar", bernoulli_off_by_a_tenth)
    assert_fails_with(refused, "of 9 calls: ones")
    assert "the result: ones" not in refused.message


def test_validator_rejects_wrong_numbers_of_a_later_call() -> None:
    calls: list[int] = []

    def bernoulli_wrong_later(p: float, generator: Array, *, out: Any) -> Any:
        calls.append(len(calls))
        return np.full(out.shape, 2.0) if len(calls) == 5 else rng(generator).random(out.shape) < p

    assert_fails_with(outcome("diopiBernoulliScalar", bernoulli_wrong_later), "call 5: ")


def replacement_ignored(input: Array, num_samples: int, replacement: bool, generator: Array) -> Any:
    """Draw with replacement although the call requests draws without replacement."""
    return multinomial(input, num_samples, True, generator)


def most_likely_indices(input: Array, num_samples: int, replacement: bool, generator: Array) -> Any:
    """Return the indices with the largest probabilities."""
    return np.argsort(-input, -1)[..., :num_samples]


SKIPPED_DRAWS: list[tuple[str, Function, str]] = [
    ("float32-put-aside", replacement_ignored, "occurs more than once"),
    ("float32-put-aside", most_likely_indices, "a category is drawn"),
    ("float32-put-aside", multinomial_uniform, "a category is drawn"),
    ("float32-put-aside", multinomial_the_other_way_round, "a category is drawn"),
    ("float32-zeros-put-aside", multinomial_uniform, "of weight above 0"),
    ("float32-zeros", multinomial_uniform, "a category is drawn"),
]
"""For each wrong way to draw categories: the label of a case, an implementation and words of the message."""


@pytest.mark.parametrize(("label", "function", "words"), sampled(SKIPPED_DRAWS, 1, slow=5))
def test_validator_rejects_skipped_draws(label: str, function: Function, words: str) -> None:
    assert_fails_with(outcome("diopiMultinomial", function, label), words)


def test_validator_accepts_draws_without_replacement_of_categories_with_weight_0() -> None:
    assert outcome("diopiMultinomial", multinomial, "float32-zeros-put-aside").verdict is Verdict.passed


def test_validator_rejects_integers_without_their_low_bits() -> None:
    def coarse(from_: int, to: int, generator: Array, *, out: Any) -> Any:
        return rng(generator).integers(from_ // 256, to // 256, out.shape) * 256

    assert_fails_with(outcome("diopiRandomInp", coarse, "int64-wide"), "odd numbers")


def test_dropout_without_mask_is_validated_by_its_result() -> None:
    assert outcome("diopiDropout", dropout, "float32-no-mask").verdict is Verdict.passed
    assert_fails_with(outcome("diopiDropout", dropout_of_half, "float32-no-mask"), "ones")


def test_channel_dropout_has_one_mask_element_per_channel() -> None:
    def element_by_element(input: Array, p: float, train: bool, generator: Array, *, out: Any) -> Any:
        mask: Any = rng(generator).random(input.shape) >= p
        return apply_mask(input, mask, p), mask[:, :, :1, :1]

    assert outcome("diopiDropout", dropout, "float32-channels").verdict is Verdict.passed
    assert_fails_with(outcome("diopiDropout", element_by_element, "float32-channels"), "input · mask")


def test_degenerate_distributions_have_exact_results() -> None:
    def always_drawing(input: Array, p: float, train: bool, generator: Array, *, out: Any) -> Any:
        return dropout(input, p, True, generator, out=out)

    assert_fails_with(outcome("diopiDropout", always_drawing, "float32-inference"), "values")
    assert_fails_with(outcome("diopiNormal", normal_std_ignored, "float32-point"), "values")
    assert_fails_with(outcome("diopiBernoulliScalar", bernoulli_inverted, "float32-p-1"), "values")

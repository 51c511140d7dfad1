"""Correct NumPy implementations of the random functions, for tests of the checks of random results.

The tests run a case on a vendor with one of these implementations, which must pass, or with a variant that has a
defect, which must fail. `generator` is the state of the random generator as an array of its seed and its offset. `out`
describes the result tensors.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator, Philox

from diopi_impl import Vendor
from diopi_impl.functional import Adapter, apply_directly
from diopi_impl.generators import pass_generator_state
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.run.run_case import run_case
from lib_rt.dtypes import to_numpy

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]

SAMPLE = "float32-sample"
"""The label of the case that draws many numbers, so that their distribution can be tested."""


def rng(state: Array) -> Generator:
    """Return a NumPy generator that the seed and the offset in `state` determine."""
    return Generator(Philox(key=state))


def dropout(input: Array, p: float, train: bool, generator: Array, *, out: Any) -> Any:
    """Set elements to 0 with probability `p` and scale the others; return the result and the mask of the others."""
    if not train:
        return input, None
    mask = rng(generator).random(out[1].shape if out[1] else input.shape) >= p
    return np.where(mask, input / (1 - p) if p < 1 else 0, 0), mask


def random(from_: int, to: int | None, generator: Array, *, out: Any) -> Any:
    """Return integers from `from_` to `to` - 1, or to the largest number of the element type without `to`."""
    last = np.iinfo(to_numpy(out.dtype)).max if to is None else to - 1
    return rng(generator).integers(from_, last, out.shape, endpoint=True)


def uniform(from_: float, to: float, generator: Array, *, out: Any) -> Any:
    """Return numbers from `from_` up to, but not including, `to`, even after rounding to the element type."""
    numbers = rng(generator).uniform(from_, to, out.shape).astype(to_numpy(out.dtype))
    return np.minimum(numbers, np.nextafter(numbers.dtype.type(to), numbers.dtype.type(from_)))


def bernoulli(input: Array, generator: Array) -> Any:
    """Return which elements are drawn, with the probabilities `input`."""
    return rng(generator).random(input.shape) < input


def bernoulli_scalar(p: float, generator: Array, *, out: Any) -> Any:
    """Return which elements are drawn, each with probability `p`."""
    return rng(generator).random(out.shape) < p


def normal(mean: Any, std: Any, generator: Array, *, out: Any) -> Any:
    """Return numbers of a normal distribution; `mean` and `std` are numbers or arrays."""
    return rng(generator).normal(mean, std, out.shape)


def randperm(n: int, generator: Array) -> Array:
    """Return the numbers 0 to n − 1 in random order."""
    return rng(generator).permutation(n)


def multinomial(input: Array, num_samples: int, replacement: bool, generator: Array) -> Array:
    """Return drawn indices for each row of `input`, whose elements are relative probabilities."""
    drawer = rng(generator)

    def draw_from(probabilities: Array) -> Any:
        weights = probabilities.astype(np.float64)
        return drawer.choice(len(weights), num_samples, replacement, weights / weights.sum())

    return np.apply_along_axis(draw_from, -1, input)


CORRECT: dict[str, Function] = {
    "diopiDropout": dropout,
    "diopiRandomInp": random,
    "diopiUniformInp": uniform,
    "diopiBernoulli": bernoulli,
    "diopiBernoulliScalar": bernoulli_scalar,
    "diopiNormal": normal,
    "diopiNormalInp": normal,
    "diopiNormalTensorScalar": normal,
    "diopiNormalScalarTensor": normal,
    "diopiNormalTensor": normal,
    "diopiRandperm": randperm,
    "diopiMultinomial": multinomial,
}
"""The correct implementations by function."""


def outcome(name: str, function: Function, label: str = SAMPLE, adapter: Adapter | None = None) -> Outcome:
    """Run one case of a function on a vendor that implements only this function.

    Args:
        name: the name of the function.
        function: the implementation.
        label: the label of the case.
        adapter: converts between the call and the implementation; by default it passes the state of the generator.

    Returns:
        The verdict of the case with the results of its checks.
    """
    vendor = Vendor("drawing", "1", HostRuntime().functions(), host_addressable=True)
    vendor.implements(name, adapt=adapter or pass_generator_state(apply_directly))(function)
    (case,) = (case for case in select_cases(name, "full") if case.label == label)
    with vendor.open_device() as device:
        return run_case(vendor, device, compute_baseline_case(lookup(name), case))


def assert_fails_with(outcome: Outcome, words: str) -> None:
    """Assert that the case failed with a message that contains `words`."""
    assert outcome.verdict is Verdict.failed
    assert words in outcome.message

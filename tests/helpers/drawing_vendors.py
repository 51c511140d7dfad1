"""Correct implementations of random functions, and the outcome of a case with other implementations."""

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


def rng(state: Array) -> Generator:
    """Return a generator that the seed and the offset determine."""
    return Generator(Philox(key=state))


def dropout(input: Array, p: float, train: bool, generator: Array, *, out: Any) -> Any:
    """Implement dropout with a mask of the kept elements."""
    if not train:
        return input, None
    mask = rng(generator).random(out[1].shape if out[1] else input.shape) >= p
    return np.where(mask, input / (1 - p) if p < 1 else 0, 0), mask


def random(from_: int, to: int | None, generator: Array, *, out: Any) -> Any:
    last = np.iinfo(to_numpy(out.dtype)).max if to is None else to - 1
    return rng(generator).integers(from_, last, out.shape, endpoint=True)


def uniform(from_: float, to: float, generator: Array, *, out: Any) -> Any:
    numbers = rng(generator).uniform(from_, to, out.shape).astype(to_numpy(out.dtype))
    return np.minimum(numbers, np.nextafter(numbers.dtype.type(to), numbers.dtype.type(from_)))


def bernoulli(input: Array, generator: Array) -> Any:
    return rng(generator).random(input.shape) < input


def bernoulli_scalar(p: float, generator: Array, *, out: Any) -> Any:
    return rng(generator).random(out.shape) < p


def normal(mean: Any, std: Any, generator: Array, *, out: Any) -> Any:
    return rng(generator).normal(mean, std, out.shape)


def randperm(n: int, generator: Array) -> Array:
    return rng(generator).permutation(n)


def multinomial(input: Array, num_samples: int, replacement: bool, generator: Array) -> Array:
    drawer = rng(generator)

    def row(probabilities: Array) -> Any:
        weights = probabilities.astype(np.float64)
        return drawer.choice(len(weights), num_samples, replacement, weights / weights.sum())

    return np.apply_along_axis(row, -1, input)


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


def outcome(name: str, function: Function, label: str = SAMPLE, adapter: Adapter | None = None) -> Outcome:
    """Return the outcome of a case on a vendor whose implementation is `function`."""
    vendor = Vendor("drawing", "1", HostRuntime().functions(), host_addressable=True)
    vendor.implements(name, adapt=adapter or pass_generator_state(apply_directly))(function)
    (case,) = (case for case in select_cases(name, "full") if case.label == label)
    with vendor.open_device() as device:
        return run_case(vendor, device, compute_baseline_case(lookup(name), case))


def assert_fails_with(outcome: Outcome, words: str) -> None:
    """Assert that the case failed with a message that contains `words`."""
    assert outcome.verdict is Verdict.failed
    assert words in outcome.message

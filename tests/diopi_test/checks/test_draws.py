"""The check of draws: only the state of the generator determines random numbers, and it advances."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from drawing_vendors import Array, Function, assert_fails_with, dropout, outcome, rng, uniform

from diopi_impl.functional import Adapted, Adapter
from diopi_impl.specs import OutSpec
from diopi_proto.prototype import Prototype
from diopi_test.execution.verdict import Verdict


def seed_only(state: Array) -> Any:
    """Return the generator state without its offset."""
    return state * np.array([1, 0], np.uint64)


def offset_only(state: Array) -> Any:
    """Return the generator state without its seed."""
    return state * np.array([0, 1], np.uint64)


def entropy(state: Array) -> Any:
    """Return a new random state, which does not depend on the generator."""
    return np.random.default_rng().integers(0, 2**63, 2).astype(np.uint64)


def drawing_from(change: Callable[[Array], Array]) -> Function:
    """Return an implementation that draws with a changed generator state."""

    def implementation(from_: float, to: float, generator: Array, *, out: Any) -> Any:
        return uniform(from_, to, change(generator), out=out)

    return implementation


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (seed_only, "depend on elements of the next call"),
        (offset_only, "depend on elements of another seed"),
        (entropy, "differs when the call is repeated"),
    ],
)
def test_numbers_that_do_not_depend_on_the_whole_state_alone_fail(change: Callable[[Array], Array], words: str) -> None:
    assert_fails_with(outcome("diopiUniformInp", drawing_from(change)), words)


def test_numbers_that_overlap_those_of_the_previous_call_fail() -> None:
    def overlapping(from_: float, to: float, generator: Array, *, out: Any) -> Any:
        count = int(np.prod(out.shape))
        start = int(generator[1]) // 8
        stream = rng(seed_only(generator)).uniform(from_, to, start + count)
        return stream[start:].reshape(out.shape)

    assert_fails_with(outcome("diopiUniformInp", overlapping), "depend on elements of the next call")


def set_state_after_call(after: Callable[[int, int], tuple[int, int]]) -> Adapter:
    """Return an adapter that sets the generator after the call to what `after` returns for its seed and offset."""

    def adapt(prototype: Prototype, function: Function) -> Adapted:
        def draw(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
            *results_and_sizes, generator = arguments
            seed, offset = generator.seed, generator.offset
            result = function(*results_and_sizes, np.array([seed, offset], np.uint64), out=out[0])
            generator.seed, generator.offset = after(seed, offset)
            return [result]

        return draw

    return adapt


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (lambda seed, offset: (seed, offset), "expected the call to advance it"),
        (lambda seed, offset: (seed, (offset - 5) % 2**64), "expected the call to advance it"),
        (lambda seed, offset: (seed + 1, offset + 1), "the seed of generator changed"),
    ],
)
def test_a_call_must_advance_the_offset_and_keep_the_seed(
    after: Callable[[int, int], tuple[int, int]], words: str
) -> None:
    assert_fails_with(outcome("diopiUniformInp", uniform, adapter=set_state_after_call(after)), words)
    assert_fails_with(outcome("diopiUniformInp", uniform, "float32-rank5", set_state_after_call(after)), words)


def test_dropout_in_inference_must_not_advance_the_offset() -> None:
    def adapt(prototype: Prototype, function: Function) -> Adapted:
        def draw(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
            arguments[-1].offset += 1
            return [arguments[0], None]

        return draw

    assert_fails_with(outcome("diopiDropout", dropout, "float32-inference", adapt), "although train is false")


def test_the_default_generator_must_advance() -> None:
    def always_the_same(prototype: Prototype, function: Function) -> Adapted:
        def draw(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
            return [function(*arguments[:-1], np.zeros(2, np.uint64), out=out[0])]

        return draw

    assert outcome("diopiUniformInp", uniform, "float32-own-generator").verdict is Verdict.passed
    refused = outcome("diopiUniformInp", uniform, "float32-own-generator", always_the_same)
    assert_fails_with(refused, "depend on elements of the next call")

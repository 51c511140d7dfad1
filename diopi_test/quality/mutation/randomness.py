"""Mutants of functions that draw random numbers, and correct results of these functions, drawn with NumPy.

The functions that draw get a source of random numbers and the form of the result: its NumPy type, its shape, and the
shape of a mask that is drawn, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from diopi_proto import parameters as kinds
from diopi_proto.interface import lookup
from diopi_test.cases.domains import random_generator
from diopi_test.oracle.records import BaselineCase, expected_arrays
from diopi_test.oracle.reference.lmdeploy.sampling import STATE_NAMES, Draw, top_k_draw, top_p_draw
from diopi_test.quality.mutation.mutant import Array, Effect, Mutant, SimulatedCall, changed_if
from lib_rt import Generator
from lib_rt.dtypes import from_numpy, to_numpy
from lib_rt.formats import format_of

RandomSource = np.random.Generator
"""The generator of random numbers from which a mutant draws."""

ResultForm = tuple[Any, tuple[int, ...], tuple[int, ...]]
"""The NumPy type and the shape of a function's first result, and the shape of its last result."""


def is_random(function: str) -> bool:
    """Return whether a function draws random numbers."""
    return lookup(function).guarantee == "random"


def _generator_parameter(function: str) -> str:
    """Return the name of a function's generator parameter; empty if it has none."""
    return next((p.name for p in lookup(function).arguments if p.annotation in kinds.GENERATORS), "")


def simulate_draw(case: BaselineCase, keys: Sequence[tuple[int, ...]]) -> SimulatedCall:
    """Return a call with correct random results.

    Args:
        case: a case of a random function.
        keys: a key per generator; different keys give independent results.

    Returns:
        The call.
    """
    entries = [entry for value in case.expected.values() for entry in expected_arrays(value)]
    form = to_numpy(entries[0].dtype), entries[0].values.shape, entries[-1].values.shape

    def compute(arguments: Mapping[str, Any]) -> Any:
        """Draw the results for these arguments."""
        sources = [random_generator("audit", *map(str, key)) for key in keys]
        base, name = lookup(case.function).base, _generator_parameter(case.function)
        if not is_random(case.function):  # the reference draws, too
            return call.compute_reference({**arguments, name: int(sources[0].integers(2**63))})
        inputs = {parameter: value for parameter, value in arguments.items() if parameter != name}
        return _SAMPLING[base](sources, inputs) if base in _SAMPLING else _DRAWS[base](sources[0], form, **inputs)

    call = replace(SimulatedCall.from_expected(case), compute=compute)
    call.recompute()
    return call


def _draw_uniform(source: RandomSource, form: ResultForm, from_: float, to: float) -> Array:
    """Return uniformly distributed numbers, at least `from_` and below `to`."""
    dtype, shape, _ = form
    numbers = (from_ + (to - from_) * source.random(shape)).astype(dtype)
    return np.where(numbers >= dtype.type(to), np.nextafter(dtype.type(to), dtype.type(from_)), numbers)


def _draw_integers(source: RandomSource, form: ResultForm, from_: int, to: int | None) -> Array:
    """Return integers, at least `from_` and below `to`, as int64.

    If `to` is None, the largest number is that of the integer type, or 2**p for a floating-point type of p bits of
    precision.
    """
    dtype, shape, _ = form
    integral = dtype.kind in "iub"
    last = to - 1 if to is not None else _largest_integer(dtype) if integral else 2 ** _precision_of(dtype)
    return source.integers(from_, last, shape, np.int64, endpoint=True)


def _largest_integer(dtype: Any) -> int:
    """Return the largest integer of an integer type, or 1 for bool."""
    return 1 if dtype.kind == "b" else int(np.iinfo(dtype).max)


def _precision_of(dtype: Any) -> int:
    """Return the number of significant bits of a floating-point NumPy type."""
    return format_of(from_numpy(dtype)).precision


def _draw_bernoulli(source: RandomSource, form: ResultForm, p: Any) -> Array:
    """Return truth values that are true with probability `p`."""
    return source.random(form[1]) < p


def _draw_normal(source: RandomSource, form: ResultForm, mean: Any, std: Any) -> Array:
    """Return normally distributed numbers; raise ValueError for a negative standard deviation."""
    if np.any(np.asarray(std) < 0):
        raise ValueError("the standard deviation is negative")
    return mean + std * source.standard_normal(form[1])


def _draw_dropout(source: RandomSource, form: ResultForm, input: Array, p: float, train: bool) -> tuple[Array, Array]:
    """Return the input with dropped elements set to 0 and the others divided by 1 - p, and the drawn mask.

    Without `train`, nothing is dropped or scaled.
    """
    _, shape, mask_shape = form
    mask = source.random(mask_shape) >= (p if train else 0)
    return np.where(np.broadcast_to(mask, shape), input / (1 - p if train and p < 1 else 1), 0), mask


def _draw_multinomial(
    source: RandomSource, form: ResultForm, input: Array, num_samples: int, replacement: bool
) -> Array:
    """Return indices along the last axis of `input`, drawn with the elements of `input` as weights.

    With replacement, uniform random numbers are compared with the cumulative sums of the weights. Otherwise, the
    indices with the shortest exponential waiting times are chosen.
    """
    if not replacement:
        with np.errstate(divide="ignore"):
            return np.argsort(source.exponential(size=input.shape) / input, -1)[..., :num_samples]
    ends = np.cumsum(input, -1)[..., np.newaxis, :]
    places = source.random(form[1])[..., np.newaxis] * ends[..., -1:]
    return (places >= ends).sum(-1)


def _sample_tokens(
    make: Callable[[Any], tuple[Any, Draw]], sources: Sequence[RandomSource], arguments: Mapping[str, Any]
) -> Any:
    """Return the results of a function that samples one token per sequence.

    Args:
        make: returns, from the arguments, the function that draws the tokens as its second entry.
        sources: one source per sequence; each gives a random number in (0, 1].
        arguments: the arguments of the function. If a workspace size is negative, the call queries the sizes and
            changes no state.

    Returns:
        The tokens, the workspace sizes and the states.
    """
    sizes = [value for name, value in arguments.items() if name.endswith("workspace_size")]
    is_query, (_, draw) = min(sizes) < 0, make(arguments)
    ids, *states = draw(np.array([1 - source.random() for source in sources]))
    if is_query:
        ids, *states = (arguments[name] for name in STATE_NAMES)
    return ids, *(max(size, 0) for size in sizes), *states


_SAMPLING: dict[str, Callable[..., Any]] = {
    "diopiTopKSampling": partial(_sample_tokens, top_k_draw),
    "diopiTopPSampling": partial(_sample_tokens, top_p_draw),
}
"""Functions that draw from several generators."""

_DRAWS: dict[str, Callable[..., Any]] = {
    "diopiDropout": _draw_dropout,
    "diopiDropoutInp": _draw_dropout,
    "diopiRandomInp": _draw_integers,
    "diopiUniformInp": _draw_uniform,
    "diopiBernoulli": lambda source, form, input: _draw_bernoulli(source, form, input),
    "diopiBernoulliInp": lambda source, form, inout: _draw_bernoulli(source, form, inout),
    "diopiBernoulliScalar": _draw_bernoulli,
    "diopiNormal": _draw_normal,
    "diopiNormalInp": _draw_normal,
    "diopiNormalTensorScalar": _draw_normal,
    "diopiNormalScalarTensor": _draw_normal,
    "diopiNormalTensor": _draw_normal,
    "diopiRandperm": lambda source, form, n: source.permutation(n),
    "diopiMultinomial": _draw_multinomial,
}
"""The functions that draw correct results, by the name of the random function."""


def randomness_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants of a function that draws from a generator.

    Args:
        function: the name of the function.

    Yields:
        The mutants.
    """
    if name := _generator_parameter(function):
        yield Mutant(name="seed ignored", parameter=name, generator_key=lambda seed, offset, calls: (offset,))
        yield Mutant(name="offset ignored", parameter=name, generator_key=lambda seed, offset, calls: (seed,))
        yield Mutant(name="generator ignored", parameter=name, generator_key=lambda seed, offset, calls: (calls,))
        if not lookup(function).is_gradient:
            yield Mutant(name="offset not advanced", parameter=name, advance=0)
    for prefix, mutant in _DISTRIBUTION_MUTANTS.items():
        if function.startswith(prefix):
            yield mutant


def _lose_ones(call: SimulatedCall) -> Effect:
    """Replace every eighth element by 0, so that the number of elements that are 1 decreases by an eighth.

    Returns:
        `changed` if an element was not 0 before, else `equivalent`.
    """
    results = {name: [array.copy() for array in arrays] for name, arrays in call.results.items()}
    for array in (array for arrays in results.values() for array in arrays):
        array.reshape(-1)[7::8] = 0
    return call.replace_results(results)


def _spread_numbers(call: SimulatedCall) -> Effect:
    """Move the numbers away from their mean, as a standard deviation that is 8 % too large does.

    Returns:
        Whether a specified element changed.
    """
    mean = np.asarray(call.case.plain_arguments()["mean"])
    with np.errstate(all="ignore"):
        results = {
            name: [(mean + 1.08 * (array.astype(np.float64) - mean)).astype(array.dtype) for array in arrays]
            for name, arrays in call.results.items()
        }
    return call.replace_results(results)


def _end_with_largest(call: SimulatedCall) -> Effect:
    """Swap the largest number of a permutation with the last one, so that the largest number is always last.

    Returns:
        Whether a specified element changed.
    """
    results = {name: [array.copy() for array in arrays] for name, arrays in call.results.items()}
    for array in (array for arrays in results.values() for array in arrays if array.size > 1):
        place = int(np.argmax(array))
        array[[place, -1]] = array[[-1, place]]
    return call.replace_results(results)


_DISTRIBUTION_MUTANTS = {
    "diopiBernoulli": Mutant(name="an eighth of the ones lost", corrupt=_lose_ones),
    "diopiNormal": Mutant(name="standard deviation 8 % too large", corrupt=_spread_numbers),
    "diopiRandperm": Mutant(name="the largest number always last", corrupt=_end_with_largest),
}
"""Mutants with another distribution, by the beginning of the names of the functions."""


def draw_with(
    mutant: Mutant, case: BaselineCase, sources: Sequence[Generator], calls: int
) -> tuple[SimulatedCall, Effect]:
    """Return a call with correct random results, except that the mutant determines how the generators are used.

    Args:
        mutant: the mutant.
        case: the case.
        sources: the generators, which the draw advances.
        calls: the number of this call, which replaces the generator's state if there are no generators.

    Returns:
        The call and the effect of the mutant.
    """
    states = [(source.seed, source.offset) for source in sources] or [(0, calls)]
    keys = [mutant.generator_key(*state, calls) if sources and mutant.generator_key else state for state in states]
    is_mutated = mutant.generator_key is not None or mutant.advance != 1
    if sources and _has_random_results(case):
        for source in sources:
            source.offset += mutant.advance
        return simulate_draw(case, keys), changed_if(is_mutated)
    return simulate_draw(case, keys), Effect.not_applicable


def _has_random_results(case: BaselineCase) -> bool:
    """Return whether a validator checks a nonempty result of the case."""
    return any(
        entry.needs_validator and entry.values.size
        for value in case.expected.values()
        for entry in expected_arrays(value)
    )

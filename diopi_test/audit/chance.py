"""Random draws: right answers drawn with NumPy, and the faults of generators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from diopi_proto.interface import lookup
from diopi_test.audit.fault import Answer, Array, Effect, Fault, shown
from diopi_test.baseline import BaselineCase, entries_of
from diopi_test.data import generator
from diopi_test.formats import format_of
from lib_rt import Generator
from lib_rt.dtypes import from_numpy, to_numpy

Source = np.random.Generator
Form = tuple[Any, tuple[int, ...], tuple[int, ...]]
"""NumPy type and shape of the first result, and shape of the last."""


def is_random(function: str) -> bool:
    """Whether a function draws random numbers."""
    return lookup(function).promise == "random"


def drawn(case: BaselineCase, key: tuple[int, ...]) -> Answer:
    """A right answer to a case of a random function; different keys give independent ones."""
    entries = [entry for value in case.expected.values() for entry in entries_of(value)]
    form = to_numpy(entries[0].dtype), entries[0].values.shape, entries[-1].values.shape

    def compute(arguments: Mapping[str, Any]) -> Any:
        given = {name: value for name, value in arguments.items() if name != "generator"}
        return _DRAWS[lookup(case.function).base](generator("audit", *map(str, key)), form, **given)

    answer = Answer(case, Answer.right(case).results, compute=compute)
    answer.answer_to()
    return answer


def _uniform(source: Source, form: Form, from_: float, to: float) -> Array:
    dtype, shape, _ = form
    numbers = (from_ + (to - from_) * source.random(shape)).astype(dtype)
    return np.where(numbers >= dtype.type(to), np.nextafter(dtype.type(to), dtype.type(from_)), numbers)


def _whole(source: Source, form: Form, from_: int, to: int | None) -> Array:
    dtype, shape, _ = form
    integral = dtype.kind in "iub"
    last = to - 1 if to is not None else _last_integer(dtype) if integral else 2 ** _precision(dtype)
    return source.integers(from_, last, shape, np.int64, endpoint=True)


def _last_integer(dtype: Any) -> int:
    return 1 if dtype.kind == "b" else int(np.iinfo(dtype).max)


def _precision(dtype: Any) -> int:
    return format_of(from_numpy(dtype)).precision


def _coins(source: Source, form: Form, p: Any) -> Array:
    return source.random(form[1]) < p


def _normal(source: Source, form: Form, mean: Any, std: Any) -> Array:
    if np.any(np.asarray(std) < 0):
        raise ValueError("a negative deviation has no answer")
    return mean + std * source.standard_normal(form[1])


def _dropout(source: Source, form: Form, input: Array, p: float, train: bool) -> tuple[Array, Array]:
    _, shape, mask_shape = form
    mask = source.random(mask_shape) >= (p if train else 0)
    return np.where(np.broadcast_to(mask, shape), input / (1 - p if train and p < 1 else 1), 0), mask


def _multinomial(source: Source, form: Form, input: Array, num_samples: int, replacement: bool) -> Array:
    """With replacement by the running sum of the weights, else in the order of exponential waiting times."""
    if not replacement:
        with np.errstate(divide="ignore"):
            return np.argsort(source.exponential(size=input.shape) / input, -1)[..., :num_samples]
    ends = np.cumsum(input, -1)[..., np.newaxis, :]
    places = source.random(form[1])[..., np.newaxis] * ends[..., -1:]
    return (places >= ends).sum(-1)


_DRAWS: dict[str, Callable[..., Any]] = {
    "diopiDropout": _dropout,
    "diopiDropoutInp": _dropout,
    "diopiRandomInp": _whole,
    "diopiUniformInp": _uniform,
    "diopiBernoulli": lambda source, form, input: _coins(source, form, input),
    "diopiBernoulliInp": lambda source, form, inout: _coins(source, form, inout),
    "diopiBernoulliScalar": _coins,
    "diopiNormal": _normal,
    "diopiNormalInp": _normal,
    "diopiNormalTensorScalar": _normal,
    "diopiNormalScalarTensor": _normal,
    "diopiNormalTensor": _normal,
    "diopiRandperm": lambda source, form, n: source.permutation(n),
    "diopiMultinomial": _multinomial,
}


def chance_faults(function: str) -> Iterator[Fault]:
    """The faults of functions that draw from a generator."""
    if is_random(function):
        yield Fault("seed ignored", parameter="generator", key=lambda seed, offset, calls: (offset,))
        yield Fault("offset ignored", parameter="generator", key=lambda seed, offset, calls: (seed,))
        yield Fault("generator ignored", parameter="generator", key=lambda seed, offset, calls: (calls,))
        yield Fault("offset not advanced", parameter="generator", advance=0)


def draw_with(fault: Fault, case: BaselineCase, source: Generator | None, calls: int) -> tuple[Answer, Effect]:
    """A right answer but for how `fault` uses the generator, which advances; without one, the calls are counted."""
    state = (source.seed, source.offset) if source else (0, calls)
    key = fault.key(*state, calls) if source and fault.key else state
    mistaken = fault.key is not None or fault.advance != 1
    if source and _is_left_to_chance(case):
        source.offset += fault.advance
        return drawn(case, key), shown(mistaken)
    return drawn(case, key), Effect.absent


def _is_left_to_chance(case: BaselineCase) -> bool:
    return any(entry.judged and entry.values.size for value in case.expected.values() for entry in entries_of(value))

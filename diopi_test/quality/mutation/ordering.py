"""Ordering mutants: equal elements or a selection in reverse order, subnormal numbers compared as zeros."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from diopi_proto.dtypes import position, same
from diopi_proto.interface import lookup
from diopi_test.quality.mutation.mutant import Effect, Mutant, SimulatedCall
from lib_rt.formats import is_inexact, is_subnormal

STABLE = ("stable", "pStable")
"""Names of attributes that demand a stable order."""


def ordering_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants of sorting and selecting functions.

    Args:
        function: the name of the function.

    Yields:
        The mutants.
    """
    names = [parameter.name for parameter in lookup(function).arguments]
    for name in names:
        if name in STABLE:
            yield Mutant(
                name=f"{name} ignored",
                corrupt=partial(_reverse_equal_elements, name),
                corrupt_memory=None,
                kind="attribute ignored",
                parameter=name,
            )
    if {"sorted", "k"} <= set(names):
        yield Mutant(
            name="sorted ignored",
            corrupt=_reverse_selection,
            corrupt_memory=None,
            kind="attribute ignored",
            parameter="sorted",
        )
    if {"input", "dim"} <= set(names) and _returns_elements_and_positions(function):
        yield Mutant(name="subnormal numbers compared as zeros", corrupt=_treat_subnormals_as_zeros)


def _returns_elements_and_positions(function: str) -> bool:
    """Return whether a function returns elements of its input and their positions."""
    prototype = lookup(function)
    return [prototype.rule_of(result.name) for result in prototype.results] == [same, position]


def _treat_subnormals_as_zeros(call: SimulatedCall) -> Effect:
    """Replace the results: determine positions as if subnormal numbers were zeros, and take the elements at these.

    Returns:
        `not_applicable` if the input has no axes or no subnormal number, else the effect of the positions.
    """
    arguments = call.case.plain_arguments()
    input, dim, dtype = arguments["input"], arguments["dim"], call.case.dtype
    is_zero = is_subnormal(input, dtype) if is_inexact(dtype) else np.zeros(input.shape, bool)
    if input.ndim == 0 or not is_zero.any():
        return Effect.not_applicable
    effect = call.recompute(input=np.where(is_zero, 0, input))
    values, places = call.results.values()
    elements = values[0].shape if values[0].ndim == input.ndim else np.expand_dims(values[0], dim).shape
    selected = np.take_along_axis(input, places[0].reshape(elements), dim)
    values[0] = selected.reshape(values[0].shape).astype(values[0].dtype)
    return effect


def _reverse_equal_elements(name: str, call: SimulatedCall) -> Effect:
    """Reverse equal elements: sort the flipped input and count positions from the end.

    Args:
        name: the name of the attribute, such as `stable`, that requires the original order if it is true.
        call: the call.

    Returns:
        `changed` only if the attribute is true and a result differs.
    """
    arguments = call.case.plain_arguments()
    input, dim = arguments["input"], -1 if arguments["dim"] is None else arguments["dim"]
    if input.ndim == 0:
        return Effect.not_applicable
    effect = call.recompute(input=np.flip(input, dim))
    indices = call.results[list(call.results)[-1]]
    indices[0] = input.shape[dim] - 1 - indices[0]
    expected = SimulatedCall.from_expected(call.case)
    is_equal = all(arrays[0].tobytes() == expected.results[name][0].tobytes() for name, arrays in call.results.items())
    return (
        effect
        if effect is Effect.undefined
        else Effect.changed
        if arguments[name] and not is_equal
        else Effect.equivalent
    )


def _reverse_selection(call: SimulatedCall) -> Effect:
    """Reverse the selected elements; the effect is `changed` only if the attribute `sorted` is true."""
    arguments = call.case.plain_arguments()
    if arguments["input"].ndim == 0:
        return Effect.not_applicable
    values = call.results["values"][0]
    flipped = {name: [np.flip(array, arguments["dim"]) for array in arrays] for name, arrays in call.results.items()}
    call.results = flipped
    return (
        Effect.changed
        if arguments["sorted"] and not np.array_equal(values, flipped["values"][0])
        else Effect.equivalent
    )

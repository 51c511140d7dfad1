"""Mutants of aliasing: wrong only if parameters of a call share memory.

A corruption gets a `SimulatedCall`, which holds a stored case and its correct results, and changes the results. It
returns an `Effect`: `changed` if a specified result changed, `not_applicable` if the case does not share memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from diopi_proto.interface import lookup
from diopi_test.execution.aliased import aliased_labels, aliased_targets, make_aliased_case
from diopi_test.execution.evaluated import DerivationError
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation.mutant import Array, Effect, Mutant, SimulatedCall

# The names of the kinds of mutants, which describe the defect
SHORTCUT = "shortcut for one tensor as two inputs"
EARLY = "result written before a shared input is read"
OFFSET = "offset of an overlapping input ignored"
TRANSPOSITION = "strides of a transposed view of another input ignored"

_SUBSTITUTES: tuple[Callable[[Array], Array], ...] = (np.zeros_like, np.ones_like, lambda array: array[::-1].copy())
"""What a mutant reads instead of a shared input; the first one that changes a result is used."""


def derive_aliased_cases(function: str, cases: Sequence[BaselineCase]) -> list[BaselineCase]:
    """Return the cases of a function in which parameters share memory, derived from its stored cases.

    Cases that cannot be derived are left out.
    """
    prototype, by_label = lookup(function), {case.label: case for case in cases}
    derived = []
    for label, base in aliased_labels(prototype, cases):
        try:
            derived.append(make_aliased_case(by_label[base], label, prototype))
        except DerivationError:
            continue
    return derived


def aliasing_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants of the parameters of a function that may share memory."""
    sharings = aliased_targets(lookup(function)).values()
    pairs = dict.fromkeys((s.pair.first, s.pair.second) for s in sharings if s.pair is not None and s.is_one_tensor)
    for first, second in pairs:
        yield Mutant(name=f"{SHORTCUT}: {first}, {second}", kind=SHORTCUT, corrupt=_take_shortcut(first, second))
    if any(sharing.result for sharing in sharings):
        yield Mutant(name=EARLY, corrupt=_overwrite_early)
    if any(sharing.overlaps for sharing in sharings):
        yield Mutant(name=OFFSET, corrupt=_ignore_offset)
    if any(sharing.transposes for sharing in sharings):
        yield Mutant(name=TRANSPOSITION, corrupt=_ignore_transposition)


def _take_shortcut(first: str, second: str) -> Callable[[SimulatedCall], Effect]:
    """Return a corruption that misreads the input `second` if the case passes one tensor as both inputs.

    Args:
        first: the name of the input that the case passes.
        second: the name of the input that may be the same tensor.
    """

    def corrupt(call: SimulatedCall) -> Effect:
        """Misread the input `second` if it is the tensor of the input `first`."""
        return _misread(call, second) if call.case.aliases.get(second) == first else Effect.not_applicable

    return corrupt


def _overwrite_early(call: SimulatedCall) -> Effect:
    """Misread an argument whose tensor is also a result, as if the result were written before the argument is read.

    Returns:
        The effect; `not_applicable` if no argument is also a result.
    """
    aliases = call.case.aliases
    for name, argument in aliases.items():
        if name in call.results:
            return _misread(call, argument)
        if argument in call.results and "." not in name:
            return _misread(call, name)
    return Effect.not_applicable


def _misread(call: SimulatedCall, name: str) -> Effect:
    """Recompute a call with substitutes for the argument `name` until a result changes; return the latest effect."""
    array, effect = call.case.plain_arguments()[name], Effect.not_applicable
    for substitute in _SUBSTITUTES if array.ndim else _SUBSTITUTES[:2]:
        effect = call.recompute(**{name: substitute(array)})
        if effect is Effect.changed:
            break
    return effect


def _ignore_offset(call: SimulatedCall) -> Effect:
    """Read the second of two overlapping inputs from the beginning of the storage.

    Returns:
        The effect; `not_applicable` unless two inputs overlap.
    """
    overlap = call.case.overlap
    if overlap is None or overlap.transposes:
        return Effect.not_applicable
    plain = call.case.plain_arguments()
    first, second = plain[overlap.first], plain[overlap.second]
    storage = overlap.join(first, second)
    return call.recompute(**{overlap.second: storage[: second.size].reshape(second.shape)})


def _ignore_transposition(call: SimulatedCall) -> Effect:
    """Read the elements of a transposed view of another input in the order of the storage.

    Returns:
        The effect; `not_applicable` unless an input is such a view.
    """
    overlap = call.case.overlap
    if overlap is None or not overlap.transposes:
        return Effect.not_applicable
    plain = call.case.plain_arguments()
    first, second = plain[overlap.first], plain[overlap.second]
    return call.recompute(**{overlap.second: first.reshape(second.shape)})

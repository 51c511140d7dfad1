"""Chains: calls that are in flight at the same time, without any synchronization between them.

A chain is derived from stored cases of a function when it runs. All tensors exist, and all inputs have arrived, before
the first call. The streams are busy with copies while the calls are made. A vendor that only queues its work has
therefore queued all of it before any of it begins. A scratch buffer, a plan or staging memory that two calls share is
then wrong for one of the calls. The results are read after the last call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any, final
from weakref import WeakKeyDictionary

from diopi_impl import BaseVendor
from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype, Error
from diopi_test.baseline.store import BaselineFile
from diopi_test.cases.case import CaseClass
from diopi_test.execution.ballast import Ballast
from diopi_test.execution.call import Call
from diopi_test.execution.call_arguments import PLAIN
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.forks import end_copies
from diopi_test.oracle.records import BaselineCase, tensors_in
from lib_rt import Context, Device
from lib_rt.errors import GuardError

PREFIX = "in-flight"
"""The prefix of the labels of chains."""

SUITABLE_CLASSES = (CaseClass.basic, CaseClass.types, CaseClass.layout)
"""The classes of stored cases that a chain may contain."""

CANDIDATE_COUNT = 8
"""The number of stored cases of a function among which the members of a chain are chosen."""

SIBLING_COUNT = 2
"""The number of other functions of the family in a chain that mixes functions."""


@final
@dataclass(frozen=True)
class ChainKind:
    """A kind of chain.

    Attributes:
        stream_count: the number of streams, each with a context; the calls use them in turn.
        mixes_functions: whether the chain contains other functions of the family.
    """

    stream_count: int
    mixes_functions: bool = False


KINDS: Mapping[str, ChainKind] = {
    f"{PREFIX}-one-stream": ChainKind(1),
    f"{PREFIX}-two-streams": ChainKind(2),
    f"{PREFIX}-family": ChainKind(2, mixes_functions=True),
}
"""The kinds of chains by the label of the case."""

OpenFile = Callable[[str], BaselineFile | None]
"""A function that returns the baseline file of a function at the level of the run; None if the level has none."""


@final
@dataclass(frozen=True)
class Chain:
    """Calls that are made without synchronization between them.

    Attributes:
        kind: the kind of the chain.
        cases: the calls in order.
    """

    kind: ChainKind
    cases: Sequence[BaselineCase]


def chain_labels(function: str, labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return the chains of a function, as pairs of the label and the label of the first stored case.

    Args:
        function: The name of the function.
        labels: The labels of its stored cases with suitable classes.

    Returns:
        The pairs. A function with a single stored case has only a chain with other functions of its family.
    """
    has_siblings = next(_sibling_names(function), None) is not None
    return [
        (label, labels[0])
        for label, kind in KINDS.items()
        if labels and (has_siblings if kind.mixes_functions else len(labels) > 1)
    ]


def choose_members(
    label: str, file: BaselineFile, open_file: OpenFile, count: int, convert: Callable[[BaselineCase], BaselineCase]
) -> list[BaselineCase]:
    """Return the calls of the chain called `label`, with different sizes and element types as far as possible.

    The calls of one function are sorted by size. In a chain of several functions, the smallest call of each function
    comes first, and the largest calls follow.

    Args:
        label: The label of the chain.
        file: The baseline file of the function.
        open_file: Opens the files of other functions of the family.
        count: The maximum number of calls.
        convert: Applies the conversions of the run to a stored case.

    Returns:
        The calls in order.
    """
    if not KINDS[label].mixes_functions:
        return list(map(convert, choose_stored_cases(file, count)))
    siblings = (sibling for name in _sibling_names(file.function) if (sibling := open_file(name)) is not None)
    files = [file, *islice(siblings, SIBLING_COUNT)]
    per_function = [list(map(convert, choose_stored_cases(sibling, 2))) for sibling in files]
    smallest = [cases[0] for cases in per_function if cases]
    largest = [cases[-1] for cases in per_function if len(cases) > 1]
    return [*smallest, *largest][:count]


def _sibling_names(function: str) -> Iterator[str]:
    """Yield the functions of the same family that are not forms of the same function.

    The functions behind this one in the family come first, and then those before it.
    """
    prototype = lookup(function)
    names = [name for name, candidate in prototypes().items() if candidate.family == prototype.family]
    start = names.index(function)
    for name in [*names[start + 1 :], *names[:start]]:
        if lookup(name).base != prototype.base:
            yield name


def choose_stored_cases(file: BaselineFile, count: int) -> list[BaselineCase]:
    """Return at most `count` stored cases of a file, sorted by size, as `choose_cases` chooses them."""
    chosen = _chosen_labels.setdefault(file, {})
    if count not in chosen:
        labels = suitable_labels(file)
        step = max(1, -(-len(labels) // CANDIDATE_COUNT))
        chosen[count] = [case.label for case in choose_cases([file.case(label) for label in labels[::step]], count)]
    return [file.case(label) for label in chosen[count]]


_chosen_labels: WeakKeyDictionary[BaselineFile, dict[int, list[str]]] = WeakKeyDictionary()
"""The labels of the chosen cases by file and number. Every kind of chain of a function chooses the same cases."""


def choose_cases(candidates: Sequence[BaselineCase], count: int) -> list[BaselineCase]:
    """Choose at most `count` of the candidates with a suitable class.

    The smallest and the largest case come first, then cases of further element types, then cases of further sizes.

    Args:
        candidates: The cases to choose from.
        count: The maximum number of cases.

    Returns:
        The chosen cases, sorted by size.
    """
    suitable = [case for case in candidates if case.case_class in SUITABLE_CLASSES]
    cases = sorted(suitable, key=_count_elements)
    if len(cases) <= count:
        return cases
    chosen = [cases[0], cases[-1]][:count]
    while len(chosen) < count:
        remaining = [case for case in cases if all(case is not member for member in chosen)]
        dtypes, sizes = {case.dtype for case in chosen}, {_count_elements(case) for case in chosen}
        chosen.append(max(remaining, key=lambda case: (case.dtype not in dtypes, _count_elements(case) not in sizes)))
    return sorted(chosen, key=_count_elements)


def suitable_labels(file: BaselineFile) -> list[str]:
    """Return the labels of the stored cases of a file that a chain may contain; float32 comes first."""
    labels = [label for label in file.labels if file.case_class(label) in SUITABLE_CLASSES]
    return sorted(labels, key=lambda label: file.dtype(label) is not Dtype.float32)


def _count_elements(case: BaselineCase) -> int:
    """Return the number of elements of all tensor arguments."""
    return sum(prod(tensor.values.shape) for value in case.arguments.values() for tensor in tensors_in(value))


def run_chain(vendor: BaseVendor, device: Device, chain: Chain) -> tuple[list[CallRecord | Error], list[GuardError]]:
    """Make the calls of a chain without synchronization between them, then read all results.

    Args:
        vendor: The vendor.
        device: The vendor's open device.
        chain: The calls.

    Returns:
        For each call, its record or the error code that it returned; and the guard zones that were written to.
    """
    contexts = [Context(device) for _ in range(min(chain.kind.stream_count, len(chain.cases)))]
    ballasts = [Ballast(device) for _ in contexts]
    damage: list[GuardError] = []
    calls = [
        Call(vendor, device, case, PLAIN, contexts[number % len(contexts)]) for number, case in enumerate(chain.cases)
    ]
    try:
        records = _make_calls(calls, list(zip(contexts, ballasts, strict=True)))
    finally:
        for context, ballast in zip(contexts, ballasts, strict=True):
            try:
                context.close()
            except GuardError as error:
                damage.append(error)
            ballast.release()
    return records, damage


def _make_calls(calls: Sequence[Call], streams: Sequence[tuple[Context, Ballast]]) -> list[CallRecord | Error]:
    """Prepare all calls, make them while the streams are busy, and return their records or error codes."""
    prepared: list[tuple[Callable[[], Error], Any]] = [(call.prepare(), call.generator_states()) for call in calls]
    for call in calls:
        call.send_inputs()
    for context, ballast in streams:
        ballast.keep_busy(context.stream)
    codes = [make() for make, _ in prepared]
    end_copies()
    return [
        call.record_call(before) if code is Error.Success else code
        for call, (_, before), code in zip(calls, prepared, codes, strict=True)
    ]

"""Soak tests: many calls of a function, one after another, in the shapes and element types of its stored cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import final

from diopi_test.baseline.store import BaselineFile
from diopi_test.execution.difference import Difference
from diopi_test.execution.in_flight import choose_stored_cases
from diopi_test.oracle.records import BaselineCase, tensors_in
from lib_rt.errors import GuardError

LABEL = "soak"
"""The label of the soak test of a function."""

MAX_CASES = 8
"""The maximum number of stored cases whose calls alternate."""

WINDOWS = 8
"""The number of parts into which the second half of the calls is divided; the memory is measured after each part."""

MAX_SHAPES = 4
"""The maximum number of tensors whose shapes a message contains."""


@final
@dataclass(frozen=True, kw_only=True)
class SoakTest:
    """A soak test of a function.

    Attributes:
        cases: the cases whose calls alternate.
        count: the number of calls.
        seconds: after this time, no further call is made.
    """

    cases: Sequence[BaselineCase]
    count: int
    seconds: float


@final
@dataclass(frozen=True, kw_only=True)
class WrongCall:
    """A call of a soak test with wrong results.

    Attributes:
        number: the number of the call; the first call has the number 1.
        case: the case of the call.
        message: what is wrong.
        differences: where the results differ from the expected results.
    """

    number: int
    case: BaselineCase
    message: str
    differences: Sequence[Difference] = ()


@final
@dataclass(frozen=True, kw_only=True)
class MemorySample:
    """The memory after a number of calls.

    Attributes:
        calls: the number of calls so far.
        memory: the measured memory by the name of the quantity, see `process_memory`.
    """

    calls: int
    memory: Mapping[str, int]


@final
@dataclass(kw_only=True)
class SoakRecord:
    """The observations of a soak test.

    Attributes:
        planned: the number of calls that were planned.
        calls: the number of calls that were made.
        wrong_calls: the calls with wrong results, in order.
        samples: the memory after the warm-up and after each window, in order.
        damage: the guard zones that were written to.
        growth_by_case: by the description of a case, the growth of each quantity per call, if it was measured.
    """

    planned: int
    calls: int = 0
    wrong_calls: list[WrongCall] = field(default_factory=list)
    samples: list[MemorySample] = field(default_factory=list)
    damage: list[GuardError] = field(default_factory=list)
    growth_by_case: dict[str, Mapping[str, float]] = field(default_factory=dict)


def soak_labels(labels: Sequence[str]) -> list[tuple[str, str]]:
    """Return the soak test of a function as a pair of the label and the label of the first stored case.

    Args:
        labels: The labels of the function's stored cases with suitable classes, see `in_flight.suitable_labels`.

    Returns:
        One pair; none if there is no suitable case.
    """
    return [(LABEL, labels[0])] if labels else []


def choose_soak_cases(file: BaselineFile) -> list[BaselineCase]:
    """Return the stored cases of a file for a soak test, with different sizes and element types."""
    return choose_stored_cases(file, MAX_CASES)


def sampling_points(count: int, case_count: int) -> list[int]:
    """Return the numbers of calls after which the memory is measured: the end of the warm-up and of each window.

    The warm-up is the first half of the calls. Every window contains whole rounds, which call each case once.

    Args:
        count: The number of calls.
        case_count: The number of cases whose calls alternate.

    Returns:
        The numbers in order; none if a window would contain no complete round.
    """
    rounds = count // case_count
    warm_up = rounds // 2
    if rounds - warm_up < WINDOWS:
        return []
    return [(warm_up + (rounds - warm_up) * number // WINDOWS) * case_count for number in range(WINDOWS + 1)]


def describe_case(case: BaselineCase) -> str:
    """Return the ID of a case with the names, element types and shapes of its largest tensors."""
    return ", ".join([case.id, *_describe_shapes(case)])


def _describe_shapes(case: BaselineCase) -> Iterator[str]:
    """Yield the name, element type and shape of the largest tensors of a case, in the order of the parameters."""
    tensors = [(name, tensor) for name, value in case.arguments.items() for tensor in tensors_in(value)]
    largest = sorted(tensors, key=lambda pair: -prod(pair[1].values.shape))[:MAX_SHAPES]
    for name, tensor in tensors:
        if any(tensor is candidate for _, candidate in largest):
            yield f"{name} {tensor.dtype.name} {tensor.values.shape}"

"""Calls that are derived from generated calls when they run: with shared memory, or in flight at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from diopi_proto.interface import lookup
from diopi_test.cases.case import CaseClass
from diopi_test.execution.aliased import aliased_labels
from diopi_test.execution.in_flight import KINDS
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.collection import Collected


def aliased_calls(call: BaselineCase) -> list[Collected]:
    """Return the calls in which the tensors of a generated call share memory."""
    return [
        Collected(
            function=call.function, label=label, dtype=call.dtype.name, case_class=CaseClass.aliased, base=call.label
        )
        for label, _ in aliased_labels(lookup(call.function), [call])
    ]


def chains(calls: Sequence[BaselineCase]) -> list[Collected]:
    """Return the chains in which the generated calls of a function are in flight at the same time.

    There are none if there are fewer than two calls, or if a call draws random numbers.
    """
    if len(calls) < 2 or any(call.draws for call in calls):
        return []
    return [
        Collected(function=calls[0].function, label=label, case_class=CaseClass.concurrent, base=calls[0].label)
        for label, kind in KINDS.items()
        if not kind.mixes_functions
    ]

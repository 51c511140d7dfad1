"""What a single failure says about its cause, without the other cases of the run.

A run needs it while other cases are still running: it repeats only some of the failures that most likely have the same
cause, and a waiver can name a cause.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from diopi_test.execution.deviation import DeviationKind
from diopi_test.execution.verdict import PROCESS_LOST
from diopi_test.results.causes.finding import find_main_finding
from diopi_test.results.causes.grouping import is_numeric, is_shared
from diopi_test.results.causes.signature import Signature
from diopi_test.results.causes.traits import base_function
from diopi_test.results.records import CaseRecord

_LOST_SYMPTOMS = frozenset(verdict.value for verdict in PROCESS_LOST)
"""The symptoms of failures that ended the process of the vendor."""


@final
@dataclass(frozen=True, kw_only=True)
class ProvisionalCause:
    """What is known about the cause of a failure without other cases.

    Attributes:
        id: equal for failures that most likely have the same cause.
        is_status: whether the failure consists only of an error status or a lost process, so that no result exists.
        text: the status and the message, without numbers and names of functions.
    """

    id: str
    is_status: bool
    text: str


def provisional_cause(record: CaseRecord) -> ProvisionalCause:
    """Return the provisional cause of a case that did not pass.

    Failures of different functions have the same provisional cause if functions can share the defect. Lost processes
    and wrong numbers are exceptions, because damage that one function leaves behind can show in any other function.
    Wrong numbers of one function have the same provisional cause, because small tensors do not show what is wrong.

    Args:
        record: the record of the case.

    Returns:
        The provisional cause. It depends only on the record.
    """
    finding = find_main_finding(record)
    signature = finding.signature
    if is_numeric(finding):
        signature = Signature(symptom=DeviationKind.wrong_value.value)
    is_local = signature.symptom in _LOST_SYMPTOMS or not is_shared(signature)
    scope = base_function(record.function) if is_local else ""
    return ProvisionalCause(
        id=replace(signature, scope=scope).id,
        is_status=signature.symptom in _LOST_SYMPTOMS | {"error", "exception"},
        text=finding.signature.sentence,
    )


def possible_causes(record: CaseRecord) -> frozenset[str]:
    """Return the IDs of the causes that a failed case can have; which one it has depends on the other cases of its run.

    The cause that a report assigns also depends on the other cases of the run. For example, the element type belongs to
    the cause only if cases of another type pass. If only some cases run, the cause can therefore have another ID.

    Args:
        record: the record of the case.

    Returns:
        The ID in the record, if there is one, and the IDs for each trait of the case.
    """
    finding = find_main_finding(record)
    signatures = (replace(finding.signature, trait=trait) for trait in ("", *finding.traits))
    scoped = (
        signature if is_shared(signature) else replace(signature, scope=base_function(record.function))
        for signature in signatures
    )
    return frozenset(signature.id for signature in scoped) | ({record.cause} if record.cause else set())

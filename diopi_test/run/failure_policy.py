"""`FailurePolicy`: which failures count against a vendor, and how often known flakes are retried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import final

from diopi_test.execution.verdict import UNSUCCESSFUL
from diopi_test.results.causes.severity import Severity, severity_of_case
from diopi_test.results.records import CaseRecord, affects_status
from diopi_test.waivers.rules import Waivers


@final
@dataclass(frozen=True, kw_only=True)
class FailurePolicy:
    """The options of a run and the waivers that decide which failures count.

    Attributes:
        fail_on: the least severity that counts, unless `strict` is set.
        strict: whether all failures count.
        waivers: the waivers of the run.
    """

    fail_on: Severity = Severity.major
    strict: bool = False
    waivers: Waivers = field(default_factory=Waivers)

    def counts(self, record: CaseRecord) -> bool:
        """Return whether a case failed, affects the exit status, and is not waived."""
        if record.verdict not in UNSUCCESSFUL:
            return False
        severe = replace(record, severity=severity_of_case(record.verdict, record.checks, record.message))
        is_counted = affects_status(severe, self.fail_on, strict=self.strict)
        return is_counted and self.waivers.apply(severe).verdict in UNSUCCESSFUL

    def retries_for(self, case_id: str) -> int:
        """Return how often a failed case is retried because it is a known flake; 0 for other cases."""
        return self.waivers.retries_for(case_id)

    def for_cases(self, ids: Iterable[str]) -> FailurePolicy:
        """Return the policy without the waivers that match none of these cases."""
        return replace(self, waivers=self.waivers.for_cases(ids))

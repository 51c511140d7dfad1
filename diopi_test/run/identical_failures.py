"""`IdenticalFailures`: notices that a vendor can't compute anything, because all calls fail with the same message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from diopi_test.cases.case import CaseClass
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.execution.verdict import UNSUCCESSFUL, Verdict
from diopi_test.results.causes.provisional import provisional_cause
from diopi_test.results.causes.traits import base_function
from diopi_test.results.records import CaseRecord

DEFAULT_LIMIT = 50
"""Number of identical failures at the beginning of a run after which it stops, unless the user sets a number."""

MIN_FUNCTIONS = 5
"""Number of functions that must fail identically at the beginning of a run, because a single one may be broken."""


@final
@dataclass(kw_only=True)
class IdenticalFailures:
    """A counter of valid calls that fail one after another with the same status and message.

    Attributes:
        limit: the number after which the run stops; 0 for never; None for `DEFAULT_LIMIT` at the beginning of the run.
    """

    limit: int | None = None
    _text: str = field(default="", init=False)
    _number: int = field(default=0, init=False)
    _functions: set[str] = field(default_factory=set, init=False)
    _has_computed: bool = field(default=False, init=False)

    def reason_to_stop(self, record: CaseRecord) -> str:
        """Count a case that has ended, and return why the run stops; an empty text if the run continues.

        Negative tests, cases of the runtime and cases that were not executed are ignored.

        Args:
            record: the record of the case, with waivers applied.

        Returns:
            A sentence without a period, or an empty text.
        """
        if self.limit == 0 or not _is_executed_call(record):
            return ""
        text = _status(record)
        self._has_computed |= not text
        if text != self._text:
            self._text, self._number, self._functions = text, 0, set()
        self._number += 1
        self._functions.add(base_function(record.function))
        if not text or not self._is_reached:
            return ""
        calls = f"{self._number} calls in a row" if self.limit else f"the first {self._number} calls"
        return f"{calls} failed in the same way ({text}); --stop-after-identical 0 runs all cases"

    @property
    def _is_reached(self) -> bool:
        """Return whether enough calls failed identically for the run to stop."""
        if self.limit is not None:
            return self._number >= self.limit
        return not self._has_computed and self._number >= DEFAULT_LIMIT and len(self._functions) >= MIN_FUNCTIONS


def _is_executed_call(record: CaseRecord) -> bool:
    """Return whether the vendor executed the record's operator call. Calls that it must reject do not count."""
    is_executed = record.verdict in UNSUCCESSFUL or record.verdict is Verdict.passed
    return is_executed and record.function != RUNTIME and record.class_ is not CaseClass.negative


def _status(record: CaseRecord) -> str:
    """Return the error code and the message of a call that has no result; empty if the call passed or has a result."""
    if record.verdict not in UNSUCCESSFUL:
        return ""
    cause = provisional_cause(record)
    return cause.text if cause.is_status else ""

"""`CallSequence`: the calls of one case, which are compared with each other.

A case of the smoke level is called again if nothing was wrong the first time: with other memory, and while its inputs
are on their way to the device. Whether a difference comes from the one or the other, a third call tells. The cases of
the smoke level are one or two for each function and element type; what these calls show depends on how a function is
implemented for an element type, not on its data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from diopi_proto.types import Error
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.difference import Difference, assign_call
from diopi_test.execution.verdict import CheckResult

SECOND, RELAID = "a second call", "a call with inputs in another layout"
QUEUED = "a call with inputs still on their way"
"""What further calls are called in a report."""

OF_MEMORY = frozenset({"inputs", "gaps", "guards"})
"""The checks that look at what is no result. Each tells of further calls too, where something was wrong."""


@final
@dataclass(frozen=True)
class Attempt:
    """One call of a case and its results.

    Attributes:
        code: what it answered.
        message: the vendor's last error if that was not success.
        run: what it left behind; None if it failed.
        findings: what the checks of a single run found.
        left: tensors, and pieces of device memory, that are allocated after it and were not before.
    """

    code: Error
    message: str = ""
    run: CallRecord | None = None
    check_results: Sequence[CheckResult] = ()
    left: tuple[int, int] = (0, 0)

    @property
    def is_successful(self) -> bool:
        """Return whether the call succeeded and every check passed."""
        return self.run is not None and all(finding.passed for finding in self.check_results)

    @property
    def problem(self) -> str:
        """Return what is wrong with the results, or why there are none; empty if nothing is wrong."""
        if self.run is None:
            return f"{self.code.name}: {self.message}"
        return "; ".join(f"{finding.check}: {finding.message}" for finding in self._of_results)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Return where the results differ from the expected ones."""
        return tuple(place for finding in self._of_results for place in finding.differences)

    @property
    def _of_results(self) -> Sequence[CheckResult]:
        """Return the failed check results that concern results."""
        return [finding for finding in self.check_results if not finding.passed and finding.check not in OF_MEMORY]


@final
@dataclass(frozen=True)
class CallSequence:
    """The calls of one case.

    Attributes:
        first: the call whose results are checked. Its inputs had arrived on the device.
        queued: the same call with tensors elsewhere in memory and the copies of its inputs still in the stream's queue;
            None where the first went wrong, and at other levels than smoke.
        waited: as `queued`, but with inputs that had arrived; None unless `queued` went wrong.
        relaid: as `waited`, with inputs in another layout; None where a call before it went wrong, and unless the case
            is in the function's leading element type: layouts are no matter of types.
        plain: what the out-of-place form of an in-place function left behind after a call with the same arguments;
            None where `queued` is, and where the vendor can't do it.
    """

    first: Attempt
    queued: Attempt | None = None
    waited: Attempt | None = None
    relaid: Attempt | None = None
    plain: CallRecord | None = None

    @property
    def records(self) -> dict[str, CallRecord]:
        """Return the records of the successful calls by name: first, second, waited, relaid, plain."""
        attempts = {"first": self.first, "second": self.queued, "waited": self.waited, "relaid": self.relaid}
        runs = {name: attempt.run for name, attempt in attempts.items() if attempt is not None}
        return {name: run for name, run in {**runs, "plain": self.plain}.items() if run is not None}

    @property
    def check_results(self) -> list[CheckResult]:
        """Return the check results of the first call, and those of further calls that concern memory."""
        lines = {finding.check: finding for finding in self.first.check_results}
        for call, attempt in ((SECOND, self.queued), (RELAID, self.relaid)):
            for finding in attempt.check_results if attempt is not None else ():
                line = lines.get(finding.check)
                if finding.check in OF_MEMORY and (line is None or (line.passed and not finding.passed)):
                    message = f"in {call}, {finding.message}" if finding.message else ""
                    lines[finding.check] = replace(
                        finding, message=message, differences=assign_call(finding.differences, call)
                    )
        return list(lines.values())

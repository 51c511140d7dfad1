"""`CallSequence`: the calls of one case, which are compared with each other.

If the first call of a smoke case is correct, a second call gets tensors at other addresses. Its inputs are still being
copied to the device. If its results are wrong, a third call shows which of the two changes is the cause. Only smoke
cases, one or two per function and element type, are called more than once. What these calls reveal depends on the
implementation for an element type, not on the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from diopi_proto.types import Error
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.difference import Difference, assign_call
from diopi_test.execution.verdict import CheckResult

SECOND_CALL, RELAID_CALL = "a second call", "a call with inputs in another layout"
QUEUED_CALL = "a call with inputs still being copied"
"""The names of further calls in messages."""

MEMORY_CHECKS = frozenset({"inputs", "gaps", "guards"})
"""The checks of memory that is not part of a result. Their results also include problems of further calls."""


@final
@dataclass(frozen=True, kw_only=True)
class CallAttempt:
    """One call of a case and its results.

    Attributes:
        code: the error code that the call returned.
        message: the vendor's last error, if the call failed.
        run: the record of the call; None if it returned an error code.
        check_results: the results of the checks of a single call.
        left: the numbers of tensors and of blocks of device memory that were allocated for the call and not released.
    """

    code: Error
    message: str = ""
    run: CallRecord | None = None
    check_results: Sequence[CheckResult] = ()
    left: tuple[int, int] = (0, 0)

    @property
    def is_successful(self) -> bool:
        """Whether the call succeeded and every check passed."""
        return self.run is not None and all(finding.passed for finding in self.check_results)

    @property
    def problem(self) -> str:
        """The reason why the results are wrong or missing; empty if every check passed that concerns results."""
        if self.run is None:
            return f"{self.code.name}: {self.message}"
        return "; ".join(f"{finding.check}: {finding.message}" for finding in self._failed_result_checks)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The differences between the results and the expected results."""
        return tuple(place for finding in self._failed_result_checks for place in finding.differences)

    @property
    def _failed_result_checks(self) -> Sequence[CheckResult]:
        """The failed check results that concern results."""
        return [finding for finding in self.check_results if not finding.passed and finding.check not in MEMORY_CHECKS]


@final
@dataclass(frozen=True, kw_only=True)
class CallSequence:
    """The calls of one case.

    Attributes:
        first: the call whose results are checked. Its inputs had arrived on the device.
        queued: the same call with tensors at other addresses, and with the copies of its inputs still in the stream's
            queue. None if the first call failed, or if the case is not a smoke case.
        waited: as `queued`, but after the inputs have arrived. None unless `queued` has wrong or no results.
        relaid: as `waited`, with inputs in another layout. None if an earlier call has wrong or no results. Also None
            if the case does not have the function's leading element type, because layouts don't depend on types.
        plain: the record of a call of the out-of-place form with the same arguments, if the case calls an in-place
            form. None if `queued` is None, or if the vendor does not implement the out-of-place form or rejects the
            call.
    """

    first: CallAttempt
    queued: CallAttempt | None = None
    waited: CallAttempt | None = None
    relaid: CallAttempt | None = None
    plain: CallRecord | None = None

    @property
    def records(self) -> dict[str, CallRecord]:
        """The records of the successful calls by name: first, second, waited, relaid, plain."""
        attempts = {"first": self.first, "second": self.queued, "waited": self.waited, "relaid": self.relaid}
        runs = {name: attempt.run for name, attempt in attempts.items() if attempt is not None}
        return {name: run for name, run in {**runs, "plain": self.plain}.items() if run is not None}

    @property
    def check_results(self) -> list[CheckResult]:
        """The check results of the first call, and the results of further calls that concern memory."""
        lines = {finding.check: finding for finding in self.first.check_results}
        for call, attempt in ((SECOND_CALL, self.queued), (RELAID_CALL, self.relaid)):
            for finding in attempt.check_results if attempt is not None else ():
                line = lines.get(finding.check)
                if finding.check in MEMORY_CHECKS and (line is None or (line.passed and not finding.passed)):
                    message = f"in {call}, {finding.message}" if finding.message else ""
                    lines[finding.check] = replace(
                        finding, message=message, differences=assign_call(finding.differences, call)
                    )
        return list(lines.values())

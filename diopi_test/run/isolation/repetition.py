"""Repetitions: failed cases that run again, to confirm a failure in a new process or to retry a known flake."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from diopi_test.execution.verdict import UNSUCCESSFUL, Outcome, Verdict
from diopi_test.results.causes.provisional import provisional_cause
from diopi_test.run.collection import Collected
from diopi_test.run.failure_policy import FailurePolicy

if TYPE_CHECKING:
    from diopi_test.run.isolation.executor import ScheduledCase

MAX_CONFIRMED = 5
"""The maximum number of failures per function that are confirmed. It limits the repetitions if every failure has a
different message."""

MAX_CONFIRMATIONS_IN_A_ROW = 15
"""Number of confirmations without a flaky case after which the runner trusts failures of the vendor. If 20 % of the
failures were flaky, 15 confirmations would miss them with a probability of 4 %."""


@final
@dataclass(frozen=True, kw_only=True)
class Repetition:
    """The reason to run a case again.

    Attributes:
        before: the outcome of the first attempt.
        seconds: the duration of the first attempt.
        preceding: the ID of the case that ran before the first attempt in the same process; empty if there was none.
        attempts: the number of attempts so far.
        cause: the provisional cause that the repetition confirms; empty if it only retries a known flake.
    """

    before: Outcome
    seconds: float
    preceding: str
    attempts: int = 1
    cause: str = ""

    def resolve(self, repetition: Outcome) -> Outcome:
        """Return the final outcome of the case: `flaky` if the first attempt failed and the repetition did not.

        Args:
            repetition: The outcome of the repetition, in which the case was the first one of a new process.
        """
        if repetition.verdict not in UNSUCCESSFUL and self.before.verdict in UNSUCCESSFUL:
            circumstances = (
                f"in a process in which {self.preceding} had run before" if self.attempts == 1 else "at first"
            )
            text = f"{self.before.verdict} {circumstances} ({self.before.message}), {repetition.verdict} alone"
            return replace(self.before, verdict=Verdict.flaky, message=text, timing=None, preceding_case=self.preceding)
        return repetition


@final
class Repetitions:
    """A queue of cases to run again. Only the first failure of each cause is confirmed, and only if it counts.

    Attributes:
        policy: which failures count, and which cases are known flakes.
    """

    def __init__(self) -> None:
        self.policy = FailurePolicy()
        self._queue: deque[tuple[ScheduledCase, Repetition]] = deque()
        self._confirmed: set[str] = set()
        self._confirmed_of: Counter[str] = Counter()
        self._running: Counter[str] = Counter()
        self._in_a_row = 0

    def review(
        self, case: Collected, outcome: Outcome, seconds: float, preceding: str, earlier: Repetition | None
    ) -> Repetition | None:
        """Decide whether a case that has ended runs again.

        Args:
            case: the case.
            outcome: the outcome of this attempt.
            seconds: the duration of this attempt.
            preceding: the ID of the case that ran before this attempt in its process; empty if there was none.
            earlier: why this attempt was made; None if it was the first attempt.

        Returns:
            The reason to run the case again; None if its outcome is final.
        """
        if earlier is not None:
            self._running[earlier.cause] -= 1
        if outcome.verdict not in UNSUCCESSFUL:
            self._in_a_row = 0 if earlier is not None else self._in_a_row
            return None
        self._in_a_row += bool(earlier and earlier.cause)
        record = case.record(outcome, seconds)
        cause = provisional_cause(record).id
        is_alone = earlier is not None or not preceding
        if not is_alone and self._is_unconfirmed(case, cause) and self.policy.counts(record):
            return Repetition(before=outcome, seconds=seconds, preceding=preceding, cause=cause)
        if is_alone:
            self._confirmed.add(cause)
        attempts = earlier.attempts if earlier else 0
        if attempts < self.policy.retries_for(case.id):
            first = earlier or Repetition(before=outcome, seconds=seconds, preceding=preceding, attempts=0)
            return replace(first, attempts=attempts + 1, cause="")
        self._confirmed_of[case.function] += is_alone
        return None

    def _is_unconfirmed(self, case: Collected, cause: str) -> bool:
        """Return whether a failure with this cause must be confirmed by a repetition in a new process."""
        is_known = cause in self._confirmed or self._confirmed_of[case.function] >= MAX_CONFIRMED
        return not is_known and self._in_a_row < MAX_CONFIRMATIONS_IN_A_ROW

    def add(self, scheduled: ScheduledCase, repetition: Repetition) -> None:
        """Add a case, with the reason for its repetition, to the end of the queue."""
        self._queue.append((scheduled, repetition))

    def put_back(self, scheduled: ScheduledCase, repetition: Repetition) -> None:
        """Put a case that was taken, but was not run because its process ended, back to the front of the queue."""
        self._running[repetition.cause] -= 1
        self._queue.appendleft((scheduled, repetition))

    def take(self) -> tuple[ScheduledCase, Repetition] | None:
        """Remove the next case to run from the queue. Skip a case while another case with the same cause is running.

        Returns:
            The case and the reason to run it again; None if no case remains.
        """
        for number, (scheduled, repetition) in enumerate(self._queue):
            if not repetition.cause or not self._running[repetition.cause]:
                del self._queue[number]
                self._running[repetition.cause] += 1
                return scheduled, repetition
        return None

    def take_finished(self) -> Iterator[tuple[ScheduledCase, Repetition]]:
        """Remove the cases from the queue that need not run again, except known flakes.

        In the meantime, their cause has been confirmed, or enough failures of their function or of the run.

        Yields:
            Each of these cases, with the reason why it was in the queue.
        """
        queue, self._queue = self._queue, deque()
        for scheduled, repetition in queue:
            is_retried = not repetition.cause or self.policy.retries_for(scheduled.case.id) > 0
            if is_retried or self._is_unconfirmed(scheduled.case, repetition.cause):
                self._queue.append((scheduled, repetition))
            else:
                yield scheduled, repetition

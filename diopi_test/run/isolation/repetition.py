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
        before: the outcome of the first attempt, and its duration in seconds.
        neighbour: the ID of the case that ran before it; empty if it was the first case of its process.
        attempts: the number of attempts so far.
        cause: the provisional cause that the repetition confirms; empty if it only retries a known flake.
    """

    before: Outcome
    seconds: float
    neighbour: str
    attempts: int = 1
    cause: str = ""

    def resolve(self, alone: Outcome) -> Outcome:
        """Return the final outcome, where `alone` is the outcome of the case in a separate worker."""
        if alone.verdict not in UNSUCCESSFUL and self.before.verdict in UNSUCCESSFUL:
            ran = f"in a process in which {self.neighbour} had run before" if self.attempts == 1 else "at first"
            text = f"{self.before.verdict} {ran} ({self.before.message}), {alone.verdict} alone"
            return replace(self.before, verdict=Verdict.flaky, message=text, timing=None, preceding_case=self.neighbour)
        return alone


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
        self, case: Collected, outcome: Outcome, seconds: float, neighbour: str, earlier: Repetition | None
    ) -> Repetition | None:
        """Decide whether a case that has ended runs again.

        Args:
            case: the case.
            outcome: the outcome of this attempt.
            seconds: the duration of this attempt.
            neighbour: the ID of the case that ran before it in its process; empty if there was none.
            earlier: why this attempt was made; None if it was the first one.

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
        is_alone = earlier is not None or not neighbour
        if not is_alone and self._is_unconfirmed(case, cause) and self.policy.counts(record):
            return Repetition(before=outcome, seconds=seconds, neighbour=neighbour, cause=cause)
        if is_alone:
            self._confirmed.add(cause)
        attempts = earlier.attempts if earlier else 0
        if attempts < self.policy.retries_for(case.id):
            first = earlier or Repetition(before=outcome, seconds=seconds, neighbour=neighbour, attempts=0)
            return replace(first, attempts=attempts + 1, cause="")
        self._confirmed_of[case.function] += is_alone
        return None

    def _is_unconfirmed(self, case: Collected, cause: str) -> bool:
        """Return whether a failure with this cause must be confirmed by a repetition in a new process."""
        is_known = cause in self._confirmed or self._confirmed_of[case.function] >= MAX_CONFIRMED
        return not is_known and self._in_a_row < MAX_CONFIRMATIONS_IN_A_ROW

    def add(self, scheduled: ScheduledCase, repetition: Repetition) -> None:
        """Add a case to the end of the queue."""
        self._queue.append((scheduled, repetition))

    def put_back(self, scheduled: ScheduledCase, repetition: Repetition) -> None:
        """Return a case that was taken from the queue but could not be started."""
        self._running[repetition.cause] -= 1
        self._queue.appendleft((scheduled, repetition))

    def take(self) -> tuple[ScheduledCase, Repetition] | None:
        """Remove and return the next case to run; None if there is none whose cause is not being confirmed already."""
        for number, (scheduled, repetition) in enumerate(self._queue):
            if not repetition.cause or not self._running[repetition.cause]:
                del self._queue[number]
                self._running[repetition.cause] += 1
                return scheduled, repetition
        return None

    def settled(self) -> Iterator[tuple[ScheduledCase, Repetition]]:
        """Remove and yield the cases that need not run again, because their causes have been confirmed meanwhile."""
        queue, self._queue = self._queue, deque()
        for scheduled, repetition in queue:
            is_retried = not repetition.cause or self.policy.retries_for(scheduled.case.id) > 0
            if is_retried or self._is_unconfirmed(scheduled.case, repetition.cause):
                self._queue.append((scheduled, repetition))
            else:
                yield scheduled, repetition

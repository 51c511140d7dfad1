"""Run the cases on a library, with one process per rank. The processes are replaced when a case does not pass."""

from __future__ import annotations

import json
import select
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from diopi_test.device_runtime.run import CaseProcess, RuntimeOutcome
from diopi_test.execution.verdict import Verdict
from lib_rt.device_runtime_client import NoDeviceRuntimeError

START_SECONDS = 120.0
"""The time within which all processes must have loaded the library."""

END_SECONDS = 10.0
"""The maximum duration in which idle ranks end by themselves."""

SETTLE_SECONDS = 1.0
"""The time for which the other ranks may continue after a rank has failed or ended."""

SEVERITY = (
    Verdict.crashed,
    Verdict.timed_out,
    Verdict.failed,
    Verdict.not_implemented,
    Verdict.unsupported,
    Verdict.passed,
)
"""The verdicts of ranks. The first of them that a rank has is the verdict of the case."""


class _RankProcess(CaseProcess):
    """The process of a rank."""

    def __init__(self, library: Path, rank: int, ranks: int) -> None:
        super().__init__("diopi_test.collectives.worker", library, rank, ranks)

    def read(self) -> list[Any]:
        """Return the next message; ["ended", reason] if the process has ended."""
        line = self.replies.readline()
        if line:
            message: list[Any] = json.loads(line)
            return message
        return ["ended", self.describe_end()]


@final
class RankGroup:
    """The processes of all ranks.

    Attributes:
        is_complete: whether all processes still run and wait for a case, so that the group can run another one.

    Args:
        library: the library under test.
        ranks: the number of ranks.

    Raises:
        NoDeviceRuntimeError: if a process can't load the library, or the library does not start.
    """

    def __init__(self, library: Path, ranks: int) -> None:
        self._processes = [_RankProcess(library, rank, ranks) for rank in range(ranks)]
        self.is_complete = True
        replies = self._collect(set(range(ranks)), time.monotonic() + START_SECONDS)
        errors = [message[1] for message in replies.values() if message[0] == "ended" or message[1]]
        if errors or len(replies) < ranks:
            self.close()
            raise NoDeviceRuntimeError(errors[0] if errors else f"{library} was not loaded in {START_SECONDS:g} s")

    def _collect(self, awaited: set[int], deadline: float) -> dict[int, list[Any]]:
        """Return the next message of each awaited rank that sends one until the deadline.

        After a rank has failed the case or ended, the others have at most `SETTLE_SECONDS`.
        """
        received: dict[int, list[Any]] = {}
        ranks = {self._processes[rank].replies: rank for rank in awaited}
        while len(received) < len(awaited) and time.monotonic() < deadline:
            pending = [replies for replies, rank in ranks.items() if rank not in received]
            for replies in select.select(pending, [], [], max(0, deadline - time.monotonic()))[0]:
                message = self._processes[ranks[replies]].read()
                received[ranks[replies]] = message
                if message[0] == "ended" or message[:2] == ["done", Verdict.failed]:
                    deadline = min(deadline, time.monotonic() + SETTLE_SECONDS)
        return received

    def run(self, case: str, timeout: float) -> RuntimeOutcome:
        """Run a case on all ranks and return its outcome; a case that exceeds `timeout` seconds has timed out."""
        deadline = time.monotonic() + timeout
        results: dict[int, tuple[Verdict, str]] = {}
        active = set(range(len(self._processes)))
        for process in self._processes:
            process.write(case)
        while active:
            messages = self._collect(active, deadline)
            results.update(self._results(messages))
            if any(verdict is not Verdict.passed for verdict, _ in results.values()):
                break  # the other ranks may wait for this one for a long time
            for rank in active - set(messages):
                results[rank] = Verdict.timed_out, f"it took more than {timeout:g} s"
            active = {rank for rank, message in messages.items() if message[0] == "exchange"}
            values = [messages[rank][1] if rank in active else None for rank in range(len(self._processes))]
            for rank in active:
                self._processes[rank].write(json.dumps(values))
        have_ended = len(results) == len(self._processes) and all(
            verdict is not Verdict.timed_out for verdict, _ in results.values()
        )
        self.is_complete = self.is_complete and have_ended
        return _merge(case, results)

    def _results(self, messages: Mapping[int, list[Any]]) -> Iterator[tuple[int, tuple[Verdict, str]]]:
        """Yield the results of the ranks that have ended the case or their process."""
        for rank, message in messages.items():
            if message[0] == "done":
                yield rank, (Verdict(message[1]), message[2])
            elif message[0] == "ended":
                yield rank, (Verdict.crashed, message[1])
            elif message[0] == "end":
                self.is_complete = False
                yield rank, (Verdict.passed, "")

    def close(self) -> None:
        """End the processes; those that may be busy are killed after a short time."""
        for process in self._processes:
            process.request_end()
        for process in self._processes:
            process.close(END_SECONDS if self.is_complete else SETTLE_SECONDS)


def _merge(case: str, results: Mapping[int, tuple[Verdict, str]]) -> RuntimeOutcome:
    """Return the outcome of a case, from the verdict and the message of each rank."""
    verdict = next(verdict for verdict in SEVERITY if any(verdict is v for v, _ in results.values()))
    rank, message = next((rank, text) for rank, (v, text) in sorted(results.items()) if v is verdict)
    return RuntimeOutcome(case=case, verdict=verdict, message=f"rank {rank}: {message}" if message else "")


def run_collective_cases(library: Path, cases: Sequence[str], ranks: int, timeout: float) -> Iterator[RuntimeOutcome]:
    """Run cases in order and yield their outcomes.

    Args:
        library: the library under test.
        cases: the names of the cases.
        ranks: the number of ranks.
        timeout: the maximum duration of a case in seconds.

    Yields:
        The outcome of each case when it ends.

    Raises:
        NoDeviceRuntimeError: if the library can't be loaded or does not start.
    """
    group = None
    try:
        for case in cases:
            group = group or RankGroup(library, ranks)
            outcome = group.run(case, timeout)
            if outcome.verdict not in (Verdict.passed, Verdict.unsupported) or not group.is_complete:
                group.close()
                group = None
            yield outcome
    finally:
        if group is not None:
            group.close()

"""Run groups of samples in worker processes.

A sample that ends its process or hangs is reported as a difference, and a new process runs the samples after it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from diopi_torch.conformance.samples import SampleGroup

TIMEOUT = 900.0
"""Seconds after which a sample counts as hanging."""

END_SECONDS = 30.0
"""Seconds that an idle worker process has to end by itself before it is killed."""

WORKER = (sys.executable, "-m", "diopi_torch.conformance.worker")
"""The command line of a worker process."""


@dataclass(kw_only=True)
class GroupOutcome:
    """The outcomes of the samples of a group.

    Attributes:
        group: the group.
        samples: number of samples that were compared.
        skipped: number of samples that the CPU cannot run, or that it does not reject although they are invalid.
        differences: descriptions of the differences from the CPU, by the position of the sample in the group.
    """

    group: SampleGroup
    samples: int = 0
    skipped: int = 0
    differences: dict[int, str] = field(default_factory=dict)

    def add(self, position: int, outcome: str | None) -> None:
        """Add the outcome of the sample at a position, as `compare_with_cpu` returns it."""
        if outcome is None:
            self.skipped += 1
            return
        self.samples += 1
        if outcome:
            self.differences[position] = outcome


class WorkerEndedError(Exception):
    """The worker process has ended; the message states how."""


class Worker:
    """A worker process.

    Args:
        variables: additional environment variables.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        self._process = subprocess.Popen(
            WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self._errors: list[str] = []
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()

    def _read_errors(self) -> None:
        """Store the last five lines of the standard error, which may state why the process ended."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors = [*self._errors[-4:], line.strip()]

    def send(self, task: Mapping[str, Any]) -> None:
        """Send a task to the process; raise WorkerEndedError if the process has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(task) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerEndedError(self._describe_end(timed_out=False)) from None

    def receive(self) -> Sequence[Any]:
        """Return the next message, such as `["end", 3, ""]`; raise WorkerEndedError if the process ends or hangs."""
        assert self._process.stdout is not None
        expired = threading.Event()
        timer = threading.Timer(TIMEOUT, self._kill, [expired])
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            raise WorkerEndedError(self._describe_end(timed_out=expired.is_set()))
        received: Sequence[Any] = json.loads(line)
        return received

    def _kill(self, expired: threading.Event) -> None:
        """Kill the process because its time has expired."""
        expired.set()
        self._process.kill()

    def _describe_end(self, *, timed_out: bool) -> str:
        """Return how the process ended, and release its pipes."""
        code = self._process.wait()
        self._close_pipes()
        if timed_out:
            return f"takes longer than {TIMEOUT:g} seconds"
        cause = signal.Signals(-code).name if code < 0 else f"status {code}"
        return f"ends the process ({cause}): {' '.join(self._errors)[-200:]}"

    def _close_pipes(self) -> None:
        """Release the pipes of a process that has ended, after reading its standard error."""
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def close(self) -> None:
        """End the process: an idle process ends by itself, one that does not is killed."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        self._process.kill()
        self._process.wait()
        self._close_pipes()


class WorkerPool:
    """Worker processes that share a list of groups.

    Args:
        groups: the groups.
        limit: maximum number of samples of a group; 0 for all of them.
        seed: the seed with which samples are drawn.
        variables: additional environment variables of the workers.
    """

    def __init__(self, groups: Sequence[SampleGroup], *, limit: int, seed: int, variables: Mapping[str, str]) -> None:
        self._groups: queue.SimpleQueue[SampleGroup] = queue.SimpleQueue()
        for group in groups:
            self._groups.put(group)
        self._count = len(groups)
        self._limit = limit
        self._seed = seed
        self._variables = variables
        self._outcomes: queue.SimpleQueue[GroupOutcome | BaseException] = queue.SimpleQueue()

    def run(self, processes: int) -> Iterator[GroupOutcome]:
        """Run the groups in this many processes; yield the outcome of each group when the group is complete."""
        for _ in range(processes):
            threading.Thread(target=self._serve, daemon=True).start()
        for _ in range(self._count):
            outcome = self._outcomes.get()
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome

    def _serve(self) -> None:
        """Run groups, one after the other, until no group is left; a thread per worker process runs this method."""
        worker: Worker | None = None
        try:
            while True:
                try:
                    group = self._groups.get_nowait()
                except queue.Empty:
                    break
                outcome, worker = self._run_group(group, worker)
                self._outcomes.put(outcome)
        except BaseException as error:
            self._outcomes.put(error)
        finally:
            if worker is not None:
                worker.close()

    def _run_group(self, group: SampleGroup, worker: Worker | None) -> tuple[GroupOutcome, Worker]:
        """Return the outcomes of a group, and the worker for the next group.

        Args:
            group: the group.
            worker: the worker that is ready; None to start a new one. If a sample ends it, another one is started.
        """
        outcome, first = GroupOutcome(group=group), 0
        while True:
            worker = worker or self._start_worker()
            position = first
            try:
                worker.send({"group": asdict(group), "limit": self._limit, "seed": self._seed, "first": first})
                while (received := worker.receive())[0] != "done":
                    if received[0] == "start":
                        position = received[1]
                    elif received[0] == "end":
                        outcome.add(position, received[2])
                        position += 1
                return outcome, worker
            except WorkerEndedError as end:
                outcome.add(position, str(end))
                first, worker = position + 1, None

    def _start_worker(self) -> Worker:
        """Return a new worker that is ready; raise RuntimeError if it ends before that."""
        worker = Worker(self._variables)
        try:
            worker.receive()
        except WorkerEndedError as end:
            raise RuntimeError(f"the worker process {end}") from None
        return worker

"""`Executor`: distributes cases to workers, enforces their limits, and decides what the end of a worker means."""

from __future__ import annotations

import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any, final

from diopi_impl import VendorError, VendorNotFoundError
from diopi_test.baseline.codec import from_json
from diopi_test.execution.verdict import PROCESS_LOST, Outcome, Verdict
from diopi_test.run.collection import Collected
from diopi_test.run.failure_policy import FailurePolicy
from diopi_test.run.isolation.description import Description
from diopi_test.run.isolation.ending import (
    append_output,
    busy_seconds,
    describe_exit,
    outcome_of_end,
    resident_bytes,
)
from diopi_test.run.isolation.fork_server import Ended, ForkServer, WorkerProcess
from diopi_test.run.isolation.repetition import Repetition, Repetitions
from diopi_test.run.limits import CaseOptions, Limits

LOADING_SECONDS, PROBING_SECONDS, BUSY_START_SECONDS, CLOSING_SECONDS = 8.0, 5.0, 60.0, 5.0
"""Time limits in seconds: to load a vendor; to check its device; for each of these two if the process is busy; and to
close the device."""

BUSY_SHARE = 0.03
"""A worker counts as busy if it uses a CPU, or waits for a CPU, for at least this share of the time."""

DEFAULT_LIMITS, DEFAULT_CASE_OPTIONS = Limits(), CaseOptions()
"""The limits and options of an executor if the caller specifies none."""

STACK_DUMP_SECONDS = 0.3
"""Seconds between the signal that makes a hanging worker print its stack and the signal that ends it."""

MAX_FAILED_STARTS = 3
"""Number of consecutive failed starts that are tolerated for a vendor that has started before."""

_MEMORY_INTERVAL = 0.05
"""Seconds between two measurements of the workers' memory."""


@final
@dataclass(frozen=True)
class ScheduledCase:
    """A case to run.

    Attributes:
        path: the baseline file of the case.
        case: the case.
        sha256: the digest that the file must have; None accepts any digest.
    """

    path: Path
    case: Collected
    sha256: str | None = None

    @property
    def task(self) -> Sequence[Any]:
        """Return the message that asks a worker to run the case."""
        case = self.case
        return [str(self.path), self.sha256, [case.function, case.label, case.dtype, case.case_class.value, case.base]]


@final
@dataclass(kw_only=True)
class _Worker:
    """A place for a worker process, with the cases assigned to it; a process that has ended is replaced when needed.

    Attributes:
        process: the process; None before the first case and after the process has ended.
        has_loaded: whether the process has loaded the vendor.
        is_ready: whether the vendor is loaded and its device works.
        work: the cases assigned to this worker; the first one is running.
        latest: the ID of the most recently finished case.
        began: the time when the current case or step of the start began, by `time.monotonic`.
        busy: seconds for which the process had been busy when the current step of the start began.
        deadline: the time at which the current case or step exceeds its limit, by `time.monotonic`.
        output: the number of bytes of output when the latest case was finished.
        end_reason: if the executor terminated the process, the verdict on the running case and the reason.
        has_answered: whether the process finished its case although the executor had already requested its end. The
            next case is then not responsible for the end.
        repetition: why the running case runs again in a new process; None for a first attempt.
    """

    process: WorkerProcess | None = None
    work: deque[ScheduledCase] = field(default_factory=deque)
    has_loaded: bool = False
    is_ready: bool = False
    latest: str = ""
    began: float = 0.0
    busy: float = 0.0
    deadline: float = 0.0
    output: int = 0
    end_reason: tuple[Verdict, str] | None = None
    has_answered: bool = False
    repetition: Repetition | None = None

    @property
    def is_busy(self) -> bool:
        """Return whether the worker has cases to run, or is starting."""
        return bool(self.work) or (self.process is not None and not self.is_ready)

    def adopt(self, process: WorkerProcess) -> None:
        """Use a new process, and reset everything that was observed of the previous one."""
        self.process, self.is_ready, self.latest, self.output = process, False, "", 0
        self.has_loaded, self.end_reason, self.has_answered = False, None, False

    def begin_step(self, seconds: float, busy: float) -> None:
        """Begin a step of the start of the process: loading the vendor, or checking its device.

        Args:
            seconds: The time limit of the step.
            busy: The seconds for which the process has been busy so far.
        """
        self.began, self.busy = time.monotonic(), busy
        self.deadline = self.began + seconds


@final
class Executor:
    """An executor that runs cases of one vendor in several workers.

    The first failure of each cause is confirmed: if the case ran after other cases, it is repeated in a new process.
    The second verdict counts; if it is `passed`, the case is `flaky`. Failures that do not affect the exit status are
    not confirmed.

    Args:
        vendor: The vendor, as `diopi_impl.find_vendor` takes it.
        workers: The number of workers.
        limits: The resources that the cases may use.
        options: How to run and check the cases.

    Attributes:
        notes: problems that are not verdicts of cases.
    """

    def __init__(
        self, vendor: str, workers: int, limits: Limits = DEFAULT_LIMITS, options: CaseOptions = DEFAULT_CASE_OPTIONS
    ) -> None:
        self.notes: list[str] = []
        self._vendor = vendor
        self._limits = limits
        self._options = options
        self._fork_server = ForkServer()
        self._selector = DefaultSelector()
        self._workers = [_Worker() for _ in range(workers)]
        self._repetitions = Repetitions()
        self._returned: deque[Sequence[ScheduledCase]] = deque()  # the cases after the one in which a process ended
        self._lost: Counter[str] = Counter()
        self._failed_starts = 0
        self._has_started = False
        self._description: Description | None = None

    def __enter__(self) -> Executor:
        self._selector.register(self._fork_server, EVENT_READ)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._close_devices()
        finally:
            self._selector.close()
            self._fork_server.close()
            for worker in self._workers:
                if worker.process is not None:
                    worker.process.close()

    def renew(self) -> None:
        """End the idle workers, so that the next case is the first of a new process."""
        for worker in self._workers:
            self._retire(worker)

    def _close_devices(self) -> None:
        """Let idle workers close their devices and end; note which of them ended with an error."""
        open_workers = {
            worker.process.number: worker for worker in self._workers if worker.process and not worker.is_busy
        }
        for worker in open_workers.values():
            assert worker.process is not None
            worker.process.hang_up()
        end = time.monotonic() + CLOSING_SECONDS
        while open_workers and time.monotonic() < end:
            self._selector.select(end - time.monotonic())
            for ended in self._fork_server.ended():
                if (closed := open_workers.pop(ended.process, None)) and ended.status:
                    assert closed.process is not None
                    output = closed.process.output_since(closed.output)
                    self.notes.append(
                        append_output(f"when it closed its device the vendor {describe_exit(ended.status)}", output)
                    )

    # The vendor's description.

    def describe(self) -> Description:
        """Return the vendor's description of itself; start a worker if necessary.

        Raises:
            VendorError: The vendor does not start.
            VendorNotFoundError: There is no such vendor.
        """
        worker = self._workers[0]
        if worker.process is None:
            self._start(worker)
        while self._description is None or not worker.is_ready:
            self._process_events()
        return self._description

    # Distribution of the cases.

    def run(
        self,
        batches: Iterable[Sequence[ScheduledCase]],
        report: Callable[[Collected, Outcome, float], None],
        policy: FailurePolicy | None = None,
    ) -> None:
        """Run the cases and report each of them once.

        A process runs the cases of a batch in order. If the process ends, another process runs the remaining cases.

        Args:
            batches: The cases.
            report: Receives each case once, with its outcome and its duration in seconds.
            policy: Which failures count and are therefore confirmed, and which cases are known flakes.

        Raises:
            VendorError: The vendor does not start, or no longer starts. Cases that were not reported have no verdict.
        """
        self._batches, self._report = iter(batches), report
        self._repetitions.policy = policy or FailurePolicy()
        while self._distribute_work():
            self._process_events()

    def _distribute_work(self) -> bool:
        """Assign cases to idle workers and return whether any worker is busy."""
        for worker in self._workers:
            if not worker.is_busy:
                self._assign_next(worker)
        return any(worker.is_busy for worker in self._workers)

    def _assign_next(self, worker: _Worker) -> None:
        """Assign work to an idle worker: a case to repeat, in a new process, or else the next batch.

        Also report the cases that no longer need to be repeated.
        """
        for scheduled, repetition in self._repetitions.take_finished():
            self._conclude(scheduled, repetition.before, repetition.seconds)
        if repeated := self._repetitions.take():
            scheduled, worker.repetition = repeated
            self._retire(worker)
            self._assign(worker, [scheduled])
        elif work := self._next_batch():
            self._assign(worker, work)

    def _next_batch(self) -> Sequence[ScheduledCase]:
        """Return the cases to run next, without cases of abandoned functions."""
        while batch := self._returned.popleft() if self._returned else next(self._batches, None):
            if work := [scheduled for scheduled in batch if not self._report_if_abandoned(scheduled)]:
                return work
        return ()

    def _report_if_abandoned(self, scheduled: ScheduledCase) -> bool:
        """Return whether a case's function was abandoned; if so, report the case as not run."""
        lost = self._lost[scheduled.case.function]
        if lost < self._limits.lost:
            return False
        reason = f"{lost} cases of {scheduled.case.function} have crashed, hung or run out of memory"
        self._report(scheduled.case, Outcome(verdict=Verdict.not_run, message=f"not run: {reason}"), 0.0)
        return True

    def _assign(self, worker: _Worker, work: Sequence[ScheduledCase]) -> None:
        """Send cases to a worker, and start its process first if necessary."""
        worker.work = deque(work)
        if worker.process is None:
            self._start(worker)
        assert worker.process is not None
        worker.process.send([scheduled.task for scheduled in work])
        if worker.is_ready:
            self._begin_case(worker)

    def _begin_case(self, worker: _Worker) -> None:
        """Start the time limit of the worker's next case."""
        worker.began = time.monotonic()
        worker.deadline = worker.began + self._limits.timeout

    def _finish_case(self, worker: _Worker, outcome: Outcome, seconds: float) -> None:
        """Report the outcome of the running case, or schedule the case to run again in a new worker."""
        scheduled, earlier = worker.work.popleft(), worker.repetition
        preceding, worker.latest, worker.repetition = worker.latest, scheduled.case.id, None
        if repetition := self._repetitions.review(scheduled.case, outcome, seconds, preceding, earlier):
            self._repetitions.add(scheduled, repetition)
        else:
            self._conclude(scheduled, earlier.resolve(outcome) if earlier else outcome, seconds)

    def _conclude(self, scheduled: ScheduledCase, outcome: Outcome, seconds: float) -> None:
        """Report the final outcome of a case, which took `seconds`."""
        self._lost[scheduled.case.function] += outcome.verdict in PROCESS_LOST
        self._report(scheduled.case, outcome, seconds)

    # Processes.

    def _start(self, worker: _Worker) -> None:
        """Start a process for the worker; its first step is to load the vendor."""
        worker.adopt(self._fork_server.start(self._vendor, self._options))
        assert worker.process is not None
        self._selector.register(worker.process.channel, EVENT_READ, worker)
        worker.begin_step(LOADING_SECONDS, 0.0)

    def _retire(self, worker: _Worker) -> None:
        """End the process of an idle worker, so that its next case is the first of a new process."""
        if worker.process is not None:
            self._fork_server.signal(worker.process, signal.SIGKILL)
            self._release(worker)

    def _release(self, worker: _Worker) -> None:
        """Close the connection to a worker process that has ended."""
        assert worker.process is not None
        if worker.process.is_open:
            self._selector.unregister(worker.process.channel)
        worker.process.close()
        worker.process = None

    def _process_events(self) -> None:
        """Wait until a worker sends something, ends or reaches a limit, and handle that."""
        for key, _ in self._selector.select(self._seconds_to_deadline()):
            if key.data is not None:
                self._receive_messages(key.data)
        for ended in self._fork_server.ended():
            for worker in self._workers:
                if worker.process is not None and worker.process.number == ended.process:
                    self._receive_messages(worker)
                    self._handle_exit(worker, ended)
        for worker in self._workers:
            if worker.is_busy:
                self._enforce_limits(worker)

    def _seconds_to_deadline(self) -> float:
        """Return the seconds until the next limit is reached."""
        now = time.monotonic()
        waits = [worker.deadline - now for worker in self._workers if worker.is_busy]
        if self._limits.memory:
            waits.append(_MEMORY_INTERVAL)
        return max(0.0, min(waits, default=0.0))

    def _receive_messages(self, worker: _Worker) -> None:
        """Handle the messages that a worker has sent."""
        process = worker.process
        if process is None:  # its messages were handled when it ended
            return
        was_open = process.is_open
        for message in process.received():
            match message:
                case {"outcome": outcome, "seconds": seconds, "output": output}:
                    worker.output, worker.has_answered = output, worker.end_reason is not None
                    self._finish_case(worker, from_json(Outcome, outcome), seconds)
                    self._begin_case(worker)
                case {"loaded": description}:
                    self._description, worker.has_loaded = from_json(Description, description), True
                    worker.begin_step(PROBING_SECONDS, busy_seconds(process.number))
                case {"ready": True}:
                    worker.is_ready, self._has_started, self._failed_starts = True, True, 0
                    self._begin_case(worker)
                case {"refused": reason, "found": found}:
                    raise (VendorError if found else VendorNotFoundError)(reason)
        if was_open and not process.is_open:
            self._selector.unregister(process.channel)
            self._handle_closed_channel(worker, process)

    def _handle_closed_channel(self, worker: _Worker, process: WorkerProcess) -> None:
        """Handle a closed channel: the worker has ended, or the vendor has misused the file descriptor."""
        if process.is_damaged and not worker.is_busy:
            self.notes.append(f"after {worker.latest}, outside any case, the vendor {process.misuse}")
            self._retire(worker)
        else:
            worker.deadline = time.monotonic() + (0.0 if process.is_damaged else STACK_DUMP_SECONDS)

    def _handle_exit(self, worker: _Worker, ended: Ended) -> None:
        """Handle the end of a worker's process, on its own or by the executor."""
        assert worker.process is not None
        output = worker.process.output_since(worker.output)
        self._release(worker)
        if not worker.is_ready:
            self._handle_failed_start(worker, ended, output)
            return
        worker.is_ready = False
        if worker.work:
            if not worker.has_answered:
                outcome = outcome_of_end(ended.status, worker.end_reason, output)
                self._finish_case(worker, outcome, time.monotonic() - worker.began)
            self._put_back(worker)
        else:
            text = f"after {worker.latest}, outside any case, the vendor {describe_exit(ended.status)}"
            self.notes.append(append_output(text, output))

    def _put_back(self, worker: _Worker) -> None:
        """Put the unfinished cases of a worker that has ended back into the queues."""
        if worker.work and worker.repetition is not None:
            scheduled = worker.work.popleft()
            self._repetitions.put_back(scheduled, worker.repetition)
            worker.repetition = None
        if worker.work:
            self._returned.appendleft(list(worker.work))
            worker.work.clear()

    def _handle_failed_start(self, worker: _Worker, ended: Ended, output: str) -> None:
        """Handle a failed start: put the cases of the worker back, so that they run in another process.

        Args:
            worker: the worker that did not start.
            ended: how its process ended.
            output: what the process has printed.

        Raises:
            VendorError: The vendor has never started, or several consecutive starts have failed.
        """
        exit_text = worker.end_reason[1] if worker.end_reason else describe_exit(ended.status)
        self._failed_starts += 1
        if not self._has_started or self._failed_starts >= MAX_FAILED_STARTS:
            raise VendorError(append_output(f"vendor {self._vendor} does not start: it {exit_text}", output))
        self._put_back(worker)

    # Limits.

    def _enforce_limits(self, worker: _Worker) -> None:
        """End a worker process that exceeded its time or memory limit."""
        assert worker.process is not None
        if time.monotonic() >= worker.deadline:
            self._end_late(worker, worker.process)
        elif self._limits.memory and worker.is_ready and worker.end_reason is None:
            used_bytes = resident_bytes(worker.process.number)
            if used_bytes > self._limits.memory:
                text = f"the process has {used_bytes >> 20} MiB of memory, and may have {self._limits.memory >> 20}"
                self._end_process(worker, (Verdict.out_of_memory, text), signal.SIGKILL)

    def _end_late(self, worker: _Worker, process: WorkerProcess) -> None:
        """Handle a worker that has reached its deadline.

        A busy worker that is starting gets more time. Any other worker is asked to print its stack. A worker that was
        asked before, or whose channel is closed, is killed.
        """
        if worker.end_reason is not None:
            self._end_process(worker, worker.end_reason, signal.SIGKILL)
        elif not process.is_open:
            text = f"the vendor {process.misuse}" if worker.is_ready else process.misuse
            self._end_process(worker, (Verdict.crashed, text), signal.SIGKILL)
        elif worker.is_ready:
            reason = f"not done after {self._limits.timeout:g} s"
            self._end_process(worker, (Verdict.timed_out, reason), signal.SIGABRT)
        elif self._is_busy_starting(worker, process):
            worker.deadline = worker.began + BUSY_START_SECONDS
        else:
            step, seconds = "show that it works" if worker.has_loaded else "load", worker.deadline - worker.began
            self._end_process(worker, (Verdict.timed_out, f"did not {step} in {seconds:.0f} s"), signal.SIGABRT)

    def _is_busy_starting(self, worker: _Worker, process: WorkerProcess) -> bool:
        """Return whether a starting worker is busy enough to get more time."""
        passed = time.monotonic() - worker.began
        return passed < BUSY_START_SECONDS and busy_seconds(process.number) - worker.busy > BUSY_SHARE * passed

    def _end_process(self, worker: _Worker, end_reason: tuple[Verdict, str], number: signal.Signals) -> None:
        """Send a signal to a worker process; the reason becomes the verdict on its current case."""
        assert worker.process is not None
        worker.end_reason = end_reason
        worker.deadline = time.monotonic() + STACK_DUMP_SECONDS
        self._fork_server.signal(worker.process, number)

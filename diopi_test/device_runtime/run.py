"""Run the cases on a library in a worker process, which is replaced when a case fails, crashes or hangs."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, final

from diopi_test.execution.verdict import Verdict
from lib_rt.device_runtime_client import NoDeviceRuntimeError

START_SECONDS = 60.0
"""The time within which a worker must have loaded the library."""


@final
@dataclass(frozen=True, kw_only=True)
class RuntimeOutcome:
    """The verdict of a case of the device runtime.

    Attributes:
        case: the name of the case.
        verdict: its verdict.
        message: the reason; empty if the case passed.
    """

    case: str
    verdict: Verdict
    message: str = ""


class CaseProcess:
    """A process that receives the names of cases on standard input, and replies with lines in a pipe.

    Args:
        module: the module that the process runs.
        arguments: its arguments, after which the file descriptor of the pipe follows.

    Attributes:
        replies: the end of the pipe from which replies are read.
    """

    def __init__(self, module: str, *arguments: object) -> None:
        reading, writing = os.pipe()
        command = [sys.executable, "-m", module, *map(str, arguments), str(writing)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[writing], text=True)
        os.close(writing)
        self.replies = os.fdopen(reading)

    @property
    def _input(self) -> IO[str]:
        """The standard input of the process."""
        assert self._process.stdin is not None
        return self._process.stdin

    def write(self, line: str) -> None:
        """Send a line to the process, unless the process has ended."""
        with suppress(BrokenPipeError):
            self._input.write(f"{line}\n")
            self._input.flush()

    def describe_end(self) -> str:
        """Wait for the process to end and return how it ended."""
        status = self._process.wait()
        reason = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        return f"the process ended with {reason}"

    def request_end(self) -> None:
        """Close the standard input, after which an idle process ends."""
        with suppress(BrokenPipeError):
            self._input.close()

    def close(self, seconds: float = 0.0) -> None:
        """Wait until the process ends, at most some seconds, and then kill it."""
        self.request_end()
        self.replies.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self._process.kill()
        self._process.wait()


class _RuntimeWorker(CaseProcess):
    """A process that runs cases of the device runtime.

    Args:
        library: the library under test.

    Raises:
        NoDeviceRuntimeError: if the library can't be loaded or does not start.
    """

    def __init__(self, library: Path) -> None:
        super().__init__("diopi_test.device_runtime.worker", library)
        reply = self._read(START_SECONDS)
        if reply is None or json.loads(reply or '"the process ended while it loaded the library"'):
            self.close()
            seconds = f"{library} was not loaded within {START_SECONDS:g} s"
            raise NoDeviceRuntimeError(
                seconds if reply is None else json.loads(reply or f'"{library} ends the process"')
            )

    def run(self, case: str, timeout: float) -> RuntimeOutcome:
        """Run a case in the process and return its outcome; a case that exceeds `timeout` seconds has timed out."""
        self.write(case)
        reply = self._read(timeout)
        if reply is None:
            return RuntimeOutcome(case=case, verdict=Verdict.timed_out, message=f"it took more than {timeout:g} s")
        if not reply:
            return RuntimeOutcome(case=case, verdict=Verdict.crashed, message=self.describe_end())
        verdict, message = json.loads(reply)
        return RuntimeOutcome(case=case, verdict=Verdict(verdict), message=message)

    def _read(self, timeout: float) -> str | None:
        """Return the next line, "" if the process has ended, or None if there is no line within the time."""
        return self.replies.readline() if select.select([self.replies], [], [], timeout)[0] else None


def run_cases(library: Path, cases: Sequence[str], timeout: float) -> Iterator[RuntimeOutcome]:
    """Run cases in order and yield their outcomes.

    Args:
        library: the library under test.
        cases: the names of the cases.
        timeout: the maximum duration of a case in seconds.

    Yields:
        The outcome of each case when it ends.

    Raises:
        NoDeviceRuntimeError: if the library can't be loaded or does not start.
    """
    worker = None
    try:
        for case in cases:
            worker = worker or _RuntimeWorker(library)
            outcome = worker.run(case, timeout)
            if outcome.verdict not in (Verdict.passed, Verdict.unsupported):
                worker.close()
                worker = None
            yield outcome
    finally:
        if worker is not None:
            worker.close()

"""Runs the cases on a library, each in a process that does not outlive a case that fails, crashes or hangs."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from diopi_engine.conformance import networks
from diopi_engine.conformance.cases import CASES

TIMEOUT = 120.0
"""Seconds a case may take, with the start of the library if it is the first of its process."""


@final
@dataclass(frozen=True)
class Verdict:
    """How a case ended: `passed`, `failed`, `crashed`, `timed_out` or `not_run`, and why."""

    case: str
    verdict: str
    detail: str


class _Worker:
    """A process that runs cases."""

    def __init__(self, library: Path, folder: Path) -> None:
        reading, writing = os.pipe()
        command = [sys.executable, "-m", "diopi_engine.conformance.worker", str(library), str(folder), str(writing)]
        self._process: Any = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[writing], text=True)
        os.close(writing)
        self._answers = os.fdopen(reading)

    def run(self, case: str, timeout: float) -> Verdict:
        """Run a case."""
        try:
            self._process.stdin.write(f"{case}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return self._crashed(case)
        if not select.select([self._answers], [], [], timeout)[0]:
            return Verdict(case, "timed_out", f"it took more than {timeout:g} s")
        line = self._answers.readline()
        return Verdict(case, *json.loads(line)) if line else self._crashed(case)

    def _crashed(self, case: str) -> Verdict:
        status = self._process.wait()
        return Verdict(case, "crashed", f"the process ended with {f'signal {-status}' if status < 0 else status}")

    def close(self) -> None:
        """End the process."""
        self._answers.close()
        self._process.kill()
        self._process.communicate()


def run(library: Path, cases: Sequence[str] = tuple(CASES), timeout: float = TIMEOUT) -> Iterator[Verdict]:
    """The verdicts of cases on a library, as they end. A process goes on with the next case after one that passed."""
    if not cases:
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        networks.make(folder)
        worker: _Worker | None = None
        for case in cases:
            worker = worker or _Worker(library, folder)
            verdict = worker.run(case, timeout)
            if verdict.verdict not in ("passed", "not_run"):
                worker.close()
                worker = None
            yield verdict
        if worker is not None:
            worker.close()

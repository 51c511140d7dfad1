"""Run the cases on a library; a process that runs cases ends when a case fails, crashes or hangs."""

from __future__ import annotations

import importlib.util
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
from diopi_engine.conformance.models.names import BY_OPERATORS, find_networks
from diopi_engine.conformance.nvdla import networks as loadables
from diopi_engine.conformance.nvdla.bench import PREFIX

TIMEOUT = 120.0
"""Maximum duration of a case in seconds, including the start of the library in the first case of a process."""


@final
@dataclass(frozen=True)
class CaseOutcome:
    """The verdict of a case (`passed`, `failed`, `crashed`, `timed_out` or `not_run`) and its reason."""

    case: str
    verdict: str
    detail: str


class _CaseProcess:
    """A process that runs cases, which it receives on standard input."""

    def __init__(self, module: str, subject: str, folder: Path) -> None:
        """Start the process.

        Args:
            module: the module below `diopi_engine.conformance` that the process runs.
            subject: the path of the library, or the vendor that runs networks operator by operator.
            folder: the folder with the compiled networks and the files of the whole networks.
        """
        reading, writing = os.pipe()
        command = [sys.executable, "-m", f"diopi_engine.conformance.{module}", subject, str(folder), str(writing)]
        self._process: Any = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[writing], text=True)
        os.close(writing)
        self._replies = os.fdopen(reading)

    def run(self, case: str, timeout: float) -> CaseOutcome:
        """Run a case in the process and return its outcome; a case that exceeds `timeout` seconds has timed out."""
        try:
            self._process.stdin.write(f"{case}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return self._crash_outcome(case)
        if not select.select([self._replies], [], [], timeout)[0]:
            return CaseOutcome(case, "timed_out", f"it took more than {timeout:g} s")
        line = self._replies.readline()
        return CaseOutcome(case, *json.loads(line)) if line else self._crash_outcome(case)

    def _crash_outcome(self, case: str) -> CaseOutcome:
        """Wait for the process to end and return an outcome `crashed` with the exit status or signal."""
        status = self._process.wait()
        return CaseOutcome(case, "crashed", f"the process ended with {f'signal {-status}' if status < 0 else status}")

    def close(self) -> None:
        """End the process."""
        self._replies.close()
        self._process.kill()
        self._process.communicate()


def run_cases(
    library: Path, cases: Sequence[str], timeout: float = TIMEOUT, vendor: str = "jax_cpu"
) -> Iterator[CaseOutcome]:
    """Run cases in order and yield their outcomes.

    Each kind of case has a process, which is replaced after a case that fails, crashes or times out.

    Args:
        library: the library under test, which exports the functions that the cases call.
        cases: the names of the cases.
        timeout: the maximum duration of a case in seconds.
        vendor: the vendor for the cases that run a network operator by operator: a name or path that
            `diopi_impl.plugins.find_vendor` accepts.

    Yields:
        The outcome of each case when it ends.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _compile_networks(folder, cases)
        lacking = _write_models(folder, cases)
        workers: dict[str, _CaseProcess] = {}
        for case in cases:
            if lacking and find_networks(case):
                yield CaseOutcome(case, "not_run", lacking)
                continue
            module = _worker_module(case)
            worker = workers.pop(module, None) or _CaseProcess(
                module, vendor if case in BY_OPERATORS else str(library), folder
            )
            outcome = worker.run(case, timeout)
            if outcome.verdict in ("passed", "not_run"):
                workers[module] = worker
            else:
                worker.close()
            yield outcome
        for worker in workers.values():
            worker.close()


def _worker_module(case: str) -> str:
    """Return the module below `diopi_engine.conformance` whose process runs the case."""
    if case in BY_OPERATORS:
        return "models.by_operators"
    return "nvdla.worker" if case.startswith(PREFIX) else "worker"


def _compile_networks(folder: Path, cases: Sequence[str]) -> None:
    """Compile the networks into `folder`.

    All engines are compiled if a case runs in `worker`, and all NVDLA loadables if a case runs in `nvdla.worker`.
    """
    workers = {_worker_module(case) for case in cases}
    if "nvdla.worker" in workers:
        loadables.compile_loadables(folder)
    if "worker" in workers:
        networks.compile_engines(folder)


def _write_models(folder: Path, cases: Sequence[str]) -> str:
    """Write the files of the whole networks that the cases need.

    Returns:
        "" if they are written or none is needed, or the reason if PyTorch is not installed.

    Raises:
        CalledProcessError: An export failed.
    """
    wanted = dict.fromkeys(name for case in cases for name in find_networks(case))
    if not wanted:
        return ""
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed: extra `torch`"
    subprocess.run([sys.executable, "-m", "diopi_engine.conformance.models.making", str(folder), *wanted], check=True)
    return ""

"""Run conformance cases in worker processes.

There are three worker modules: `worker` calls HanGuangRT in the library under test, and `nvdla.worker` calls NVDLA's
driver in this library. `models.by_operators` runs networks operator by operator on a vendor, without the library.
"""

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

from diopi_engine.conformance.models.names import BY_OPERATORS, find_networks
from diopi_engine.conformance.networks import compile_engines
from diopi_engine.conformance.nvdla.bench import CASE_PREFIX
from diopi_engine.conformance.nvdla.networks import compile_loadables

TIMEOUT = 120.0
"""Maximum duration of a case in seconds, including the start of the library in the first case of a process."""


@final
@dataclass(frozen=True)
class CaseOutcome:
    """The verdict of a case.

    Attributes:
        case: the name of the case.
        verdict: `passed`, `failed`, `crashed`, `timed_out` or `not_run`.
        detail: the reason; empty if the case passed.
    """

    case: str
    verdict: str
    detail: str


class _CaseProcess:
    """A worker process, which reads the names of cases from standard input and replies through a pipe."""

    def __init__(self, module: str, target: str, folder: Path) -> None:
        """Start the process.

        Args:
            module: the worker module, relative to `diopi_engine.conformance`.
            target: the path of the library under test, or the vendor if the module is `models.by_operators`.
            folder: the folder with all files that the cases read: compiled networks, and samples of networks.
        """
        reading, writing = os.pipe()
        command = [sys.executable, "-m", f"diopi_engine.conformance.{module}", target, str(folder), str(writing)]
        self._process: Any = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[writing], text=True)
        os.close(writing)
        self._replies = os.fdopen(reading)

    def run(self, case: str, timeout: float) -> CaseOutcome:
        """Return the outcome of a case, which the process runs.

        If the case takes more than `timeout` seconds, the verdict is `timed_out`, and the process is still running the
        case. The caller must then close it.
        """
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
        reason = f"signal {-status}" if status < 0 else f"exit status {status}"
        return CaseOutcome(case, "crashed", f"the process ended with {reason}")

    def close(self) -> None:
        """Kill the process and wait for its end."""
        self._replies.close()
        self._process.kill()
        self._process.communicate()


def run_cases(
    library: Path, cases: Sequence[str], timeout: float = TIMEOUT, vendor: str = "jax_cpu"
) -> Iterator[CaseOutcome]:
    """Run cases in order and yield their outcomes.

    All cases with the same worker module run in the same process. After a case that fails, crashes or times out, the
    generator kills this process, and the next case starts a new one. The last processes end when the generator is
    exhausted.

    Args:
        library: the path of the library under test.
        cases: the names of the cases.
        timeout: the maximum duration of a case in seconds.
        vendor: the vendor for the cases that run a network operator by operator and do not use the library: a name or
            path that `diopi_impl.plugins.find_vendor` accepts.

    Yields:
        The outcome of each case when it ends.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _compile_networks(folder, cases)
        not_written = _write_models(folder, cases)
        workers: dict[str, _CaseProcess] = {}
        for case in cases:
            if not_written and find_networks(case):
                yield CaseOutcome(case, "not_run", not_written)
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
    """Return the worker module of a case, relative to `diopi_engine.conformance`."""
    if case in BY_OPERATORS:
        return "models.by_operators"
    return "nvdla.worker" if case.startswith(CASE_PREFIX) else "worker"


def _compile_networks(folder: Path, cases: Sequence[str]) -> None:
    """Write the small compiled networks of the cases to a folder.

    The engines of `networks` are written if any case runs in `worker`. The loadables (compiled networks for NVDLA) of
    `nvdla.networks` are written if any case runs in `nvdla.worker`. The networks of `models` are written by
    `_write_models`.
    """
    workers = {_worker_module(case) for case in cases}
    if "nvdla.worker" in workers:
        compile_loadables(folder)
    if "worker" in workers:
        compile_engines(folder)


def _write_models(folder: Path, cases: Sequence[str]) -> str:
    """Write the engines and samples of those networks of `models` that the cases need.

    Returns:
        "" if all files exist now; if PyTorch is missing, the reason why these cases can't run.

    Raises:
        CalledProcessError: The process that writes the files failed.
    """
    names = dict.fromkeys(name for case in cases for name in find_networks(case))
    if not names:
        return ""
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed; install the extra `torch`"
    subprocess.run([sys.executable, "-m", "diopi_engine.conformance.models.making", str(folder), *names], check=True)
    return ""

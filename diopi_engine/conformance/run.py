"""Runs the cases on a library, each in a process that does not outlive a case that fails, crashes or hangs."""

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
from diopi_engine.conformance.models.names import BY_OPERATORS, networks_of
from diopi_engine.conformance.nvdla import networks as loadables
from diopi_engine.conformance.nvdla.bench import PREFIX

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

    def __init__(self, module: str, subject: str, folder: Path) -> None:
        reading, writing = os.pipe()
        command = [sys.executable, "-m", f"diopi_engine.conformance.{module}", subject, str(folder), str(writing)]
        self._process: Any = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[writing], text=True)
        os.close(writing)
        self._replies = os.fdopen(reading)

    def run(self, case: str, timeout: float) -> Verdict:
        """Run a case."""
        try:
            self._process.stdin.write(f"{case}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return self._crashed(case)
        if not select.select([self._replies], [], [], timeout)[0]:
            return Verdict(case, "timed_out", f"it took more than {timeout:g} s")
        line = self._replies.readline()
        return Verdict(case, *json.loads(line)) if line else self._crashed(case)

    def _crashed(self, case: str) -> Verdict:
        status = self._process.wait()
        return Verdict(case, "crashed", f"the process ended with {f'signal {-status}' if status < 0 else status}")

    def close(self) -> None:
        """End the process."""
        self._replies.close()
        self._process.kill()
        self._process.communicate()


def run(library: Path, cases: Sequence[str], timeout: float = TIMEOUT, vendor: str = "jax_cpu") -> Iterator[Verdict]:
    """The verdicts of cases, as they end. A process goes on with the next case after one that passed.

    Args:
        library: of the interface that the cases are of.
        cases: their names.
        timeout: seconds a case may take.
        vendor: that runs networks operator by operator, as `diopi_impl.plugins.find_vendor` takes it.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _make_networks(folder, cases)
        lacking = _make_models(folder, cases)
        workers: dict[str, _Worker] = {}
        for case in cases:
            if lacking and networks_of(case):
                yield Verdict(case, "not_run", lacking)
                continue
            module = _worker_of(case)
            worker = workers.pop(module, None) or _Worker(
                module, vendor if case in BY_OPERATORS else str(library), folder
            )
            verdict = worker.run(case, timeout)
            if verdict.verdict in ("passed", "not_run"):
                workers[module] = worker
            else:
                worker.close()
            yield verdict
        for worker in workers.values():
            worker.close()


def _worker_of(case: str) -> str:
    """The module whose process runs a case."""
    if case in BY_OPERATORS:
        return "models.by_operators"
    return "nvdla.worker" if case.startswith(PREFIX) else "worker"


def _make_networks(folder: Path, cases: Sequence[str]) -> None:
    """Compile what cases run."""
    workers = {_worker_of(case) for case in cases}
    if "nvdla.worker" in workers:
        loadables.make(folder)
    if "worker" in workers:
        networks.make(folder)


def _make_models(folder: Path, cases: Sequence[str]) -> str:
    """Write the files of the networks that cases need; why that can't be, if it can't."""
    wanted = dict.fromkeys(name for case in cases for name in networks_of(case))
    if not wanted:
        return ""
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed: extra `torch`"
    subprocess.run([sys.executable, "-m", "diopi_engine.conformance.models.making", str(folder), *wanted], check=True)
    return ""

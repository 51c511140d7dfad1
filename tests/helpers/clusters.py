"""Start a Dask cluster on this machine: a scheduler, and workers that are not restarted when they die."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

HELPERS = Path(__file__).parent
"""The folder from which workers import the vendors of the tests."""

T = TypeVar("T")

WORKER = ("dask_worker", "--no-nanny", "--nthreads", "1", "--no-dashboard", "--resources", "device=1")
"""The command of a worker with one device, as runs of the suite require; without a nanny, nothing restarts it."""


@dataclass
class LocalCluster:
    """A running cluster.

    Attributes:
        address: the address of the scheduler.
        workers: the processes of the workers.
    """

    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def local_cluster(folder: Path, workers: int, **environment: str) -> Iterator[LocalCluster]:
    """Start a cluster with a number of workers, and stop it afterwards.

    Args:
        folder: the working directory of its processes, in which each has a log.
        workers: the number of workers.
        environment: variables of all processes.

    Yields:
        The cluster, with which all workers are registered.
    """
    path = os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, "PYTHONPATH": path, **environment}
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{name}", *arguments]
        with open(folder / f"{len(processes)}.log", "wb") as output:
            process = subprocess.Popen(command, cwd=folder, env=variables, stdout=output, stderr=output)
        processes.append(process)
        return process

    try:
        start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        address = wait_until(lambda: address_in(folder / "0.log"))
        started = [start(*WORKER, "--host", "127.0.0.1", address) for _ in range(workers)]
        for number in range(1, workers + 1):
            wait_until(lambda number=number: "Registered to:" in (folder / f"{number}.log").read_text())
        yield LocalCluster(address, started)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def address_in(log: Path) -> str:
    """Return the address that a scheduler has written to its log; empty if the log has none yet."""
    lines = [line for line in log.read_text().splitlines() if "Scheduler at:" in line]
    return lines[0].split()[-1] if lines else ""


def wait_until(condition: Callable[[], T], seconds: float = 120) -> T:
    """Wait until `condition` returns a true value, and return the value; raise AssertionError after `seconds`."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "this takes too long"
        time.sleep(0.05)
    return value

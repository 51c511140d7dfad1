"""Share fork servers between several executors of the tests, because their imports take a second.

A fork server is a process that forks the workers in which an executor runs cases. conftest.py lets executors lease
one from the pool of this module instead of starting it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Hashable, Iterator
from contextlib import suppress

from diopi_test.run.isolation.fork_server import Ended, ForkServer, ForkServerError, WorkerProcess
from diopi_test.run.limits import CaseOptions

UNREAD = {"PYTEST_CURRENT_TEST", "XDG_STATE_HOME", "COLUMNS"}
"""Environment variables that no worker reads."""

END_SECONDS = 5.0
"""Seconds that killed workers have to end before the fork server is ended too."""


def inherited_settings() -> Hashable:
    """Return the import path, working directory and environment variables that a fork server started now inherits.

    A fork server is reused only if these are equal.
    """
    environment = {name: value for name, value in os.environ.items() if name not in UNREAD}
    return tuple(sys.path), os.getcwd(), tuple(sorted(environment.items()))


class LeasedForkServer:
    """A fork server that returns to the pool when it is closed, if all its workers have ended."""

    def __init__(self, pool: ForkServerPool, key: Hashable, server: ForkServer) -> None:
        self._pool, self._key, self._server = pool, key, server
        self._workers: dict[int, WorkerProcess] = {}

    def fileno(self) -> int:
        return self._server.fileno()

    def start(self, vendor: str, options: CaseOptions) -> WorkerProcess:
        worker = self._server.start(vendor, options)
        self._workers[worker.number] = worker
        return worker

    def signal(self, process: WorkerProcess, number: int) -> None:
        self._server.signal(process, number)

    def ended(self) -> Iterator[Ended]:
        for ended in self._server.ended():
            self._workers.pop(ended.process, None)
            yield ended

    def close(self) -> None:
        with suppress(ForkServerError):
            self._end_workers()
            self._pool.give_back(self._key, self._server)
            return
        self._server.close()

    def _end_workers(self) -> None:
        """Kill the workers, as the end of a fork server does, and wait until the fork server has noticed.

        Raises:
            ForkServerError: The fork server does not notice the end of the workers in `END_SECONDS`.
        """
        for worker in self._workers.values():
            self._server.signal(worker, signal.SIGKILL)
        deadline = time.monotonic() + END_SECONDS
        while True:
            for _ in self.ended():
                pass
            if not self._workers:
                return
            if not select.select([self._server], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise ForkServerError("workers have not ended")


class ForkServerPool:
    """A pool of idle fork servers: at most one per environment, and only the latest few."""

    LARGEST = 3
    """The maximum number of idle fork servers."""

    def __init__(self) -> None:
        self._idle: dict[Hashable, ForkServer] = {}

    def lease(self) -> LeasedForkServer:
        """Return an idle fork server with the current environment, or a new one."""
        key = inherited_settings()
        return LeasedForkServer(self, key, self._idle.pop(key, None) or ForkServer())

    def give_back(self, key: Hashable, server: ForkServer) -> None:
        """Put a fork server back into the pool; close the oldest one if there are too many."""
        if key in self._idle:
            server.close()
            return
        self._idle[key] = server
        if len(self._idle) > self.LARGEST:
            self._idle.pop(next(iter(self._idle))).close()

    def close(self) -> None:
        for server in self._idle.values():
            server.close()
        self._idle.clear()

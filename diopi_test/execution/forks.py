"""Detect that a vendor forks the process and lets the copy return from the call, as if it were the process itself."""

from __future__ import annotations

import os
import time
from mmap import mmap
from pathlib import Path
from typing import final


@final
class ForkWatch:
    """A detector of copies of the process that return from a vendor's functions.

    A copy that returns records this in memory that it shares with the process, and ends immediately. It must end
    because it lacks the threads of the process and would wait for them forever. After a case, `has_returned` waits for
    new child processes, for a limited time and only once, because they may work for the vendor and never return.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._returned = mmap(-1, 1)
        self._known: set[int] = set()

    def end_copies(self) -> None:
        """End this process if it is a copy. Call it after every call of a vendor."""
        if os.getpid() != self._process:
            self._returned[0] = 1
            os._exit(0)

    def has_new_children(self) -> bool:
        """Return whether a child process has started or a copy has returned since the last call of `has_returned`."""
        return bool(self._returned[0] or list_children() - self._known)

    def has_returned(self) -> bool:
        """Wait until new child processes have ended, and return whether a copy has returned since the last query.

        A copy that returned later would count against the next case. The wait takes at most `MAX_COPY_SECONDS`.

        Returns:
            Whether a copy has returned.
        """
        new = list_children() - self._known
        end = time.monotonic() + MAX_COPY_SECONDS
        while new & list_children() and time.monotonic() < end:
            time.sleep(0.001)
        self._known |= new
        returned = bool(self._returned[0])
        self._returned[0] = 0
        return returned


MAX_COPY_SECONDS = 2.0
"""How long `has_returned` waits; a copy of the process has usually finished its case by then."""


def list_children() -> set[int]:
    """Return the IDs of the running child processes; {0} if there are some and the system does not list them."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return set()
    lists = list(Path("/proc/self/task").glob("*/children"))
    alive = {int(number) for file in lists for number in file.read_text().split()} if lists else {0}
    return {number for number in alive if not _has_ended(number)}


def _has_ended(process: int) -> bool:
    """Return whether the child process with this ID has ended; False for the ID 0."""
    if not process:
        return False
    try:
        return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


_watch: ForkWatch | None = None
"""The detector of this process; None if the process is not watched."""


def watch_forks() -> ForkWatch:
    """Start to watch this process and return the detector."""
    global _watch
    _watch = ForkWatch()
    return _watch


def end_copies() -> None:
    """End this process if it is a copy of the watched process; do nothing if no process is watched."""
    if _watch is not None:
        _watch.end_copies()

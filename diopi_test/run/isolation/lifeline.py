"""End a process together with the process that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""The number of this option of prctl(2), from linux/prctl.h."""


def end_with(parent: int) -> None:
    """Let the kernel kill this process when `parent`, the process that started it, ends for any reason.

    This works only on Linux. On other systems, a process notices the end of its parent when it next reads from it.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before the call above
        os._exit(1)

"""Interruptions: SIGINT (Ctrl-C), SIGTERM and SIGHUP are handled in the same way."""

from __future__ import annotations

import signal
import time
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals by which a user, a scheduler or a closed terminal ends a run."""

_PATIENCE = 5.0
"""Seconds during which further signals are ignored, because the process is already stopping."""


class Interruption:
    """A context manager in which SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt with the signal's name.

    A signal that is ignored stays ignored: SIGINT in the background of a shell, SIGHUP under `nohup`. After a signal,
    further signals have no effect for a few seconds.
    """

    def __init__(self) -> None:
        self._last = -_PATIENCE
        self._message = ""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Check whether a signal has arrived earlier.

        Python drops an exception that is raised in a finalizer or in a callback of the garbage collector.

        Raises:
            KeyboardInterrupt: A signal has arrived.
        """
        if self._message:
            raise KeyboardInterrupt(self._message)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Raise `KeyboardInterrupt` for a signal, unless the previous signal arrived a moment ago."""
        if time.monotonic() - self._last >= _PATIENCE:
            self._last = time.monotonic()
            self._message = f"interrupted by {signal.Signals(number).name}"
            raise KeyboardInterrupt(self._message)

"""Interruptions end a run, even in code that drops exceptions."""

import gc
import os
import signal
from typing import Any

import pytest

from diopi_test.run.interruption import Interruption


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_interruption_names_its_signal(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # a test run in the background ignores some of them
    try:
        with pytest.raises(KeyboardInterrupt, match=number.name), Interruption() as interruption:
            interruption.check()
            os.kill(os.getpid(), number)
    finally:
        signal.signal(number, before)


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    try:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
            interruption.check()
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_during_garbage_collection_is_not_lost() -> None:
    def handler(*_: Any) -> None:
        gc.callbacks.remove(handler)
        os.kill(os.getpid(), signal.SIGTERM)

    with Interruption() as interruption:
        gc.callbacks.append(handler)
        gc.collect()
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            interruption.check()

"""Being told to stop, also where nobody hears it."""

import gc
import os
import signal
from typing import Any

import pytest

from diopi_test.harness.interruption import Interruption


def test_a_signal_names_itself() -> None:
    with pytest.raises(KeyboardInterrupt, match="interrupted by SIGTERM"), Interruption() as interruption:
        interruption.check()
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_comes_in_a_callback_of_the_garbage_collector_is_not_lost() -> None:
    def told(*_: Any) -> None:
        gc.callbacks.remove(told)
        os.kill(os.getpid(), signal.SIGTERM)

    with Interruption() as interruption:
        gc.callbacks.append(told)
        gc.collect()
        with pytest.raises(KeyboardInterrupt, match="interrupted by SIGTERM"):
            interruption.check()

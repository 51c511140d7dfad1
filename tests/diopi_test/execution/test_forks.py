"""Forked copies of the process are ended if they return from a call, and may go on if they work for a vendor."""

import os
import subprocess
import sys

import pytest

from diopi_test.execution import forks
from diopi_test.execution.forks import ForkWatch


def test_a_forked_copy_that_returns_is_reported_once_and_ends() -> None:
    script = (
        "import os; from diopi_test.execution.forks import end_copies, watch_forks;"
        "watch = watch_forks(); os.fork(); end_copies(); print(watch.has_returned(), watch.has_returned())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("True False\n", 0), done.stderr


def test_a_copy_that_returns_after_another_is_reported_with_it() -> None:
    script = (
        "import os, time; from diopi_test.execution.forks import end_copies, watch_forks;"
        "watch = watch_forks(); os.fork(); end_copies();"
        "os.fork() == 0 and time.sleep(0.2); end_copies();"
        "print(watch.has_returned(), time.sleep(0.4), watch.has_returned())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("True None False\n", 0), done.stderr


def test_a_child_process_that_keeps_working_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "MAX_COPY_SECONDS", 0.05)
    waited: list[float] = []
    monkeypatch.setattr(forks.time, "sleep", waited.append)
    watch = ForkWatch()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as helper:
        assert helper.pid in forks.list_children()
        assert not watch.has_returned()
        assert waited
        waited.clear()
        assert not watch.has_returned()
        assert not waited
        helper.kill()


def test_unwatched_processes_are_not_affected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_watch", None)
    monkeypatch.setattr(os, "_exit", pytest.fail)
    forks.end_copies()

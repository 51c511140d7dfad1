"""The time for which a process has been busy."""

import os
import subprocess
import sys
import time

import pytest

from diopi_test.run.isolation.ending import busy_seconds, cpu_seconds

SPIN = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); print(flush=True)\nwhile True: pass"
SLEEP = "import sys, time; print(flush=True); time.sleep(60)"


def start(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a program and wait for its first line of output."""
    process = subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def end(*processes: subprocess.Popen[bytes]) -> None:
    """Kill processes and wait for their end."""
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the system does not report waiting for a CPU")
def test_a_process_that_waits_for_a_cpu_is_busy() -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    rivals = [start(SPIN, cpu) for _ in range(3)]
    before, used = [busy_seconds(rival.pid) for rival in rivals], sum(cpu_seconds(rival.pid) for rival in rivals)
    time.sleep(1.0)
    busy = [busy_seconds(rival.pid) - seconds for rival, seconds in zip(rivals, before, strict=True)]
    used = sum(cpu_seconds(rival.pid) for rival in rivals) - used
    end(*rivals)
    assert min(busy) > 0.5, "each of them either runs or waits"
    assert sum(busy) > used + 0.5, "three processes share one CPU"


def test_a_sleeping_process_is_not_busy() -> None:
    process = start(SLEEP)
    time.sleep(0.5)  # until it sleeps
    before = busy_seconds(process.pid)
    time.sleep(0.5)
    after = busy_seconds(process.pid)
    end(process)
    assert after - before < 0.25


def test_a_process_that_has_ended_is_not_busy() -> None:
    process = start(SLEEP)
    end(process)
    assert busy_seconds(process.pid) == 0.0

"""Work in several processes, none of which outlives the process that started it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from diopi_test.baseline.parallel import map_in_processes


def test_map_yields_each_item_with_its_result() -> None:
    assert sorted(map_in_processes(len, ["a", "bb", "ccc"], 2)) == [("a", 1), ("bb", 2), ("ccc", 3)]


def test_map_raises_the_exception_of_a_call() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(map_in_processes(int, ["1", "x"], 1))


def test_linear_algebra_of_each_process_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert list(map_in_processes(os.getenv, ["OPENBLAS_NUM_THREADS"], 1)) == [("OPENBLAS_NUM_THREADS", "1")]
    assert "OPENBLAS_NUM_THREADS" not in os.environ


PARENT = """
import time
from diopi_test.baseline.parallel import map_in_processes

for _ in map_in_processes(time.sleep, [0, 600, 600], 2):
    print("the first call has ended", flush=True)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent(tmp_path: Path, signum: signal.Signals) -> None:
    mark = f"{tmp_path.name}-{os.getpid()}"
    environment = {**os.environ, "DIOPI_MARK": mark, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    parent = subprocess.Popen([sys.executable, "-c", PARENT], env=environment, stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None and parent.stdout.readline()
        assert len(find_marked_processes(mark)) >= 3
        parent.send_signal(signum)
        parent.wait()
        wait_until(lambda: not find_marked_processes(mark))
    finally:
        for process in find_marked_processes(mark):
            os.kill(process, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until `condition()` holds; fail after a long time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "this takes too long"
        time.sleep(0.05)


def find_marked_processes(mark: str) -> list[int]:
    """Return the living processes with `mark` in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and f"DIOPI_MARK={mark}".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass  # it has ended, or is another user's
    return found

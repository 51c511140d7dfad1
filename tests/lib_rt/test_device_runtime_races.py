"""The device runtime under the sanitizer of threads: the cases of order, events and threads cause no data race."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sanitizers
from device_runtime_mutants import SOURCES
from sanitizers import THREAD
from toolchain import build

from diopi_proto.headers import INCLUDE_DIR

pytestmark = pytest.mark.sanitizers

PROGRAM = """
import sys
from pathlib import Path
from diopi_test.device_runtime.all_cases import CASES
from diopi_test.device_runtime.worker import run_case, start
bench = start(Path(sys.argv[1]))
modules = ("stream_cases", "event_cases", "thread_cases", "lifetime_cases")
names = [name for name, case in CASES.items() if case.__module__.endswith(modules)]
print(len(names), *(name for name in names if run_case(name, bench)[0] != "passed"))
"""
"""Runs the cases that use several threads, and prints their number and the names of those that do not pass."""


def test_streams_and_events_have_no_data_races(tmp_path: Path) -> None:
    sanitizers.require(THREAD)
    found = subprocess.run(["cc", "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True)
    preloaded = Path(found.stdout.strip())
    if not preloaded.is_absolute():
        pytest.skip("cc has no libtsan.so that could be loaded before Python")
    library = build(
        tmp_path / "runtime.so", "c", SOURCES, *THREAD, f"-I{INCLUDE_DIR}", "-D_GNU_SOURCE", "-shared", "-fPIC"
    )
    environment = {**os.environ, "LD_PRELOAD": str(preloaded.resolve()), "TSAN_OPTIONS": "exitcode=66"}
    command = [sys.executable, "-c", PROGRAM, str(library)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, len(done.stdout.split())) == (0, 1), done.stdout + done.stderr
    assert int(done.stdout) > 40

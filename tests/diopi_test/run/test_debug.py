"""One case in this process: its output, and that nothing stands between the vendor and a debugger."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from baselines import enter
from trials import baseline_case

from diopi_impl import VendorError
from diopi_test.baseline.store import Provenance, baseline_file, write_baseline_file
from diopi_test.run.collection import Collected
from diopi_test.run.debug import debug, select_only_case
from diopi_test.run.keywords import SelectionError
from diopi_test.run.limits import CaseOptions

SCRIPT = """
import sys
from pathlib import Path
from diopi_test.run.collection import collect_runtime
from diopi_test.run.debug import debug
from diopi_test.run.lookup import find_case
from diopi_test.run.limits import CaseOptions

vendor, file, case = sys.argv[1:]
if case.startswith("runtime"):
    path, collected = None, next(one for one in collect_runtime() if one.id == case)
else:
    path, collected = find_case([Path(file)], case)
debug(vendor, path, collected, CaseOptions(), lambda line: print(line, flush=True))
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a baseline file with one case."""
    path = baseline_file(tmp_path_factory.mktemp("data"), "diopiSqrt")
    write_baseline_file(
        path, "diopiSqrt", [baseline_case("diopiSqrt", "float32-matrix")], Provenance("smoke", "key", {})
    )
    enter(path.parent, "diopiSqrt")
    return path


def debug_case(vendor: str, file: Path, case: str) -> subprocess.CompletedProcess[str]:
    """Run a case in a script that debugs it."""
    script = file.with_name("script.py")
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, script, vendor, file, case]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def test_debug_prints_the_process_and_the_verdict(file: Path) -> None:
    done = debug_case("diopi_test.quality.stub_vendor:vendor", file, "diopiSqrt[float32-matrix]")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0].startswith("diopiSqrt[float32-matrix] runs in this process, ")
    assert lines[1].startswith("  gdb --args ") and "diopiSqrt[float32-matrix]" in lines[1]
    assert lines[-1] == "passed diopiSqrt[float32-matrix]"


def test_debug_prints_the_location_of_a_failure(file: Path) -> None:
    done = debug_case("negative_test_vendors:trusting", file, "diopiSqrt[negative-input-null]")
    assert done.stdout.splitlines()[-2] == "failed diopiSqrt[negative-input-null]"
    assert "refused: Success was returned although input is NULL" in done.stdout


def test_debug_runs_cases_of_the_runtime(file: Path) -> None:
    done = debug_case("diopi_test.quality.stub_vendor:vendor", file, "runtime[memory_is_aligned]")
    assert done.stdout.splitlines()[-1] == "passed runtime[memory_is_aligned]", done.stderr


def test_a_crash_prints_the_stack(file: Path) -> None:
    done = debug_case("faulty:crashing", file, "diopiSqrt[float32-matrix]")
    assert done.returncode == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in done.stderr
    assert "in abort_process" in done.stderr


def test_hints_are_printed_before_the_vendor_is_loaded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("faulthandler.enable", lambda **_: None)  # pytest has its own
    lines: list[str] = []
    with pytest.raises(VendorError, match="missing"):
        debug("missing", file, Collected(function="diopiSqrt", label="float32-matrix"), CaseOptions(), lines.append)
    assert len(lines) == 4 and str(os.getpid()) in lines[0]


def test_exactly_one_case_must_be_selected() -> None:
    assert select_only_case(["one"], str) == "one"
    with pytest.raises(SelectionError, match="none"):
        select_only_case([], str)
    with pytest.raises(SelectionError, match=r"11.*: 0, 1, .*, 9, …$"):
        select_only_case(list(range(11)), str)

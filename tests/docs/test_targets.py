"""The instructions of docs/targets.md work, from a clone to the first verdict."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from reports import read_report
from shown_commands import code_blocks
from toolchain import VENDORS, build

from diopi_test.execution.runtime_cases import RUNTIME_CASES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "targets.md"


def run(command: str, folder: Path) -> str:
    """Run a command of the page with this Python and this source tree."""
    command = command.replace("diopi-test ", f"{sys.executable} -m diopi_test ")
    path = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": path, "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_commands_of_the_page_lead_to_verdicts(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("there is no cmake here")
    tmp_path.joinpath("diopi").symlink_to(ROOT)
    build(tmp_path / "libdiopi_impl.so", "c", sorted((VENDORS / "c").glob("*.c")), "-O1")
    blocks = [block for _, language, block in code_blocks(PAGE.read_text("utf-8")) if language == "sh"]
    commands = [command for block in blocks for command in block if command]
    assert [command.split()[0] for command in commands] == [
        *("cmake", "cmake", "diopi-test"),
        *("build-runner/diopi-runner", "diopi-test", "diopi-test"),
    ]
    for command in commands[:-2]:
        run(command, tmp_path)
    for command in commands[-2:]:  # the evaluation, and the run over a connection
        run(f"{command} --json report.json -n 1", tmp_path)
        report = read_report(tmp_path / "report.json")
        assert report["vendor"]["name"] == "example_c"
        verdicts = {case["id"]: case["verdict"] for case in report["cases"]}
        assert verdicts["diopiAdd[float32-row]"] == "passed"
    case = run("diopi-test run --vendor results.diopi --case 'diopiAdd[float32-row]' -n 1", tmp_path)
    assert "1 passed" in case


def test_the_page_states_the_number_of_runtime_cases() -> None:
    stated = re.search(r"- the (\d+) cases of the runtime functions", PAGE.read_text("utf-8"))
    assert stated is not None
    assert int(stated[1]) == len(RUNTIME_CASES)

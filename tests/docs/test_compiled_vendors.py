"""The instructions of docs/compiled_vendors.md work, from an empty folder to a first operator that passes."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_test.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "compiled_vendors.md"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the project of the page's first section with the page's commands, and return its folder."""
    for tool in ("cmake", "c++"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} here")
    folder = tmp_path_factory.mktemp("my_vendor")
    text = PAGE.read_text("utf-8")
    for file in ("CMakeLists.txt", "device.cpp", "operators.cpp"):
        block = re.search(rf"`{re.escape(file)}`.*?```\w+\n(.*?)```", text, re.DOTALL)
        assert block is not None
        folder.joinpath(file).write_text(block.group(1))
    for command in commands(text)[:2]:
        run(command, folder)
    return folder


def commands(text: str) -> list[str]:
    """Return the commands of the page's first shell block."""
    block = re.search(r"```sh\n(cmake.*?)```", text, re.DOTALL)
    assert block is not None
    return block.group(1).splitlines()


def run(command: str, folder: Path) -> str:
    """Run a command of the page with this Python and this source tree."""
    command = command.replace("diopi-test ", "python -m diopi_test ").replace("python ", f"{sys.executable} ")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_expression_selects_the_square_root_and_the_runtime() -> None:
    suite = commands(PAGE.read_text("utf-8"))[2]
    assert suite.startswith("diopi-test run ")
    listed = CliRunner().invoke(main, [*shlex.split(suite)[1:], "--list"])
    assert listed.exit_code == 0, listed.output
    ids = listed.output.splitlines()[:-1]
    assert {case.partition("[")[0] for case in ids} == {"diopiSqrt", "diopiSqrtInp", "runtime"}


@pytest.mark.slow
def test_the_first_operator_passes(project: Path) -> None:
    run("diopi-test gen-data --data data -k diopiSqrt", project)
    suite = commands(PAGE.read_text("utf-8"))[2]
    run(f"{suite} --data data --json report.json -n 1", project)
    report = json.loads(project.joinpath("report.json").read_text())
    digest = hashlib.sha256(project.joinpath("build/libdiopi_impl.so").read_bytes()).hexdigest()
    assert report["vendor"] == {"name": "my_vendor", "version": "0.1", "digest": digest}
    verdicts = {case["id"]: case["verdict"] for case in report["cases"]}
    assert {verdict for case, verdict in verdicts.items() if case.startswith("runtime")} == {"passed"}
    assert {verdict for case, verdict in verdicts.items() if case.startswith("diopiSqrt[float32")} == {"passed"}
    assert {verdict for case, verdict in verdicts.items() if case.startswith("diopiSqrt[negative")} == {"passed"}
    assert verdicts["diopiSqrt[float64-matrix]"] == "unsupported"
    assert verdicts["diopiSqrtInp[float32-matrix]"] == "not_implemented"

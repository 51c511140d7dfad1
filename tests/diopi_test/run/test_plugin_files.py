"""The pytest plugin reads only baseline files that match their manifest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from baselines import make_level


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a baseline file of diopiSqrt."""
    return make_level(tmp_path / "smoke", "diopiSqrt") / "diopiSqrt.h5"


def run_pytest(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on a baseline file in a separate process and return the finished process."""
    plugins = ["-p", "no:cacheprovider", "-c", os.devnull, "-p", "diopi_test.run.plugin"]
    command = [sys.executable, "-m", "pytest", *plugins, "--vendor", "diopi_test.quality.stub_vendor:vendor"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    return subprocess.run([*command, path, *words], capture_output=True, text=True, env=environment, check=False)


def test_the_plugin_runs_the_selected_cases_of_a_file(path: Path) -> None:
    """The expression is longer than the name of a file may be."""
    done = run_pytest(
        path, "-k", " or ".join(f"float64-matrix-{number}" for number in range(20)) + " or float64-matrix"
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_with_a_flipped_bit_is_not_read(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    done = run_pytest(path)
    assert done.returncode == 2
    assert "sha256" in done.stdout and "1 error" in done.stdout


DAMAGE = """
def pytest_collection_finish(session):
    path = session.items[0].path
    path.write_bytes(path.read_bytes()[:-1] + b"?")
"""
"""A plugin that changes the baseline file after the cases have been collected."""


def test_a_file_that_changes_after_the_collection_is_not_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.with_name("damage.py").write_text(DAMAGE, "utf-8")
    monkeypatch.syspath_prepend(str(path.parent.parent))
    done = run_pytest(path, "-p", "damage", "-k", "float64-matrix")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "sha256" in done.stdout


@pytest.mark.slow
def test_the_plugin_runs_the_cases_of_the_runtime(path: Path) -> None:
    done = run_pytest(path, "--runtime-cases", "-k", "runtime and order")
    assert done.returncode == 0, done.stdout + done.stderr

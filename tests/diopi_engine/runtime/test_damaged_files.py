"""Damaged engine files with correct digests cause documented errors, and never end the process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from c_programs import environment
from sampling import SEED

from diopi_engine import Engine

DAMAGED_ENGINES = Path(__file__).parents[2] / "helpers" / "damaged_engines.py"

EXPECTED = {"SUCCESS", "ERROR_INVALID_FILE", "ERROR_VERSION", "ERROR_OUT_OF_MEMORY", "ERROR_CORES_UNAVAILABLE"}
"""Results of files that are damaged: some damage changes only numbers, or requires more than the devices have."""


@pytest.mark.parametrize(
    "count", [3, pytest.param(12, marks=pytest.mark.slow), pytest.param(150, marks=pytest.mark.exhaustive)]
)
def test_damaged_files_cause_documented_errors(
    count: int, library: Path, locks: Path, engine: Engine, tmp_path: Path
) -> None:
    engine.save(tmp_path / "layer.engine")
    command = [sys.executable, DAMAGED_ENGINES, library, tmp_path / "layer.engine", os.environ[SEED], str(count)]
    done = subprocess.run(command, env=environment(locks), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == count
    for number, (member, result, text) in enumerate(lines):
        assert result in EXPECTED, f"file {number}: {member}: {result}: {text}"
        assert text or result == "SUCCESS", f"file {number}: {member}: {result} without a text"

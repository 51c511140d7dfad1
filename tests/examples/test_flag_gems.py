"""The example that runs FlagGems on the CPU: the command of its page shows the causes that the page names."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from shown_commands import commands_of_page

pytest.importorskip("torch", reason="torch:DEVICE needs PyTorch: pip install 'diopi[torch]'")
pytest.importorskip("triton", reason="the example needs Triton: pip install triton==3.5.1")
pytest.importorskip("sqlalchemy", reason="FlagGems needs SQLAlchemy: pip install sqlalchemy pyyaml")
if find_spec("flag_gems") is None:  # importing it fails without the example's adaptations
    pytest.skip("pip install --no-deps flag_gems==5.0.2", allow_module_level=True)

ROOT = Path(__file__).parents[2]

(COMMAND,) = (
    command.text
    for command in commands_of_page(ROOT / "docs" / "flag_gems.md")
    if command.text.startswith("PYTHONPATH=examples/flag_gems ")
)


def test_the_report_leads_to_the_defects_of_the_kernels(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    setting, _, *options = shlex.split(COMMAND)
    path = os.pathsep.join([setting.removeprefix("PYTHONPATH="), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "diopi_test", *options, "--json", str(report)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    causes = json.loads(report.read_text("utf-8"))["causes"]
    diagnoses = {(cause.get("diagnosis"), *cause["functions"]) for cause in causes}
    assert {("nan-dropped", "diopiRelu"), ("integers-through-floating-point", "diopiTriu")} <= diagnoses

"""The example of a library of Triton kernels: the suite finds the planted defects, and the repaired library passes.

Triton's interpreter runs the kernels, without a GPU.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from shown_commands import commands_of_page

pytest.importorskip("torch", reason="torch:DEVICE needs PyTorch: pip install 'diopi[torch]'")
pytest.importorskip("triton", reason="the example needs Triton: pip install triton==3.5.1")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "triton_kernels.md"
LIBRARY = ROOT / "examples" / "triton" / "triton_library"

FAULTY, SINGLE_CASE, REPAIRED = (c.text for c in commands_of_page(PAGE) if c.text.startswith("TRITON_INTERPRET=1 "))
"""The commands of the page that use the example."""


def run(command: str, report: Path, status: int) -> Mapping[str, Any]:
    """Run a command of the page in the root of the clone, and return its report in JSON."""
    words = shlex.split(command)
    settings = dict(word.split("=", 1) for word in words[: words.index("diopi-test")])
    path = os.pathsep.join([settings["PYTHONPATH"], *filter(None, [os.environ.get("PYTHONPATH")])])
    arguments = [sys.executable, "-m", "diopi_test", *words[words.index("diopi-test") + 1 :], "--json", str(report)]
    environment = {**os.environ, **settings, "PYTHONPATH": path}
    done = subprocess.run(
        arguments, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    found: Mapping[str, Any] = json.loads(report.read_text("utf-8"))
    return found


def test_the_report_leads_to_the_planted_defects(tmp_path: Path) -> None:
    causes = run(FAULTY, tmp_path / "report.json", status=1)["causes"]
    assert sorted(function for cause in causes for function in cause["functions"]) == ["diopiBmm", "diopiLayerNorm"]
    products = next(cause for cause in causes if "diopiBmm" in cause["functions"])
    assert products["diagnosis"] == "half-accumulated-in-half"


def test_the_smallest_case_of_the_missing_mask_shows_the_variance(tmp_path: Path) -> None:
    report = run(SINGLE_CASE, tmp_path / "report.json", status=1)
    (case,) = report["cases"]
    text = json.dumps(case)
    assert "save_invstd: 1 of 1 elements are wrong" in text and "save_mean:" not in text


def test_the_repaired_library_passes_and_serves_the_functions(tmp_path: Path) -> None:
    report = run(REPAIRED, tmp_path / "report.json", status=0)
    assert "causes" not in report
    served = {use["operator"] for case in report["cases"] for use in case.get("operators", []) if use.get("source")}
    assert {"aten::bmm", "aten::native_layer_norm"} <= served
    assert len(report["vendor"]["overrides"]) == 13


def test_the_page_shows_the_differences_between_the_faulty_and_the_repaired_library() -> None:
    texts = {path.stem: path.read_text("utf-8") for path in LIBRARY.glob("*.py")}
    blocks = re.findall(r"^```diff\n-(.+)\n\+(.+)\n```$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [removed in texts["planted_bugs"] for removed, _ in blocks] == [True, True]
    mask = blocks[0][1]
    assert mask in texts["rows"] and mask not in texts["planted_bugs"]

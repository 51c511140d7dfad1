"""Claims compared with results: what is declared and doesn't work, what works and isn't declared."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from diopi_impl import Claim
from diopi_proto.types import Dtype
from diopi_test.claims import ClaimsReport, compare_claims
from diopi_test.generate import generate_function
from diopi_test.outline import Outline

HELPERS = Path(__file__).parent.parent / "helpers"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("baseline")
    for function in ("diopiSqrt", "diopiNeg"):
        generate_function(function, "smoke", folder / "smoke")
    return folder


def records(data: Path, function: str, **verdicts: str) -> list[dict[str, Any]]:
    """A record for each case of a function: passed, unless its element type has another verdict."""
    outline = Outline(data / "smoke" / f"{function}.h5")
    return [
        {
            "id": f"{function}[{label}]",
            "function": function,
            "dtype": outline.dtype(label).name,
            "verdict": verdicts.get(outline.dtype(label).name, "passed"),
        }
        for label in outline.labels
    ]


def compare(data: Path, claims: list[Claim], cases: list[dict[str, Any]]) -> ClaimsReport:
    report = compare_claims(claims, cases, sorted((data / "smoke").glob("*.h5")))
    assert report is not None
    return report


def found(uses: Any) -> set[tuple[str, str]]:
    return {(use.function, use.dtype.name) for use in uses}


def test_true_claims(data: Path) -> None:
    report = compare(data, [Claim("diopiSqrt*")], records(data, "diopiSqrt"))
    assert (list(report.broken), list(report.modest)) == ([], [])


@pytest.mark.parametrize("verdict", ["failed", "crashed", "timed_out", "not_implemented", "unsupported", "waived"])
def test_declared_does_not_work(data: Path, verdict: str) -> None:
    report = compare(data, [Claim("diopiSqrt")], records(data, "diopiSqrt", float16=verdict))
    assert found(report.broken) == {("diopiSqrt", "float16")}
    assert not report.modest
    assert all(set(use.verdicts) == {verdict} for use in report.broken)


def test_works_not_declared(data: Path) -> None:
    cases = [*records(data, "diopiSqrt", float64="failed"), *records(data, "diopiNeg")]
    report = compare(data, [Claim("diopiNeg"), Claim("diopiSqrt", dtypes=[Dtype.float32])], cases)
    others = {dtype for _, dtype in found(report.modest)}
    assert {function for function, _ in found(report.modest)} == {"diopiSqrt"}
    assert "float16" in others
    assert not {"float32", "float64"} & others
    assert not report.broken


def test_layouts_count(data: Path) -> None:
    report = compare(data, [Claim("diopiSqrt", layouts=["contiguous"])], records(data, "diopiSqrt"))
    assert report.modest
    assert all(set(use.layouts) - {"contiguous"} for use in report.modest)
    assert not report.broken


def test_a_use_works_if_all_of_its_cases_pass(data: Path) -> None:
    cases = records(data, "diopiSqrt")
    contiguous = [
        case
        for case in cases
        if case["dtype"] == "float32"
        and Outline(data / "smoke" / "diopiSqrt.h5").layouts(case["id"][10:-1]) == {"contiguous"}
    ]
    assert len(contiguous) > 1
    contiguous[0]["verdict"] = "failed"
    report = compare(data, [Claim("diopiSqrt")], cases)
    (use,) = report.broken
    assert dict(use.verdicts) == {"failed": 1, "passed": len(contiguous) - 1}
    assert ("diopiSqrt", "float32", ("contiguous",)) not in {
        (use.function, use.dtype.name, use.layouts) for use in compare(data, [Claim("diopiNeg")], cases).modest
    }


def test_cases_without_an_element_type_take_no_part(data: Path) -> None:
    case = {"id": "diopiSqrt[negative-input-null]", "function": "diopiSqrt", "dtype": "", "verdict": "failed"}
    runtime = {"id": "runtime[memory]", "function": "runtime", "dtype": "", "verdict": "failed"}
    report = compare(data, [Claim("diopiSqrt")], [case, runtime])
    assert (list(report.broken), list(report.modest)) == ([], [])


def test_a_vendor_that_declares_nothing_has_no_claims(data: Path) -> None:
    assert compare_claims([], records(data, "diopiSqrt"), sorted((data / "smoke").glob("*.h5"))) is None


def test_long_lists_are_cut(data: Path) -> None:
    cases = [*records(data, "diopiSqrt"), *records(data, "diopiNeg")]
    report = compare(data, [Claim("diopiSin")], cases)
    assert len(report.modest) > 20
    text = io.StringIO()
    report.show(Console(file=text, width=200))
    assert "declared, does not work: nothing" in text.getvalue()
    assert f"… and {len(report.modest) - 20} more; --json FILE lists them all" in text.getvalue()


def test_the_report_has_both_lists(data: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])}
    file = tmp_path / "report.json"
    command = [sys.executable, "-m", "diopi_test.cli", "run", "--data", str(data), "--vendor", "claiming:vendor"]
    done = subprocess.run(
        [*command, "-n", "1", "-k", "not runtime", "--json", str(file)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    claims = json.loads(file.read_text())["claims"]
    assert claims["declared"] == [
        {"functions": "diopiSqrt", "dtypes": ["float16", "float32"], "layouts": None},
        {"functions": "diopiNeg", "dtypes": None, "layouts": ["contiguous"]},
    ]
    assert {(use["function"], use["dtype"]) for use in claims["declared_does_not_work"]} == {("diopiSqrt", "float16")}
    assert all(use["verdicts"].keys() == {"unsupported"} for use in claims["declared_does_not_work"])
    modest = {(use["function"], use["dtype"], *use["layouts"]) for use in claims["works_not_declared"]}
    assert ("diopiSqrt", "float64", "contiguous") in modest
    assert not [use for use in modest if use[0] == "diopiNeg" and use[2:] == ("contiguous",)]
    assert [use for use in modest if use[0] == "diopiNeg"]
    assert "declared, does not work" in done.stdout
    assert "works, not declared" in done.stdout

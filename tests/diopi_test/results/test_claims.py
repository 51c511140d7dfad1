"""Claims are compared with results: what is declared but does not work, and what works but is not declared."""

from __future__ import annotations

import io
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from baselines import make_level
from commands import run_here
from reports import read_report
from rich.console import Console

from diopi_impl import Claim
from diopi_proto.types import Dtype
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.index_view import IndexView
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.results.claims import compare_claims, show
from diopi_test.results.records import CaseRecord, ClaimsReport
from diopi_test.run.collection import Collected


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a level of two functions."""
    folder = tmp_path_factory.mktemp("baseline")
    make_level(folder / "smoke", "diopiSqrt", "diopiNeg")
    return folder


def record(case: Collected, verdict: str = "passed") -> CaseRecord:
    """Return the record of a case with this verdict."""
    return case.record(Outcome(verdict=Verdict[verdict]), 0.5)


def records(data: Path, function: str, **verdicts: str) -> list[CaseRecord]:
    """Return a record for each case of a function: passed, unless its element type has another verdict."""
    view = IndexView(data / "smoke" / f"{function}.h5")
    cases = (Collected(function=function, label=label, dtype=view.dtype(label).name) for label in view.labels)
    return [record(case, verdicts.get(case.dtype, "passed")) for case in cases]


def compare(data: Path, claims: list[Claim], cases: list[CaseRecord]) -> ClaimsReport:
    """Compare claims with the verdicts of these cases."""
    report = compare_claims(claims, cases, sorted((data / "smoke").glob("*.h5")))
    assert report is not None
    return report


def summarize_uses(uses: Any) -> set[tuple[str, str]]:
    """Return the functions and element types of uses."""
    return {(use.function, use.dtype.name) for use in uses}


def test_claims_are_not_compared_with_a_file_that_was_changed(data: Path, tmp_path: Path) -> None:
    damaged_file = Path(shutil.copytree(data / "smoke", tmp_path / "smoke")) / "diopiSqrt.h5"
    content = bytearray(damaged_file.read_bytes())
    content[len(content) // 2] ^= 1
    damaged_file.write_bytes(content)
    with pytest.raises(BaselineError, match="sha256"):
        compare_claims([Claim("*")], records(data, "diopiSqrt"), [damaged_file])


def test_correct_claims_are_confirmed(data: Path) -> None:
    report = compare(data, [Claim("diopiSqrt*")], records(data, "diopiSqrt"))
    assert (list(report.declared_does_not_work), list(report.works_not_declared)) == ([], [])


@pytest.mark.parametrize("verdict", ["failed", "crashed", "timed_out", "not_implemented", "unsupported", "waived"])
def test_a_declared_use_that_fails_is_reported(data: Path, verdict: str) -> None:
    report = compare(data, [Claim("diopiSqrt")], records(data, "diopiSqrt", float16=verdict))
    assert summarize_uses(report.declared_does_not_work) == {("diopiSqrt", "float16")}
    assert not report.works_not_declared
    assert all(set(use.verdicts) == {verdict} for use in report.declared_does_not_work)


def test_a_working_use_that_is_not_declared_is_reported(data: Path) -> None:
    cases = [*records(data, "diopiSqrt", float64="failed"), *records(data, "diopiNeg")]
    report = compare(data, [Claim("diopiNeg"), Claim("diopiSqrt", dtypes=[Dtype.float32])], cases)
    undeclared = {dtype for _, dtype in summarize_uses(report.works_not_declared)}
    assert {function for function, _ in summarize_uses(report.works_not_declared)} == {"diopiSqrt"}
    assert "float16" in undeclared
    assert not {"float32", "float64"} & undeclared
    assert not report.declared_does_not_work


def test_claims_depend_on_layouts(data: Path) -> None:
    report = compare(data, [Claim("diopiSqrt", layouts=["contiguous"])], records(data, "diopiSqrt"))
    assert report.works_not_declared
    assert all(set(use.layouts) - {"contiguous"} for use in report.works_not_declared)
    assert not report.declared_does_not_work


def test_a_use_works_if_all_of_its_cases_pass(data: Path) -> None:
    cases = records(data, "diopiSqrt")
    layouts = IndexView(data / "smoke" / "diopiSqrt.h5").layouts
    contiguous = [case for case in cases if case.dtype == "float32" and layouts(case.label) == {"contiguous"}]
    assert len(contiguous) > 1
    cases[cases.index(contiguous[0])] = replace(contiguous[0], verdict=Verdict.failed)
    report = compare(data, [Claim("diopiSqrt")], cases)
    (use,) = report.declared_does_not_work
    assert dict(use.verdicts) == {"failed": 1, "passed": len(contiguous) - 1}
    assert ("diopiSqrt", "float32", ("contiguous",)) not in {
        (use.function, use.dtype.name, use.layouts)
        for use in compare(data, [Claim("diopiNeg")], cases).works_not_declared
    }


def test_cases_that_are_not_stored_do_not_affect_claims(data: Path) -> None:
    derived = Collected(
        function="diopiSqrt",
        label="callers-input-null",
        dtype="float32",
        case_class=CaseClass.callers,
        base="float32-matrix",
    )
    report = compare(data, [Claim("diopiSqrt")], [record(derived, "failed")])
    assert (list(report.declared_does_not_work), list(report.works_not_declared)) == ([], [])


def test_cases_without_an_element_type_do_not_affect_claims(data: Path) -> None:
    case = Collected(
        function="diopiSqrt", label="negative-input-null", case_class=CaseClass.negative, base="float32-matrix"
    )
    runtime = Collected(function="runtime", label="memory")
    report = compare(data, [Claim("diopiSqrt")], [record(item, "failed") for item in (case, runtime)])
    assert (list(report.declared_does_not_work), list(report.works_not_declared)) == ([], [])


def test_a_vendor_that_declares_nothing_has_no_claims(data: Path) -> None:
    assert compare_claims([], records(data, "diopiSqrt"), sorted((data / "smoke").glob("*.h5"))) is None


def test_long_lists_are_shortened(data: Path) -> None:
    cases = [*records(data, "diopiSqrt"), *records(data, "diopiNeg")]
    report = compare(data, [Claim("diopiSin")], cases)
    assert len(report.works_not_declared) > 20
    text = io.StringIO()
    show(report, Console(file=text, width=200))
    assert "declared, does not work: nothing" in text.getvalue()
    assert f"… and {len(report.works_not_declared) - 20} more; --json FILE lists them all" in text.getvalue()


def test_the_report_has_both_lists(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    selection = ("-n", 1, "-k", "not runtime")
    done = run_here("run", "--data", data, "--vendor", "claiming:vendor", *selection, "--json", file)
    assert done.returncode == 0, done.stdout + done.stderr
    claims = read_report(file)["claims"]
    assert claims["declared"] == [
        {"functions": "diopiSqrt", "dtypes": ["float16", "float32"], "layouts": None},
        {"functions": "diopiNeg", "dtypes": None, "layouts": ["contiguous"]},
    ]
    assert {(use["function"], use["dtype"]) for use in claims["declared_does_not_work"]} == {("diopiSqrt", "float16")}
    assert all(use["verdicts"].keys() == {"unsupported"} for use in claims["declared_does_not_work"])
    undeclared = {(use["function"], use["dtype"], *use["layouts"]) for use in claims["works_not_declared"]}
    assert ("diopiSqrt", "float64", "contiguous") in undeclared
    assert not [use for use in undeclared if use[0] == "diopiNeg" and use[2:] == ("contiguous",)]
    assert [use for use in undeclared if use[0] == "diopiNeg"]
    assert "declared, does not work" in done.stdout
    assert "works, not declared" in done.stdout

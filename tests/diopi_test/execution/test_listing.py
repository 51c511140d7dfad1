"""The order of the cases in a file."""

from itertools import groupby
from pathlib import Path

from baselines import make_level

from diopi_test.baseline.index_view import IndexView
from diopi_test.cases.case import CaseClass
from diopi_test.cases.selection import select_cases
from diopi_test.execution.listing import list_cases


def test_negative_cases_come_last(tmp_path: Path) -> None:
    folder = make_level(tmp_path / "smoke", "diopiPool2d")
    listed = list_cases(IndexView(folder / "diopiPool2d.h5"))
    stored = select_cases("diopiPool2d", "smoke")
    assert [(case.label, case.class_) for case in listed[: len(stored)]] == [(c.label, c.case_class) for c in stored]
    classes = [class_ for class_, _ in groupby(case.class_ for case in listed[len(stored) :])]
    assert classes == [CaseClass.callers, CaseClass.negative]


def test_level_smoke_evaluates_the_reference_for_a_sample_of_functions(tmp_path: Path) -> None:
    def aliased(level: str) -> list[str]:
        folder = make_level(tmp_path / level, "diopiMul")
        listed = list_cases(IndexView(folder / "diopiMul.h5"))
        return [case.label for case in listed if case.class_ is CaseClass.aliased]

    assert aliased("smoke") == ["aliased-out-is-input", "aliased-out-is-other"]
    assert "aliased-other-is-input" in aliased("full")

"""The smoke selection: with the basic ones they catch what all cases catch."""

import pytest

from diopi_proto.interface import lookup
from diopi_test.baseline.evaluate import compute_baseline_case
from diopi_test.baseline.generate import functions_with_cases
from diopi_test.cases.selection import select_cases, smoke_selection
from diopi_test.quality.audit import audit_function
from diopi_test.quality.audit.matrix import faults_of, try_fault


@pytest.mark.parametrize("function", ["diopiAbs", "diopiSub", "diopiSelect"])
def test_smoke_catches_what_full_catches(function: str) -> None:
    cases = {level: select_cases(function, level) for level in ("smoke", "full")}
    made = {level: [compute_baseline_case(lookup(function), case) for case in its] for level, its in cases.items()}
    for fault in faults_of(function, made["full"]):
        if try_fault(fault, made["full"]).caught_by:
            assert try_fault(fault, made["smoke"]).caught_by, fault.name


def test_smoke_selection_is_what_catches_beyond_the_basic_cases() -> None:
    audit = audit_function("diopiAbs")
    assert audit.smoke_selection == list(smoke_selection()["diopiAbs"])
    assert not set(audit.smoke_selection) & set(audit.basic)


def test_smoke_selection_cases_exist_and_are_not_basic() -> None:
    assert set(smoke_selection()) <= set(functions_with_cases("full"))
    for function, labels in smoke_selection().items():
        others = {case.label for case in select_cases(function, "full") if not case.smoke}
        assert set(labels) <= others, function

"""The telling cases: with the basic ones they catch what all cases catch."""

import pytest

from diopi_proto.interface import lookup
from diopi_test.audit import audit_function
from diopi_test.audit.matrix import faults_of, try_fault
from diopi_test.baseline import make_baseline_case
from diopi_test.cases import select_cases, telling
from diopi_test.generate import functions_with_cases


@pytest.mark.parametrize("function", ["diopiAbs", "diopiSub", "diopiSelect"])
def test_smoke_catches_what_full_catches(function: str) -> None:
    cases = {level: select_cases(function, level) for level in ("smoke", "full")}
    made = {level: [make_baseline_case(lookup(function), case) for case in its] for level, its in cases.items()}
    for fault in faults_of(function, made["full"]):
        if try_fault(fault, made["full"]).caught_by:
            assert try_fault(fault, made["smoke"]).caught_by, fault.name


def test_telling_is_what_catches_beyond_the_basic_cases() -> None:
    audit = audit_function("diopiAbs")
    assert audit.telling == list(telling()["diopiAbs"])
    assert not set(audit.telling) & set(audit.basic)


def test_telling_cases_exist_and_are_not_basic() -> None:
    assert set(telling()) <= set(functions_with_cases("full"))
    for function, labels in telling().items():
        others = {case.label for case in select_cases(function, "full") if not case.smoke}
        assert set(labels) <= others, function

"""The audit catches what it should, tells what it can't, and finds weak cases."""

from collections.abc import Sequence

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.audit import audit_function, matrix
from diopi_test.audit.arguments import argument_faults
from diopi_test.audit.fault import Answer, Fault, changed
from diopi_test.audit.memory import memory_faults
from diopi_test.audit.results import result_faults
from diopi_test.baseline import BaselineCase, make_baseline_case
from diopi_test.case import Case, TensorSpec
from diopi_test.cases import select_cases
from diopi_test.domains import choice, normal


def made(function: str, case: Case) -> BaselineCase:
    return make_baseline_case(lookup(function), case)


def matrix_case(function: str) -> BaselineCase:
    case = next(case for case in select_cases(function, "full") if case.label == "float32-matrix")
    return made(function, case)


def survivors(function: str) -> set[str]:
    return {trial.fault for trial in audit_function(function).survivors}


@pytest.mark.parametrize("function", ["diopiSin", "diopiFloorInp", "diopiTanhBackward", "diopiLogicalNot"])
def test_nothing_survives_good_cases(function: str) -> None:
    audit = audit_function(function)
    assert survivors(function) == set()
    assert len(audit.applicable) >= 15


def test_a_case_of_ones_lets_a_gradient_survive_that_ignores_grad_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """What driving gradients with ones hides."""

    def weak(function: str, level: str) -> Sequence[Case]:
        ones = TensorSpec((3, 4), Dtype.float32, choice([1.0]))
        return [Case("float32-ones", Dtype.float32, {"grad_output": ones, "output": TensorSpec((3, 4), Dtype.float32)})]

    monkeypatch.setattr(matrix, "select_cases", weak)
    audit = audit_function("diopiTanhBackward")
    assert "grad_output taken for ones" not in {trial.fault for trial in audit.applicable}
    assert "output taken for ones" in {trial.fault for trial in audit.applicable}


def test_a_blunt_budget_lets_small_errors_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    def blunt(function: str, level: str) -> Sequence[Case]:
        near_pi = TensorSpec((30,), Dtype.float32, normal(scale=1e-6, mean=np.pi))
        return [Case("float32-blunt", Dtype.float32, {"input": near_pi})]

    monkeypatch.setattr(matrix, "select_cases", blunt)
    assert {"off by 4 eps", "off by 1e-3"} <= survivors("diopiSin")


def test_every_fault_of_results_changes_them_or_says_that_it_cannot() -> None:
    case = matrix_case("diopiExp")
    for fault in result_faults():
        right, answer = Answer.right(case), Answer.right(case)
        shown = fault.spoil(answer)
        assert shown == changed(right.results, answer.results), fault.name


def test_attributes_are_tried_at_their_values_and_beside_them() -> None:
    cases = [made("diopiAddScalar", case) for case in select_cases("diopiAddScalar", "full")]
    names = {fault.name for fault in argument_faults("diopiAddScalar", cases)}
    assert any(name.startswith("alpha stuck at") for name in names)
    assert {"other negated", "alpha off by one", "input taken for ones"} <= names


def test_swapped_operands_are_a_fault_of_subtraction_not_of_addition() -> None:
    def applicable(function: str) -> set[str]:
        return {trial.fault for trial in audit_function(function, "smoke").applicable}

    assert "input and other swapped" in applicable("diopiSub")
    assert "input and other swapped" not in applicable("diopiMaximum")


def test_every_fault_of_memory_is_caught_by_its_own_check() -> None:
    checks = {trial.fault: trial.caught_by for trial in audit_function("diopiSin").trials if trial.caught_by}
    own = {"input written": "inputs", "gap in the storage written": "gaps"}
    for fault in memory_faults():
        assert checks[fault.name][1] == (own.get(fault.name, "guards"),)


def test_a_fault_that_makes_no_difference_is_not_applicable() -> None:
    trial = matrix._try(Fault("none", lambda answer: False), [matrix_case("diopiSin")])
    assert (trial.shown, trial.survived) == (0, False)

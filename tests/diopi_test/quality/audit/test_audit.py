"""The audit catches what it should, tells what it can't, and finds weak cases."""

from collections.abc import Sequence

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.baseline.evaluate import compute_baseline_case
from diopi_test.baseline.records import BaselineCase
from diopi_test.cases.domains import choice, normal, uniform
from diopi_test.cases.model import Case, TensorSpec
from diopi_test.cases.selection import select_cases
from diopi_test.quality.audit import AuditError, audit_function, matrix
from diopi_test.quality.audit.arguments import argument_faults
from diopi_test.quality.audit.fault import Answer, Effect, Fault, differ, shown
from diopi_test.quality.audit.matrix import FunctionAudit, Trial, faults_of, try_fault
from diopi_test.quality.audit.memory import memory_faults
from diopi_test.quality.audit.page import page
from diopi_test.quality.audit.precision import precision_faults
from diopi_test.quality.audit.report import matrix_row, signs
from diopi_test.quality.audit.results import result_faults
from diopi_test.quality.audit.vendor import VendorWithFault
from lib_rt import RuntimeFunctions


def made(function: str, case: Case) -> BaselineCase:
    return compute_baseline_case(lookup(function), case)


def cases_of(function: str) -> list[BaselineCase]:
    return [made(function, case) for case in select_cases(function, "full")]


def matrix_case(function: str) -> BaselineCase:
    return next(case for case in cases_of(function) if case.label == "float32-matrix")


def survivors(function: str) -> set[str]:
    return {trial.fault for trial in audit_function(function).survivors}


def trials(function: str, *names: str) -> dict[str, Trial]:
    """What becomes of these faults of a function."""
    cases = cases_of(function)
    faults = {fault.name: fault for fault in faults_of(function, cases)}
    return {name: try_fault(faults[name], cases) for name in names}


def with_cases(monkeypatch: pytest.MonkeyPatch, *cases: Case) -> None:
    def chosen(function: str, level: str) -> Sequence[Case]:
        return cases

    monkeypatch.setattr(matrix, "select_cases", chosen)


@pytest.mark.parametrize(
    "function",
    ["diopiSin", "diopiFloorInp", "diopiTanhBackward", "diopiNonzero", "diopiUniformInp"],
)
def test_nothing_survives_good_cases(function: str) -> None:
    audit = audit_function(function)
    assert survivors(function) == set()
    assert len(audit.applicable) >= 15


def test_a_case_of_ones_lets_a_gradient_survive_that_ignores_grad_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """What driving gradients with ones hides."""
    ones = TensorSpec((3, 4), Dtype.float32, choice([1.0]))
    output = TensorSpec((3, 4), Dtype.float32)
    with_cases(monkeypatch, Case("float32-ones", Dtype.float32, {"grad_output": ones, "output": output}))
    audit = audit_function("diopiTanhBackward")
    assert "grad_output taken for ones" not in {trial.fault for trial in audit.applicable}
    assert "output taken for ones" in {trial.fault for trial in audit.applicable}
    assert set(audit.unshown) == {"grad_output"}


def test_a_blunt_budget_lets_small_errors_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    near_pi = TensorSpec((30,), Dtype.float32, normal(scale=1e-6, mean=np.pi))
    with_cases(monkeypatch, Case("float32-blunt", Dtype.float32, {"input": near_pi}))
    assert {"off by 4 eps", "off by 1e-3"} <= survivors("diopiSin")


def test_an_attribute_with_one_value_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    square = TensorSpec((4, 4), Dtype.float32)
    vector = TensorSpec((4,), Dtype.float32)
    with_cases(monkeypatch, Case("float32-vector", Dtype.float32, {"input": vector, "dim": 0}))
    assert "dim" in audit_function("diopiSoftmax").unshown
    with_cases(monkeypatch, Case("float32-square", Dtype.float32, {"input": square, "dim": 0}))
    assert "dim" not in audit_function("diopiSoftmax").unshown


def test_every_fault_of_results_changes_them_or_says_that_it_cannot() -> None:
    case = matrix_case("diopiExp")
    for fault in result_faults("diopiExp"):
        right, answer = Answer.right(case), Answer.right(case)
        effect = fault.corrupt(answer)
        unwritten = set(right.results) - set(answer.results)
        assert effect is shown(bool(unwritten) or differ(right.results, answer.results)), fault.name


def test_attributes_are_tried_at_their_values_and_beside_them() -> None:
    names = {fault.name for fault in argument_faults("diopiAddScalar", cases_of("diopiAddScalar"))}
    assert any(name.startswith("alpha stuck at") for name in names)
    assert {"other negated", "alpha off by one", "input taken for ones"} <= names


def test_an_optional_attribute_is_tried_as_if_it_were_left_out() -> None:
    names = {fault.name for fault in argument_faults("diopiClampScalar", cases_of("diopiClampScalar"))}
    assert {"min ignored", "max ignored"} <= names


def test_operands_that_commute_can_be_swapped() -> None:
    swapped = "input and other swapped"
    assert trials("diopiSub", swapped)[swapped].shown
    effects = trials("diopiMul", swapped)[swapped].effects
    assert effects[Effect.same]
    assert Effect.shown not in effects


@pytest.mark.parametrize(
    ("function", "faults"),
    [
        ("diopiSum", ["dim is the axis after it", "accumulated in bfloat16", "accumulated in half precision"]),
        ("diopiAdd", ["other not broadcast", "strides of the result ignored", "inputs rounded to float16"]),
        ("diopiCat", ["tensors in reverse order", "tensors taken for ones"]),
        ("diopiSgd", ["param not updated", "buf not updated", "nesterov negated"]),
        ("diopiSort", ["pStable ignored", "indices not written", "neighbouring indices exchanged"]),
        ("diopiTopk", ["sorted ignored", "indices in reverse order"]),
        ("diopiNonzero", ["result made in another type", "success without work"]),
        ("diopiContiguous", ["memoryFormat ignored"]),
        ("diopiUniformInp", ["seed ignored", "offset ignored", "offset not advanced", "elements repeated"]),
    ],
)
def test_faults_that_only_some_functions_have_are_caught(function: str, faults: Sequence[str]) -> None:
    assert [name for name, trial in trials(function, *faults).items() if not trial.caught_by] == []


def test_a_sum_in_half_precision_is_the_sum_of_its_roundings() -> None:
    spec = TensorSpec((2, 700), Dtype.bfloat16, uniform(0.5, 1))
    case = made("diopiSum", Case("bfloat16-long", Dtype.bfloat16, {"input": spec, "dim": (1,)}))
    answer = Answer.right(case)
    fault = next(fault for fault in precision_faults() if fault.name == "accumulated in half precision")
    assert fault.corrupt(answer) is Effect.shown
    (out,) = answer.results.values()
    total = np.zeros(2, out[0].dtype)
    for column in case.arguments["input"].values.T:
        total += column
    np.testing.assert_array_equal(out[0], total)


def test_every_fault_of_memory_is_caught_by_its_own_check() -> None:
    own = {
        "input written": "inputs",
        "input restored an ulp off": "inputs",
        "gap in the storage written": "gaps",
        "strides of the result ignored": "values",
        "result written after return": "order",
        "memory left allocated": "leaks",
    }
    for fault in memory_faults():
        caught = try_fault(fault, cases_of("diopiSin")).caught_by
        assert caught is not None and own.get(fault.name, "guards") in caught[1], fault.name


@pytest.mark.parametrize("function", ["diopiSin", "diopiLogicalNot", "diopiFloorInp", "diopiSort", "diopiNonzero"])
def test_state_that_calls_leave_behind_is_caught_by_the_repetition(function: str) -> None:
    fault = "state kept between calls"
    assert trials(function, fault)[fault].caught_by == (cases_of(function)[0].label, ("repeat",))


def test_right_draws_are_accepted_in_results_that_the_callee_makes() -> None:
    function = "diopiCustomizedFlashAttention"
    (case,) = (made(function, case) for case in select_cases(function, "full") if case.label == "float32-dropout")
    trial = try_fault(Fault("none", after=lambda inputs, results: Effect.absent), [case])
    assert case.draws and trial.caught_by is None


def test_a_fault_that_makes_no_difference_is_not_applicable() -> None:
    trial = try_fault(Fault("none"), [matrix_case("diopiSin")])
    assert (trial.shown, trial.survived) == (0, False)


def test_cases_that_refuse_their_own_results_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(VendorWithFault):
        """A vendor that is never right."""

        def __init__(self, fault: Fault, runtime: RuntimeFunctions) -> None:
            super().__init__(next(fault for fault in result_faults("diopiSin") if fault.name == "zeros"), runtime)

    monkeypatch.setattr(matrix, "VendorWithFault", Wrong)
    with_cases(monkeypatch, Case("float32-vector", Dtype.float32, {"input": TensorSpec((3,), Dtype.float32)}))
    with pytest.raises(AuditError, match=r"diopiSin\[float32-vector\] does not accept the results it expects: values"):
        audit_function("diopiSin")


def test_the_page_counts_by_kind_and_family() -> None:
    audits = [audit_function("diopiSin", "smoke"), audit_function("diopiCat", "smoke")]
    text = page(audits)
    assert matrix.count(audits) in text
    assert "|  |  | pointwise | shape | all | first seen by |" in text
    assert "| functions |  | 1 | 1 | 2 |" in text
    assert "| first element wrong | 1a | 1 | 1 | 2 | values |" in text


def test_a_row_of_the_kill_matrix_has_a_sign_for_each_kind() -> None:
    def trial(kind: str, shown: int, caught: bool) -> Trial:
        effects = {Effect.shown: shown}
        return Trial(f"{kind} {shown}", kind, None, effects, ("case", ("values",)) if caught else None)

    audit = FunctionAudit(
        "diopiSin",
        [trial("zeros", 1, True), trial("ones", 1, True), trial("ones", 2, False), trial("twos", 0, False)],
    )
    assert signs([audit]) == {"zeros": "1a", "ones": "1b", "twos": "1c"}
    assert matrix_row(audit, signs([audit])) == "a!."


def test_any_number_of_kinds_has_signs() -> None:
    trials = [Trial(str(number), str(number), None, {Effect.shown: 1}, ("case", ())) for number in range(83)]
    audit = FunctionAudit("diopiSin", trials)
    found = signs([audit])
    assert (found["0"], found["25"], found["26"], found["82"]) == ("1a", "1z", "2a", "4e")
    assert len(set(found.values())) == 83
    assert [len(block) for block in matrix_row(audit, found).split()] == [26, 26, 26, 5]

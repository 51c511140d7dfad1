"""Mutation tests kill the mutants that the cases can detect and report the others."""

import importlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from sampling import sampled

from diopi_impl import Numerics, find_numerics
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import choice, normal, uniform
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation import MutationTestError, matrix, run_mutation_tests, suffices
from diopi_test.quality.mutation.arguments import argument_mutants
from diopi_test.quality.mutation.kinds import DESCRIPTIONS
from diopi_test.quality.mutation.matrix import MutantResult, MutationReport, generate_mutants, run_mutant
from diopi_test.quality.mutation.memory import memory_mutants
from diopi_test.quality.mutation.mutant import Effect, Mutant, SimulatedCall, changed_if, differ
from diopi_test.quality.mutation.page import render_page
from diopi_test.quality.mutation.precision import precision_mutants
from diopi_test.quality.mutation.report import assign_signs, matrix_row
from diopi_test.quality.mutation.results import result_mutants
from diopi_test.quality.mutation.vendor import MutantVendor
from lib_rt import RuntimeFunctions

pytestmark = pytest.mark.usefixtures("without_soak_tests")


def make_case(function: str, case: Case) -> BaselineCase:
    """Return a computed case of a function."""
    return compute_baseline_case(lookup(function), case)


def cases_of(function: str) -> list[BaselineCase]:
    """Return all computed cases of a function."""
    return [make_case(function, case) for case in select_cases(function, "full")]


def matrix_case(function: str) -> BaselineCase:
    """Return the float32 case of a function with a matrix."""
    return next(case for case in cases_of(function) if case.label == "float32-matrix")


def survivors(function: str) -> set[str]:
    """Return the names of the mutants of a function that survive."""
    return {result.mutant for result in run_mutation_tests(function).survivors}


def run_mutants(function: str, *names: str) -> dict[str, MutantResult]:
    """Return the results of these mutants of a function, by name."""
    cases = cases_of(function)
    mutants = {mutant.name: mutant for mutant in generate_mutants(function, cases)}
    return {name: run_mutant(mutants[name], cases) for name in names}


def replace_cases(monkeypatch: pytest.MonkeyPatch, *cases: Case) -> None:
    """Let the mutation tests use these cases."""

    def select(function: str, level: str) -> Sequence[Case]:
        return cases

    monkeypatch.setattr(matrix, "select_cases", select)


@pytest.mark.parametrize(
    "function",
    [
        *sampled(["diopiSin", "diopiFloorInp", "diopiTanhBackward", "diopiNonzero"], 1, slow=3),
        pytest.param("diopiUniformInp", marks=pytest.mark.exhaustive),  # a third of the time of all mutation tests
    ],
)
def test_no_mutant_survives_the_suites_cases(function: str) -> None:
    report = run_mutation_tests(function)
    assert report.survivors == []
    assert len(report.applicable) >= 15


def test_mutant_that_ignores_grad_output_is_equivalent_if_grad_output_is_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    ones = TensorSpec((3, 4), Dtype.float32, choice([1.0]))
    output = TensorSpec((3, 4), Dtype.float32)
    replace_cases(monkeypatch, Case("float32-ones", Dtype.float32, {"grad_output": ones, "output": output}))
    report = run_mutation_tests("diopiTanhBackward")
    assert "grad_output replaced by ones" not in {result.mutant for result in report.applicable}
    assert "output replaced by ones" in {result.mutant for result in report.applicable}
    assert set(report.parameters_without_effect) == {"grad_output"}


def test_small_errors_survive_a_wide_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    near_pi = TensorSpec((30,), Dtype.float32, normal(scale=1e-6, mean=np.pi))
    replace_cases(monkeypatch, Case("float32-blunt", Dtype.float32, {"input": near_pi}))
    assert {"off by 4 eps", "off by 1e-3"} <= survivors("diopiSin")


def test_only_mutants_of_the_selected_kinds_run(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_cases(monkeypatch, Case("float32-line", Dtype.float32, {"input": TensorSpec((30,), Dtype.float32)}))
    report = run_mutation_tests("diopiSin", kinds=["last element wrong", "tensor replaced by ones"])
    assert [result.mutant for result in report.results] == ["last element wrong", "input replaced by ones"]


@pytest.mark.parametrize(("keeps_cases", "chosen"), [(False, ["float32-new"]), (True, ["float32-new", "float32-old"])])
def test_a_choice_replaces_the_smoke_selection_or_adds_cases(
    keeps_cases: bool, chosen: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "selection.json"
    file.write_text('{"diopiCos": ["float32-wide"], "diopiSin": ["float32-old"]}', "utf-8")
    killed = MutantResult(
        mutant="m", kind="m", parameter=None, effects={Effect.changed: 1}, killed_by=("float32-new", ())
    )
    command = importlib.import_module("diopi_test.cli.mutation_test")  # the package has the command under this name
    updated = command.update_selection(file, [MutationReport("diopiSin", [killed])], keeps_cases=keeps_cases)
    assert updated == {"diopiCos": ["float32-wide"], "diopiSin": chosen}


def test_attribute_without_effect_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    square = TensorSpec((4, 4), Dtype.float32)
    vector = TensorSpec((4,), Dtype.float32)
    replace_cases(monkeypatch, Case("float32-vector", Dtype.float32, {"input": vector, "dim": 0}))
    assert "dim" in run_mutation_tests("diopiSoftmax").parameters_without_effect
    replace_cases(monkeypatch, Case("float32-square", Dtype.float32, {"input": square, "dim": 0}))
    assert "dim" not in run_mutation_tests("diopiSoftmax").parameters_without_effect


def test_effect_of_result_mutants_tells_whether_results_changed() -> None:
    case = matrix_case("diopiExp")
    for mutant in result_mutants("diopiExp"):
        expected, call = SimulatedCall.from_expected(case), SimulatedCall.from_expected(case)
        effect = mutant.corrupt(call)
        unwritten = set(expected.results) - set(call.results)
        assert effect is changed_if(bool(unwritten) or differ(expected.results, call.results)), mutant.name


def test_attribute_mutants_use_and_modify_the_values_of_the_cases() -> None:
    names = {mutant.name for mutant in argument_mutants("diopiAddScalar", cases_of("diopiAddScalar"))}
    assert any(name.startswith("alpha stuck at") for name in names)
    assert {"other negated", "alpha off by one", "input replaced by ones"} <= names


def test_optional_attribute_has_a_mutant_that_ignores_it() -> None:
    names = {mutant.name for mutant in argument_mutants("diopiClampScalar", cases_of("diopiClampScalar"))}
    assert {"min ignored", "max ignored"} <= names


def test_swapping_commuting_operands_is_equivalent() -> None:
    swapped = "input and other swapped"
    assert run_mutants("diopiSub", swapped)[swapped].change_count
    effects = run_mutants("diopiMul", swapped)[swapped].effects
    assert effects[Effect.equivalent]
    assert Effect.changed not in effects


@pytest.mark.parametrize(
    ("function", "mutants"),
    [
        ("diopiSum", ["dim replaced by the next axis", "accumulated in bfloat16", "accumulated in half precision"]),
        ("diopiAdd", ["other not broadcast", "strides of the result ignored", "inputs rounded to float16"]),
        ("diopiCat", ["tensors in reverse order", "tensors replaced by ones"]),
        ("diopiSgd", ["param not updated", "buf not updated", "nesterov negated"]),
        ("diopiSort", ["pStable ignored", "indices not written", "neighboring indices swapped"]),
        ("diopiTopk", ["sorted ignored", "indices reversed"]),
        ("diopiNonzero", ["result allocated in another type", "nothing written"]),
        ("diopiContiguous", ["memoryFormat ignored"]),
        ("diopiUniformInp", ["seed ignored", "offset ignored", "offset not advanced", "every element repeated"]),
    ],
)
def test_mutants_of_particular_functions_are_killed(function: str, mutants: Sequence[str]) -> None:
    assert [name for name, result in run_mutants(function, *mutants).items() if not result.killed_by] == []


def test_accumulating_in_half_precision_rounds_every_partial_sum() -> None:
    spec = TensorSpec((2, 700), Dtype.bfloat16, uniform(0.5, 1))
    case = make_case("diopiSum", Case("bfloat16-long", Dtype.bfloat16, {"input": spec, "dim": (1,)}))
    call = SimulatedCall.from_expected(case)
    mutant = next(mutant for mutant in precision_mutants() if mutant.name == "accumulated in half precision")
    assert mutant.corrupt(call) is Effect.changed
    (out,) = call.results.values()
    total = np.zeros(2, out[0].dtype)
    for column in case.arguments["input"].values.T:
        total += column
    np.testing.assert_array_equal(out[0], total)


def test_each_memory_mutant_is_killed_by_the_check_for_it() -> None:
    checks = {
        "input overwritten": "inputs",
        "input changed by one ulp": "inputs",
        "gap in the storage written": "gaps",
        "strides of the result ignored": "values",
        "result written after return": "order",
        "memory leaked": "leaks",
    }
    for mutant in memory_mutants():
        killed_by = run_mutant(mutant, cases_of("diopiSin")).killed_by
        assert killed_by is not None and checks.get(mutant.name, "guards") in killed_by[1], mutant.name


@pytest.mark.parametrize("function", ["diopiSin", "diopiLogicalNot", "diopiFloorInp", "diopiSort", "diopiNonzero"])
def test_repeat_check_kills_mutant_that_adds_to_the_previous_result(function: str) -> None:
    mutant = "result added to the previous result"
    assert run_mutants(function, mutant)[mutant].killed_by == (cases_of(function)[0].label, ("repeat",))


def test_correct_draws_pass_in_results_that_the_callee_allocates() -> None:
    function = "diopiCustomizedFlashAttention"
    (case,) = (make_case(function, case) for case in select_cases(function, "full") if case.label == "float32-dropout")
    result = run_mutant(Mutant(name="none", corrupt_memory=lambda inputs, results: Effect.not_applicable), [case])
    assert case.draws and result.killed_by is None


def test_mutant_without_effect_does_not_survive() -> None:
    result = run_mutant(Mutant(name="none"), [matrix_case("diopiSin")])
    assert (result.change_count, result.survived) == (0, False)


def test_case_that_fails_its_own_expected_results_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class WrongVendor(MutantVendor):
        """A vendor whose results are always zero."""

        def __init__(self, mutant: Mutant, runtime: RuntimeFunctions, numerics: Numerics) -> None:
            super().__init__(
                next(mutant for mutant in result_mutants("diopiSin") if mutant.name == "all elements zero"),
                runtime,
                numerics,
            )

    monkeypatch.setattr(matrix, "MutantVendor", WrongVendor)
    replace_cases(monkeypatch, Case("float32-vector", Dtype.float32, {"input": TensorSpec((3,), Dtype.float32)}))
    with pytest.raises(MutationTestError, match=r"diopiSin\[float32-vector\].*: values"):
        run_mutation_tests("diopiSin")


def test_page_counts_mutants_by_kind_and_family() -> None:
    reports = [run_mutation_tests("diopiSin", "smoke"), run_mutation_tests("diopiCat", "smoke")]
    text = render_page(reports)
    assert matrix.format_score(reports) in text
    assert "|  |  | pointwise | shape | all | first failed check |" in text
    assert "| functions |  | 1 | 1 | 2 |" in text
    assert "| first element wrong | 1a | 1 | 1 | 2 | values |" in text


def test_page_describes_every_kind_of_mutants() -> None:
    """Each kind has a row in the matrix, or in the table of kinds that are newer than the matrix."""
    page = (Path(__file__).parents[4] / "docs/mutation_testing.md").read_text("utf-8")
    kinds = re.findall(r"^\| ([^|]+) \| (?:\d[a-z] \||\d+ of \d+ \|$)", page, re.MULTILINE)
    assert sorted(kinds) == sorted(DESCRIPTIONS)
    assert all(f"\n| {kind} | {sentence} |\n" in page for kind, sentence in DESCRIPTIONS.items())


def test_row_of_the_kill_matrix_has_a_sign_for_each_kind() -> None:
    def result(kind: str, count: int, is_killed: bool) -> MutantResult:
        killed_by = ("case", ("values",)) if is_killed else None
        return MutantResult(
            mutant=f"{kind} {count}", kind=kind, parameter=None, effects={Effect.changed: count}, killed_by=killed_by
        )

    report = MutationReport(
        "diopiSin",
        [
            result("all elements zero", 1, True),
            result("ones", 1, True),
            result("ones", 2, False),
            result("twos", 0, False),
        ],
    )
    assert assign_signs([report]) == {"all elements zero": "1a", "ones": "1b", "twos": "1c"}
    assert matrix_row(report, assign_signs([report])) == "a!."


def test_signs_are_unique_for_any_number_of_kinds() -> None:
    effects, killed_by = {Effect.changed: 1}, ("case", ())
    results = [
        MutantResult(mutant=str(number), kind=str(number), parameter=None, effects=effects, killed_by=killed_by)
        for number in range(83)
    ]
    report = MutationReport("diopiSin", results)
    found = assign_signs([report])
    assert (found["0"], found["25"], found["26"], found["82"]) == ("1a", "1z", "2a", "4e")
    assert len(set(found.values())) == 83
    assert [len(block) for block in matrix_row(report, found).split()] == [26, 26, 26, 5]


def test_a_mutant_survives_if_the_declared_arithmetic_permits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_cases(monkeypatch, *(case for case in select_cases("diopiMm", "full") if case.dtype is Dtype.float32))
    rounding = [mutant for mutant in precision_mutants() if mutant.name.startswith("inputs rounded to")]
    monkeypatch.setattr(matrix, "generate_mutants", lambda function, cases: rounding)
    monkeypatch.setattr(matrix, "run_derived_mutants", lambda function, cases: ())
    survivors = {
        name: {result.mutant for result in run_mutation_tests("diopiMm", numerics=find_numerics(name)).survivors}
        for name in ("ieee", "tf32")
    }
    # float16 has as many significant bits as TF32
    assert survivors == {"ieee": set(), "tf32": {"inputs rounded to float16"}}


def test_a_declared_arithmetic_requires_a_share_of_the_mutants() -> None:
    killed, survivor = (
        MutantResult(mutant="m", kind="m", parameter=None, effects={Effect.changed: 1}, killed_by=killed_by)
        for killed_by in (("case", ("values",)), None)
    )
    ieee, tf32 = find_numerics("ieee"), find_numerics("tf32")
    assert suffices([MutationReport("diopiMm", [killed])], ieee)
    assert not suffices([MutationReport("diopiMm", [killed] * 19 + [survivor])], ieee)
    assert suffices([MutationReport("diopiMm", [killed] * 19 + [survivor])], tf32)
    assert not suffices([MutationReport("diopiMm", [killed] * 18 + [survivor])], tf32)

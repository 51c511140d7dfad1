"""Formula mutants change a copy of a reference; the reference itself stays unchanged."""

import ast
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import diopi_test.oracle.reference as package
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOverride, TensorSpec
from diopi_test.cases.domains import uniform
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.oracle.reference import Reference, find_reference, reference, separate_registry
from diopi_test.quality.mutation.formula import RELATED, formula_mutants
from diopi_test.quality.mutation.matrix import MutantResult, run_mutant
from diopi_test.quality.mutation.mutant import Effect


def leaky_relu(*, low: float, high: float) -> BaselineCase:
    """Return a case of leaky ReLU with inputs in this range."""
    input = TensorSpec((3, 4), Dtype.float32, uniform(low, high))
    case = Case("float32-made-up", Dtype.float32, {"input": input, "negative_slope": 0.25})
    return compute_baseline_case(lookup("diopiLeakyRelu"), case)


def run_formula_mutants(function: str, cases: Sequence[BaselineCase]) -> dict[str, MutantResult]:
    """Return the results of all changes of a formula, by the change without its place."""
    results = (run_mutant(mutant, cases) for mutant in formula_mutants(function))
    return {result.mutant.partition(": ")[2]: result for result in results}


def test_mutants_change_every_operator_and_number_of_a_formula() -> None:
    assert set(run_formula_mutants("diopiLeakyRelu", [])) == {
        "input > 0 -> input >= 0",
        "0 -> 1",
        "negative_slope * input -> negative_slope / input",
    }


def test_replaced_functions_are_functions_of_numpy() -> None:
    names = {*RELATED, *(name for names in RELATED.values() for name in names.split())}
    assert not [name for name in names if not callable(getattr(np, name, None))]


def test_mutant_is_killed_if_the_data_reach_the_change() -> None:
    product = "negative_slope * input -> negative_slope / input"
    assert run_formula_mutants("diopiLeakyRelu", [leaky_relu(low=2, high=9)])[product].change_count == 0
    result = run_formula_mutants("diopiLeakyRelu", [leaky_relu(low=2, high=9), leaky_relu(low=-9, high=9)])[product]
    assert result.effects == {Effect.equivalent: 1, Effect.changed: 1}
    assert result.killed_by == ("float32-made-up", ("values",))


def test_change_without_a_defined_result_has_the_effect_undefined() -> None:
    case = Case(
        "float32-sum",
        Dtype.float32,
        {"input": TensorSpec((2, 3), Dtype.float32), "dim": (0,)},
    )
    results = run_formula_mutants("diopiSum", [compute_baseline_case(lookup("diopiSum"), case)])
    assert any(result.effects.get(Effect.undefined) for result in results.values())


def test_mutants_change_the_modules_that_a_reference_uses() -> None:
    assert {mutant.name.partition(".")[0] for mutant in formula_mutants("diopiSum")} >= {"reduction", "sums"}


def test_random_numbers_have_no_formula() -> None:
    assert list(formula_mutants("diopiNormal")) == []


def test_references_stay_unchanged() -> None:
    before = find_reference("diopiLeakyRelu")
    case = leaky_relu(low=-9, high=9)
    run_formula_mutants("diopiLeakyRelu", [case])
    assert find_reference("diopiLeakyRelu") is before
    assert leaky_relu(low=-9, high=9).expected["out"].values.tobytes() == case.expected["out"].values.tobytes()  # type: ignore[union-attr]  # one tensor


def test_separate_registry_does_not_affect_the_references() -> None:
    def relu(input: object) -> object:
        return input

    before = find_reference("diopiRelu")
    with pytest.raises(ZeroDivisionError), separate_registry() as registry:
        reference("diopiRelu")(relu)
        assert registry == {"diopiRelu": relu}
        raise ZeroDivisionError
    after: Reference | None = find_reference("diopiRelu")
    assert after is before


def test_change_in_a_module_that_a_reference_uses_has_an_effect() -> None:
    addend, *factors = (TensorSpec(shape, Dtype.float32) for shape in ((2, 4), (2, 3), (3, 4)))
    tensors = dict(zip(("input", "mat1", "mat2"), (addend, *factors), strict=True))
    case = Case("float32-made-up", Dtype.float32, {**tensors, "beta": 1.0, "alpha": 1.0})
    results = run_formula_mutants("diopiAddmm", [compute_baseline_case(lookup("diopiAddmm"), case)])
    assert results["product.value + addend -> product.value - addend"].change_count == 1


def test_change_in_an_indirectly_used_module_has_an_effect() -> None:
    function = "diopiRoiAlignRotatedMmcv"
    case = compute_baseline_case(lookup(function), select_cases(function, "smoke")[0])
    sampling_mutants = [mutant for mutant in formula_mutants(function) if mutant.name.startswith("sampling.py:")]
    assert any(run_mutant(mutant, [case]).change_count for mutant in sampling_mutants)


def test_references_import_by_the_name_of_the_module() -> None:
    """An import of a module through its package would bypass the changed module."""
    folder = Path(package.__file__ or "").parent
    modules = {path.stem for path in folder.rglob("*.py")} - {"__init__"}
    for path in folder.rglob("[!_]*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == package.__name__:
                assert not modules & {alias.name for alias in node.names}, path


def test_changed_modules_do_not_replace_imported_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(sys.modules)
    during: list[dict[str, object]] = []

    def record_modules(*names: str) -> object:
        during.append(dict(sys.modules))
        return reference(*names)

    monkeypatch.setattr(package, "reference", record_modules)
    run_formula_mutants("diopiLeakyRelu", [leaky_relu(low=-9, high=9)])
    assert during
    assert all(modules == before for modules in [*during, dict(sys.modules)])


def loss(dtype: Dtype, center: float) -> BaselineCase:
    """Return a case of the mean squared error with inputs near `center`."""
    tensors = {name: TensorSpec((40,), dtype, uniform(center - 1, center + 1)) for name in ("input", "target")}
    case = Case(f"{dtype.name}-made-up", dtype, {**tensors, "reduction": 0}, results={"out": ResultOverride()})
    return compute_baseline_case(lookup("diopiMSELoss"), case)


def test_numbers_far_from_zero_kill_an_expanded_square_of_a_difference() -> None:
    mutant = next(
        mutant for mutant in formula_mutants("diopiMSELoss") if mutant.kind == "square of a difference expanded"
    )
    assert run_mutant(mutant, [loss(Dtype.float32, 1000)]).killed_by == ("float32-made-up", ("values",))
    assert run_mutant(mutant, [loss(Dtype.float64, 1000)]).effects == {Effect.not_applicable: 1}


def test_difference_from_a_constant_is_not_expanded() -> None:
    assert "square of a difference expanded" not in {mutant.kind for mutant in formula_mutants("diopiUpsampleLinear")}

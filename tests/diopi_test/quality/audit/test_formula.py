"""Faults of formulas: what is changed, what that shows, and that the references themselves stay as they are."""

import ast
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import diopi_test.oracle.reference as package
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.baseline.evaluate import compute_baseline_case
from diopi_test.baseline.records import BaselineCase
from diopi_test.cases.domains import uniform
from diopi_test.cases.model import Case, ResultOverride, TensorSpec
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.reference import Reference, find_reference, reference, separate_registry
from diopi_test.quality.audit.fault import Effect
from diopi_test.quality.audit.formula import formula_faults
from diopi_test.quality.audit.matrix import Trial, try_fault


def leaky(*, low: float, high: float) -> BaselineCase:
    input = TensorSpec((3, 4), Dtype.float32, uniform(low, high))
    case = Case("float32-made-up", Dtype.float32, {"input": input, "negative_slope": 0.25})
    return compute_baseline_case(lookup("diopiLeakyRelu"), case)


def trials(function: str, cases: Sequence[BaselineCase]) -> dict[str, Trial]:
    """What becomes of the changes of a formula, less the place they are at."""
    found = (try_fault(fault, cases) for fault in formula_faults(function))
    return {trial.fault.partition(": ")[2]: trial for trial in found}


def test_every_operator_and_number_of_a_formula_is_changed() -> None:
    assert set(trials("diopiLeakyRelu", [])) == {
        "input > 0 -> input >= 0",
        "0 -> 1",
        "negative_slope * input -> negative_slope / input",
    }


def test_a_change_shows_where_the_data_reach_it() -> None:
    product = "negative_slope * input -> negative_slope / input"
    assert trials("diopiLeakyRelu", [leaky(low=2, high=9)])[product].shown == 0
    caught = trials("diopiLeakyRelu", [leaky(low=2, high=9), leaky(low=-9, high=9)])[product]
    assert caught.effects == {Effect.same: 1, Effect.shown: 1}
    assert caught.caught_by == ("float32-made-up", ("values",))


def test_a_change_without_a_result_is_refused() -> None:
    case = Case(
        "float32-sum",
        Dtype.float32,
        {"input": TensorSpec((2, 3), Dtype.float32), "dim": (0,)},
    )
    refused = trials("diopiSum", [compute_baseline_case(lookup("diopiSum"), case)])
    assert any(trial.effects.get(Effect.refused) for trial in refused.values())


def test_modules_that_a_reference_uses_are_changed_too() -> None:
    assert {fault.name.partition(".")[0] for fault in formula_faults("diopiSum")} >= {"reduction", "sums"}


def test_random_numbers_have_no_formula() -> None:
    assert list(formula_faults("diopiNormal")) == []


def test_the_references_stay_as_they_are() -> None:
    before = find_reference("diopiLeakyRelu")
    case = leaky(low=-9, high=9)
    trials("diopiLeakyRelu", [case])
    assert find_reference("diopiLeakyRelu") is before
    assert leaky(low=-9, high=9).expected["out"].values.tobytes() == case.expected["out"].values.tobytes()  # type: ignore[union-attr]  # one tensor


def test_a_separate_registry_leaves_the_other_alone() -> None:
    def relu(input: object) -> object:
        return input

    before = find_reference("diopiRelu")
    with pytest.raises(ZeroDivisionError), separate_registry() as apart:
        reference("diopiRelu")(relu)
        assert apart == {"diopiRelu": relu}
        raise ZeroDivisionError
    after: Reference | None = find_reference("diopiRelu")
    assert after is before


def test_a_change_in_a_module_that_a_reference_uses_shows() -> None:
    addend, *factors = (TensorSpec(shape, Dtype.float32) for shape in ((2, 4), (2, 3), (3, 4)))
    tensors = dict(zip(("input", "mat1", "mat2"), (addend, *factors), strict=True))
    case = Case("float32-made-up", Dtype.float32, {**tensors, "beta": 1.0, "alpha": 1.0})
    found = trials("diopiAddmm", [compute_baseline_case(lookup("diopiAddmm"), case)])
    assert found["product.value + addend -> product.value - addend"].shown == 1


def test_a_change_in_a_module_that_is_needed_indirectly_shows() -> None:
    function = "diopiRoiAlignRotatedMmcv"
    made = compute_baseline_case(lookup(function), select_cases(function, "smoke")[0])
    of_samples = [fault for fault in formula_faults(function) if fault.name.startswith("sampling.py:")]
    assert any(try_fault(fault, [made]).shown for fault in of_samples)


def test_references_import_by_the_name_of_the_module() -> None:
    """Where a package gives a module, a change in that one would not be seen."""
    folder = Path(package.__file__ or "").parent
    modules = {path.stem for path in folder.rglob("*.py")} - {"__init__"}
    for path in folder.rglob("[!_]*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == package.__name__:
                assert not modules & {alias.name for alias in node.names}, path


def test_changed_modules_are_loaded_beside_those_that_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(sys.modules)
    during: list[dict[str, object]] = []

    def watched(*names: str) -> object:
        during.append(dict(sys.modules))
        return reference(*names)

    monkeypatch.setattr(package, "reference", watched)
    trials("diopiLeakyRelu", [leaky(low=-9, high=9)])
    assert during
    assert all(modules == before for modules in [*during, dict(sys.modules)])


def loss(dtype: Dtype, centre: float) -> BaselineCase:
    tensors = {name: TensorSpec((40,), dtype, uniform(centre - 1, centre + 1)) for name in ("input", "target")}
    case = Case(f"{dtype.name}-made-up", dtype, {**tensors, "reduction": 0}, {"out": ResultOverride()})
    return compute_baseline_case(lookup("diopiMSELoss"), case)


def test_the_square_of_a_difference_shows_far_from_zero_that_it_is_expanded() -> None:
    fault = next(one for one in formula_faults("diopiMSELoss") if one.kind == "square of a difference expanded")
    assert try_fault(fault, [loss(Dtype.float32, 1000)]).caught_by == ("float32-made-up", ("values",))
    assert try_fault(fault, [loss(Dtype.float64, 1000)]).effects == {Effect.absent: 1}


def test_a_difference_from_a_number_is_not_expanded() -> None:
    assert "square of a difference expanded" not in {one.kind for one in formula_faults("diopiUpsampleLinear")}

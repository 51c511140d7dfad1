"""Faults of formulas: what is changed, what that shows, and that the references themselves stay as they are."""

from collections.abc import Sequence

import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.audit.fault import Effect
from diopi_test.audit.formula import formula_faults
from diopi_test.audit.matrix import Trial, try_fault
from diopi_test.baseline import BaselineCase, make_baseline_case
from diopi_test.case import Case, TensorSpec
from diopi_test.domains import between
from diopi_test.reference import Reference, reference, reference_of, separate_registry


def leaky(*, low: float, high: float) -> BaselineCase:
    input = TensorSpec((3, 4), Dtype.float32, between(low, high))
    case = Case("float32-made-up", Dtype.float32, {"input": input, "negative_slope": 0.25})
    return make_baseline_case(lookup("diopiLeakyRelu"), case)


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
    refused = trials("diopiSum", [make_baseline_case(lookup("diopiSum"), case)])
    assert any(trial.effects.get(Effect.refused) for trial in refused.values())


def test_modules_that_a_reference_uses_are_changed_too() -> None:
    assert {fault.name.partition(".")[0] for fault in formula_faults("diopiSum")} >= {"reduction", "sums"}


def test_random_numbers_have_no_formula() -> None:
    assert list(formula_faults("diopiNormal")) == []


def test_the_references_stay_as_they_are() -> None:
    before = reference_of("diopiLeakyRelu")
    case = leaky(low=-9, high=9)
    trials("diopiLeakyRelu", [case])
    assert reference_of("diopiLeakyRelu") is before
    assert leaky(low=-9, high=9).expected["out"].values.tobytes() == case.expected["out"].values.tobytes()  # type: ignore[union-attr]  # one tensor


def test_a_separate_registry_leaves_the_other_alone() -> None:
    def relu(input: object) -> object:
        return input

    before = reference_of("diopiRelu")
    with pytest.raises(ZeroDivisionError), separate_registry() as apart:
        reference("diopiRelu")(relu)
        assert apart == {"diopiRelu": relu}
        raise ZeroDivisionError
    after: Reference | None = reference_of("diopiRelu")
    assert after is before

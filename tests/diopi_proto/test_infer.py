"""The element type of a result follows from the prototype, the tensors and the kinds of numbers."""

from dataclasses import dataclass
from typing import Any

import pytest

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import all_dtypes, caller_chosen, floating, position, promoted, real, same, statistic, truth
from diopi_proto.parameters import (
    Context,
    Count,
    Factor,
    In,
    InOut,
    InOuts,
    Ins,
    NewOut,
    NewOuts,
    Out,
    Outs,
    Scalar,
    i64,
)
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_proto.types import Scalar as ScalarValue


@pytest.fixture(autouse=True)
def _separate_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an empty registry of prototypes."""
    monkeypatch.setattr("diopi_proto.prototype._registry", {})


@dataclass(frozen=True)
class FakeTensor:
    """A tensor that has only an element type."""

    dtype: Dtype


HALF, FLOAT, BYTE, INT, TRUTH = map(FakeTensor, (Dtype.float16, Dtype.float32, Dtype.int8, Dtype.int64, Dtype.bool))


def declare_scaling(**facts: Any) -> Prototype:
    """Declare a prototype with a tensor, an optional tensor, an optional scalar and an attribute."""

    @prototype(dtypes=real, result=promoted, **facts)
    def diopiScale(ctx: Context, out: Out, input: In, addend: In | None, factor: Scalar | None, alpha: Factor) -> None:
        """Scales."""

    return diopiScale


def scaling(
    input: FakeTensor, addend: FakeTensor | None = None, factor: Any = None, alpha: Any = 0.5
) -> dict[str, Any]:
    """Return arguments for the prototype of `declare_scaling`."""
    return {"input": input, "addend": addend, "factor": factor, "alpha": alpha}


@pytest.mark.parametrize(
    ("arguments", "dtype"),
    [
        (scaling(BYTE), Dtype.int8),
        (scaling(BYTE, INT), Dtype.int64),
        (scaling(BYTE, HALF), Dtype.float16),
        (scaling(TRUTH, None, False), Dtype.bool),
        (scaling(TRUTH, None, 0), Dtype.int64),
        (scaling(TRUTH, None, 0.0), Dtype.float32),
        (scaling(BYTE, None, 3), Dtype.int8),
        (scaling(BYTE, None, ScalarValue(Dtype.float64, 3)), Dtype.float32),
        (scaling(BYTE, None, ScalarValue(Dtype.int64, 3)), Dtype.int8),
        (scaling(TRUTH, None, ScalarValue(Dtype.bool, 1)), Dtype.bool),
        (scaling(HALF, None, 0.5), Dtype.float16),
    ],
)
def test_tensors_and_numbers_except_factors_determine_the_result_type(arguments: dict[str, Any], dtype: Dtype) -> None:
    assert declare_scaling().infer("out", arguments) is dtype


def test_each_result_has_a_rule_and_updated_results_keep_their_type() -> None:
    @prototype(dtypes=real, result={"values": same, "indices": position, "mean": statistic})
    def diopiSearch(
        ctx: Context, values: Out, indices: NewOut, mean: Out, input: In, mask: In, k: i64, state: InOut
    ) -> None:
        """Search."""

    arguments = {"input": HALF, "mask": TRUTH, "k": 3, "state": INT}
    found = {name: diopiSearch.infer(name, arguments) for name in ("values", "indices", "mean", "state")}
    assert found == {
        "values": Dtype.float16,
        "indices": Dtype.int64,
        "mean": Dtype.float32,
        "state": Dtype.int64,
    }


def test_entries_that_the_callee_allocates_have_separate_rules() -> None:
    @prototype(dtypes=real, result={"values": same, "indices": position, "mean": statistic})
    def diopiCollect(ctx: Context, outs: NewOuts, input: In) -> None:
        """Collect."""

    found = [diopiCollect.infer("outs", {"input": HALF}, entry) for entry in range(3)]
    assert found == [Dtype.float16, Dtype.int64, Dtype.float32]


def declare_foreach() -> Prototype:
    """Declare a prototype that takes and returns lists of tensors."""

    @prototype(dtypes=all_dtypes, result=same, inplace="diopiForeachTwiceInp")
    def diopiForeachTwice(ctx: Context, outs: Outs, inputs: Ins, count: Count, addend: In) -> None:
        """Twice."""

    return diopiForeachTwice


def test_the_type_of_an_entry_depends_on_the_input_entry_with_the_same_index() -> None:
    arguments = {"inputs": [HALF, INT], "addend": FLOAT}
    twice = declare_foreach()
    assert [twice.infer("outs", arguments, entry) for entry in (0, 1)] == [Dtype.float16, Dtype.int64]
    assert twice.infer("outs", arguments) is Dtype.float32, "a single result follows from the single tensors"


def test_entries_updated_in_place_keep_their_type() -> None:
    @prototype(dtypes=all_dtypes)
    def diopiForeachGrow(ctx: Context, inputs: InOuts, count: Count, steps: Ins) -> None:
        """Grow."""

    arguments = {"inputs": [HALF, INT], "steps": [FLOAT, FLOAT]}
    assert [diopiForeachGrow.infer("inputs", arguments, entry) for entry in (0, 1)] == [Dtype.float16, Dtype.int64]


def test_the_type_of_a_single_result_depends_on_all_entries_of_an_array() -> None:
    @prototype(dtypes=all_dtypes, result=promoted)
    def diopiGlue(ctx: Context, out: Out, tensors: Ins, count: Count) -> None:
        """Glue."""

    assert diopiGlue.infer("out", {"tensors": [BYTE, None, HALF]}) is Dtype.float16
    assert diopiGlue.infer("out", {"tensors": []}) is None
    assert diopiGlue.infer("out", {"tensors": []}, default=Dtype.int8) is Dtype.int8
    assert diopiGlue.can_hold("out", Dtype.bool, {"tensors": []}), "nothing says what it has to be"


@pytest.mark.parametrize(
    ("facts", "arguments", "accepted", "refused"),
    [
        ({}, scaling(BYTE), {Dtype.uint8, Dtype.float16, Dtype.complex64}, {Dtype.bool}),
        ({}, scaling(HALF), {Dtype.bfloat16, Dtype.float64, Dtype.complex64}, {Dtype.int64, Dtype.bool}),
        ({}, scaling(BYTE, None, 0.5), {Dtype.float16}, {Dtype.int64}),
        ({"truncates_numbers": True}, scaling(BYTE, None, 0.5), {Dtype.float16, Dtype.int8}, {Dtype.bool}),
        ({"selectable_dtypes": floating}, scaling(BYTE), {Dtype.float16}, {Dtype.int8, Dtype.complex64}),
        ({"selectable_dtypes": (Dtype.int8,)}, scaling(HALF), {Dtype.int8}, {Dtype.float16}),
    ],
)
def test_can_hold_follows_categories_and_selectable_dtypes(
    facts: Any, arguments: Any, accepted: set[Dtype], refused: set[Dtype]
) -> None:
    scale = declare_scaling(**facts)
    assert {dtype for dtype in accepted | refused if scale.can_hold("out", dtype, arguments)} == accepted


def test_a_caller_chosen_result_may_have_any_type() -> None:
    @prototype(dtypes=real, result=caller_chosen)
    def diopiOnesOf(ctx: Context, out: Out, input: In) -> None:
        """Ones."""

    assert diopiOnesOf.infer("out", {"input": INT}) is Dtype.float32
    assert all(diopiOnesOf.can_hold("out", dtype, {"input": INT}) for dtype in all_dtypes)


def test_infer_needs_otherwise_if_there_is_no_input_tensor() -> None:
    @prototype(dtypes=real, result=truth)
    def diopiToss(ctx: Context, out: Out, n: i64) -> None:
        """Toss."""

    assert diopiToss.infer("out", {"n": 3}) is None
    assert diopiToss.infer("out", {"n": 3}, default=Dtype.float16) is Dtype.bool

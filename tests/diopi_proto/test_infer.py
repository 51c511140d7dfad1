"""The element type of a result: what the prototype, the tensors and the kinds of numbers make of it."""

from dataclasses import dataclass
from typing import Any

import pytest

from diopi_proto.dtypes import chosen, every, floating, position, promoted, real, same, statistic, truth
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
from diopi_proto.prototype import Prototype, prototype
from diopi_proto.types import Dtype
from diopi_proto.types import Scalar as ScalarValue


@pytest.fixture(autouse=True)
def _registry_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diopi_proto.prototype._registry", {})


@dataclass(frozen=True)
class Held:
    """A tensor as far as element types are concerned."""

    dtype: Dtype


HALF, FLOAT, BYTE, INT, TRUTH = map(Held, (Dtype.float16, Dtype.float32, Dtype.int8, Dtype.int64, Dtype.bool))


def declare_scaling(**facts: Any) -> Prototype:
    @prototype(dtypes=real, result=promoted, **facts)
    def diopiScale(ctx: Context, out: Out, input: In, other: In | None, by: Scalar | None, alpha: Factor) -> None:
        """Scales."""

    return diopiScale


def scaling(input: Held, other: Held | None = None, by: Any = None, alpha: Any = 0.5) -> dict[str, Any]:
    return {"input": input, "other": other, "by": by, "alpha": alpha}


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
def test_tensors_and_numbers_but_no_factors_decide(arguments: dict[str, Any], dtype: Dtype) -> None:
    assert declare_scaling().infer("out", arguments) is dtype


def test_each_result_has_its_rule_and_what_is_updated_stays() -> None:
    @prototype(dtypes=real, result={"values": same, "indices": position, "mean": statistic})
    def diopiSearch(
        ctx: Context, values: Out, indices: NewOut, mean: Out, input: In, mask: In, k: i64, state: InOut
    ) -> None:
        """Search."""

    given = {"input": HALF, "mask": TRUTH, "k": 3, "state": INT}
    found = {name: diopiSearch.infer(name, given) for name in ("values", "indices", "mean", "state")}
    assert found == {
        "values": Dtype.float16,
        "indices": Dtype.int64,
        "mean": Dtype.float32,
        "state": Dtype.int64,
    }


def test_entries_the_callee_makes_have_rules_of_their_own() -> None:
    @prototype(dtypes=real, result={"values": same, "indices": position, "mean": statistic})
    def diopiCollect(ctx: Context, outs: NewOuts, input: In) -> None:
        """Collect."""

    found = [diopiCollect.infer("outs", {"input": HALF}, entry) for entry in range(3)]
    assert found == [Dtype.float16, Dtype.int64, Dtype.float32]


def declare_foreach() -> Prototype:
    @prototype(dtypes=every, result=same, inplace="diopiForeachTwiceInp")
    def diopiForeachTwice(ctx: Context, outs: Outs, inputs: Ins, count: Count, other: In) -> None:
        """Twice."""

    return diopiForeachTwice


def test_an_entry_follows_from_the_entry_of_its_number() -> None:
    given = {"inputs": [HALF, INT], "other": FLOAT}
    twice = declare_foreach()
    assert [twice.infer("outs", given, entry) for entry in (0, 1)] == [Dtype.float16, Dtype.int64]
    assert twice.infer("outs", given) is Dtype.float32, "a single result follows from the single tensors"


def test_entries_updated_in_place_stay() -> None:
    @prototype(dtypes=every)
    def diopiForeachGrow(ctx: Context, inputs: InOuts, count: Count, steps: Ins) -> None:
        """Grow."""

    given = {"inputs": [HALF, INT], "steps": [FLOAT, FLOAT]}
    assert [diopiForeachGrow.infer("inputs", given, entry) for entry in (0, 1)] == [Dtype.float16, Dtype.int64]


def test_a_single_result_of_arrays_follows_from_all_entries() -> None:
    @prototype(dtypes=every, result=promoted)
    def diopiGlue(ctx: Context, out: Out, tensors: Ins, count: Count) -> None:
        """Glue."""

    assert diopiGlue.infer("out", {"tensors": [BYTE, None, HALF]}) is Dtype.float16
    assert diopiGlue.infer("out", {"tensors": []}) is None
    assert diopiGlue.infer("out", {"tensors": []}, otherwise=Dtype.int8) is Dtype.int8
    assert diopiGlue.can_hold("out", Dtype.bool, {"tensors": []}), "nothing says what it has to be"


@pytest.mark.parametrize(
    ("facts", "arguments", "held", "refused"),
    [
        ({}, scaling(BYTE), {Dtype.uint8, Dtype.float16, Dtype.complex64}, {Dtype.bool}),
        ({}, scaling(HALF), {Dtype.bfloat16, Dtype.float64, Dtype.complex64}, {Dtype.int64, Dtype.bool}),
        ({}, scaling(BYTE, None, 0.5), {Dtype.float16}, {Dtype.int64}),
        ({"truncated": True}, scaling(BYTE, None, 0.5), {Dtype.float16, Dtype.int8}, {Dtype.bool}),
        ({"ordered": floating}, scaling(BYTE), {Dtype.float16}, {Dtype.int8, Dtype.complex64}),
        ({"ordered": (Dtype.int8,)}, scaling(HALF), {Dtype.int8}, {Dtype.float16}),
    ],
)
def test_what_can_hold_a_result(facts: Any, arguments: Any, held: set[Dtype], refused: set[Dtype]) -> None:
    scale = declare_scaling(**facts)
    assert {dtype for dtype in held | refused if scale.can_hold("out", dtype, arguments)} == held


def test_a_result_the_caller_chooses_may_be_anything() -> None:
    @prototype(dtypes=real, result=chosen)
    def diopiOnesOf(ctx: Context, out: Out, input: In) -> None:
        """Ones."""

    assert diopiOnesOf.infer("out", {"input": INT}) is Dtype.float32
    assert all(diopiOnesOf.can_hold("out", dtype, {"input": INT}) for dtype in every)


def test_rules_without_inputs_need_to_be_told_one() -> None:
    @prototype(dtypes=real, result=truth)
    def diopiToss(ctx: Context, out: Out, n: i64) -> None:
        """Toss."""

    assert diopiToss.infer("out", {"n": 3}) is None
    assert diopiToss.infer("out", {"n": 3}, otherwise=Dtype.float16) is Dtype.bool

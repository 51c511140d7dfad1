"""Numbers out of the range of an integer type: the reference converts them as PyTorch does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, RoundMode
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import choice
from diopi_test.fuzz.rejected_numbers import is_rejected
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import Expected

torch = pytest.importorskip("torch")

INTEGERS = (Dtype.uint8, Dtype.int8, Dtype.int16, Dtype.int32)
NUMBERS = (-1, -3, -156, -300, 131, 300, 65_537, -70_001, 2**31 + 5, -(2**31) - 5, 2**40 + 7)

DTYPE_UNDER_TEST = Dtype.float64
"""A placeholder for the element type under test."""

Call = Callable[[Any, int], Any]
"""A function of a tensor and a number that returns a result of PyTorch."""


def _first_place(shape: tuple[int, ...]) -> Any:
    """Return indices that are all 0."""
    return torch.zeros(shape, dtype=torch.int64)


CALLS: dict[str, tuple[dict[str, Any], str, Call]] = {
    "diopiEqScalar": ({}, "other", lambda x, n: torch.eq(x, n)),
    "diopiNeScalar": ({}, "other", lambda x, n: torch.ne(x, n)),
    "diopiLtScalar": ({}, "other", lambda x, n: torch.lt(x, n)),
    "diopiLeScalar": ({}, "other", lambda x, n: torch.le(x, n)),
    "diopiGtScalar": ({}, "other", lambda x, n: torch.gt(x, n)),
    "diopiGeScalar": ({}, "other", lambda x, n: torch.ge(x, n)),
    "diopiRemainderScalar": ({}, "other", lambda x, n: torch.remainder(x, n)),
    "diopiRemainder": ({}, "input", lambda x, n: torch.remainder(n, x)),
    "diopiAddScalar": ({"alpha": 1}, "other", lambda x, n: torch.add(x, n)),
    "diopiSubScalar": ({"other": 2}, "alpha", lambda x, n: torch.sub(x, 2, alpha=n)),
    "diopiMulScalar": ({}, "other", lambda x, n: torch.mul(x, n)),
    "diopiDivScalar": ({"rounding_mode": RoundMode.none}, "other", lambda x, n: torch.div(x, n)),
    "diopiDivScalar, floor": (
        {"rounding_mode": RoundMode.floor},
        "other",
        lambda x, n: torch.div(x, n, rounding_mode="floor").float(),
    ),
    "diopiPow": ({}, "exponent", lambda x, n: torch.pow(x, n)),
    "diopiBitwiseAndScalar": ({}, "other", lambda x, n: torch.bitwise_and(x, n)),
    "diopiBitwiseOrScalar": ({}, "other", lambda x, n: torch.bitwise_or(x, n)),
    "diopiClampMaxScalar": ({}, "max", lambda x, n: torch.clamp_max(x, n)),
    "diopiClampMinScalar": ({}, "min", lambda x, n: torch.clamp_min(x, n)),
    "diopiClampScalar": ({"max": 100}, "min", lambda x, n: torch.clamp(x, n, 100)),
    "diopiThreshold": ({"value": 7}, "threshold", lambda x, n: torch.nn.functional.threshold(x, n, 7)),
    "diopiThresholdInp": ({"threshold": 7}, "value", lambda x, n: torch.nn.functional.threshold(x, 7, n)),
    "diopiThresholdBackward": (
        {"input": TensorSpec((3,), DTYPE_UNDER_TEST, choice([57]))},
        "threshold",
        lambda x, n: torch.ops.aten.threshold_backward(x, x.clone().fill_(57), n),
    ),
    "diopiHardtanh": ({"max_val": 2**50}, "min_val", lambda x, n: torch.nn.functional.hardtanh(x, n, 2**50)),
    "diopiAddcmul": (
        {
            "tensor1": TensorSpec((3,), DTYPE_UNDER_TEST, choice([2])),
            "tensor2": TensorSpec((3,), DTYPE_UNDER_TEST, choice([3])),
        },
        "value",
        lambda x, n: torch.addcmul(x, x.clone().fill_(2), x.clone().fill_(3), value=n),
    ),
    "diopiMaskedFillScalar": (
        {"mask": TensorSpec((3,), Dtype.bool, choice([True]))},
        "value",
        lambda x, n: x.masked_fill(torch.ones(3, dtype=torch.bool), n),
    ),
    "diopiIndexFillScalar": (
        {"dim": 0, "index": TensorSpec((1,), Dtype.int64, choice([0]))},
        "value",
        lambda x, n: x.index_fill(0, _first_place((1,)), n),
    ),
    "diopiScatterScalar": (
        {"dim": 0, "index": TensorSpec((1,), Dtype.int64, choice([0])), "reduce": ""},
        "value",
        lambda x, n: x.scatter(0, _first_place((1,)), n),
    ),
    "diopiPad": (
        {"pad": (1, 1), "mode": "constant"},
        "value",
        lambda x, n: torch.nn.functional.pad(x, (1, 1), value=n),
    ),
}


def _case(call: str, dtype: Dtype, number: int) -> tuple[str, Case]:
    """Return the name of a tensor argument and a case with an attribute that the element type can't represent."""
    arguments, name, _ = CALLS[call]
    prototype = lookup(call.split(",")[0])
    tensor = next(p.name for p in prototype.arguments if p.is_tensor)
    specs = {key: replace(spec, dtype=dtype) for key, spec in arguments.items() if isinstance(spec, TensorSpec)}
    specs = {key: spec if arguments[key].dtype is DTYPE_UNDER_TEST else arguments[key] for key, spec in specs.items()}
    actual = {tensor: TensorSpec((3,), dtype, choice([1, 127, 57])), **arguments, **specs, name: number}
    return tensor, Case(f"{dtype.name}-unheld", dtype, {p.name: actual.get(p.name) for p in prototype.arguments})


@pytest.mark.parametrize("function", [torch.add, torch.sub])
def test_bool_factors_are_rejected_unless_the_results_are_bool(function: Callable[..., Any]) -> None:
    prototype = lookup(f"diopi{function.__name__.capitalize()}")
    operand = TensorSpec((3,), Dtype.int32, choice([1]))
    case = Case("int32-factor", Dtype.int32, {"input": operand, "other": operand, "alpha": True})
    assert is_rejected(prototype, case)
    assert not is_rejected(prototype, replace(case, arguments={**case.arguments, "alpha": 1}))
    integers = torch.ones(3, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="alpha"):
        function(integers, integers, alpha=True)


@pytest.mark.parametrize("call", CALLS)
def test_unrepresentable_numbers_are_converted_as_in_pytorch(call: str) -> None:
    prototype = lookup(call.split(",")[0])
    for dtype in INTEGERS:
        for number in NUMBERS:
            name, case = _case(call, dtype, number)
            computed = None if is_rejected(prototype, case) else compute_baseline_case(prototype, case)
            values = torch.tensor([1, 127, 57], dtype=getattr(torch, dtype.name))
            if computed is None:
                with pytest.raises(RuntimeError, match=r"without overflow|unsigned|negative"):
                    CALLS[call][2](values, number)
                continue
            actual = torch.from_numpy(computed.arguments[name].values)
            if prototype.base == "diopiPowTensor" and number < 0:
                continue  # which the prototype and PyTorch refuse
            (expected,) = computed.expected.values()
            assert isinstance(expected, Expected)
            assert CALLS[call][2](actual, number).tolist() == pytest.approx(expected.values.tolist()), (dtype, number)

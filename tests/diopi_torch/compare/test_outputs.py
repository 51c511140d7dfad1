"""Outputs of operators are compared with the CPU: kinds of differences, and their messages."""

from typing import Any

import numpy as np
import pytest
from torch_devices import AlteredVendor

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_proto.types import Dtype  # noqa: E402  # behind the check for PyTorch
from diopi_test.oracle.budget import Budget  # noqa: E402  # behind the check, too
from diopi_test.oracle.records import Expected  # noqa: E402  # behind the check, too
from diopi_torch.compare.on_cpu import CpuCall  # noqa: E402  # behind the check, too
from diopi_torch.compare.outputs import StandardResult, compare_outputs  # noqa: E402  # behind the check, too
from diopi_torch.operators import overload  # noqa: E402  # behind the check, too

X = torch.tensor([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])
EPS = torch.finfo(torch.float32).eps

CLEAR_DIFFERENCE = 100 * EPS
"""A difference that exceeds the budget of a rounded exponential."""


def lines(name: str, named: dict[str, Any], returned: torch.Tensor) -> list[str]:
    """Return the lines about the outputs of a call that returned this value."""
    call = CpuCall(overload(name), {key: to_device(value) for key, value in named.items()})
    tensors = list(compare_outputs(call, returned.to("diopi"), {}))
    assert all(tensor.is_correct for tensor in tensors if tensor.name in named)
    return [line for tensor in tensors if tensor.name not in named for line in tensor.lines]


def to_device(value: Any) -> Any:
    """Return a copy of a tensor on the device; return any other value unchanged."""
    return value.to("diopi") if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (X.exp(), "result: allclose"),
        (X.exp() * (1 + 2 * EPS), "result: allclose"),
        (X.exp() * (1 + CLEAR_DIFFERENCE), "result: 6 of 6 elements differ, most at (1, 1)"),
        (torch.where(X == 4, torch.nan, X.exp()), "result: 1 of 6 elements differ, most at (1, 1): nan and 54.5981"),
        (X.exp()[:1], "result: float32[1, 3], on the CPU float32[2, 3]"),
        (X.exp().half(), "result: float16[2, 3], on the CPU float32[2, 3]"),
    ],
)
def test_budgets_are_derived_for_the_operator(vendor: AlteredVendor, returned: torch.Tensor, message: str) -> None:
    assert lines("exp", {"self": X}, returned)[0].startswith(message)


def test_rounding_that_the_problem_amplifies_is_allowed(vendor: AlteredVendor) -> None:
    x = torch.tensor([1000.0, 2000.0])
    near = torch.sin(x.double()).float() + 500 * EPS
    assert lines("sin", {"self": x}, near) == ["result: allclose"]
    assert lines("neg", {"self": x}, -x + 1)[0].startswith("result: 2 of 2 elements differ")


def test_integer_outputs_must_be_exact(vendor: AlteredVendor) -> None:
    found = lines("argmax", {"self": X, "dim": 1, "keepdim": False}, torch.tensor([0, 2]))
    assert found == [
        "result: 1 of 2 elements differ, most at (1,): 2 and 1, by 1; mean absolute error 0.5",
        "  device: int64[2] strides [1]: 0, 2",
        "  CPU: int64[2] strides [1]: 0, 1",
    ]


def test_outputs_report_operators_that_the_cpu_lacks(vendor: AlteredVendor) -> None:
    found = lines("_fused_dropout", {"self": X, "p": 0.5}, X)
    assert len(found) == 1 and found[0].startswith("result: not compared: the CPU can't run the operator: ")


def test_changed_inputs_are_reported(vendor: AlteredVendor) -> None:
    x = X.to("diopi")
    call = CpuCall(overload("exp"), {"self": x})
    x += 1
    result, input = compare_outputs(call, X.exp().to("diopi"), {})
    assert result.is_correct and not input.is_correct
    assert input.lines == ("self: was written, though the operator's schema does not say so",)


def test_known_results_apply_to_views_with_permuted_axes() -> None:
    values = np.arange(24.0).reshape(2, 3, 4)
    known = StandardResult(Expected(values=values, dtype=Dtype.float32, budget=Budget(values + 1)), (12, 4, 1))
    memory = torch.arange(24.0)
    found = known.view_as(memory.view(2, 3, 4).permute(2, 0, 1))
    assert found is not None
    assert found.budget is not None
    np.testing.assert_array_equal(found.values, values.transpose(2, 0, 1))
    np.testing.assert_array_equal(found.budget.unit, values.transpose(2, 0, 1) + 1)
    assert known.view_as(memory.view(2, 3, 4)) is known.expected
    assert known.view_as(memory.view(2, 3, 4)[:, ::2]) is None
    assert known.view_as(memory.double().view(2, 3, 4)) is None

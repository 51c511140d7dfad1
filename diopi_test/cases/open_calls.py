"""Calls of which the standard says more than PyTorch does: what it refuses, or leaves open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from diopi_proto.dtypes import category, common
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.model import Case, TensorSpec

Holds = Callable[[Prototype, Case], bool]
"""Whether a call is one of these, of the functions that are meant."""


@dataclass(frozen=True)
class OpenCalls:
    """Some calls that a vendor need not serve.

    Attributes:
        functions: whose, the forms derived from them included; empty for any.
        holds: which of their calls.
        reason: what PyTorch does with them.
    """

    functions: Sequence[str]
    holds: Holds
    reason: str

    def include(self, prototype: Prototype, case: Case) -> bool:
        """Whether a case of a function is such a call."""
        return (not self.functions or prototype.base in self.functions) and self.holds(prototype, case)


def _of_truths(prototype: Prototype, case: Case) -> bool:
    """A bool tensor or number takes part."""
    operands = [case.arguments[p.name] for p in prototype.operands]
    return any(value.dtype is Dtype.bool if isinstance(value, TensorSpec) else value is True for value in operands)


def _does_not_hold_its_result(prototype: Prototype, case: Case) -> bool:
    """The result is of a higher category than the tensor of truth values that is overwritten with it."""
    operands = [case.arguments[p.name] for p in prototype.operands]
    tensors = [value.dtype for value in operands if isinstance(value, TensorSpec)]
    if not prototype.is_inplace or not tensors or tensors[0] is not Dtype.bool:
        return False
    numbers = [value for value in operands if value is not None and not isinstance(value, TensorSpec)]
    rule = prototype.rule_of(prototype.results[0].name)
    return category(rule([common(tensors, numbers)])) > category(tensors[0])


def _tie_without_beta(prototype: Prototype, case: Case) -> bool:
    return case.arguments["beta"] == 0 and "ties" in case.label


def _truths_without_beta(prototype: Prototype, case: Case) -> bool:
    tensors = [value for value in case.arguments.values() if isinstance(value, TensorSpec)]
    return case.arguments["beta"] == 0 and any(tensor.dtype is Dtype.bool for tensor in tensors)


def _soft_targets(prototype: Prototype, case: Case) -> bool:
    return "soft-targets" in case.label


def _constant_without_value(prototype: Prototype, case: Case) -> bool:
    return case.arguments["mode"] == "constant" and case.arguments["value"] is None


def _no_elements(prototype: Prototype, case: Case) -> bool:
    return 0 in case.arguments["input"].shape


OPEN_CALLS = (
    OpenCalls(["diopiSub"], _of_truths, "torch.sub refuses bool, of tensors and of numbers"),
    OpenCalls(["diopiArgmax"], lambda prototype, case: case.dtype is Dtype.bool, "torch.argmax refuses bool"),
    OpenCalls(
        [],
        _does_not_hold_its_result,
        "in place, PyTorch refuses a result of a higher category than the tensor's: an integer in a bool tensor",
    ),
    OpenCalls(
        ["diopiSmoothL1LossBackward"],
        _tie_without_beta,
        "with beta 0 at a tie, the gradient of torch.nn.functional.smooth_l1_loss is 0, that of "
        "torch.ops.aten.smooth_l1_loss_backward −grad_output",
    ),
    OpenCalls(
        ["diopiSmoothL1Loss", "diopiSmoothL1LossBackward"],
        _truths_without_beta,
        "with beta 0, torch.nn.functional.smooth_l1_loss subtracts the target, which torch.sub refuses of bool",
    ),
    OpenCalls(
        ["diopiSigmoidFocalLoss", "diopiSigmoidFocalLossBackward"],
        _soft_targets,
        "focal loss is defined for targets 0 and 1; what it is between them is that of one formula for it",
    ),
    OpenCalls(
        ["diopiPad"],
        _constant_without_value,
        "torch.ops.aten.constant_pad_nd, which fills, always has a number; callers above it put 0 where one is missing",
    ),
    OpenCalls(
        ["diopiGroupNormBackward"],
        _no_elements,
        "PyTorch documents no gradient of no elements; its CPU kernels give zeros for weight and bias",
    ),
)
"""All of them; of several that include a case the first counts."""


def why_open(prototype: Prototype, case: Case) -> str:
    """What PyTorch does with a call that it refuses or leaves open; empty if it serves the call."""
    return next((calls.reason for calls in OPEN_CALLS if calls.include(prototype, case)), "")

"""Open calls: calls that the standard defines and that PyTorch rejects or leaves open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from diopi_proto.dtypes import COMPLEX, ELEMENT_SIZE, category, common_dtype, promote, promote_with_numbers
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Number
from diopi_test.cases.layouts import Layout, channels_last, contiguous
from diopi_test.cases.model import Case, TensorSpec, tensor_specs

Predicate = Callable[[Prototype, Case], bool]
"""Returns whether a call is open, if its function is one of the functions in question."""


@dataclass(frozen=True)
class OpenCalls:
    """Calls that a vendor need not support.

    Attributes:
        functions: The functions; forms derived from them are included. Empty for all functions.
        matches: Returns whether a call of these functions is open.
        reason: The behavior of PyTorch.
    """

    functions: Sequence[str]
    matches: Predicate
    reason: str

    def includes(self, prototype: Prototype, case: Case) -> bool:
        """Return whether a case of a function is such a call."""
        return (not self.functions or prototype.base in self.functions) and self.matches(prototype, case)


def _has_bool_operand(prototype: Prototype, case: Case) -> bool:
    """Return whether an operand is a bool tensor or True."""
    tensors, numbers = _operands(prototype, case)
    return any(tensor.dtype is Dtype.bool for tensor in tensors) or any(number is True for number in numbers)


def _raises_bool_to_bools(prototype: Prototype, case: Case) -> bool:
    """Return whether a bool is raised to a tensor of bools."""
    tensors, numbers = _operands(prototype, case)
    is_tensor = isinstance(case.arguments["exponent"], TensorSpec)
    return is_tensor and common_dtype([tensor.dtype for tensor in tensors], numbers) is Dtype.bool


def _exceeds_result_category(prototype: Prototype, case: Case) -> bool:
    """Return whether the result is of a higher category than the tensor that it overwrites."""
    tensors, numbers = _operands(prototype, case)
    if not prototype.is_inplace or not tensors or category(tensors[0].dtype) > 1:
        return False
    rule = prototype.rule_of(prototype.results[0].name)
    dtypes = [tensor.dtype for tensor in tensors]
    return category(rule([common_dtype(dtypes, numbers)])) > category(tensors[0].dtype)


def _operands(prototype: Prototype, case: Case) -> tuple[list[TensorSpec], list[Number]]:
    """Return the tensors and the numbers that take part in type promotion."""
    values = [case.arguments[p.name] for p in prototype.operands if case.arguments[p.name] is not None]
    tensors = [value for value in values if isinstance(value, TensorSpec)]
    return tensors, [value for value in values if not isinstance(value, TensorSpec)]


def _is_promoted_by_zero_dim_tensor(prototype: Prototype, case: Case) -> bool:
    """Return whether the common type would differ if tensors without axes counted as numbers."""
    tensors, numbers = _operands(prototype, case)
    ranked = [tensor.dtype for tensor in tensors if tensor.shape]
    zero_dim = [tensor.dtype for tensor in tensors if not tensor.shape]
    if not ranked or not zero_dim:
        return False
    in_pytorch = _promote_as_pytorch(promote(*ranked), promote(*zero_dim))
    return common_dtype([in_pytorch], numbers) is not common_dtype([*ranked, *zero_dim], numbers)


def _promote_as_pytorch(ranked: Dtype, zero_dim: Dtype) -> Dtype:
    """Return PyTorch's common type of tensors with axes and a tensor without: the latter determines only a category.

    Source: PyTorch, "Type promotion documentation".
    """
    if category(zero_dim) <= category(ranked) and category(ranked) > 0:
        return ranked
    if category(zero_dim) == 3 and category(ranked) == 2:
        return COMPLEX.get(ranked, Dtype.complex64)
    return promote(ranked, zero_dim)


def _rounds_integer_operand(prototype: Prototype, case: Case) -> bool:
    """Return whether integers that float32 cannot represent are promoted to float32 by a floating number."""
    tensors, numbers = _operands(prototype, case)
    if not tensors or not any(isinstance(number, float) for number in numbers):
        return False
    dtype = tensors[0].dtype
    return category(dtype) == 1 and ELEMENT_SIZE[dtype] >= ELEMENT_SIZE[Dtype.float32]


def _has_type_pytorch_rejects(prototype: Prototype, case: Case) -> bool:
    return bool(_rejected_types(prototype, case))


def _rejected_types(prototype: Prototype, case: Case) -> set[Dtype]:
    """Return the element types of arguments and results that PyTorch rejects at their position."""
    typed = [(name, spec.dtype) for name, value in case.arguments.items() for spec in tensor_specs(value)]
    typed += [
        (name, result.dtype) for name, result in case.results.items() if result is not None and result.dtype is not None
    ]
    return {dtype for name, dtype in typed if prototype.is_beyond_pytorch(name, dtype)}


def _has_tie_at_beta_0(prototype: Prototype, case: Case) -> bool:
    return case.arguments["beta"] == 0 and "ties" in case.label


def _has_bool_at_beta_0(prototype: Prototype, case: Case) -> bool:
    tensors = [value for value in case.arguments.values() if isinstance(value, TensorSpec)]
    return case.arguments["beta"] == 0 and any(tensor.dtype is Dtype.bool for tensor in tensors)


def _has_soft_targets(prototype: Prototype, case: Case) -> bool:
    return "soft-targets" in case.label


def _lacks_padding_value(prototype: Prototype, case: Case) -> bool:
    return case.arguments["mode"] == "constant" and case.arguments["value"] is None


def _is_empty(prototype: Prototype, case: Case) -> bool:
    return 0 in case.arguments["input"].shape


def _pads_bool_with_edges(prototype: Prototype, case: Case) -> bool:
    return case.dtype is Dtype.bool and case.arguments["mode"] in ("reflect", "replicate")


def _lacks_batch_axis(prototype: Prototype, case: Case) -> bool:
    return len(case.arguments["input"].shape) < len(case.arguments["weight"].shape)


def _has_rank_3_or_5(prototype: Prototype, case: Case) -> bool:
    return len(case.arguments["input"].shape) not in (1, 2, 4)


def _is_non_contiguous_image(prototype: Prototype, case: Case) -> bool:
    spec = case.arguments["input"]
    return len(spec.shape) == 4 and not _has_layout(spec, contiguous)


def _is_not_dense(prototype: Prototype, case: Case) -> bool:
    """Return whether an image is neither contiguous nor channels last."""
    values = [case.arguments[name] for name in ("input", "grad_output") if name in case.arguments]
    specs = [value for value in values if isinstance(value, TensorSpec)]  # results of other functions are dense
    return any(not _has_layout(spec, contiguous) and not _has_layout(spec, channels_last) for spec in specs)


def _has_layout(spec: TensorSpec, layout: Layout) -> bool:
    return spec.layout(spec.shape) == layout(spec.shape)


def _has_float64_range_ends(prototype: Prototype, case: Case) -> bool:
    return case.dtype is Dtype.float64 and "ends" in case.label.split("-")


def _wants_sparse_gradient(prototype: Prototype, case: Case) -> bool:
    return bool(case.arguments["sparse"])


def _has_negative_begin_axis(prototype: Prototype, case: Case) -> bool:
    return bool(case.arguments["begin_norm_axis"] < 0)


def _has_factor_with_axes(prototype: Prototype, case: Case) -> bool:
    return bool(case.arguments["other"].shape)


def _promotes_list(prototype: Prototype, case: Case) -> bool:
    """Return whether the number, or the tensor with the number, is of a higher category than a tensor of the list."""
    operand = case.arguments["other"]
    least = (
        category(operand.dtype)
        if isinstance(operand, TensorSpec)
        else category(promote_with_numbers(Dtype.bool, [operand]))
    )
    return any(category(tensor.dtype) < least for tensor in case.arguments["inputs"])


def _is_empty_list(prototype: Prototype, case: Case) -> bool:
    return not case.arguments["inputs"]


def _has_empty_mask(prototype: Prototype, case: Case) -> bool:
    return 0 in case.arguments["input"].shape and case.results["mask"] is not None


CONVOLUTIONS = [
    f"diopi{kind}{rank}d{form}"
    for kind in ("Convolution", "ConvTranspose")
    for rank in (2, 3)
    for form in ("", "Backward")
]

LISTS = ["diopiForeachaddScalar", "diopiForeachmulScalar", "diopiForeachmulTensor"]

OPEN_CALLS = (
    OpenCalls(["diopiSub"], _has_bool_operand, "torch.sub rejects bool tensors and numbers"),
    OpenCalls([], _has_type_pytorch_rejects, "PyTorch rejects an element type, see `Prototype.beyond_pytorch`"),
    OpenCalls(
        [],
        _exceeds_result_category,
        "in place, PyTorch rejects a result of a higher category than the tensor's: an integer in a bool tensor",
    ),
    OpenCalls(
        [],
        _is_promoted_by_zero_dim_tensor,
        "in PyTorch, a tensor without axes takes part in the common type as a number does",
    ),
    OpenCalls(
        ["diopiAdd", "diopiSub", "diopiMul"],
        _rounds_integer_operand,
        "a floating number promotes integers to float32, which cannot represent all of them; a vendor that "
        "computes more accurately returns another result",
    ),
    OpenCalls(
        ["diopiPowTensor", "diopiPowScalar"], _raises_bool_to_bools, "torch.pow has no kernel for exponents of bool"
    ),
    OpenCalls(["diopiPad"], _pads_bool_with_edges, "torch.nn.functional.pad has no kernel for bool that repeats edges"),
    OpenCalls(
        CONVOLUTIONS,
        _lacks_batch_axis,
        "torch.ops.aten.convolution takes a batch; callers above it add the axis where there is none",
    ),
    OpenCalls(
        ["diopiNLLLossV2", "diopiNLLLossV2Backward"],
        _has_rank_3_or_5,
        "torch.ops.aten.nll_loss_forward takes ranks 1 and 2, nll_loss2d_forward rank 4; callers reshape other ranks",
    ),
    OpenCalls(
        ["diopiNLLLossBackward", "diopiNLLLossV2Backward"],
        _is_non_contiguous_image,
        "torch.ops.aten.nll_loss2d_backward rejects input that is not contiguous: grad_input must be contiguous",
    ),
    OpenCalls(
        ["diopiGroupNorm", "diopiGroupNormBackward"],
        _is_not_dense,
        "torch.ops.aten.native_group_norm rejects tensors that are not contiguous, and its gradient misreads them; "
        "callers copy first",
    ),
    OpenCalls(
        ["diopiBCELossBackward"],
        _has_float64_range_ends,
        "the least denominator of torch.ops.aten.binary_cross_entropy_backward is 1e-12 rounded to float32",
    ),
    OpenCalls(
        ["diopiEmbeddingBackward"],
        _wants_sparse_gradient,
        "with sparse, PyTorch's gradient is a sparse tensor",
    ),
    OpenCalls(
        ["diopiLayerNormGB", "diopiLayerNormGBBackward"],
        _has_negative_begin_axis,
        "PyTorch takes the normalized shape; only the standard accepts an axis that counts from the end",
    ),
    OpenCalls(
        ["diopiForeachmulTensor"],
        _has_factor_with_axes,
        "torch._foreach_mul takes a tensor without axes for the factor",
    ),
    OpenCalls(
        LISTS,
        _promotes_list,
        "torch._foreach_add and _foreach_mul return the common type, and reject a higher type in place",
    ),
    OpenCalls(LISTS, _is_empty_list, "torch._foreach_add and _foreach_mul reject lists without tensors"),
    OpenCalls(
        ["diopiDropout", "diopiDropoutInp"],
        _has_empty_mask,
        "torch.native_dropout gives a mask of no elements the element type of the input",
    ),
    OpenCalls(
        ["diopiSmoothL1LossBackward"],
        _has_tie_at_beta_0,
        "with beta 0 at a tie, the gradient of torch.nn.functional.smooth_l1_loss is 0, that of "
        "torch.ops.aten.smooth_l1_loss_backward −grad_output",
    ),
    OpenCalls(
        ["diopiSmoothL1Loss", "diopiSmoothL1LossBackward"],
        _has_bool_at_beta_0,
        "with beta 0, torch.nn.functional.smooth_l1_loss subtracts the target, which torch.sub rejects for bool",
    ),
    OpenCalls(
        ["diopiSigmoidFocalLoss", "diopiSigmoidFocalLossBackward"],
        _has_soft_targets,
        "focal loss is defined for targets 0 and 1; what it is between them is that of one formula for it",
    ),
    OpenCalls(
        ["diopiPad"],
        _lacks_padding_value,
        "torch.ops.aten.constant_pad_nd, which fills, always has a number; callers above it put 0 where one is missing",
    ),
    OpenCalls(
        ["diopiGroupNorm"],
        _is_empty,
        "PyTorch documents no statistics of no elements; its CPU kernels give the mean 0 and the deviation NaN",
    ),
    OpenCalls(
        ["diopiGroupNormBackward"],
        _is_empty,
        "PyTorch documents no gradient of no elements; its CPU kernels give zeros for weight and bias",
    ),
)
"""All open calls; if several entries include a case, the first counts."""


def reason_open(prototype: Prototype, case: Case, *, int32_indices: bool = False) -> str:
    """Return the behavior of PyTorch for a call that it rejects or leaves open.

    Args:
        prototype: The prototype of the function.
        case: The call.
        int32_indices: Whether the run requests int32 indices, which are then no reason.

    Returns:
        The reason; empty if PyTorch defines the call.
    """
    reasons = (calls for calls in OPEN_CALLS if calls.includes(prototype, case))
    if int32_indices and _rejected_types(prototype, case) == {Dtype.int32}:
        reasons = (calls for calls in reasons if calls.matches is not _has_type_pytorch_rejects)
    return next((calls.reason for calls in reasons), "")

"""Calls of which the standard says more than PyTorch does: what it refuses, or leaves open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from diopi_proto.dtypes import COMPLEX, ELEMENT_SIZE, category, common_dtype, promote, promote_with_numbers
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Number
from diopi_test.cases.layouts import Layout, channels_last, contiguous
from diopi_test.cases.model import Case, TensorSpec, tensor_specs

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
    """Whether a bool tensor or number takes part."""
    tensors, numbers = _operands(prototype, case)
    return any(tensor.dtype is Dtype.bool for tensor in tensors) or any(number is True for number in numbers)


def _truths_to_truths(prototype: Prototype, case: Case) -> bool:
    """Whether a bool is raised to a tensor of bools."""
    tensors, numbers = _operands(prototype, case)
    is_tensor = isinstance(case.arguments["exponent"], TensorSpec)
    return is_tensor and common_dtype([tensor.dtype for tensor in tensors], numbers) is Dtype.bool


def _does_not_hold_its_result(prototype: Prototype, case: Case) -> bool:
    """Whether the result is of a higher category than the tensor that is overwritten with it."""
    tensors, numbers = _operands(prototype, case)
    if not prototype.is_inplace or not tensors or category(tensors[0].dtype) > 1:
        return False
    rule = prototype.rule_of(prototype.results[0].name)
    dtypes = [tensor.dtype for tensor in tensors]
    return category(rule([common_dtype(dtypes, numbers)])) > category(tensors[0].dtype)


def _operands(prototype: Prototype, case: Case) -> tuple[list[TensorSpec], list[Number]]:
    """Return the tensors and the numbers that are converted to a common type first."""
    given = [case.arguments[p.name] for p in prototype.operands if case.arguments[p.name] is not None]
    tensors = [value for value in given if isinstance(value, TensorSpec)]
    return tensors, [value for value in given if not isinstance(value, TensorSpec)]


def _is_settled_by_a_tensor_without_axes(prototype: Prototype, case: Case) -> bool:
    """Whether the common type would be another one if tensors without axes took part as numbers do."""
    tensors, numbers = _operands(prototype, case)
    ranked = [tensor.dtype for tensor in tensors if tensor.shape]
    others = [tensor.dtype for tensor in tensors if not tensor.shape]
    if not ranked or not others:
        return False
    in_pytorch = _beside(promote(*ranked), promote(*others))
    return common_dtype([in_pytorch], numbers) is not common_dtype([*ranked, *others], numbers)


def _beside(ranked: Dtype, other: Dtype) -> Dtype:
    """Return PyTorch's common type of tensors with axes and of one without: the latter gives no more than a category.

    Source: PyTorch, "Type promotion documentation".
    """
    if category(other) <= category(ranked) and category(ranked) > 0:
        return ranked
    if category(other) == 3 and category(ranked) == 2:
        return COMPLEX.get(ranked, Dtype.complex64)
    return promote(ranked, other)


def _rounds_integers(prototype: Prototype, case: Case) -> bool:
    """Whether integers that float32 can't hold are converted to it beside a floating number."""
    tensors, numbers = _operands(prototype, case)
    if not tensors or not any(isinstance(number, float) for number in numbers):
        return False
    dtype = tensors[0].dtype
    return category(dtype) == 1 and ELEMENT_SIZE[dtype] >= ELEMENT_SIZE[Dtype.float32]


def _is_beyond_pytorch(prototype: Prototype, case: Case) -> bool:
    return bool(_refused_types(prototype, case))


def _refused_types(prototype: Prototype, case: Case) -> set[Dtype]:
    """Return the element types of arguments and results that PyTorch does not accept where they are."""
    typed = [(name, spec.dtype) for name, value in case.arguments.items() for spec in tensor_specs(value)]
    typed += [(name, made.dtype) for name, made in case.results.items() if made is not None and made.dtype is not None]
    return {dtype for name, dtype in typed if prototype.is_beyond_pytorch(name, dtype)}


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


def _truths_beyond_edges(prototype: Prototype, case: Case) -> bool:
    return case.dtype is Dtype.bool and case.arguments["mode"] in ("reflect", "replicate")


def _without_batch(prototype: Prototype, case: Case) -> bool:
    return len(case.arguments["input"].shape) < len(case.arguments["weight"].shape)


def _of_rank_3(prototype: Prototype, case: Case) -> bool:
    return len(case.arguments["input"].shape) not in (1, 2, 4)


def _image_of_other_layout(prototype: Prototype, case: Case) -> bool:
    spec = case.arguments["input"]
    return len(spec.shape) == 4 and not _lies(spec, contiguous)


def _is_not_dense(prototype: Prototype, case: Case) -> bool:
    """Whether an image is neither contiguous nor channels last."""
    values = [case.arguments[name] for name in ("input", "grad_output") if name in case.arguments]
    specs = [value for value in values if isinstance(value, TensorSpec)]  # results of other functions are dense
    return any(not _lies(spec, contiguous) and not _lies(spec, channels_last) for spec in specs)


def _lies(spec: TensorSpec, layout: Layout) -> bool:
    return spec.layout(spec.shape) == layout(spec.shape)


def _ends_in_double(prototype: Prototype, case: Case) -> bool:
    return case.dtype is Dtype.float64 and "ends" in case.label.split("-")


def _of_a_sparse_gradient(prototype: Prototype, case: Case) -> bool:
    return bool(case.arguments["sparse"])


def _begins_from_the_end(prototype: Prototype, case: Case) -> bool:
    return bool(case.arguments["begin_norm_axis"] < 0)


def _factor_with_axes(prototype: Prototype, case: Case) -> bool:
    return bool(case.arguments["other"].shape)


def _lifts_list(prototype: Prototype, case: Case) -> bool:
    """Whether the number, or the tensor of it, is of a higher category than a tensor of the list."""
    other = case.arguments["other"]
    least = (
        category(other.dtype) if isinstance(other, TensorSpec) else category(promote_with_numbers(Dtype.bool, [other]))
    )
    return any(category(tensor.dtype) < least for tensor in case.arguments["inputs"])


def _empty_list(prototype: Prototype, case: Case) -> bool:
    return not case.arguments["inputs"]


def _mask_of_no_elements(prototype: Prototype, case: Case) -> bool:
    return 0 in case.arguments["input"].shape and case.results["mask"] is not None


CONVOLUTIONS = [
    f"diopi{kind}{rank}d{form}"
    for kind in ("Convolution", "ConvTranspose")
    for rank in (2, 3)
    for form in ("", "Backward")
]

LISTS = ["diopiForeachaddScalar", "diopiForeachmulScalar", "diopiForeachmulTensor"]

OPEN_CALLS = (
    OpenCalls(["diopiSub"], _of_truths, "torch.sub refuses bool, of tensors and of numbers"),
    OpenCalls([], _is_beyond_pytorch, "PyTorch refuses an element type, see `Prototype.beyond_pytorch`"),
    OpenCalls(
        [],
        _does_not_hold_its_result,
        "in place, PyTorch refuses a result of a higher category than the tensor's: an integer in a bool tensor",
    ),
    OpenCalls(
        [],
        _is_settled_by_a_tensor_without_axes,
        "in PyTorch, a tensor without axes takes part in the common type as a number does",
    ),
    OpenCalls(
        ["diopiAdd", "diopiSub", "diopiMul"],
        _rounds_integers,
        "beside a floating number integers are converted to float32, which can't hold all of them; a vendor that "
        "computes more accurately gives another result",
    ),
    OpenCalls(["diopiPowTensor", "diopiPowScalar"], _truths_to_truths, "torch.pow has no kernel for exponents of bool"),
    OpenCalls(["diopiPad"], _truths_beyond_edges, "torch.nn.functional.pad has no kernel for bool that repeats edges"),
    OpenCalls(
        CONVOLUTIONS,
        _without_batch,
        "torch.ops.aten.convolution takes a batch; callers above it add the axis where there is none",
    ),
    OpenCalls(
        ["diopiNLLLossV2", "diopiNLLLossV2Backward"],
        _of_rank_3,
        "torch.ops.aten.nll_loss_forward takes ranks 1 and 2, nll_loss2d_forward rank 4; callers reshape other ranks",
    ),
    OpenCalls(
        ["diopiNLLLossBackward", "diopiNLLLossV2Backward"],
        _image_of_other_layout,
        "torch.ops.aten.nll_loss2d_backward refuses input that is not contiguous: grad_input must be contiguous",
    ),
    OpenCalls(
        ["diopiGroupNorm", "diopiGroupNormBackward"],
        _is_not_dense,
        "torch.ops.aten.native_group_norm refuses tensors that are not contiguous, and its gradient misreads them; "
        "callers copy first",
    ),
    OpenCalls(
        ["diopiBCELossBackward"],
        _ends_in_double,
        "the least denominator of torch.ops.aten.binary_cross_entropy_backward is 1e-12 rounded to float32",
    ),
    OpenCalls(
        ["diopiEmbeddingBackward"],
        _of_a_sparse_gradient,
        "with sparse, PyTorch's gradient is a sparse tensor",
    ),
    OpenCalls(
        ["diopiLayerNormGB", "diopiLayerNormGBBackward"],
        _begins_from_the_end,
        "PyTorch is told the normalized shape; an axis that counts from the end is the standard's own",
    ),
    OpenCalls(
        ["diopiForeachmulTensor"], _factor_with_axes, "torch._foreach_mul takes a tensor without axes for the factor"
    ),
    OpenCalls(
        LISTS,
        _lifts_list,
        "torch._foreach_add and _foreach_mul give the common type, and refuse a higher one in place",
    ),
    OpenCalls(LISTS, _empty_list, "torch._foreach_add and _foreach_mul refuse lists without tensors"),
    OpenCalls(
        ["diopiDropout", "diopiDropoutInp"],
        _mask_of_no_elements,
        "torch.native_dropout gives a mask of no elements the element type of the input",
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
        ["diopiGroupNorm"],
        _no_elements,
        "PyTorch documents no statistics of no elements; its CPU kernels give the mean 0 and the deviation NaN",
    ),
    OpenCalls(
        ["diopiGroupNormBackward"],
        _no_elements,
        "PyTorch documents no gradient of no elements; its CPU kernels give zeros for weight and bias",
    ),
)
"""All of them; of several that include a case the first counts."""


def why_open(prototype: Prototype, case: Case, *, int32_indices: bool = False) -> str:
    """Return what PyTorch does with a call that it refuses or leaves open; empty if it serves the call.

    Args:
        int32_indices: whether the run asks for int32 indices, so that these are no reason.
    """
    reasons = (calls for calls in OPEN_CALLS if calls.include(prototype, case))
    if int32_indices and _refused_types(prototype, case) == {Dtype.int32}:
        reasons = (calls for calls in reasons if calls.holds is not _is_beyond_pytorch)
    return next((calls.reason for calls in reasons), "")

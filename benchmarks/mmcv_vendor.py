"""MMCV's operators on the CPU as a vendor, `mmcv_vendor:vendor`, for `mmcv_comparison.py`.

The vendor needs the package MMCV 2.2.0, built with its operators, on the path (docs/mmcv_comparison.md). The names of
an operator's parameters are read from its signature. `OPERATORS` lists the names that differ from the prototype's.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from diopi_impl import VendorError
from diopi_impl.errors import UnsupportedDtypeError
from diopi_impl.specs import ResultSpec
from diopi_impl.torch_cpu import TorchVendor
from diopi_impl.torch_cpu.adapter import torch_dtype
from diopi_proto.interface import lookup

try:
    import mmcv
    from mmcv import _ext
except ImportError as error:
    raise VendorError(f"MMCV is not there: {error}; PYTHONPATH must name where it was built, with operators") from error

Values = Mapping[str, Any]
"""The arguments of a call by the prototype's names."""

NO_KERNEL = ("expected scalar type", "c10::Half without overflow", "c10::BFloat16 without overflow")
"""Errors of operators that lack the element type, in addition to PyTorch's "not implemented for"."""

NO_OPERATOR = "implementation for device cpu not found"
"""The error of operators that MMCV has only for accelerators."""


@dataclass(frozen=True)
class Operator:
    """An operator of MMCV that implements a standard function.

    Attributes:
        name: the name in `mmcv._ext`.
        renamed: the prototype's names of arguments and results, by MMCV's names that differ.
    """

    name: str
    renamed: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, arguments: Values, results: dict[str, Any]) -> Any:
        """Call the operator, which fills the results, or returns them if it allocates them."""
        function = getattr(_ext, self.name)
        named = {name: self.renamed.get(name, name) for name in parameters(function)}
        values = {name: torch.zeros(0) if value is None else value for name, value in {**arguments, **results}.items()}
        if "im2col_step" in values:  # what MMCV's own callers do
            values["im2col_step"] = min(values["im2col_step"], len(values["input"]))
        outputs = function(**{name: values[parameter_name] for name, parameter_name in named.items()})
        return tuple(results.values()) if outputs is None else outputs


def parameters(function: Callable[..., Any]) -> Sequence[str]:
    """Return the parameter names in the signature at the beginning of an operator's documentation."""
    signature = str(function.__doc__).splitlines()[0]
    return re.findall(r"(\w+): ", signature)


def points_in_all_boxes(arguments: Values, results: dict[str, Any]) -> Tensor:
    """Return for each sample, point and box whether the point is inside; MMCV has an operator for a single sample."""
    boxes, points = arguments["boxes"], arguments["pts"]
    inside = torch.zeros(len(boxes), boxes.shape[1], points.shape[1], dtype=torch.int32)
    for boxes_of_sample, points_of_sample, target in zip(boxes, points, inside, strict=True):
        _ext.points_in_boxes_cpu_forward(boxes_of_sample, points_of_sample, target)
    return inside.swapaxes(1, 2).contiguous()


def points_in_first_box(arguments: Values, results: dict[str, Any]) -> Tensor:
    """Return the index of the first box that contains each point; -1 if no box contains it."""
    inside = points_in_all_boxes(arguments, results)
    if not inside.shape[2]:
        return torch.full(inside.shape[:2], -1, dtype=torch.int32)
    return torch.where(inside.any(2), inside.argmax(2), -1).int()


@dataclass(frozen=True)
class Overlaps:
    """An operator of MMCV that writes overlaps into a flat result, which this class reshapes.

    Attributes:
        name: the name of the operator.
    """

    name: str

    def __call__(self, arguments: Values, results: dict[str, Any]) -> Tensor:
        """Call the operator and return the overlaps in the shape of the standard."""
        ious = results["ious"]
        names = {"boxes1": "bboxes1", "boxes2": "bboxes2", "mode_flag": "mode"}
        (overlaps,) = Operator(self.name, names)(arguments, {"ious": torch.zeros(ious.numel(), dtype=ious.dtype)})
        return overlaps.reshape(ious.shape)


def hard_voxels(arguments: Values, results: dict[str, Any]) -> Any:
    """Return the results of `hard_voxelize_forward`, whose number of voxels is a 0-d tensor in MMCV."""
    shape = results["voxel_num"].shape
    *leading_results, number = Operator("hard_voxelize_forward")(
        arguments, {**results, "voxel_num": torch.zeros((), dtype=torch.int64)}
    )
    return *leading_results, number.reshape(shape)


# Names that several operators have in the prototype, by their names in MMCV
ROTATED = {"pooled_height": "aligned_height", "pooled_width": "aligned_width"}
CONVOLUTION = {"group": "groups", "deformable_group": "deform_groups"}

OPERATORS: Mapping[str, Callable[[Values, dict[str, Any]], Any]] = {
    "ActiveRotatedFilterMmcv": Operator("active_rotated_filter_forward"),
    "ActiveRotatedFilterBackwardMmcv": Operator("active_rotated_filter_backward"),
    "BboxOverlapsMmcv": Operator("bbox_overlaps"),
    "BoxIouQuadriMmcv": Overlaps("box_iou_quadri"),
    "BoxIouRotatedMmcv": Overlaps("box_iou_rotated"),
    "DeformConvMmcv": Operator("deform_conv_forward", CONVOLUTION),
    "DeformConvBackwardInputMmcv": Operator("deform_conv_backward_input", CONVOLUTION),
    "DeformConvBackwardParametersMmcv": Operator("deform_conv_backward_parameters", CONVOLUTION),
    "ModulatedDeformConvMmcv": Operator("modulated_deform_conv_forward"),
    "ModulatedDeformConvBackwardMmcv": Operator("modulated_deform_conv_backward"),
    "DynamicVoxelizeMmcv": Operator("dynamic_voxelize_forward"),
    "HardVoxelizeMmcv": hard_voxels,
    "NmsMmcv": Operator("nms", {"boxes": "dets"}),
    "NmsRotatedMmcv": Operator("nms_rotated"),
    "PointsInBoxesAllMmcv": points_in_all_boxes,
    "PointsInBoxesPartMmcv": points_in_first_box,
    "PsamaskMmcv": Operator("psamask_forward"),
    "PsamaskBackwardMmcv": Operator("psamask_backward"),
    "RoiAlignMmcv": Operator("roi_align_forward"),
    "RoiAlignBackwardMmcv": Operator("roi_align_backward"),
    "RoiAlignRotatedMmcv": Operator("roi_align_rotated_forward", ROTATED),
    "RoiAlignRotatedBackwardMmcv": Operator(
        "roi_align_rotated_backward",
        # the signature names the gradient of the result, the regions and the gradient of the input in another order
        {**ROTATED, "rois": "top_grad", "grad_input": "rois", "grad_output": "bottom_grad"},
    ),
    "RotatedFeatureAlignMmcv": Operator("rotated_feature_align_forward"),
    "RotatedFeatureAlignBackwardMmcv": Operator("rotated_feature_align_backward"),
}
"""The implementations, by standard function without "diopi"."""


def _empty(spec: ResultSpec | None) -> Tensor | None:
    """Return a zero tensor for a result; None for an omitted result."""
    return None if spec is None else torch.zeros(spec.shape, dtype=torch_dtype(spec.dtype))


def _call_operator(
    operator: Callable[[Values, dict[str, Any]], Any], arguments: Values, results: dict[str, Any]
) -> Any:
    """Return the results of an operator.

    Errors about a missing kernel are converted to errors of a vendor without the function or the element type.

    Args:
        operator: calls the operator.
        arguments: the arguments by name.
        results: the tensors for the results by name.

    Returns:
        The results.

    Raises:
        NotImplementedError: MMCV has no such operator on the CPU.
        UnsupportedDtypeError: MMCV has no kernel for an element type.
    """
    try:
        return operator(arguments, results)
    except RuntimeError as error:
        if NO_OPERATOR in str(error):
            raise NotImplementedError(f"MMCV: {error}") from error
        if any(words in str(error) for words in NO_KERNEL):
            raise UnsupportedDtypeError(f"MMCV: {error}") from error
        raise


def _implementation(name: str, operator: Callable[[Values, dict[str, Any]], Any]) -> Callable[..., Any]:
    """Return a functional implementation with the prototype's parameters."""
    prototype = lookup(name)
    names = [parameter.name for parameter in prototype.arguments]

    def implementation(*values: Any, out: Any) -> Any:
        arguments = dict(
            zip(names, (value.contiguous() if isinstance(value, Tensor) else value for value in values), strict=True)
        )
        specs = (out,) if len(prototype.results) == 1 else out
        results = {
            p.name: arguments[p.name] if arguments.get(p.name) is not None else _empty(spec)
            for p, spec in zip(prototype.results, specs, strict=True)
        }
        outputs = _call_operator(operator, arguments, results)
        return outputs[0] if len(prototype.results) == 1 and isinstance(outputs, tuple) else outputs

    kinds = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    keyword = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY)
    implementation.__signature__ = inspect.Signature([*kinds, keyword])  # type: ignore[attr-defined]  # inspect reads it
    return implementation


vendor = TorchVendor("mmcv", mmcv.__version__)

for function, operator in OPERATORS.items():
    vendor.implements(f"diopi{function}")(_implementation(f"diopi{function}", operator))

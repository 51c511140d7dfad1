"""The functions of the standard in operators of ONNX.

Each entry builds a model in a `Graph`, whose attributes with a capital letter are the operators. It names the arguments
of the function that it uses, and `out`, the caller's result. Tensors among the arguments are inputs of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxruntime_vendor.helpers import (
    adaptive,
    axes,
    cast,
    cast_all,
    divided,
    filled,
    floating,
    from_start,
    in_planes,
    invalid,
    is_bool,
    is_floating,
    keeps,
    leading,
    like,
    masked_select,
    name_of,
    nms,
    norm,
    pads,
    pads_of,
    permutation,
    reduced,
    reject,
    remainder,
    scaled,
    size_along,
    truth,
    unique,
    unsqueezed,
    whole,
    with_shapes,
)

INT64_MIN = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class Definition:
    """A function of the standard in operators of ONNX.

    Attributes:
        opset: the version of ONNX's operators.
        build: adds the nodes of the function to a graph, and returns its result or results.
    """

    opset: int
    build: Callable[..., Any]


DEFINITIONS: Mapping[str, Definition] = {
    "diopiAbs": Definition(13, lambda graph, input: graph.Abs(input)),
    "diopiNeg": Definition(13, lambda graph, input: graph.Neg(input)),
    "diopiFloor": Definition(13, lambda graph, input: whole(graph, input, "Floor")),
    "diopiCeil": Definition(13, lambda graph, input: whole(graph, input, "Ceil")),
    "diopiSqrt": Definition(13, lambda graph, input: graph.Sqrt(floating(graph, input))),
    "diopiRsqrt": Definition(13, lambda graph, input: graph.Reciprocal(graph.Sqrt(floating(graph, input)))),
    "diopiReciprocal": Definition(13, lambda graph, input: graph.Reciprocal(floating(graph, input))),
    "diopiSin": Definition(22, lambda graph, input: graph.Sin(floating(graph, input))),
    "diopiCos": Definition(22, lambda graph, input: graph.Cos(floating(graph, input))),
    "diopiTan": Definition(22, lambda graph, input: graph.Tan(floating(graph, input))),
    "diopiAsin": Definition(22, lambda graph, input: graph.Asin(floating(graph, input))),
    "diopiAcos": Definition(22, lambda graph, input: graph.Acos(floating(graph, input))),
    "diopiAtan": Definition(22, lambda graph, input: graph.Atan(floating(graph, input))),
    "diopiSinh": Definition(22, lambda graph, input: graph.Sinh(floating(graph, input))),
    "diopiCosh": Definition(22, lambda graph, input: graph.Cosh(floating(graph, input))),
    "diopiTanh": Definition(13, lambda graph, input: graph.Tanh(floating(graph, input))),
    "diopiAsinh": Definition(22, lambda graph, input: graph.Asinh(floating(graph, input))),
    "diopiAcosh": Definition(22, lambda graph, input: graph.Acosh(floating(graph, input))),
    "diopiAtanh": Definition(22, lambda graph, input: graph.Atanh(floating(graph, input))),
    "diopiExp": Definition(13, lambda graph, input: graph.Exp(floating(graph, input))),
    "diopiLog": Definition(13, lambda graph, input: graph.Log(floating(graph, input))),
    "diopiLog2": Definition(13, lambda graph, input: graph.Div(graph.Log(floating(graph, input)), 0.6931471805599453)),
    "diopiLog10": Definition(13, lambda graph, input: graph.Div(graph.Log(floating(graph, input)), 2.302585092994046)),
    "diopiErf": Definition(13, lambda graph, input: graph.Erf(floating(graph, input))),
    "diopiSigmoid": Definition(13, lambda graph, input: graph.Sigmoid(floating(graph, input))),
    "diopiSign": Definition(13, lambda graph, input: graph.Sign(input)),
    "diopiIsNan": Definition(20, lambda graph, input: graph.IsNaN(input)),
    "diopiLogicalNot": Definition(13, lambda graph, input: graph.Not(truth(graph, input))),
    "diopiBitwiseNot": Definition(
        18, lambda graph, input: graph.Not(input) if is_bool(input) else graph.BitwiseNot(input)
    ),
    "diopiRelu": Definition(14, lambda graph, input: graph.Relu(input)),
    "diopiLeakyRelu": Definition(16, lambda graph, input, negative_slope: graph.LeakyRelu(input, alpha=negative_slope)),
    "diopiHardtanh": Definition(13, lambda graph, input, min_val, max_val: graph.Clip(input, min_val, max_val)),
    "diopiHardswish": Definition(22, lambda graph, input: graph.HardSwish(input)),
    "diopiGelu": Definition(20, lambda graph, input, approximate: graph.Gelu(input, approximate=approximate)),
    "diopiSilu": Definition(24, lambda graph, input: graph.Swish(input)),
    "diopiThreshold": Definition(
        16,
        lambda graph, input, threshold, value: graph.Where(
            graph.LessOrEqual(input, threshold), like(graph, value, input), input
        ),
    ),
    "diopiAdd": Definition(
        14, lambda graph, input, other, alpha: graph.Add(input, scaled(graph, like(graph, other, input), alpha))
    ),
    "diopiSub": Definition(
        14, lambda graph, input, other, alpha: graph.Sub(input, scaled(graph, like(graph, other, input), alpha))
    ),
    "diopiMul": Definition(14, lambda graph, input, other: graph.Mul(input, other)),
    "diopiDiv": Definition(
        14, lambda graph, input, other, rounding_mode: divided(graph, input, other, name_of(rounding_mode))
    ),
    "diopiPowTensor": Definition(15, lambda graph, input, exponent: graph.Pow(input, like(graph, exponent, input))),
    "diopiPowScalar": Definition(15, lambda graph, input, exponent: graph.Pow(like(graph, input, exponent), exponent)),
    "diopiMaximum": Definition(13, lambda graph, input, other: graph.Max(input, other)),
    "diopiMinimum": Definition(13, lambda graph, input, other: graph.Min(input, other)),
    "diopiEq": Definition(19, lambda graph, input, other: graph.Equal(input, other)),
    "diopiNe": Definition(19, lambda graph, input, other: graph.Not(graph.Equal(input, other))),
    "diopiGt": Definition(13, lambda graph, input, other: graph.Greater(input, other)),
    "diopiGe": Definition(16, lambda graph, input, other: graph.GreaterOrEqual(input, other)),
    "diopiLt": Definition(13, lambda graph, input, other: graph.Less(input, other)),
    "diopiLe": Definition(16, lambda graph, input, other: graph.LessOrEqual(input, other)),
    "diopiLogicalAnd": Definition(13, lambda graph, input, other: graph.And(truth(graph, input), truth(graph, other))),
    "diopiLogicalOr": Definition(13, lambda graph, input, other: graph.Or(truth(graph, input), truth(graph, other))),
    "diopiBitwiseAnd": Definition(
        18, lambda graph, input, other: graph.And(input, other) if is_bool(input) else graph.BitwiseAnd(input, other)
    ),
    "diopiBitwiseOr": Definition(
        18, lambda graph, input, other: graph.Or(input, other) if is_bool(input) else graph.BitwiseOr(input, other)
    ),
    "diopiRemainderTensor": Definition(
        13, lambda graph, input, other, out: remainder(graph, cast(graph, input, out), like(graph, other, out))
    ),
    "diopiRemainder": Definition(13, lambda graph, input, other: remainder(graph, like(graph, input, other), other)),
    "diopiLerpTensor": Definition(
        16,
        lambda graph, input, end, weight: graph.Where(
            graph.GreaterOrEqual(graph.Abs(weight), 0.5),
            graph.Sub(end, graph.Mul(graph.Sub(end, input), graph.Sub(1, weight))),
            graph.Add(input, graph.Mul(weight, graph.Sub(end, input))),
        ),
    ),
    "diopiAddcmul": Definition(
        14,
        lambda graph, input, tensor1, tensor2, value: graph.Add(
            input, scaled(graph, graph.Mul(tensor1, tensor2), value)
        ),
    ),
    "diopiAddcdiv": Definition(
        14,
        lambda graph, input, tensor1, tensor2, value: graph.Add(
            input, scaled(graph, graph.Div(tensor1, tensor2), value)
        ),
    ),
    "diopiClamp": Definition(13, lambda graph, input, min, max: graph.Min(graph.Max(input, min), max)),
    "diopiClampMax": Definition(13, lambda graph, input, max: graph.Min(input, max)),
    "diopiClampMin": Definition(13, lambda graph, input, min: graph.Max(input, min)),
    **dict.fromkeys(("diopiMm", "diopiBmm"), Definition(13, lambda graph, input, mat2: graph.MatMul(input, mat2))),
    "diopiMatmul": Definition(13, lambda graph, input, other: graph.MatMul(input, other)),
    "diopiAddmm": Definition(
        13,
        lambda graph, input, mat1, mat2, beta, alpha: graph.Gemm(
            mat1, mat2, input, alpha=float(alpha), beta=float(beta)
        ),
    ),
    "diopiBaddbmm": Definition(
        14,
        lambda graph, input, batch1, batch2, beta, alpha: graph.Add(
            scaled(graph, input, beta), scaled(graph, graph.MatMul(batch1, batch2), alpha)
        ),
    ),
    "diopiLinear": Definition(
        13, lambda graph, input, weight, bias: graph.Sum(graph.MatMul(input, graph.Transpose(weight)), bias)
    ),
    "diopiSum": Definition(
        13,
        lambda graph, input, dim, out: graph.ReduceSum(
            cast(graph, input, out), axes(input, dim), keepdims=keeps(input, out)
        ),
    ),
    "diopiMean": Definition(
        18,
        lambda graph, input, dim, out: graph.ReduceMean(
            cast(graph, input, out), axes(input, dim), keepdims=keeps(input, out)
        ),
    ),
    "diopiProd": Definition(
        18,
        lambda graph, input, dim, out: graph.ReduceProd(
            cast(graph, input, out), axes(input, dim), keepdims=keeps(input, out)
        ),
    ),
    "diopiMax": Definition(
        18,
        lambda graph, input, dim, out: (
            graph.ReduceMax(input, axes(input, dim), keepdims=keeps(input, out[0])),
            graph.ArgMax(input, axis=dim, keepdims=keeps(input, out[0])),
        ),
    ),
    "diopiMin": Definition(
        18,
        lambda graph, input, dim, out: (
            graph.ReduceMin(input, axes(input, dim), keepdims=keeps(input, out[0])),
            graph.ArgMin(input, axis=dim, keepdims=keeps(input, out[0])),
        ),
    ),
    "diopiMaxAll": Definition(20, lambda graph, input: graph.ReduceMax(input, keepdims=0)),
    "diopiMinAll": Definition(20, lambda graph, input: graph.ReduceMin(input, keepdims=0)),
    "diopiAmax": Definition(
        20, lambda graph, self, dim, keepdim: graph.ReduceMax(self, axes(self, dim), keepdims=keepdim)
    ),
    "diopiAny": Definition(
        20,
        lambda graph, input, dim, out: graph.ReduceMax(
            truth(graph, input), axes(input, dim), keepdims=keeps(input, out)
        ),
    ),
    "diopiAll": Definition(
        20,
        lambda graph, input, dim, out: graph.ReduceMin(
            truth(graph, input), axes(input, dim), keepdims=keeps(input, out)
        ),
    ),
    "diopiArgmax": Definition(
        13,
        lambda graph, input, dim, keepdim, out: (
            graph.ArgMax(input, axis=dim, keepdims=keepdim)
            if dim is not None
            else graph.Reshape(graph.ArgMax(graph.Reshape(input, (-1,)), axis=0), graph.shape_of(out))
        ),
    ),
    "diopiArgmin": Definition(
        13,
        lambda graph, input, dim, keepdim, out: (
            graph.ArgMin(input, axis=dim, keepdims=keepdim)
            if dim is not None
            else graph.Reshape(graph.ArgMin(graph.Reshape(input, (-1,)), axis=0), graph.shape_of(out))
        ),
    ),
    "diopiCumsum": Definition(14, lambda graph, input, dim, out: graph.CumSum(cast(graph, input, out), np.int64(dim))),
    "diopiCumsumBackward": Definition(
        14, lambda graph, grad_output, dim: graph.CumSum(grad_output, np.int64(dim), reverse=1)
    ),
    "diopiNorm": Definition(
        18,
        lambda graph, input, p, dim, out: norm(graph, cast(graph, input, out), p, axes(input, dim), keeps(input, out)),
    ),
    "diopiLinalgVecNorm": Definition(
        18,
        lambda graph, input, ord, dim, keepdim, out: norm(
            graph, cast(graph, input, out), ord, axes(input, dim), keepdim
        ),
    ),
    "diopiSoftmax": Definition(13, lambda graph, input, dim, out: graph.Softmax(cast(graph, input, out), axis=dim)),
    "diopiLogSoftmax": Definition(
        13, lambda graph, input, dim, out: graph.LogSoftmax(cast(graph, input, out), axis=dim)
    ),
    **dict.fromkeys(
        ("diopiMaxPool1d", "diopiMaxPool2d", "diopiMaxPool3d"),
        Definition(
            12,
            lambda graph, input, kernel_size, stride, padding, dilation, ceil_mode: graph.MaxPool(
                input,
                kernel_shape=kernel_size,
                strides=stride or kernel_size,
                pads=pads(padding),
                dilations=dilation,
                ceil_mode=ceil_mode,
            ),
        ),
    ),
    **dict.fromkeys(
        ("diopiMaxPool1dWithIndices", "diopiMaxPool2dWithIndices", "diopiMaxPool3dWithIndices"),
        Definition(
            18,
            lambda graph, input, kernel_size, stride, padding, dilation, ceil_mode: in_planes(
                graph,
                graph.MaxPool(
                    input,
                    kernel_shape=kernel_size,
                    strides=stride or kernel_size,
                    pads=pads(padding),
                    dilations=dilation,
                    ceil_mode=ceil_mode,
                ),
                input,
            ),
        ),
    ),
    "diopiAvgPool1d": Definition(
        19,
        lambda graph, input, kernel_size, stride, padding, ceil_mode, count_include_pad: graph.AveragePool(
            input,
            kernel_shape=kernel_size,
            strides=stride or kernel_size,
            pads=pads(padding),
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
        ),
    ),
    **dict.fromkeys(
        ("diopiAvgPool2d", "diopiAvgPool3d"),
        Definition(
            19,
            lambda graph, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
                graph.AveragePool(
                    input,
                    kernel_shape=kernel_size,
                    strides=stride or kernel_size,
                    pads=pads(padding),
                    ceil_mode=ceil_mode,
                    count_include_pad=count_include_pad,
                )
                if divisor_override is None
                else reject("ONNX has no divisor_override")
            ),
        ),
    ),
    **dict.fromkeys(
        ("diopiAdaptiveAvgPool1d", "diopiAdaptiveAvgPool2d", "diopiAdaptiveAvgPool3d"),
        Definition(
            19,
            lambda graph, input, output_size: adaptive(graph, input, graph.shape_of(input), output_size, "AveragePool"),
        ),
    ),
    **dict.fromkeys(
        ("diopiAdaptiveMaxPool1d", "diopiAdaptiveMaxPool2d", "diopiAdaptiveMaxPool3d"),
        Definition(
            12, lambda graph, input, output_size: adaptive(graph, input, graph.shape_of(input), output_size, "MaxPool")
        ),
    ),
    **dict.fromkeys(
        ("diopiConvolution2d", "diopiConvolution3d"),
        Definition(
            11,
            lambda graph, input, weight, bias, stride, padding, dilation, groups: graph.Conv(
                input, weight, bias, strides=stride, pads=pads(padding), dilations=dilation, group=groups
            ),
        ),
    ),
    "diopiConvTranspose2d": Definition(
        11,
        lambda graph, input, weight, bias, stride, padding, output_padding, groups, dilation: graph.ConvTranspose(
            input,
            weight,
            bias,
            strides=stride,
            pads=pads(padding),
            dilations=dilation,
            output_padding=output_padding,
            group=groups,
        ),
    ),
    "diopiConvTranspose3d": Definition(
        11,
        lambda graph, input, weight, bias, stride, padding, output_padding, groups, dilation: (
            graph.ConvTranspose(
                input,
                weight,
                bias,
                strides=stride,
                pads=pads(padding),
                dilations=dilation,
                output_padding=output_padding,
                group=groups,
            )
            if input.rank == 5
            else reject("ONNX has no convolution without a batch")
        ),
    ),
    "diopiBatchNorm": Definition(
        15,
        lambda graph, input, weight, bias, running_mean, running_var, training, eps: (
            (
                graph.BatchNormalization(
                    input,
                    filled(graph, weight, 1, graph.shape_of(running_mean), running_mean),
                    filled(graph, bias, 0, graph.shape_of(running_mean), running_mean),
                    running_mean,
                    running_var,
                    epsilon=eps,
                ),
                None,
                None,
                None,
                None,
            )
            if not training
            else reject("ONNX has no saved statistics")
        ),
    ),
    "diopiInstanceNorm": Definition(
        22,
        lambda graph, input, axis, scale, bias, eps: (
            graph.InstanceNormalization(
                input,
                filled(graph, scale, 1, graph.shape_of(input)[1:2], input),
                filled(graph, bias, 0, graph.shape_of(input)[1:2], input),
                epsilon=eps,
            )
            if axis == 2
            else reject("ONNX normalizes from axis 2 on")
        ),
    ),
    "diopiLayerNorm": Definition(
        17,
        lambda graph, input, weight, bias, normalized_shape, eps, out: (
            with_shapes(
                graph,
                graph.LayerNormalization(
                    input,
                    filled(graph, weight, 1, normalized_shape, input),
                    bias,
                    axis=-len(normalized_shape),
                    epsilon=eps,
                ).results(3),
                out,
            )
            if graph.shape_of(input)[-len(normalized_shape) :] == normalized_shape
            else invalid("the shape of input does not end in normalized_shape")
        ),
    ),
    "diopiIndexSelect": Definition(13, lambda graph, input, dim, index: graph.Gather(input, index, axis=dim)),
    "diopiSelect": Definition(13, lambda graph, input, dim, index: graph.Gather(input, np.int64(index), axis=dim)),
    "diopiSlice": Definition(
        13, lambda graph, input, dim, start, end, step: graph.Slice(input, (start,), (end,), (dim,), (step,))
    ),
    "diopiEmbedding": Definition(13, lambda graph, weight, indices: graph.Gather(weight, indices)),
    "diopiGather": Definition(
        13,
        lambda graph, input, dim, index: (
            graph.GatherElements(input, index, axis=dim) if input.rank else reject("GatherElements needs an axis")
        ),
    ),
    "diopiScatter": Definition(
        18,
        lambda graph, input, dim, src, index, reduce: graph.ScatterElements(
            input,
            index,
            graph.Slice(src, (0,) * index.rank, graph.Shape(index)),
            axis=dim,
            reduction={"": "none", "add": "add", "multiply": "mul"}[reduce],
        ),
    ),
    "diopiScatterScalar": Definition(
        18,
        lambda graph, input, dim, value, index, reduce: graph.ScatterElements(
            input,
            index,
            graph.Expand(like(graph, value, input), graph.Shape(index)),
            axis=dim,
            reduction={"": "none", "add": "add", "multiply": "mul"}[reduce],
        ),
    ),
    "diopiWhere": Definition(
        16, lambda graph, condition, input, other: graph.Where(truth(graph, condition), input, other)
    ),
    "diopiMaskedFill": Definition(
        16, lambda graph, input, mask, value: graph.Where(truth(graph, mask), like(graph, value, input), input)
    ),
    "diopiMaskedSelect": Definition(16, lambda graph, input, mask: masked_select(graph, input, truth(graph, mask))),
    "diopiNonzero": Definition(13, lambda graph, input: graph.Transpose(graph.NonZero(input))),
    "diopiNms": Definition(
        13, lambda graph, boxes, confidence, iou_threshold: nms(graph, boxes, confidence, iou_threshold)
    ),
    "diopiOneHot": Definition(
        11,
        lambda graph, input, num_classes: (
            graph.OneHot(input, np.int64(num_classes), (0, 1))
            if num_classes >= 0
            else reject("ONNX needs the number of classes")
        ),
    ),
    "diopiTopk": Definition(
        11,
        lambda graph, input, k, dim, largest, sorted: graph.TopK(
            input, (k,), axis=dim, largest=largest, sorted=sorted
        ).results(2),
    ),
    "diopiSort": Definition(
        15,
        lambda graph, input, dim, descending: graph.TopK(
            input, size_along(graph, input, dim), axis=dim, largest=descending
        ).results(2),
    ),
    "diopiArgsort": Definition(
        15,
        lambda graph, input, dim, descending: graph.TopK(
            input,
            size_along(graph, input, -1 if dim is None else dim),
            axis=-1 if dim is None else dim,
            largest=descending,
        ).results(2)[1],
    ),
    "diopiUnique": Definition(11, lambda graph, input, dim, return_counts: unique(graph, input, dim, return_counts)),
    "diopiTril": Definition(14, lambda graph, input, diagonal: graph.Trilu(input, np.int64(diagonal), upper=0)),
    "diopiTriu": Definition(14, lambda graph, input, diagonal: graph.Trilu(input, np.int64(diagonal), upper=1)),
    "diopiCat": Definition(13, lambda graph, tensors, dim, out: graph.Concat(*cast_all(graph, tensors, out), axis=dim)),
    "diopiStack": Definition(
        13,
        lambda graph, tensors, dim, out: graph.Concat(*cast_all(graph, unsqueezed(graph, tensors, dim), out), axis=dim),
    ),
    "diopiSplitWithSizes": Definition(
        18,
        lambda graph, input, splitSizes, dim: list(  # noqa: N803 - the name in the prototype
            graph.Split(input, splitSizes, axis=dim).results(len(splitSizes))
        ),
    ),
    "diopiTranspose": Definition(
        13, lambda graph, input, dim0, dim1: graph.Transpose(input, perm=permutation(input.rank, dim0, dim1))
    ),
    "diopiPermute": Definition(
        13, lambda graph, input, dims: graph.Transpose(input, perm=from_start(dims, input.rank))
    ),
    "diopiExpand": Definition(13, lambda graph, input, out: graph.Expand(input, graph.shape_of(out))),
    "diopiRepeat": Definition(
        13,
        lambda graph, input, repeats_size: (
            graph.Tile(leading(graph, input, len(repeats_size) - input.rank), repeats_size) if repeats_size else input
        ),
    ),
    "diopiPad": Definition(
        19,
        lambda graph, input, pad, mode, value: graph.Pad(
            input,
            pads_of(input.rank, pad),
            None if value is None else like(graph, value, input),
            mode={"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode],
        ),
    ),
    "diopiFlip": Definition(
        13,
        lambda graph, input, dims: (
            graph.Slice(input, (-1,) * len(dims), (INT64_MIN,) * len(dims), dims, (-1,) * len(dims)) if dims else input
        ),
    ),
    "diopiCastDtype": Definition(13, lambda graph, input, out: cast(graph, input, out)),
    "diopiCopyInp": Definition(13, lambda graph, src, out: graph.Expand(cast(graph, src, out), graph.shape_of(out))),
    "diopiFill": Definition(13, lambda graph, value, out: graph.Expand(like(graph, value, out), graph.shape_of(out))),
    "diopiOnes": Definition(13, lambda graph, size, out: graph.Expand(like(graph, 1, out), size)),
    "diopiZeros": Definition(13, lambda graph, size, out: graph.Expand(like(graph, 0, out), size)),
    "diopiZeroInp": Definition(13, lambda graph, out: graph.Expand(like(graph, 0, out), graph.shape_of(out))),
    "diopiArange": Definition(
        11,
        lambda graph, start, end, step, out: graph.Range(
            like(graph, start, out), like(graph, end, out), like(graph, step, out)
        ),
    ),
    "diopiCol2Im": Definition(
        18,
        lambda graph, input, output_size, kernel_size, dilation, padding, stride: graph.Col2Im(
            input, output_size, kernel_size, dilations=dilation, pads=pads(padding), strides=stride
        ),
    ),
    "diopiGridSample": Definition(
        20,
        lambda graph, input, grid, mode: graph.GridSample(
            input, grid, mode={"bilinear": "linear", "nearest": "nearest"}[mode], padding_mode="zeros", align_corners=0
        ),
    ),
    "diopiRoiAlign": Definition(
        16,
        lambda graph, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned: graph.RoiAlign(
            input,
            graph.Slice(rois, (1,), (5,), (1,)),
            cast(graph, graph.Gather(rois, np.int64(0), axis=1), np.int64),
            mode="avg",
            output_height=pooled_height,
            output_width=pooled_width,
            sampling_ratio=sampling_ratio if sampling_ratio > 0 else 0,
            spatial_scale=spatial_scale,
            coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
        ),
    ),
    "diopiUpsampleNearest": Definition(
        19,
        lambda graph, input, size: graph.Resize(
            input,
            None,
            None,
            graph.Concat(graph.Shape(input, start=0, end=2), size, axis=0),
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
    ),
    "diopiUpsampleLinear": Definition(
        19,
        lambda graph, input, size, align_corners, mode: graph.Resize(
            input,
            None,
            None,
            graph.Concat(graph.Shape(input, start=0, end=2), size, axis=0),
            mode={"linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}[mode],
            coordinate_transformation_mode="align_corners" if align_corners else "half_pixel",
            cubic_coeff_a=-0.75,
        ),
    ),
    "diopiCrossEntropyLoss": Definition(
        13,
        lambda graph, input, target, weight, reduction, ignore_index, label_smoothing: (
            graph.SoftmaxCrossEntropyLoss(
                input, target, weight, ignore_index=ignore_index, reduction=name_of(reduction)
            )
            if not is_floating(target) and label_smoothing <= 0
            else reject("ONNX has neither class probabilities nor label smoothing")
        ),
    ),
    "diopiNLLLoss": Definition(
        13,
        lambda graph, input, target, weight, reduction, ignore_index: graph.NegativeLogLikelihoodLoss(
            input, target, weight, ignore_index=ignore_index, reduction=name_of(reduction)
        ),
    ),
    "diopiMSELoss": Definition(
        15,
        lambda graph, input, target, reduction: reduced(
            graph, graph.Pow(graph.Sub(input, target), 2), name_of(reduction)
        ),
    ),
}
"""The definitions by function. Helpers that add nodes take the graph first."""

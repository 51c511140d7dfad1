"""Normalization layers and vector norms, with their gradients.

The functions of synchronized batch norm are missing, because PyTorch has them on GPUs only.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and
element types.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from diopi_impl.specs import ResultSpec
from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.adapter import torch_dtype
from diopi_impl.torch_cpu.autograd import gradients

aten = torch.ops.aten
"""The operators of ATen."""

Saved = tuple[ResultSpec | None, ...]
"""The shapes and element types of the results, which include saved statistics; None for results that are omitted."""

ALL_GRADIENTS = [True, True, True]
"""The output mask that requests all three gradients."""


def _widen_parameters(input: Tensor, *values: Tensor | None) -> list[Any]:
    """Return contiguous parameters, in float32 if the input has half precision.

    PyTorch then computes float32 statistics. Its kernels ignore the strides of parameters.
    """
    is_half = input.dtype in (torch.float16, torch.bfloat16)
    return [None if value is None else (value.float() if is_half else value).contiguous() for value in values]


def _weight_or_ones(input: Tensor, weight: Tensor | None, shape: Sequence[int]) -> Any:
    """Return the widened weight, or ones of this shape for None; with weights, PyTorch computes float32 statistics."""
    return _widen_parameters(input, torch.ones(list(shape), dtype=input.dtype) if weight is None else weight)[0]


def _check_shapes(shape: Sequence[int], **tensors: Tensor | None) -> None:
    """Raise ValueError unless all tensors that are not None have this shape: PyTorch's operators do not check."""
    for name, tensor in tensors.items():
        if tensor is not None and tensor.shape != tuple(shape):
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, expected {tuple(shape)}")


@vendor.implements("diopiBatchNorm")
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, *, out):
    """Return the normalized input, mean and 1 / std (zeros unless training), and updated running statistics."""
    _check_shapes(input.shape[1:2], weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    weight = _weight_or_ones(input, weight, input.shape[1:2])
    bias, running_mean, running_var = _widen_parameters(input, bias, running_mean, running_var)
    saved: list[Tensor | None]
    result, *saved = torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if not training:
        saved = [torch.zeros(spec.shape) if spec else None for spec in out[1:3]]  # unspecified
    return result, *saved, running_mean, running_var


@vendor.implements("diopiBatchNormBackward")
def batch_norm_backward(grad_output, input, weight, running_mean, running_var, save_mean, save_invstd, training, eps):
    """Return the gradients of input, weight and bias."""
    _check_shapes(input.shape, grad_output=grad_output)
    if training:
        _check_shapes(input.shape[1:2], weight=weight, save_mean=save_mean, save_invstd=save_invstd)
    else:
        _check_shapes(input.shape[1:2], weight=weight, running_mean=running_mean, running_var=running_var)
    weight = _weight_or_ones(input, weight, input.shape[1:2])
    eps = 0.0 if eps is None else eps
    if input.numel() == 0:  # PyTorch divides by the number of samples, which terminates the process
        return grad_output, torch.zeros_like(weight), torch.zeros_like(weight)
    statistics = _widen_parameters(input, running_mean, running_var, save_mean, save_invstd)
    return aten.native_batch_norm_backward(grad_output, input, weight, *statistics, training, eps, ALL_GRADIENTS)


def _layer_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Sequence[int], eps: float, out: Saved
) -> Any:
    """Return the input normalized over its last axes, the mean, and 1 / std.

    Args:
        input: the input.
        weight: the factors of the normalized input; None for 1.
        bias: the summands; None for 0.
        shape: the sizes of the last axes, over which the input is normalized.
        eps: the number added to the variance.
        out: the shapes of the results; None for omitted statistics.
    """
    (bias,) = _widen_parameters(input, bias)
    result, *saved = torch.native_layer_norm(input, list(shape), _weight_or_ones(input, weight, shape), bias, eps)
    shaped = [value.reshape(spec.shape) if spec else None for value, spec in zip(saved, out[1:], strict=True)]
    return result, *shaped


def _layer_norm_backward(
    grad_output: Tensor, input: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor, shape: Sequence[int]
) -> Any:
    """Return the gradients of input, weight and bias of `_layer_norm`."""
    leading = input.shape[: input.ndim - len(shape)]
    keepdims_shape = leading + (1,) * len(shape)
    for name, statistic in (("mean", mean), ("rstd", rstd)):
        _check_shapes(keepdims_shape if statistic.ndim == input.ndim else leading, **{name: statistic})
    _check_shapes(input.shape, grad_output=grad_output)
    mean, rstd = (
        value.contiguous() for value in _widen_parameters(input, mean, rstd)
    )  # the kernel assumes that they are contiguous
    weight = _weight_or_ones(input, weight, shape)
    bias = torch.zeros_like(weight)  # the kernel computes its gradient only if it is passed
    return aten.native_layer_norm_backward(grad_output, input, list(shape), mean, rstd, weight, bias, ALL_GRADIENTS)


@vendor.implements("diopiLayerNorm")
def layer_norm(input, weight, bias, normalized_shape, eps, *, out):
    """Return the input normalized over the last axes, whose sizes are `normalized_shape`, the mean, and 1 / std."""
    return _layer_norm(input, weight, bias, normalized_shape, eps, out)


@vendor.implements("diopiLayerNormBackward")
def layer_norm_backward(grad_output, input, weight, mean, rstd, normalized_shape):
    """Return the gradients of input, weight and bias."""
    return _layer_norm_backward(grad_output, input, weight, mean, rstd, normalized_shape)


@vendor.implements("diopiLayerNormGB")
def layer_norm_gb(input, weight, bias, eps, begin_norm_axis, *, out):
    """Return the input normalized over the axes from begin_norm_axis, the mean, and 1 / std."""
    return _layer_norm(input, weight, bias, input.shape[begin_norm_axis:], eps, out)


@vendor.implements("diopiLayerNormGBBackward")
def layer_norm_gb_backward(grad_output, input, weight, running_mean, running_std, begin_norm_axis):
    """Return the gradients of input, weight and bias."""
    return _layer_norm_backward(grad_output, input, weight, running_mean, running_std, input.shape[begin_norm_axis:])


def _group_sizes(input: Tensor) -> tuple[int, int, int]:
    """Return N, C, and the number of elements per channel."""
    return input.shape[0], input.shape[1], math.prod(input.shape[2:])


@vendor.implements("diopiGroupNorm")
def group_norm(input, weight, bias, num_groups, eps):
    """Return the input normalized over each group of channels, the mean, and 1 / std."""
    (bias,) = _widen_parameters(input, bias)
    weight = _weight_or_ones(input, weight, input.shape[1:2])
    return torch.native_group_norm(input.contiguous(), weight, bias, *_group_sizes(input), num_groups, eps)


@vendor.implements("diopiGroupNormBackward")
def group_norm_backward(grad_output, input, weight, mean, rstd, num_groups):
    """Return the gradients of input, weight and bias."""
    _check_shapes((input.shape[0], num_groups), mean=mean, rstd=rstd)
    _check_shapes(input.shape, grad_output=grad_output)
    mean, rstd = _widen_parameters(input, mean.contiguous(), rstd.contiguous())
    weight = _weight_or_ones(input, weight, input.shape[1:2])
    sizes = _group_sizes(input)
    dy, x = grad_output.contiguous(), input.contiguous()
    return aten.native_group_norm_backward(dy, x, mean, rstd, weight, *sizes, num_groups, ALL_GRADIENTS)


def _instance_norm(input: Tensor, scale: Tensor, bias: Tensor, axis: int, eps: float) -> Tensor:
    """Return the input normalized over the axes from `axis`, times scale, plus bias."""
    if not len(input):
        return input.clone()  # PyTorch rejects a batch without samples
    sizes = (input.shape[0], math.prod(input.shape[1:axis]), math.prod(input.shape[axis:]))
    # the kernel, because `functional.instance_norm` rejects instances of one element
    result = torch.instance_norm(input.reshape(sizes), scale, bias, None, None, True, 0.0, eps, False)
    return result.reshape(input.shape)


def _scale_and_bias(input: Tensor, scale: Tensor | None, bias: Tensor | None, axis: int) -> tuple[Tensor, Tensor]:
    """Return scale and bias; ones and zeros in place of None."""
    weight = _weight_or_ones(input, scale, (math.prod(input.shape[1:axis]),))
    return weight, torch.zeros_like(weight) if bias is None else bias.to(weight.dtype)


@vendor.implements("diopiInstanceNorm")
def instance_norm(input, axis, scale, bias, eps):
    """Return the input normalized over the axes from `axis` on, times scale, plus bias."""
    return _instance_norm(input, *_scale_and_bias(input, scale, bias, axis), axis, eps)


@vendor.implements("diopiInstanceNormBackward")
def instance_norm_backward(grad_output, input, scale, bias, axis, eps):
    """Return the gradients of input, scale and bias; the statistics are computed again."""
    parameters = _scale_and_bias(input, scale, bias, axis)
    return gradients(lambda x, w, b: _instance_norm(x, w, b, axis, eps), grad_output, input, *parameters)


@vendor.implements("diopiNorm")
def norm(input, p, dim, *, out):
    """Return the p-norm along the axes `dim`."""
    return linalg_vec_norm(input, p, dim, out.ndim == input.ndim, out=out)


@vendor.implements("diopiNormBackward")
def norm_backward(grad_output, self, norm, dim, p):
    """Return grad_output times the derivative of the p-norm."""

    def norm_of(x: Tensor) -> Tensor:
        """Return the norm of x, with the values of the norm that the forward call computed."""
        result = torch.linalg.vector_norm(x, p, dim or None, keepdim=norm.ndim == x.ndim)
        _check_shapes(result.shape, norm=norm)
        result.data.copy_(norm)  # autograd saved this tensor; the recomputed norm has different rounding errors
        return result

    return gradients(norm_of, grad_output, self)[0]


@vendor.implements("diopiLinalgVecNorm")
def linalg_vec_norm(input, ord, dim, keepdim, *, out):
    """Return the norm of order `ord` along the axes `dim`; along all axes if `dim` is empty or None."""
    return torch.linalg.vector_norm(input, ord, dim or None, keepdim, dtype=torch_dtype(out.dtype))


@vendor.implements("diopiForeachnormScalar")
def foreachnorm_scalar(inputs, ord, *, out):
    """Return the norm of each tensor."""
    return torch._foreach_norm(inputs, ord, torch_dtype(out[0].dtype) if out else None)


@vendor.implements("diopiNormalize")
def normalize(input, p, axis, eps):
    """Return x / max(‖x‖_p, eps) along an axis."""
    return functional.normalize(input, p, axis, eps)


@vendor.implements("diopiNormalizeBackward")
def normalize_backward(grad_output, input, p, axis, eps):
    """Return the gradient of the input of `normalize`."""
    return gradients(lambda x: functional.normalize(x, p, axis, eps), grad_output, input)[0]

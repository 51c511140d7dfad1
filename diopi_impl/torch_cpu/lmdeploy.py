"""The norms of the LMDeploy engine; PyTorch has no single operator for the engine's other kernels.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.attention import check_shapes


def _rms_norm(rows: Tensor, scale: Tensor, eps: float) -> Tensor:
    """Return x / √(mean(x²) + eps) · scale, for each row x; the rows are float32."""
    check_shapes(rows.shape[-1:], scale=scale)
    return functional.rms_norm(rows, list(scale.shape), scale.to(rows.dtype), eps)


@vendor.implements("diopiRootMeanSquareNormInp")
def root_mean_square_norm(inoutput, scale, eps):
    """Return x / √(mean(x²) + eps) · scale."""
    return _rms_norm(inoutput.float(), scale, eps).to(inoutput.dtype)


@vendor.implements("diopiFusedAddRootMeanSquareNormInp")
def fused_add_root_mean_square_norm(inoutput, residual, bias, scale, eps):
    """Return the RMS norm of residual + input + bias, and this sum."""
    check_shapes(inoutput.shape, residual=residual)
    check_shapes(inoutput.shape[-1:], bias=bias)
    total = residual.float() + inoutput.float()
    total = total if bias is None else total + bias.float()
    return _rms_norm(total, scale, eps).to(inoutput.dtype), total.to(inoutput.dtype)

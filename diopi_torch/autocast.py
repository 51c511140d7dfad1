"""Automatic mixed precision: `torch.autocast("diopi")`.

The lists of operators that compute in lower precision or in float32 come from the "Autocast Op Reference" in PyTorch's
documentation. They have only operators of ATen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from diopi_torch.operators import overload
from diopi_torch.settings import NAME
from diopi_torch.tensors import is_on_device

KEY = "AutocastPrivateUse1"
"""PyTorch's dispatch key for autocast on the device: PyTorch calls kernels that are registered for it first."""

_HERE = torch._C.DispatchKeySet(torch._C._dispatch_key_parse(KEY))
"""The set with only this key, which is excluded while a kernel calls its operator again."""

LOWER = (
    *("matmul", "mm", "bmm", "mv", "linear", "addmm", "addmv", "addr", "addbmm", "baddbmm", "linalg_multi_dot"),
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input"),
    *("prelu", "scaled_dot_product_attention"),
)
"""Operators that compute in the lower precision."""

FULL = (
    *("acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log1p", "log2", "reciprocal", "rsqrt"),
    *("sinh", "tan", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "softplus", "gelu"),
    *("layer_norm", "group_norm", "norm.Scalar", "norm.ScalarOpt_dim", "cosine_similarity", "cdist"),
    *("cosine_embedding_loss", "poisson_nll_loss", "nll_loss", "nll_loss_nd", "hinge_embedding_loss", "kl_div"),
    *("l1_loss", "smooth_l1_loss", "mse_loss", "margin_ranking_loss", "soft_margin_loss", "huber_loss"),
    *("triplet_margin_loss", "binary_cross_entropy_with_logits", "cross_entropy_loss", "dist", "pdist", "renorm"),
    *("softmax.int", "log_softmax.int", "prod", "prod.dim_int", "cumprod", "cumsum", "sum", "sum.dim_IntList"),
)
"""Operators that compute in float32."""

_HALVES = (torch.float16, torch.bfloat16)
"""The half-precision types, which the operators `FULL` convert to float32."""


def install(library: torch.library.Library) -> None:
    """Register autocast kernels for the operators that change the precision of their arguments."""
    for name in LOWER:
        library.impl(
            name, _casting_kernel(overload(name), lambda tensor: tensor.is_floating_point(), _autocast_dtype), KEY
        )
    for name in FULL:
        library.impl(name, _casting_kernel(overload(name), lambda tensor: tensor.dtype in _HALVES, _full_dtype), KEY)


def _autocast_dtype() -> torch.dtype:
    """Return the lower-precision element type that `torch.autocast` currently uses for the device."""
    return torch.get_autocast_dtype(NAME)


def _full_dtype() -> torch.dtype:
    """Return float32, the element type of operators that need full precision."""
    return torch.float32


def _casting_kernel(
    operator: torch._ops.OpOverload, changes: Callable[[torch.Tensor], bool], dtype: Callable[[], torch.dtype]
) -> Callable[..., Any]:
    """Return a kernel that converts the device's tensors, except float64, to another type and calls the operator.

    Args:
        operator: The operator.
        changes: Returns whether a tensor is converted.
        dtype: Returns the element type to which tensors are converted.
    """

    def cast(value: Any) -> Any:
        """Convert a tensor, or the tensors of a list, if they are on the device and `changes` selects them."""
        if isinstance(value, list | tuple):
            return type(value)(map(cast, value))
        if not is_on_device(value) or value.dtype is torch.float64 or not changes(value):
            return value
        return value.to(dtype())

    def kernel(*args: Any, **kwargs: Any) -> Any:
        """Call the operator with converted arguments and without autocast."""
        with torch._C._ExcludeDispatchKeyGuard(_HERE):
            return operator(*map(cast, args), **{name: cast(value) for name, value in kwargs.items()})

    return kernel

"""Automatic mixed precision: unscaling gradients and updating the loss scale.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results.
"""

from __future__ import annotations

from typing import Any

import torch

from diopi_impl.torch_cpu import vendor

aten: Any = torch.ops.aten
"""The operators of ATen."""


@vendor.implements("diopiAmpForeachNonFiniteCheckAndUnscaleInp")
def unscale(scaled_grads, found_inf, inv_scale):
    """Return the gradients times inv_scale, and found_inf set to 1 if a gradient is not finite."""
    if scaled_grads:  # an empty list is an error in PyTorch
        aten._amp_foreach_non_finite_check_and_unscale_(scaled_grads, found_inf, inv_scale)
    return scaled_grads, found_inf


@vendor.implements("diopiAmpUpdateScaleInp")
def update_scale(current_scale, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    """Return the loss scale and the growth tracker, which counts steps without an overflow.

    The scale is multiplied by `scale_backoff_factor` if `found_inf` is nonzero, and by `scale_growth_factor` after
    `growth_interval` steps without an overflow.
    """
    aten._amp_update_scale_(
        current_scale, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval
    )
    return current_scale, growth_tracker

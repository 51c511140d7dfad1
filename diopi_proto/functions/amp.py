"""Automatic mixed precision: gradients are divided by the loss scale, and the scale is adjusted after each step.

The loss is multiplied by a scale before the gradients are computed in half precision, so that small gradients do not
underflow. Tensors of one element (0-d or of size 1) contain the state. The state stays on the device, and no function
of this module waits for the device.

Source: P. Micikevicius et al., "Mixed precision training", arXiv:1710.03740; torch.amp.GradScaler.
"""

from typing import Annotated

from diopi_proto.declaration import prototype
from diopi_proto.dtypes import floating, single
from diopi_proto.facts import ExcludesNumbers
from diopi_proto.parameters import Context, Count, In, InOut, InOuts, f64, i32
from diopi_proto.types import Dtype

ScaleFactor = Annotated[f64, ExcludesNumbers(("zero", "negative"), "a scale is positive")]
"""A positive factor of the loss scale."""


@prototype(dtypes=floating, argument_dtypes={"found_inf": single, "inv_scale": single})
def diopiAmpForeachNonFiniteCheckAndUnscaleInp(
    ctx: Context, scaled_grads: InOuts, num_scaled_grads: Count, found_inf: InOut, inv_scale: In
):
    """Multiply every scaled_grads[i] by `inv_scale` in place, and set `found_inf` if a gradient is not finite.

    - scaled_grads: num_scaled_grads tensors, which may differ in shape and dtype. Half precision is multiplied in
      float32 and rounded once.
    - found_inf, inv_scale: float32 tensors of one element.

    found_inf becomes 1 if any element of any gradient is ±inf or NaN on entry. Otherwise it is unchanged; the caller
    sets it to 0 before the first call. The gradients are multiplied in both cases. If num_scaled_grads is 0, the call
    does nothing.

    Source: torch.ops.aten._amp_foreach_non_finite_check_and_unscale_.
    """


@prototype(dtypes=single, argument_dtypes={"growth_tracker": (Dtype.int32,)})
def diopiAmpUpdateScaleInp(
    ctx: Context,
    current_scale: InOut,
    growth_tracker: InOut,
    found_inf: In,
    scale_growth_factor: ScaleFactor,
    scale_backoff_factor: ScaleFactor,
    growth_interval: i32,
):
    """Adjust the loss scale after a step: decrease it after an overflow, increase it after a series of finite steps.

    - If found_inf is not 0, current_scale is multiplied by scale_backoff_factor, and growth_tracker is set to 0.
    - If found_inf is 0, growth_tracker is increased by 1. If it then equals growth_interval, current_scale is
      multiplied by scale_growth_factor, and growth_tracker is set to 0. The scale stays unchanged if this product is
      not finite in float32.

    current_scale and found_inf are float32, and growth_tracker is int32. Each has one element.

    Source: torch.ops.aten._amp_update_scale_.
    """

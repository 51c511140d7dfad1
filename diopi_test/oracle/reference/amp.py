"""Automatic mixed precision: unscaling of gradients, and the update of the scale if gradients are not finite.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Source: PyTorch's torch.amp.GradScaler.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import Exact, reference

Array = NDArray[Any]


@reference("diopiAmpForeachNonFiniteCheckAndUnscaleInp")
def unscale(scaled_grads, found_inf, inv_scale):
    """Return the list of gradients times inv_scale, and found_inf: 1 if an element is not finite, else unchanged."""
    overflowed = any(not np.isfinite(grad).all() for grad in scaled_grads)
    return [grad * inv_scale.item() for grad in scaled_grads], Exact(
        np.ones_like(found_inf) if overflowed else found_inf
    )


@reference("diopiAmpUpdateScaleInp")
def update_scale(current_scale, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    """Return the new scale of the loss, and the number of successive steps without overflow (`growth_tracker`).

    After an overflow (found_inf), the scale is multiplied by the backoff factor and the tracker becomes 0. After
    `growth_interval` steps without overflow, the scale is multiplied by the growth factor, unless it would overflow in
    float32, and the tracker becomes 0.
    """
    if found_inf.item() != 0:
        return current_scale * scale_backoff_factor, np.zeros_like(growth_tracker)
    if growth_tracker.item() + 1 != growth_interval:
        return Exact(current_scale), growth_tracker + 1
    grown = current_scale * scale_growth_factor
    too_large = np.isinf(grown.astype(np.float32)).any()
    return Exact(current_scale) if too_large else grown, np.zeros_like(growth_tracker)

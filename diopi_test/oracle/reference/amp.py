"""Automatic mixed precision: unscaling of gradients, and the update of the scale if gradients are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import Exact, reference

Array = NDArray[Any]


@reference("diopiAmpForeachNonFiniteCheckAndUnscaleInp")
def unscale(scaled_grads, found_inf, inv_scale):
    """Return the gradients times inv_scale, and found_inf set to 1 if a gradient is not finite."""
    overflowed = any(not np.isfinite(grad).all() for grad in scaled_grads)
    return [grad * inv_scale.item() for grad in scaled_grads], Exact(
        np.ones_like(found_inf) if overflowed else found_inf
    )


@reference("diopiAmpUpdateScaleInp")
def update_scale(current_scale, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    """Return the scale, reduced after an overflow or raised after `growth_interval` good steps, and the tracker."""
    if found_inf.item() != 0:
        return current_scale * scale_backoff_factor, np.zeros_like(growth_tracker)
    if growth_tracker.item() + 1 != growth_interval:
        return Exact(current_scale), growth_tracker + 1
    grown = current_scale * scale_growth_factor
    too_large = np.isinf(grown.astype(np.float32)).any()
    return Exact(current_scale) if too_large else grown, np.zeros_like(growth_tracker)

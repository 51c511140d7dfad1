"""Automatic mixed precision: unscaling gradients and updating the loss scale.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax.numpy as jnp

from diopi_impl.jax_cpu import vendor


@vendor.implements("diopiAmpForeachNonFiniteCheckAndUnscaleInp")
def unscale(scaled_grads, found_inf, inv_scale):
    """Return the gradients times inv_scale, and found_inf, which becomes 1 if an element is not finite."""
    finite = jnp.array([jnp.isfinite(grad).all() for grad in scaled_grads], bool).all()
    grads = [grad * inv_scale.reshape(()).astype(grad.dtype) for grad in scaled_grads]
    return grads, jnp.where(finite, found_inf, 1)


@vendor.implements("diopiAmpUpdateScaleInp")
def update_scale(current_scale, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    """Return the new loss scale and the new growth tracker, which counts steps without overflow.

    After an overflow, the scale is multiplied by `scale_backoff_factor`. After `growth_interval` steps without
    overflow, it is multiplied by `scale_growth_factor`, unless it would become infinite. In both cases the tracker
    restarts at 0.
    """
    overflowed, steps = (found_inf != 0).reshape(()), growth_tracker + 1
    is_growth_step = steps == growth_interval
    grown = current_scale * scale_growth_factor
    grown = jnp.where(jnp.isfinite(grown), grown, current_scale)
    scale = jnp.where(is_growth_step.reshape(()), grown, current_scale)
    return (
        jnp.where(overflowed, current_scale * scale_backoff_factor, scale),
        jnp.where(overflowed | is_growth_step, 0, steps),
    )

"""CARAFE: upsampling with a separate kernel for each position.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.mmcv_sampling.kernel import kernel_positions
from diopi_impl.jax_cpu.sizes import check_positive, check_rank, check_shapes, check_size


def _check_carafe(
    features: tuple[int, ...], masks: Array, kernel_size: int, group_size: int, scale_factor: int
) -> None:
    """Raise ValueError unless sizes are positive, the kernel size is odd, and the masks fit the features."""
    check_positive(kernel_size=kernel_size, group_size=group_size, scale_factor=scale_factor)
    n, c, h, w = features
    if kernel_size % 2 == 0:
        raise ValueError(f"kernel_size is {kernel_size}, expected an odd number")
    if c % group_size:
        raise ValueError(f"{c} channels can't be divided into {group_size} groups")
    check_shapes((n, group_size * kernel_size**2, h * scale_factor, w * scale_factor), masks=masks)


def _reassemble(features: Array, masks: Array, k: int, g: int, s: int) -> Array:
    """Return the weighted sums of k × k cells around each cell.

    Args:
        features: The feature maps, (N, C, H, W).
        masks: The weights, (N, g · k · k, s · H, s · W).
        k: The height and width of the neighborhood.
        g: The number of groups of channels; the channels of a group have the same weights.
        s: The factor by which height and width grow.

    Returns:
        The sums, (N, C, s · H, s · W).
    """
    n, c, h, w = features.shape
    padded = jnp.pad(features, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    kernels = jnp.moveaxis(masks.reshape(n, g, k * k, 1, h, s, w, s), 2, 0)

    @jax.checkpoint
    def add(total: Array, tap_inputs: tuple[Array, Array]) -> tuple[Array, None]:
        """Add the products for a kernel position to the result."""
        (i, j), weights = tap_inputs
        cells = lax.dynamic_slice(padded, (0, 0, i, j), features.shape).reshape(n, g, c // g, h, 1, w, 1)
        return total + cells * weights, None

    zeros = jnp.zeros((n, g, c // g, h, s, w, s), features.dtype)
    return lax.scan(add, zeros, (kernel_positions((k, k)), kernels))[0].reshape(n, c, h * s, w * s)


@vendor.implements("diopiCarafeMmcv")
def carafe(features, masks, kernel_size, group_size, scale_factor):
    """Return the features with channels last, and the upsampled features (Wang et al., "CARAFE")."""
    output = carafe_naive(features, masks, kernel_size, group_size, scale_factor)
    return jnp.moveaxis(features, 1, 3), output


@vendor.implements("diopiCarafeNaiveMmcv")
def carafe_naive(features, masks, kernel_size, group_size, scale_factor):
    """Return the upsampled features."""
    check_rank(4, features=features)
    _check_carafe(features.shape, masks, kernel_size, group_size, scale_factor)
    return _reassemble(features, masks, kernel_size, group_size, scale_factor)


@vendor.implements("diopiCarafeBackwardMmcv")
def carafe_backward(bottom_grad, mask_grad, top_grad, rfeatures, masks, kernel_size, group_size, scale_factor):
    """Return the gradients of features and masks, from features with channels last."""
    check_rank(4, bottom_grad=bottom_grad)
    n, c, h, w = bottom_grad.shape
    check_size(bottom_grad.size, rfeatures=rfeatures)
    features = jnp.moveaxis(rfeatures.reshape(n, h, w, c), 3, 1)
    sizes = kernel_size, group_size, scale_factor
    return carafe_naive_backward(bottom_grad, mask_grad, top_grad, features, masks, *sizes)


@vendor.implements("diopiCarafeNaiveBackwardMmcv")
def carafe_naive_backward(bottom_grad, mask_grad, top_grad, features, masks, kernel_size, group_size, scale_factor):
    """Return the gradients of features and masks."""
    check_rank(4, features=features)
    _check_carafe(features.shape, masks, kernel_size, group_size, scale_factor)
    check_shapes(features.shape, bottom_grad=bottom_grad)
    check_shapes(masks.shape, mask_grad=mask_grad)
    check_shapes((*features.shape[:2], *masks.shape[2:]), top_grad=top_grad)
    sizes = kernel_size, group_size, scale_factor

    def reassemble(features: Array, masks: Array) -> Array:
        """Return the upsampled features."""
        return _reassemble(features, masks, *sizes)

    gradients: tuple[Array, ...] = jax.vjp(reassemble, features, masks)[1](top_grad)
    return gradients

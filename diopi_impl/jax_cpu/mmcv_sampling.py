"""MMCV's resampling and rearranging of feature maps: CARAFE, correlation, FIR, PSA masks, im2col, TIN shift.

Kernels are walked one position at a time, and again for the gradient: no call holds the windows of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.sizes import check_shapes, check_size

Pair = tuple[int, int]
"""Along H and along W."""


def _check_rank(rank: int, **tensors: Array) -> None:
    """ValueError unless the tensors have so many axes."""
    for name, tensor in tensors.items():
        if tensor.ndim != rank:
            raise ValueError(f"{name} has shape {tensor.shape}, expected {rank} axes")


def _check_positive(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} is {number}, expected 1 or more")


def _positions(sizes: Pair) -> Array:
    """The positions in a kernel of these sizes, row by row."""
    return jnp.asarray(np.indices(sizes).reshape(2, -1).T)


def _taken(maps: Array, rows: Array, columns: Array) -> Array:
    """(…, H, W) at rows × columns, 0 outside."""
    h, w = maps.shape[-2:]
    rows, columns = jnp.where(rows < 0, h, rows), jnp.where(columns < 0, w, columns)
    return maps.at[..., rows[:, jnp.newaxis], columns].get(mode="fill", fill_value=0)


# CARAFE


def _check_carafe(
    features: tuple[int, ...], masks: Array, kernel_size: int, group_size: int, scale_factor: int
) -> None:
    _check_positive(kernel_size=kernel_size, group_size=group_size, scale_factor=scale_factor)
    n, c, h, w = features
    if kernel_size % 2 == 0:
        raise ValueError(f"kernel_size is {kernel_size}, expected an odd number")
    if c % group_size:
        raise ValueError(f"{c} channels don't make {group_size} groups")
    check_shapes((n, group_size * kernel_size**2, h * scale_factor, w * scale_factor), masks=masks)


def _reassembled(features: Array, masks: Array, k: int, g: int, s: int) -> Array:
    """Weighted sums of what lies around the cell of each result, one position in the kernel after the other."""
    n, c, h, w = features.shape
    padded = jnp.pad(features, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    kernels = jnp.moveaxis(masks.reshape(n, g, k * k, 1, h, s, w, s), 2, 0)

    @jax.checkpoint
    def add(total: Array, one: tuple[Array, Array]) -> tuple[Array, None]:
        (i, j), weights = one
        cells = lax.dynamic_slice(padded, (0, 0, i, j), features.shape).reshape(n, g, c // g, h, 1, w, 1)
        return total + cells * weights, None

    zeros = jnp.zeros((n, g, c // g, h, s, w, s), features.dtype)
    return lax.scan(add, zeros, (_positions((k, k)), kernels))[0].reshape(n, c, h * s, w * s)


@vendor.implements("diopiCarafeMmcv")
def carafe(
    routput: Array,
    rmasks: Array,
    features: Array,
    masks: Array,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> tuple[Array, Array]:
    output = carafe_naive(features, masks, kernel_size, group_size, scale_factor)
    return jnp.moveaxis(features, 1, 3), output


@vendor.implements("diopiCarafeNaiveMmcv")
def carafe_naive(features: Array, masks: Array, kernel_size: int, group_size: int, scale_factor: int) -> Array:
    _check_rank(4, features=features)
    _check_carafe(features.shape, masks, kernel_size, group_size, scale_factor)
    return _reassembled(features, masks, kernel_size, group_size, scale_factor)


@vendor.implements("diopiCarafeBackwardMmcv")
def carafe_backward(
    rtop_grad: Array,
    rbottom_grad_hs: Array,
    rbottom_grad: Array,
    rmask_grad: Array,
    bottom_grad: Array,
    mask_grad: Array,
    top_grad: Array,
    rfeatures: Array,
    masks: Array,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> tuple[Array, ...]:
    _check_rank(4, bottom_grad=bottom_grad)
    n, c, h, w = bottom_grad.shape
    check_size(bottom_grad.size, rfeatures=rfeatures)
    features = jnp.moveaxis(rfeatures.reshape(n, h, w, c), 3, 1)
    sizes = kernel_size, group_size, scale_factor
    return carafe_naive_backward(bottom_grad, mask_grad, top_grad, features, masks, *sizes)


@vendor.implements("diopiCarafeNaiveBackwardMmcv")
def carafe_naive_backward(
    bottom_grad: Array,
    mask_grad: Array,
    top_grad: Array,
    features: Array,
    masks: Array,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> tuple[Array, ...]:
    _check_rank(4, features=features)
    _check_carafe(features.shape, masks, kernel_size, group_size, scale_factor)
    check_shapes(features.shape, bottom_grad=bottom_grad)
    check_shapes(masks.shape, mask_grad=mask_grad)
    check_shapes((*features.shape[:2], *masks.shape[2:]), top_grad=top_grad)
    sizes = kernel_size, group_size, scale_factor

    def reassembled(features: Array, masks: Array) -> Array:
        return _reassembled(features, masks, *sizes)

    gradients: tuple[Array, ...] = jax.vjp(reassembled, features, masks)[1](top_grad)
    return gradients


# Correlation


@final
@dataclass(frozen=True)
class _Correlation:
    """The attributes of a correlation."""

    kernel: Pair
    patch: Pair
    padding: Pair
    dilation: Pair
    dilation_patch: Pair
    stride: Pair

    def size(self, input1: Array, input2: Array) -> Pair:
        """Of the result; ValueError unless there is one."""
        _check_rank(4, input1=input1)
        check_shapes(input1.shape, input2=input2)
        if min(*self.kernel, *self.patch, *self.dilation, *self.dilation_patch, *self.stride) < 1:
            raise ValueError(f"sizes, dilations and strides must be positive, got {self}")
        if not all(size % 2 for size in self.patch):
            raise ValueError(f"the patch has the sizes {self.patch}, expected odd numbers")
        axes = zip(input1.shape[2:], self.padding, self.dilation, self.kernel, self.stride, strict=True)
        h, w = ((n + 2 * pad - far * (k - 1) - 1) // step + 1 for n, pad, far, k, step in axes)
        if min(h, w) < 1:
            raise ValueError(f"input1 has shape {input1.shape}, which leaves a result of size {(h, w)}")
        return h, w

    def __call__(self, one: Array, other: Array) -> Array:
        """The sums of products, one displacement after the other and in it one position in the kernel."""
        size = self.size(one, other)
        starts = [jnp.arange(size[k]) * self.stride[k] - self.padding[k] for k in (0, 1)]
        half = jnp.array([far * (p - 1) // 2 for far, p in zip(self.dilation_patch, self.patch, strict=True)])
        taps = _positions(self.kernel) * jnp.array(self.dilation)

        def at(displacement: Array) -> Array:
            @jax.checkpoint
            def add(total: Array, tap: Array) -> tuple[Array, None]:
                rows, columns = starts[0] + tap[0], starts[1] + tap[1]
                further = _taken(other, rows + displacement[0], columns + displacement[1])
                return total + (_taken(one, rows, columns) * further).sum(1), None

            return lax.scan(add, jnp.zeros((len(one), *size), one.dtype), taps)[0]

        displacements = _positions(self.patch) * jnp.array(self.dilation_patch) - half
        return jnp.moveaxis(lax.map(at, displacements), 0, 1).reshape(len(one), *self.patch, *size)


@vendor.implements("diopiCorrelationMmcv")
def correlation(
    input1: Array,
    input2: Array,
    kH: int,
    kW: int,
    patchH: int,
    patchW: int,
    padH: int,
    padW: int,
    dilationH: int,
    dilationW: int,
    dilation_patchH: int,
    dilation_patchW: int,
    dH: int,
    dW: int,
) -> Array:
    dilations = (dilationH, dilationW), (dilation_patchH, dilation_patchW)
    return _Correlation((kH, kW), (patchH, patchW), (padH, padW), *dilations, (dH, dW))(input1, input2)


@vendor.implements("diopiCorrelationBackwardMmcv")
def correlation_backward(
    grad_input1: Array,
    grad_input2: Array,
    grad_output: Array,
    input1: Array,
    input2: Array,
    kH: int,
    kW: int,
    patchH: int,
    patchW: int,
    padH: int,
    padW: int,
    dilationH: int,
    dilationW: int,
    dilation_patchH: int,
    dilation_patchW: int,
    dH: int,
    dW: int,
) -> tuple[Array, ...]:
    dilations = (dilationH, dilationW), (dilation_patchH, dilation_patchW)
    sums = _Correlation((kH, kW), (patchH, patchW), (padH, padW), *dilations, (dH, dW))
    size = sums.size(input1, input2)
    check_shapes(input1.shape, grad_input1=grad_input1, grad_input2=grad_input2)
    check_shapes((len(input1), patchH, patchW, *size), grad_output=grad_output)
    gradients: tuple[Array, ...] = jax.vjp(sums, input1, input2)[1](grad_output)
    return gradients


# FIR


@vendor.implements("diopiUpfirdn2dOpMmcv")
def upfirdn2d(
    input: Array,
    kernel: Array,
    up_x: int,
    up_y: int,
    down_x: int,
    down_y: int,
    pad_x0: int,
    pad_x1: int,
    pad_y0: int,
    pad_y1: int,
) -> Array:
    _check_rank(4, input=input)
    _check_rank(2, kernel=kernel)
    _check_positive(up_x=up_x, up_y=up_y, down_x=down_x, down_y=down_y)
    (n, c, h, w), (kh, kw) = input.shape, kernel.shape
    size = (h * up_y + pad_y0 + pad_y1 - kh) // down_y + 1, (w * up_x + pad_x0 + pad_x1 - kw) // down_x + 1
    if min(*size, kh, kw) < 1:
        raise ValueError(f"input has shape {input.shape}, kernel {kernel.shape}, which leaves a result of size {size}")
    if not n * c:
        return jnp.zeros((n, c, *size), input.dtype)
    filtered = lax.conv_general_dilated(
        input.reshape(n * c, 1, h, w),
        kernel[jnp.newaxis, jnp.newaxis, ::-1, ::-1].astype(input.dtype),
        (down_y, down_x),
        ((pad_y0, pad_y1 + up_y - 1), (pad_x0, pad_x1 + up_x - 1)),
        lhs_dilation=(up_y, up_x),
        precision="highest",
    )
    return filtered.reshape(n, c, *size)


# Point-wise spatial attention


def _check_psa(psa_type: int, masks: Array, maps: Array, sizes: tuple[int, int, int], mask: Pair) -> None:
    """ValueError unless both tensors have the shapes that the attributes say."""
    n, h, w = sizes
    if psa_type not in (0, 1):
        raise ValueError(f"psa_type is {psa_type}, expected 0 or 1")
    _check_positive(h_mask=mask[0], w_mask=mask[1])
    for name, tensor, channels in (("masks of positions", masks, mask[0] * mask[1]), ("masks of the map", maps, h * w)):
        if tensor.shape != (n, channels, h, w):
            raise ValueError(f"{name} have shape {tensor.shape}, expected {(n, channels, h, w)}")


def _offsets(size: int, entries: int, half: int) -> tuple[Array, Array]:
    """Along an axis: of each own and target position, the entry of the mask between them, and whether there is one."""
    own, target = jnp.arange(size)[:, jnp.newaxis], jnp.arange(size)
    entry = target - own + half
    inside = (entry >= 0) & (entry < entries)
    return jnp.where(inside, entry, 0), inside


@vendor.implements("diopiPsamaskMmcv")
def psamask(
    output: Array,
    input: Array,
    psa_type: int,
    num_: int,
    h_feature: int,
    w_feature: int,
    h_mask: int,
    w_mask: int,
    half_h_mask: int,
    half_w_mask: int,
) -> Array:
    _check_psa(psa_type, input, output, (num_, h_feature, w_feature), (h_mask, w_mask))
    if not input.size:
        return jnp.zeros(output.shape, input.dtype)
    i, has_row = _offsets(h_feature, h_mask, half_h_mask)
    j, has_column = _offsets(w_feature, w_mask, half_w_mask)
    entry = i[:, jnp.newaxis, :, jnp.newaxis] * w_mask + j[:, jnp.newaxis]  # h, w, y, x
    own = jnp.arange(h_feature * w_feature).reshape(h_feature, w_feature, 1, 1)
    copied = input.reshape(num_, h_mask * w_mask, h_feature * w_feature)[:, entry, own]
    inside = has_row[:, jnp.newaxis, :, jnp.newaxis] & has_column[:, jnp.newaxis]
    both = jnp.where(inside, copied, 0).reshape(num_, h_feature * w_feature, h_feature * w_feature)
    return (both.swapaxes(1, 2) if psa_type == 0 else both).reshape(output.shape)


@vendor.implements("diopiPsamaskBackwardMmcv")
def psamask_backward(
    grad_input: Array,
    grad_output: Array,
    psa_type: int,
    num_: int,
    h_feature: int,
    w_feature: int,
    h_mask: int,
    w_mask: int,
    half_h_mask: int,
    half_w_mask: int,
) -> Array:
    _check_psa(psa_type, grad_input, grad_output, (num_, h_feature, w_feature), (h_mask, w_mask))
    if not grad_output.size:
        return jnp.zeros(grad_input.shape, grad_output.dtype)
    h, w, cells = jnp.arange(h_feature)[:, jnp.newaxis], jnp.arange(w_feature), h_feature * w_feature
    y = jnp.arange(h_mask).reshape(-1, 1, 1, 1) + h - half_h_mask  # i, j, h, w
    x = jnp.arange(w_mask).reshape(-1, 1, 1) + w - half_w_mask
    inside = (y >= 0) & (y < h_feature) & (x >= 0) & (x < w_feature)
    own, target = h * w_feature + w, jnp.where(inside, y * w_feature + x, 0)
    places = (target, own) if psa_type == 0 else (own, target)
    copied = grad_output.reshape(num_, cells, cells)[:, *places]
    return jnp.where(inside, copied, 0).reshape(grad_input.shape)


# Masked convolution


def _check_positions(mask_h_idx: Array, mask_w_idx: Array) -> None:
    _check_rank(1, mask_h_idx=mask_h_idx)
    check_shapes(mask_h_idx.shape, mask_w_idx=mask_w_idx)


@vendor.implements("diopiMaskedIm2colMmcv")
def masked_im2col(
    im: Array, mask_h_idx: Array, mask_w_idx: Array, kernel_h: int, kernel_w: int, pad_h: int, pad_w: int
) -> Array:
    _check_rank(4, im=im)
    _check_positions(mask_h_idx, mask_w_idx)
    _check_positive(kernel_h=kernel_h, kernel_w=kernel_w)
    n, c, h, w = im.shape
    if n != 1:
        raise ValueError(f"im has shape {im.shape}, expected one image")
    y = jnp.arange(kernel_h).reshape(-1, 1, 1) + mask_h_idx - pad_h
    x = jnp.arange(kernel_w).reshape(-1, 1) + mask_w_idx - pad_w
    y, x = jnp.where(y < 0, h, y), jnp.where(x < 0, w, x)
    patches = im[0].at[:, y, x].get(mode="fill", fill_value=0)
    return patches.reshape(c * kernel_h * kernel_w, len(mask_h_idx))


@vendor.implements("diopiMaskedCol2imMmcv")
def masked_col2im(
    im: Array, col: Array, mask_h_idx: Array, mask_w_idx: Array, height: int, width: int, channels: int
) -> Array:
    _check_positions(mask_h_idx, mask_w_idx)
    check_shapes((1, channels, height, width), im=im)
    check_shapes((channels, len(mask_h_idx)), col=col)
    return im.at[0, :, mask_h_idx, mask_w_idx].set(col.T)


# Temporal shift


def _shifted(frames: Array, shift: Array, made: Any) -> Array:
    """Frames (N, T, C, S), groups of channels each by their own number of places."""
    _check_rank(4, frames=frames)
    _check_rank(2, shift=shift)
    (n, t, c, _), groups = frames.shape, shift.shape[1]
    check_shapes((n, groups), shift=shift)
    if made.shape != frames.shape:
        raise ValueError(f"the result has shape {made.shape}, what is shifted {frames.shape}")
    if not groups or c % groups:
        raise ValueError(f"{c} channels don't make {groups} groups")
    if not frames.size:
        return frames
    source = jnp.arange(t)[:, jnp.newaxis] - jnp.repeat(shift, c // groups, 1)[:, jnp.newaxis]
    inside = (source >= 0) & (source < t)
    moved = jnp.take_along_axis(frames, jnp.where(inside, source, 0)[..., jnp.newaxis], 1)
    return jnp.where(inside[..., jnp.newaxis], moved, 0)


@vendor.implements("diopiTinShiftMmcv")
def tin_shift(output: Array, input: Array, shift: Array) -> Array:
    return _shifted(input, shift, output)


@vendor.implements("diopiTinShiftBackwardMmcv")
def tin_shift_backward(grad_input: Array, grad_output: Array, shift: Array) -> Array:
    return _shifted(grad_output, shift, grad_input)

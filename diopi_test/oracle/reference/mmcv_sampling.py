"""MMCV's resampling and rearranging of feature maps: CARAFE, correlation, FIR, PSA masks, im2col, TIN shift."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from diopi_test.oracle.reference import Exact, Judged, WithTerms, reference
from diopi_test.oracle.reference.products import with_terms

Array = NDArray[Any]
Shape = tuple[int, ...]

# CARAFE


@final
@dataclass(frozen=True)
class _Reassembly:
    """The sums of CARAFE for maps of a shape: kernels of k × k, g groups of channels, s results along each cell."""

    shape: Shape
    k: int
    g: int
    s: int

    @property
    def _margins(self) -> Any:
        return [(0, 0), (0, 0), *[(self.k // 2, self.k // 2)] * 2]

    def _grouped(self, maps: Array) -> Array:
        """(N, C, …) as (N, g, C/g, …)."""
        n, c = maps.shape[:2]
        return maps.reshape(n, self.g, c // self.g, *maps.shape[2:])

    def _kernels(self, masks: Array) -> Array:
        """The masks as (N, g, k, k, s·H, s·W)."""
        return masks.reshape(len(masks), self.g, self.k, self.k, *masks.shape[2:])

    def _around(self, features: Array) -> Array:
        """What lies around the cell of each result, zeros outside: (N, g, C/g, k, k, s·H, s·W)."""
        windows = sliding_window_view(np.pad(features, self._margins), (self.k, self.k), (2, 3))
        cells = np.moveaxis(windows, (4, 5), (2, 3)).repeat(self.s, 4).repeat(self.s, 5)
        return self._grouped(cells)

    def _put_back(self, around: Array) -> Array:
        """The adjoint of `_around`."""
        n, c, h, w = self.shape
        of_cells = around.reshape(n, c, self.k, self.k, h, self.s, w, self.s).sum((5, 7))
        sums, edge = np.pad(np.zeros(self.shape), self._margins), self.k // 2
        for i, j in np.ndindex(self.k, self.k):
            sums[:, :, i : i + h, j : j + w] += of_cells[:, :, i, j]
        return sums[:, :, edge : edge + h, edge : edge + w]

    def forward(self, features: Array, masks: Array) -> Array:
        sums = np.einsum("ngcijyx,ngijyx->ngcyx", self._around(features), self._kernels(masks))
        return sums.reshape(*features.shape[:2], *masks.shape[2:])

    def to_features(self, grad: Array, masks: Array) -> Array:
        return self._put_back(np.einsum("ngcyx,ngijyx->ngcijyx", self._grouped(grad), self._kernels(masks)))

    def to_masks(self, grad: Array, features: Array) -> Array:
        sums = np.einsum("ngcyx,ngcijyx->ngijyx", self._grouped(grad), self._around(features))
        return sums.reshape(len(grad), self.g * self.k**2, *grad.shape[2:])


@reference("diopiCarafeMmcv")
def carafe(
    routput: Array,
    rmasks: Array,
    features: Array,
    masks: Array,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> tuple[Exact, WithTerms]:
    output = carafe_naive(features, masks, kernel_size, group_size, scale_factor)
    return Exact(np.moveaxis(features, 1, 3)), output


@reference("diopiCarafeNaiveMmcv")
def carafe_naive(features: Array, masks: Array, kernel_size: int, group_size: int, scale_factor: int) -> WithTerms:
    reassembly = _Reassembly(features.shape, kernel_size, group_size, scale_factor)
    return with_terms(reassembly.forward, features, masks)


@reference("diopiCarafeBackwardMmcv")
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
) -> tuple[WithTerms, WithTerms]:
    n, c, h, w = bottom_grad.shape
    features = np.moveaxis(rfeatures.reshape(n, h, w, c), 3, 1)
    sizes = kernel_size, group_size, scale_factor
    return carafe_naive_backward(bottom_grad, mask_grad, top_grad, features, masks, *sizes)


@reference("diopiCarafeNaiveBackwardMmcv")
def carafe_naive_backward(
    bottom_grad: Array,
    mask_grad: Array,
    top_grad: Array,
    features: Array,
    masks: Array,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> tuple[WithTerms, WithTerms]:
    reassembly = _Reassembly(bottom_grad.shape, kernel_size, group_size, scale_factor)
    return (
        with_terms(reassembly.to_features, top_grad, masks),
        with_terms(reassembly.to_masks, top_grad, features),
    )


# Correlation


@final
@dataclass(frozen=True)
class _Correlation:
    """The sums of a correlation; pairs are along H and along W."""

    kernel: Shape
    patch: Shape
    padding: Shape
    dilation: Shape
    dilation_patch: Shape
    stride: Shape

    def __post_init__(self) -> None:
        if not all(size % 2 for size in self.patch):
            raise ValueError(f"the patch has the sizes {self.patch}, expected odd numbers")

    def size(self, shape: Shape) -> Shape:
        """Of the result."""
        axes = zip(shape[2:], self.padding, self.dilation, self.kernel, self.stride, strict=True)
        return tuple((n + 2 * pad - far * (k - 1) - 1) // step + 1 for n, pad, far, k, step in axes)

    def _places(self, axis: int, length: int, count: int, tap: int, shift: int) -> tuple[Array, tuple[Array, Array]]:
        """Along an axis: the results that have a term of this tap and shift, and where its factors are."""
        first = np.arange(count) * self.stride[axis] - self.padding[axis] + tap * self.dilation[axis]
        half = self.dilation_patch[axis] * (self.patch[axis] - 1) // 2
        second = first + shift * self.dilation_patch[axis] - half
        inside = (first >= 0) & (first < length) & (second >= 0) & (second < length)
        return np.flatnonzero(inside), (first[inside], second[inside])

    def terms(self, shape: Shape) -> Iterator[tuple[Any, Any, Any]]:
        """Terms of which no factor is outside: where in the result, in the first and in the second map they are.

        Of one tap and displacement, no two are at one place.
        """
        size = self.size(shape)
        for p, q, i, j in np.ndindex(*self.patch, *self.kernel):
            h, rows = self._places(0, shape[2], size[0], i, p)
            w, columns = self._places(1, shape[3], size[1], j, q)
            first, second = (np.s_[:, :, rows[k][:, np.newaxis], columns[k]] for k in (0, 1))
            yield np.s_[:, p, q, h[:, np.newaxis], w], first, second

    def forward(self, one: Array, other: Array) -> Array:
        sums = np.zeros((len(one), *self.patch, *self.size(one.shape)))
        for where, first, second in self.terms(one.shape):
            sums[where] += (one[first] * other[second]).sum(1)
        return sums

    def to_first(self, grad: Array, other: Array) -> Array:
        sums = np.zeros(other.shape)
        for where, first, second in self.terms(other.shape):
            sums[first] += grad[where][:, np.newaxis] * other[second]
        return sums

    def to_second(self, grad: Array, one: Array) -> Array:
        sums = np.zeros(one.shape)
        for where, first, second in self.terms(one.shape):
            sums[second] += grad[where][:, np.newaxis] * one[first]
        return sums


@reference("diopiCorrelationMmcv")
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
) -> WithTerms:
    dilations = (dilationH, dilationW), (dilation_patchH, dilation_patchW)
    sums = _Correlation((kH, kW), (patchH, patchW), (padH, padW), *dilations, (dH, dW))
    return with_terms(sums.forward, input1, input2)


@reference("diopiCorrelationBackwardMmcv")
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
) -> tuple[WithTerms, WithTerms]:
    dilations = (dilationH, dilationW), (dilation_patchH, dilation_patchW)
    sums = _Correlation((kH, kW), (patchH, patchW), (padH, padW), *dilations, (dH, dW))
    return with_terms(sums.to_first, grad_output, input2), with_terms(sums.to_second, grad_output, input1)


# FIR


@reference("diopiUpfirdn2dOpMmcv")
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
) -> WithTerms:
    n, c, h, w = input.shape
    margins = (pad_y0, pad_y1), (pad_x0, pad_x1)
    ends = h * up_y, w * up_x
    kept = tuple(slice(max(-a, 0), end - max(-b, 0)) for (a, b), end in zip(margins, ends, strict=True))

    def filtered(planes: Array, factors: Array) -> Array:
        apart = np.zeros((n, c, *ends))
        apart[:, :, ::up_y, ::up_x] = planes
        padded = np.pad(apart[:, :, *kept], [(0, 0), (0, 0), *((max(a, 0), max(b, 0)) for a, b in margins)])
        windows = sliding_window_view(padded, kernel.shape, (2, 3))[:, :, ::down_y, ::down_x]
        return np.asarray(np.einsum("nchwij,ij->nchw", windows, factors[::-1, ::-1]))

    return with_terms(filtered, input, kernel)


# Point-wise spatial attention


def _copies(shape: Shape, mask: Shape, half: Shape) -> tuple[Array, Array, Array]:
    """What is copied: the entry of the mask, the position it is the mask of, and the one it points at, each flat."""
    i, j, h, w = np.indices((*mask, *shape)).reshape(4, -1)
    y, x = h + i - half[0], w + j - half[1]
    inside = (y >= 0) & (y < shape[0]) & (x >= 0) & (x < shape[1])
    flat = i * mask[1] + j, h * shape[1] + w, y * shape[1] + x
    entry, own, target = (one[inside] for one in flat)
    return entry, own, target


@reference("diopiPsamaskMmcv")
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
    entry, own, target = _copies((h_feature, w_feature), (h_mask, w_mask), (half_h_mask, half_w_mask))
    places = (target, own) if psa_type == 0 else (own, target)
    result = np.zeros((num_, h_feature * w_feature, h_feature * w_feature))
    result[:, *places] = input.reshape(num_, h_mask * w_mask, h_feature * w_feature)[:, entry, own]
    return result.reshape(output.shape)


@reference("diopiPsamaskBackwardMmcv")
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
    entry, own, target = _copies((h_feature, w_feature), (h_mask, w_mask), (half_h_mask, half_w_mask))
    places = (target, own) if psa_type == 0 else (own, target)
    result = np.zeros((num_, h_mask * w_mask, h_feature * w_feature))
    result[:, entry, own] = grad_output.reshape(num_, h_feature * w_feature, h_feature * w_feature)[:, *places]
    return result.reshape(grad_input.shape)


# Masked convolution


@reference("diopiMaskedIm2colMmcv")
def masked_im2col(
    im: Array, mask_h_idx: Array, mask_w_idx: Array, kernel_h: int, kernel_w: int, pad_h: int, pad_w: int
) -> Array:
    c, h, w = im.shape[1:]
    col = np.zeros((c, kernel_h, kernel_w, len(mask_h_idx)))
    for i, j, m in np.ndindex(*col.shape[1:]):
        y, x = mask_h_idx[m] - pad_h + i, mask_w_idx[m] - pad_w + j
        if 0 <= y < h and 0 <= x < w:
            col[:, i, j, m] = im[0, :, y, x]
    return col.reshape(c * kernel_h * kernel_w, len(mask_h_idx))


@reference("diopiMaskedCol2imMmcv")
def masked_col2im(
    im: Array, col: Array, mask_h_idx: Array, mask_w_idx: Array, height: int, width: int, channels: int
) -> Array:
    result = np.zeros((1, channels, height, width))
    result[0, :, mask_h_idx, mask_w_idx] = col.T
    return result


# Temporal shift


def _shifted(frames: Array, shift: Array) -> Array:
    """Frames (N, T, C, S), groups of channels each by their own number of places; what comes in is 0."""
    t, c = frames.shape[1:3]
    if c % shift.shape[1]:
        raise ValueError(f"{c} channels do not make {shift.shape[1]} groups")
    result, channels = np.zeros(frames.shape), c // shift.shape[1]
    for sample, group in np.ndindex(*shift.shape):
        by, its = int(shift[sample, group]), slice(group * channels, (group + 1) * channels)
        kept, start, source = max(t - abs(by), 0), max(by, 0), max(-by, 0)
        result[sample, start : start + kept, its] = frames[sample, source : source + kept, its]
    return result


@reference("diopiTinShiftMmcv")
def tin_shift(output: Array, input: Array, shift: Array) -> Array:
    return _shifted(input, shift)


@reference("diopiTinShiftBackwardMmcv")
def tin_shift_backward(grad_input: Array, grad_output: Array, shift: Array) -> Judged:
    return Judged(_shifted(grad_output, shift))

"""The trilinear form whose derivatives are the convolution, the transposed convolution and their gradients.

With the padded image x, the kernel w and the result y, the form is the sum of

    y[n, g·o, p] · w[g·o, c, k] · x[n, g·c, stride·p + dilation·k]

over all indices. Its derivative by y is the convolution, by x the transposed convolution, and by w the gradient of the
kernel. Each is a loop over the positions k in the kernel, with one matrix product per group. Four kinds of convolutions
have faster implementations:

- groups of one channel: a sum of element-wise products,
- kernels of one element: a single matrix product,
- few results per channel: the product of the kernel with the patches, as in im2col,
- float32 images in one group: XLA's own convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import final

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

Sizes = Sequence[int]
"""One number per spatial axis, or the shape of a tensor."""

POSITIONS_PER_STEP = 8
"""The maximum number of kernel positions whose products are added in one step."""

MAX_UNROLLED = 64
"""The maximum number of kernel positions for which a depthwise convolution is one unrolled sum."""

PATCHES_RATIO = 4
"""The smallest ratio of output channels to results per channel (N · positions) for the product with patches. From this
ratio on, copying the patches takes less time than XLA needs to rearrange the kernel."""


def _check_least(name: str, sizes: Sizes, least: int) -> None:
    """Raise ValueError unless all sizes are at least `least`; the message contains `name`."""
    if min(sizes) < least:
        raise ValueError(f"{name} is {list(sizes)}, expected {least} or more along every axis")


def _split_groups(array: Array, groups: int) -> Array:
    """Return an array (N, groups·C, …) as (groups, C, N, …)."""
    parts = array.reshape(len(array), groups, array.shape[1] // groups, *array.shape[2:])
    return jnp.moveaxis(parts, 0, 2)


def _merge_groups(parts: Array) -> Array:
    """Return an array (groups, C, N, …) as (N, groups·C, …): the inverse of `_split_groups`."""
    array = jnp.moveaxis(parts, 2, 0)
    return array.reshape(len(array), array.shape[1] * array.shape[2], *array.shape[3:])


def _grouped_product(matrices: Array, parts: Array) -> Array:
    """Return the product of the matrix and the part, (groups, channels, N, sizes…), of each group.

    With one channel per group the product is element-wise: XLA fuses it with the sum, instead of calling a matrix
    product per group.

    Args:
        matrices: a matrix per group, (groups, rows, channels).
        parts: a part per group, (groups, channels, N, sizes…).

    Returns:
        The products, (groups, rows, N, sizes…).
    """
    if matrices.shape[2] == 1:
        return matrices.reshape(*matrices.shape[:2], *[1] * (parts.ndim - 2)) * parts
    return lax.dot_general(matrices, parts, (((2,), (1,)), ((0,), (0,))))


@final
class ConvolutionForm:
    """The form of a convolution, for tensors of fixed shapes.

    The image is split into phases, (phases along each axis…, groups, channels, N, sizes…). Elements whose distance is
    the stride are neighbors in a phase, so that the elements for one kernel position form a block of one phase.

    Args:
        image: the shape of x, (N, C, sizes…).
        kernel: the shape of w, (Cy, C/groups, sizes…).
        positions: the spatial sizes of y, for which the image has enough room.
        stride, padding, dilation: the attributes along each spatial axis.
        groups: the number of groups of channels.
    """

    def __init__(
        self, image: Sizes, kernel: Sizes, positions: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
    ) -> None:
        _check_least("groups", [groups], 1)
        if image[1] != kernel[1] * groups or kernel[0] % groups:
            raise ValueError(f"a kernel of shape {tuple(kernel)} in {groups} groups does not fit {image[1]} channels")
        self._image, self._kernel, self._positions = tuple(image), tuple(kernel), tuple(positions)
        self._stride, self._padding, self._dilation = tuple(stride), tuple(padding), tuple(dilation)
        self._groups = groups
        axes = zip(image[2:], kernel[2:], positions, stride, padding, dilation, strict=True)
        self._cells = [  # elements of a phase along each axis: as far as padding and kernel reach
            -(-max(size + 2 * pad, dilate * (k - 1) + step * (count - 1) + 1) // step)
            for size, k, count, step, pad, dilate in axes
        ]
        places = np.indices(kernel[2:]).reshape(len(stride), -1).T * dilation
        cells, phases = np.divmod(places, stride)
        self._starts = np.hstack([phases, np.zeros((len(phases), 3), int), cells])  # the start of the block for each k

    def result(self, x: Array, w: Array) -> Array:
        """Return the convolution of image and kernel: the derivative by y."""
        if self._kernel[1] == 1 and prod(self._kernel[2:]) <= MAX_UNROLLED:
            return self._depthwise_convolution(x, w)
        if (
            self._groups == prod(self._kernel[2:]) == 1
            and self._image[2:] == self._positions
            and not any(self._padding)
        ):
            return self._pointwise_product(x, w)
        if self._groups == 1 and PATCHES_RATIO * self._image[0] * prod(self._positions) <= self._kernel[0]:
            return self._product_with_patches(x, w)
        if self._groups == 1 and len(self._stride) == 2 and x.dtype == jnp.float32:
            return self._xla_convolution(x, w)
        return self._sum_of_products(x, w)

    def _depthwise_convolution(self, x: Array, w: Array) -> Array:
        """Return the convolution for groups of one channel, as one element-wise sum."""
        kernels = w.reshape(self._groups, self._kernel[0] // self._groups, *self._kernel[2:])
        weights = [
            kernels[:, :, *place].reshape(*kernels.shape[:2], *[1] * len(place))
            for place in np.ndindex(*self._kernel[2:])
        ]
        terms = [patch[:, :, None] * weight for patch, weight in zip(self._patches(x), weights, strict=True)]
        parts = [
            sum(terms[i + 1 : i + POSITIONS_PER_STEP], start=terms[i]) for i in range(0, len(terms), POSITIONS_PER_STEP)
        ]
        return sum(parts[1:], start=parts[0]).reshape(self.result_shape)

    def _patches(self, x: Array) -> list[Array]:
        """Return the elements of the image for each kernel position, each as (N, C, sizes of y…)."""
        margins = [(pad, max(end, 0)) for pad, end in self._margins]
        padded = jnp.pad(x, [(0, 0), (0, 0), *margins])

        def patch(place: Sizes) -> Array:
            """Return the elements of the image for a kernel position."""
            first = [dilate * k for dilate, k in zip(self._dilation, place, strict=True)]
            axes = zip(first, self._positions, self._stride, strict=True)
            last = [start + (count - 1) * step + 1 for start, count, step in axes]
            return lax.slice(padded, [0, 0, *first], [*padded.shape[:2], *last], [1, 1, *self._stride])

        return [patch(place) for place in np.ndindex(*self._kernel[2:])]

    def _product_with_patches(self, x: Array, w: Array) -> Array:
        """Return the convolution of one group as the product of the kernel with the patches."""
        depth = prod(self._kernel[1:])
        patches = jnp.moveaxis(jnp.stack(self._patches(x), 2), 0, 2).reshape(depth, len(x) * prod(self._positions))
        product = jnp.matmul(w.reshape(len(w), depth), lax.optimization_barrier(patches))
        return jnp.moveaxis(product.reshape(len(w), len(x), *self._positions), 1, 0)

    def _pointwise_product(self, x: Array, w: Array) -> Array:
        """Return the convolution by a kernel of one element with stride 1 and no padding."""
        images = x.reshape(*x.shape[:2], prod(self._positions))
        matrices = jnp.broadcast_to(w.reshape(self._kernel[:2]), (len(x), *self._kernel[:2]))
        return lax.batch_matmul(matrices, images).reshape(self.result_shape)

    def _xla_convolution(self, x: Array, w: Array) -> Array:
        """Return the convolution by XLA's own implementation."""
        return lax.conv_general_dilated(x, w, self._stride, self._margins, rhs_dilation=self._dilation)

    @property
    def _margins(self) -> list[tuple[int, int]]:
        """The padding before and after the image along each axis; negative where elements are never read."""
        sizes = zip(self._image[2:], self._kernel[2:], self._positions, strict=True)
        steps = zip(self._stride, self._padding, self._dilation, strict=True)
        return [
            (pad, (count - 1) * step + dilate * (k - 1) + 1 - size - pad)
            for (size, k, count), (step, pad, dilate) in zip(sizes, steps, strict=True)
        ]

    def _sum_of_products(self, x: Array, w: Array) -> Array:
        """Return the convolution as a loop over the kernel positions."""
        phases, matrices = self._split_phases(x), self._matrices(w)
        group_size = max(n for n in range(1, POSITIONS_PER_STEP + 1) if len(matrices) % n == 0)

        def add(total: Array, ks: tuple[Array, Array]) -> tuple[Array, None]:
            """Add the products for the next kernel positions to the result."""
            blocks = [self._block(phases, start) for start in ks[0]]
            if ks[1].shape[3] == 1:
                return sum(map(_grouped_product, ks[1], blocks), start=total), None
            return total + _grouped_product(jnp.concatenate(list(ks[1]), 2), jnp.concatenate(blocks, 1)), None

        zeros = jnp.zeros((*matrices.shape[1:3], self._image[0], *self._positions), x.dtype)
        return _merge_groups(self._loop(add, zeros, matrices, group_size))

    def image_gradient(self, y: Array, w: Array) -> Array:
        """Return the gradient of the image, which is the transposed convolution: the derivative by x."""
        parts = _split_groups(y, self._groups)

        def add(phases: Array, ks: tuple[Array, Array]) -> tuple[Array, None]:
            """Add the products for a kernel position to its blocks of the image."""
            start, matrix = ks[0][0], ks[1][0]
            block = self._block(phases, start) + _grouped_product(matrix, parts)
            return lax.dynamic_update_slice(phases, block.reshape(self._block_shape), start), None

        zeros = jnp.zeros((*self._stride, *self._group, *self._cells), y.dtype)
        return self._merge_phases(self._loop(add, zeros, self._matrices(w).swapaxes(2, 3), 1))

    def kernel_gradient(self, x: Array, y: Array) -> Array:
        """Return the gradient of the kernel: the derivative by w."""
        phases, parts = self._split_phases(x), _split_groups(y, self._groups)
        summed = tuple(range(2, parts.ndim))

        def product(start: Array) -> Array:
            """Return the gradient of the kernel elements at a position."""
            return lax.dot_general(parts, self._block(phases, start), ((summed, summed), ((0,), (0,))))

        return jnp.moveaxis(lax.map(product, jnp.asarray(self._starts)), 0, -1).reshape(self._kernel)

    def _loop(self, add: Callable[..., tuple[Array, None]], zeros: Array, matrices: Array, group_size: int) -> Array:
        """Return the scan of `add`, from zeros, over the block starts and matrices of the kernel positions."""
        parts = (jnp.asarray(self._starts), matrices)
        return lax.scan(add, zeros, tuple(p.reshape(len(p) // group_size, group_size, *p.shape[1:]) for p in parts))[0]

    @property
    def image_shape(self) -> Sizes:
        """The shape of x."""
        return self._image

    @property
    def result_shape(self) -> Sizes:
        """The shape of y."""
        return (self._image[0], self._kernel[0], *self._positions)

    @property
    def _group(self) -> Sizes:
        """Return the shape of a phase before its spatial axes: groups, channels per group, N."""
        return (self._groups, self._kernel[1], self._image[0])

    @property
    def _block_shape(self) -> Sizes:
        """Return the shape of a block with leading axes for the phases."""
        return (*[1] * len(self._stride), *self._group, *self._positions)

    def _block(self, phases: Array, start: Array) -> Array:
        """Return the block for one kernel position: (groups, channels, N, sizes…)."""
        return lax.dynamic_slice(phases, start, self._block_shape).reshape(*self._group, *self._positions)

    def _matrices(self, w: Array) -> Array:
        """Return the kernel as matrices: (kernel positions, groups, Cy/groups, C/groups)."""
        channels, group_channels, *sizes = self._kernel
        return jnp.moveaxis(w.reshape(self._groups, channels // self._groups, group_channels, prod(sizes)), -1, 0)

    def _split_phases(self, x: Array) -> Array:
        """Return the padded image as phases, (phases along each axis…, groups, channels, N, sizes…)."""
        axes = zip(x.shape[2:], self._padding, self._cells, self._stride, strict=True)
        margins = [(pad, cells * step - size - pad) for size, pad, cells, step in axes]
        padded = _split_groups(jnp.pad(x, [(0, 0), (0, 0), *margins]), self._groups)
        rank = len(margins)
        cut = padded.reshape(*self._group, *[n for pair in zip(self._cells, self._stride, strict=True) for n in pair])
        return jnp.moveaxis(cut, range(4, 4 + 2 * rank, 2), range(rank))

    def _merge_phases(self, phases: Array) -> Array:
        """Return the image without padding from its phases: the inverse of `_split_phases`."""
        rank = len(self._stride)
        cut = jnp.moveaxis(phases, range(rank), range(4, 4 + 2 * rank, 2))
        sizes = [cells * step for cells, step in zip(self._cells, self._stride, strict=True)]
        padded = _merge_groups(cut.reshape(*self._group, *sizes))
        inside = [slice(pad, pad + size) for pad, size in zip(self._padding, self._image[2:], strict=True)]
        return padded[:, :, *inside]


def derive_form(
    image: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> ConvolutionForm:
    """Return the form of a convolution of an image of this shape; raise ValueError if the attributes do not fit."""
    for name, sizes, least in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)):
        _check_least(name, sizes, least)
    axes = zip(image[2:], kernel[2:], stride, padding, dilation, strict=True)
    positions = [(size + 2 * pad - dilate * (k - 1) - 1) // step + 1 for size, k, step, pad, dilate in axes]
    _check_least("the result's size", positions, 1)
    return ConvolutionForm(image, kernel, positions, stride, padding, dilation, groups)


def derive_transposed_form(
    y: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, output_padding: Sizes, groups: int, dilation: Sizes
) -> ConvolutionForm:
    """Return the form whose image is the result of a transposed convolution; ValueError if attributes do not fit."""
    axes = zip(y[2:], kernel[2:], stride, padding, dilation, output_padding, strict=True)
    sizes = [
        (count - 1) * step - 2 * pad + dilate * (k - 1) + output_pad + 1
        for count, k, step, pad, dilate, output_pad in axes
    ]
    _check_least("the result's size", sizes, 1)
    _check_least("output_padding", output_padding, 0)
    for name, numbers, least in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)):
        _check_least(name, numbers, least)
    if any(
        output_pad >= max(step, dilate)
        for output_pad, step, dilate in zip(output_padding, stride, dilation, strict=True)
    ):
        raise ValueError(
            f"output_padding is {list(output_padding)}, expected less than the larger of stride and dilation"
        )
    if y[1] != kernel[0]:
        raise ValueError(f"the input has {y[1]} channels, a kernel of shape {tuple(kernel)} expects {kernel[0]}")
    return ConvolutionForm((y[0], kernel[1] * groups, *sizes), kernel, y[2:], stride, padding, dilation, groups)

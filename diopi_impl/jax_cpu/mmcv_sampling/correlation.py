"""Correlation of neighborhoods in two maps, as in FlowNet (Dosovitskiy et al., 2015), and its gradient.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.mmcv_sampling.kernel import kernel_positions
from diopi_impl.jax_cpu.sizes import check_rank, check_shapes

Pair = tuple[int, int]
"""Values along H and along W."""


def _take_padded(maps: Array, rows: Array, columns: Array) -> Array:
    """Return the elements of maps (…, H, W) at all pairs of rows and columns; 0 outside the maps."""
    h, w = maps.shape[-2:]
    rows, columns = jnp.where(rows < 0, h, rows), jnp.where(columns < 0, w, columns)
    return maps.at[..., rows[:, jnp.newaxis], columns].get(mode="fill", fill_value=0)


@final
@dataclass(frozen=True, kw_only=True)
class _CorrelationProgram:
    """The correlation of two maps: Σ map1[c, p] · map2[c, p + d] over channels and a kernel, for each displacement d.

    Attributes:
        kernel: the size of the kernel, over which products are summed.
        patch: the number of displacements d, which are centered at 0.
        padding: the number of zeros around the maps.
        dilation: the distance of neighboring kernel elements.
        dilation_patch: the distance of neighboring displacements.
        stride: the distance of neighboring positions p.
    """

    kernel: Pair
    patch: Pair
    padding: Pair
    dilation: Pair
    dilation_patch: Pair
    stride: Pair

    def size(self, input1: Array, input2: Array) -> Pair:
        """Return the size of the result along H and W; raise ValueError if the inputs do not fit."""
        check_rank(4, input1=input1)
        check_shapes(input1.shape, input2=input2)
        if min(*self.kernel, *self.patch, *self.dilation, *self.dilation_patch, *self.stride) < 1:
            raise ValueError(f"sizes, dilations and strides must be positive, got {self}")
        if not all(size % 2 for size in self.patch):
            raise ValueError(f"the patch sizes are {self.patch}, expected odd numbers")
        axes = zip(input1.shape[2:], self.padding, self.dilation, self.kernel, self.stride, strict=True)
        h, w = ((n + 2 * pad - dilate * (k - 1) - 1) // step + 1 for n, pad, dilate, k, step in axes)
        if min(h, w) < 1:
            raise ValueError(f"input1 has shape {input1.shape}, which leaves a result of size {(h, w)}")
        return h, w

    def __call__(self, input1: Array, input2: Array) -> Array:
        """Return the correlation, accumulated over the kernel positions for each displacement."""
        size = self.size(input1, input2)
        starts = [jnp.arange(size[k]) * self.stride[k] - self.padding[k] for k in (0, 1)]
        half = jnp.array([dilate * (p - 1) // 2 for dilate, p in zip(self.dilation_patch, self.patch, strict=True)])
        taps = kernel_positions(self.kernel) * jnp.array(self.dilation)

        def correlate(displacement: Array) -> Array:
            """Return the correlation for a displacement."""

            @jax.checkpoint
            def add(total: Array, tap: Array) -> tuple[Array, None]:
                """Add the products for a kernel position to the result."""
                rows, columns = starts[0] + tap[0], starts[1] + tap[1]
                displaced = _take_padded(input2, rows + displacement[0], columns + displacement[1])
                return total + (_take_padded(input1, rows, columns) * displaced).sum(1), None

            return lax.scan(add, jnp.zeros((len(input1), *size), input1.dtype), taps)[0]

        displacements = kernel_positions(self.patch) * jnp.array(self.dilation_patch) - half
        return jnp.moveaxis(lax.map(correlate, displacements), 0, 1).reshape(len(input1), *self.patch, *size)


@vendor.implements("diopiCorrelationMmcv")
def correlation(
    input1, input2, kH, kW, patchH, patchW, padH, padW, dilationH, dilationW, dilation_patchH, dilation_patchW, dH, dW
):
    """Return the correlation of two maps: (N, patch H, patch W, H, W)."""
    return _CorrelationProgram(
        kernel=(kH, kW),
        patch=(patchH, patchW),
        padding=(padH, padW),
        dilation=(dilationH, dilationW),
        dilation_patch=(dilation_patchH, dilation_patchW),
        stride=(dH, dW),
    )(input1, input2)

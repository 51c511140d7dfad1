"""The samples of regions of interest on feature maps.

Regions have different numbers of samples per bin. A loop over the samples therefore computes one sample of every bin of
every region per step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu.sampling import Cells, adjoint, border_cells, planes_to_rows, rows_to_planes, sample_bilinear

Pair = tuple[int, int]
"""Values along H and along W."""

Shape = tuple[int, int, int, int]
"""The shape of feature maps: (N, C, H, W)."""


def feature_map_shape(maps: Array) -> Shape:
    """Return the shape (N, C, H, W) of feature maps; raise ValueError if they don't have four axes."""
    if maps.ndim != 4:
        raise ValueError(f"feature maps have shape {maps.shape}, expected (N, C, H, W)")
    n, c, h, w = maps.shape
    return n, c, h, w


@final
class RoiSampleGrid:
    """The grid of sampling points in the bins of R regions on feature maps.

    Args:
        shape: the shape of the maps.
        batch: the index of each region's map, (R,).
        counts: the numbers of samples per bin along H and W, (R,) each.
        positions: a function from the number of a sample along each axis, (R,), to its positions y and x, (R, bins
            along H, bins along W) each.
    """

    def __init__(
        self,
        shape: Shape,
        batch: Array,
        counts: tuple[Array, Array],
        positions: Callable[[Array, Array], tuple[Array, Array]],
    ) -> None:
        self._shape, self._positions = shape, positions
        self._first = (batch.astype(int) * shape[2] * shape[3])[:, jnp.newaxis, jnp.newaxis]
        self._counts = [jnp.maximum(count, 0) for count in counts]
        self.count = self._counts[0] * self._counts[1]

    def accumulate(self, add: Callable[[Any, Array, Array, Array], Any], start: Any) -> Any:
        """Return `start` after `add` was applied with the y and x of each sample, and which regions have the sample."""

        def step(number: Array, state: Any) -> Any:
            """Add the sample with this number of every bin."""
            column_count = jnp.maximum(self._counts[1], 1)
            y, x = self._positions(number // column_count, number % column_count)
            return add(state, y, x, (number < self.count)[:, jnp.newaxis, jnp.newaxis])

        return lax.fori_loop(0, jnp.max(self.count, initial=0), step, start)

    def sample(self, rows: Array, y: Array, x: Array) -> Array:
        """Return the bilinear samples at one position of every bin: (R, bins along H, along W, C)."""
        _, _, h, w = self._shape
        return self._sample_cells(rows, border_cells(y, h), border_cells(x, w))

    def _sample_cells(self, rows: Array, y: Cells, x: Cells) -> Array:
        """Return bilinear samples from the cells along both axes."""
        return sample_bilinear(rows, lambda row, column: self._first + row * self._shape[3] + column, y, x)

    @property
    def _sample_weight(self) -> Array:
        """The weight of each sample in the mean of its bin."""
        return (1 / jnp.maximum(self.count, 1))[:, jnp.newaxis, jnp.newaxis, jnp.newaxis]

    def mean(self, maps: Array, bins: Pair) -> Array:
        """Return the mean of each bin's samples: (R, C, bins along H, along W)."""
        rows = planes_to_rows(maps)

        def add(total: Array, y: Array, x: Array, has: Array) -> Array:
            """Add a sample of every bin to the sums."""
            return total + jnp.where(has[..., jnp.newaxis], self.sample(rows, y, x), 0)

        total = self.accumulate(add, jnp.zeros((len(self.count), *bins, maps.shape[1]), maps.dtype))
        return jnp.moveaxis(total * self._sample_weight.astype(maps.dtype), -1, 1)

    def mean_gradient(self, grad: Array) -> Array:
        """Return the gradient of the maps for the gradient of `mean`, (R, C, bins along H, along W)."""
        rows = jnp.zeros((self._shape[0] * self._shape[2] * self._shape[3], self._shape[1]), grad.dtype)
        grad_means = jnp.moveaxis(grad, 1, -1) * self._sample_weight.astype(grad.dtype)

        def add(total: Array, y: Array, x: Array, has: Array) -> Array:
            """Add the gradient of a sample of every bin to the rows."""
            grad_bins = jnp.where(has[..., jnp.newaxis], grad_means, 0)
            return total + adjoint(lambda rows: self.sample(rows, y, x), rows, grad_bins)

        return rows_to_planes(self.accumulate(add, rows), self._shape)


def sample_counts(extents: tuple[Array, Array], bins: Pair, ratio: int) -> tuple[Array, Array]:
    """Return the numbers of samples per bin along H and W, (R,) each.

    Args:
        extents: The sizes of the regions along H and W, (R,) each.
        bins: The numbers of bins along H and W.
        ratio: The number of samples; 0 or less for one per element of the map, rounded up.
    """
    count_h, count_w = (
        jnp.full(extent.shape, ratio) if ratio > 0 else jnp.ceil(extent / n).astype(int)
        for extent, n in zip(extents, bins, strict=True)
    )
    return count_h, count_w


def sample_offsets(extent: Array, bins: int, count: Array, number: Array) -> Array:
    """Return the offset of sample `number` of each bin from the start of its region: (R, bins)."""
    extent, count, number = (values[:, jnp.newaxis] for values in (extent, count, number))
    return (jnp.arange(bins) + (number + 0.5) / jnp.maximum(count, 1)) * (extent / bins)


def _extents(rois: Array, scale: float, aligned: bool) -> tuple[list[Array], list[Array]]:
    """Return the starts and sizes of regions along H and W: (R,) each."""
    low = [rois[:, 2] * scale, rois[:, 1] * scale]
    sizes = [rois[:, 4] * scale - low[0], rois[:, 3] * scale - low[1]]
    if aligned:
        return [start - 0.5 for start in low], sizes
    return low, [jnp.maximum(size, 1) for size in sizes]


def roi_sample_grid(
    shape: Shape, rois: Array, scale: float, bins: Pair, ratio: int, aligned: bool, shifts: Array | None = None
) -> RoiSampleGrid:
    """Return the sample grid of upright regions.

    Args:
        shape: The shape of the feature maps.
        rois: The regions, (R, 5): the index of the map, x1, y1, x2 and y2.
        scale: The factor from the coordinates of regions to those of maps.
        bins: The numbers of bins along H and W.
        ratio: The number of samples per bin along each axis; 0 or less for one per element.
        aligned: Whether regions are moved by half an element; if not, their sizes are at least 1.
        shifts: The shifts of each bin's samples, (2, R, bins along H, bins along W), or None.
    """
    starts, extents = _extents(rois, scale, aligned)
    counts = sample_counts((extents[0], extents[1]), bins, ratio)

    def positions(row: Array, column: Array) -> tuple[Array, Array]:
        """Return y and x of a sample of every bin."""
        y = starts[0][:, jnp.newaxis] + sample_offsets(extents[0], bins[0], counts[0], row)
        x = starts[1][:, jnp.newaxis] + sample_offsets(extents[1], bins[1], counts[1], column)
        grids = jnp.broadcast_arrays(y[:, :, jnp.newaxis], x[:, jnp.newaxis])
        return (grids[0], grids[1]) if shifts is None else (grids[0] + shifts[0], grids[1] + shifts[1])

    return RoiSampleGrid(shape, rois[:, 0], counts, positions)


def plane_numbers(rois: Array, shape: tuple[int, ...]) -> Array:
    """Return the number of the plane of each region's channels: (R, C, 1, 1)."""
    channels = shape[1]
    first = rois[:, 0].astype(int) * channels
    return (first[:, jnp.newaxis] + jnp.arange(channels))[..., jnp.newaxis, jnp.newaxis]


def scatter_to_maps(grad: Array, planes: Array, y: Array, x: Array, shape: Shape) -> Array:
    """Return the gradient of maps for the gradient `grad` of samples at (y, x) on the numbered planes."""
    n, c, h, w = shape
    cells = border_cells(y, h), border_cells(x, w)

    def read(flat: Array) -> Array:
        """Return the samples, which are linear in the elements of the maps."""
        return sample_bilinear(flat, lambda row, column: (planes * h + row) * w + column, *cells)[..., 0]

    return adjoint(read, jnp.zeros((n * c * h * w, 1), grad.dtype), grad).reshape(shape)

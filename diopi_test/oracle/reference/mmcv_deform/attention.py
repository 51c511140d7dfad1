"""Multi-scale deformable attention and its gradient.

A query attends to a few points on feature maps of several sizes, called *levels*. The shapes in this module use B for
the batch, Q for the queries, M for the heads, P for the points per level, and D for the channels of a head. The maps of
all levels are flattened one after the other.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Source: X. Zhu et al., "Deformable DETR", 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.mmcv_deform.steps import check_step_divides_batch
from diopi_test.oracle.reference.products import scale_result
from diopi_test.oracle.reference.sampling import (
    BilinearSamples,
    Coordinate,
    bilinear_samples,
    make_gather,
    make_scatter,
    stack_results,
    sum_rounded_products,
    with_zero_terms,
    zero_padded_cells,
)

Array = NDArray[Any]
Pair = tuple[int, int]
"""Two values: one for H and one for W."""


@final
@dataclass(frozen=True, kw_only=True)
class _FeatureLevel:
    """A level of the feature maps.

    Attributes:
        start: The index of the first cell of the level in the flattened maps.
        size: The size of the maps.
        samples: The samples of each image, (4, Q, M, P).
        stays_in_cell: Masks of the samples whose derivatives rounding does not change (`Coordinate.stays_in_cell`),
            along H and W, (B, Q, M, P) each.
    """

    start: int
    size: Pair
    samples: list[BilinearSamples]
    stays_in_cell: Sequence[Array]

    @property
    def cells(self) -> slice:
        """Return the cells of the level in the flattened maps."""
        return slice(self.start, self.start + self.size[0] * self.size[1])


def _levels(shapes: Array, starts: Array, locations: Array) -> list[_FeatureLevel]:
    """Return the feature levels with the samples of all queries.

    Args:
        shapes: The size of the maps of each level along H and W.
        starts: The index of the first cell of each level in the flattened maps.
        locations: The sampling locations x, y in [0, 1], (B, Q, M, levels, P, 2).
    """
    levels = []
    for number, (size, start) in enumerate(zip(shapes, starts, strict=True)):
        positions = locations[:, :, :, number, :, ::-1] * size  # as (y, x), in cells
        h, w = map(int, size)
        y, x = (Coordinate(positions[..., k] - 0.5, np.abs(positions[..., k]) + 0.5) for k in (0, 1))
        batch_samples = bilinear_samples(zero_padded_cells(y, h), zero_padded_cells(x, w), w)
        image_samples = [_select_image(batch_samples, image) for image in range(len(locations))]
        levels.append(
            _FeatureLevel(
                start=int(start), size=(h, w), samples=image_samples, stays_in_cell=(y.stays_in_cell, x.stays_in_cell)
            )
        )
    return levels


def _select_image(batch_samples: BilinearSamples, image: int) -> BilinearSamples:
    """Return the samples of an image of the batch."""

    def select(result: WithTerms) -> WithTerms:
        """Return the weights or slopes of the image."""
        return WithTerms(result.value[:, image], result.terms[:, image])

    return BilinearSamples(
        index=batch_samples.index[:, image],
        weight=select(batch_samples.weight),
        slope_y=select(batch_samples.slope_y),
        slope_x=select(batch_samples.slope_x),
    )


def _select_head(result: WithTerms, head: int) -> WithTerms:
    """Return the weights or slopes of a head."""
    return WithTerms(result.value[:, :, head], result.terms[:, :, head])


def _sample_level(level: _FeatureLevel, value: Array, select: Callable[[BilinearSamples], WithTerms]) -> WithTerms:
    """Return the samples of a level, or their derivatives, (B, M, D, Q, P); `select` returns weights or slopes."""
    b, _, heads, d = value.shape
    parts = [
        sum_rounded_products(
            make_gather(samples.index[:, :, head]),
            _select_head(select(samples), head),
            with_zero_terms(value[image, level.cells, head].T),
        )
        for image, samples in enumerate(level.samples)
        for head in range(heads)
    ]
    return stack_results(parts, (b, heads, d, *level.samples[0].index.shape[1::2]))


@reference("diopiMsDeformAttnMmcv")
def ms_deform_attn(value, spatial_shapes, level_start_index, sampling_loc, attn_weight, im2col_step):
    """Return the sum of bilinear samples on all levels, weighted with attn_weight: (B, Q, M · D)."""
    b, q, heads, _, _ = attn_weight.shape
    check_step_divides_batch(b, im2col_step)
    if not attn_weight.size:
        return with_zero_terms(np.zeros((b, q, heads * value.shape[3])))
    levels = _levels(spatial_shapes, level_start_index, sampling_loc)
    parts = [_sample_level(level, value, lambda samples: samples.weight) for level in levels]
    sampled = WithTerms(*(np.stack([getattr(part, name) for part in parts]) for name in ("value", "terms")))

    def sums(sampled: Array, weights: Array) -> Array:
        """Return the sums over levels and points."""
        return np.einsum("lbmdqp,bqmlp->bqmd", sampled, weights).reshape(b, q, heads * value.shape[3])

    return sum_rounded_products(sums, sampled, with_zero_terms(attn_weight))


@reference("diopiMsDeformAttnBackwardMmcv")
def ms_deform_attn_backward(
    value, spatial_shapes, level_start_index, sampling_loc, attn_weight, grad_output, im2col_step
):
    """Return the gradients of value, sampling_loc and attn_weight.

    The gradient of a location is unspecified where rounding may move the sample to another cell, because it jumps
    there.
    """
    b, q, heads, *_ = attn_weight.shape
    check_step_divides_batch(b, im2col_step)
    grad = grad_output.reshape(b, q, heads, value.shape[3])
    value_gradient = with_zero_terms(np.zeros(value.shape))
    location_gradient, weight_gradient = (
        with_zero_terms(np.zeros(shape)) for shape in (sampling_loc.shape, attn_weight.shape)
    )
    is_specified = np.ones(sampling_loc.shape, bool)
    for number, level in enumerate(_levels(spatial_shapes, level_start_index, sampling_loc) if grad.size else ()):
        weights = attn_weight[:, :, :, number]
        _add_to(value_gradient, np.s_[:, level.cells], _value_gradient(level, grad, weights))

        def sum_channels(samples: Array, grad: Array) -> Array:
            """Return the sums of products over the channels of a head."""
            return np.einsum("bmdqp,bqmd->bqmp", samples, grad)

        weight_sums = sum_rounded_products(
            sum_channels, _sample_level(level, value, lambda samples: samples.weight), with_zero_terms(grad)
        )
        _add_to(weight_gradient, np.s_[:, :, :, number], weight_sums)
        for k, slope in enumerate((lambda samples: samples.slope_x, lambda samples: samples.slope_y)):
            slope_sums = sum_rounded_products(sum_channels, _sample_level(level, value, slope), with_zero_terms(grad))
            _add_to(
                location_gradient, np.s_[:, :, :, number, :, k], scale_result(weights * level.size[1 - k], slope_sums)
            )
            is_specified[:, :, :, number, :, k] = level.stays_in_cell[1 - k]
    return value_gradient, PartlySpecified(location_gradient, is_specified), weight_gradient


def _value_gradient(level: _FeatureLevel, grad: Array, weights: Array) -> WithTerms:
    """Return the gradient of the cells of a level: (B, cells, M, D).

    Args:
        level: The level.
        grad: The gradient of the result, (B, Q, M, D).
        weights: The attention weights of the points of this level, (B, Q, M, P).
    """
    b, _, heads, d = grad.shape
    size = level.size[0] * level.size[1]
    parts = []
    for image, samples in enumerate(level.samples):
        for head in range(heads):
            products = grad[image, :, head].T[:, :, np.newaxis] * weights[image, :, head]
            parts.append(
                sum_rounded_products(
                    make_scatter(samples.index[:, :, head], size),
                    _select_head(samples.weight, head),
                    with_zero_terms(products),
                )
            )
    planes = stack_results(parts, (b, heads, d, size))
    return WithTerms(np.moveaxis(planes.value, 3, 1), np.moveaxis(planes.terms, 3, 1))


def _add_to(total: WithTerms, index: Any, part: WithTerms) -> None:
    """Add a result and its terms to a part of `total`, in place."""
    total.value[index] += part.value
    total.terms[index] += part.terms

"""Multi-scale deformable attention and its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.mmcv_deform.steps import check_step
from diopi_test.oracle.reference.sampling import (
    Coordinate,
    Samples,
    combined,
    exact,
    put,
    samples,
    scaled,
    stacked,
    taken,
    zero_padded,
)

Array = NDArray[Any]
Pair = tuple[int, int]
"""Along H and along W."""


@final
@dataclass(frozen=True)
class _Level:
    """One level of the maps: its place in the flattened ones, its size, and the samples (4, Q, M, P) of each image.

    And, along H and W, whether samples stay between the same elements where their places are rounded: (B, Q, M, P).
    """

    start: int
    size: Pair
    samples: list[Samples]
    is_between: Sequence[Array]

    @property
    def places(self) -> slice:
        """Where it is along the axis of flattened maps."""
        return slice(self.start, self.start + self.size[0] * self.size[1])


def _levels(shapes: Array, starts: Array, locations: Array) -> list[_Level]:
    levels = []
    for number, (size, start) in enumerate(zip(shapes, starts, strict=True)):
        at = locations[:, :, :, number, :, ::-1] * size  # as (y, x), in cells
        h, w = map(int, size)
        y, x = (Coordinate(at[..., k] - 0.5, np.abs(at[..., k]) + 0.5) for k in (0, 1))
        both = samples(zero_padded(y, h), zero_padded(x, w), w)
        of_images = [_of_image(both, image) for image in range(len(locations))]
        levels.append(_Level(int(start), (h, w), of_images, (y.is_between, x.is_between)))
    return levels


def _of_image(both: Samples, image: int) -> Samples:
    def part(given: WithTerms) -> WithTerms:
        return WithTerms(given.value[:, image], given.terms[:, image])

    return Samples(both.index[:, image], part(both.weight), part(both.by_y), part(both.by_x))


def _head(given: WithTerms, head: int) -> WithTerms:
    return WithTerms(given.value[:, :, head], given.terms[:, :, head])


def _attended(level: _Level, value: Array, which: Callable[[Samples], WithTerms]) -> WithTerms:
    """Samples of a level, or their derivatives: (B, M, D, Q, P)."""
    b, _, heads, d = value.shape
    parts = [
        combined(taken(its.index[:, :, head]), _head(which(its), head), exact(value[image, level.places, head].T))
        for image, its in enumerate(level.samples)
        for head in range(heads)
    ]
    return stacked(parts, (b, heads, d, *level.samples[0].index.shape[1::2]))


@reference("diopiMsDeformAttnMmcv")
def ms_deform_attn(
    value: Array,
    spatial_shapes: Array,
    level_start_index: Array,
    sampling_loc: Array,
    attn_weight: Array,
    im2col_step: int,
) -> WithTerms:
    b, q, heads, _, _ = attn_weight.shape
    check_step(b, im2col_step)
    if not attn_weight.size:
        return exact(np.zeros((b, q, heads * value.shape[3])))
    levels = _levels(spatial_shapes, level_start_index, sampling_loc)
    parts = [_attended(level, value, lambda its: its.weight) for level in levels]
    sampled = WithTerms(*(np.stack([getattr(one, name) for one in parts]) for name in ("value", "terms")))

    def sums(given: Array, weights: Array) -> Array:
        return np.einsum("lbmdqp,bqmlp->bqmd", given, weights).reshape(b, q, heads * value.shape[3])

    return combined(sums, sampled, exact(attn_weight))


@reference("diopiMsDeformAttnBackwardMmcv")
def ms_deform_attn_backward(
    grad_value: Array,
    grad_sampling_loc: Array,
    grad_attn_weight: Array,
    value: Array,
    spatial_shapes: Array,
    level_start_index: Array,
    sampling_loc: Array,
    attn_weight: Array,
    grad_output: Array,
    im2col_step: int,
) -> tuple[WithTerms, PartlySpecified, WithTerms]:
    b, q, heads, *_ = attn_weight.shape
    check_step(b, im2col_step)
    given = grad_output.reshape(b, q, heads, value.shape[3])
    to_value = exact(np.zeros(value.shape))
    to_locations, to_weights = (exact(np.zeros(shape)) for shape in (sampling_loc.shape, attn_weight.shape))
    is_between = np.ones(sampling_loc.shape, bool)
    for number, level in enumerate(_levels(spatial_shapes, level_start_index, sampling_loc) if given.size else ()):
        weights = attn_weight[:, :, :, number]
        _add(to_value, np.s_[:, level.places], _value_gradient(level, given, weights))

        def over_channels(samples: Array, grad: Array) -> Array:
            return np.einsum("bmdqp,bqmd->bqmp", samples, grad)

        sampled = combined(over_channels, _attended(level, value, lambda its: its.weight), exact(given))
        _add(to_weights, np.s_[:, :, :, number], sampled)
        for k, slope in enumerate((lambda its: its.by_x, lambda its: its.by_y)):
            along = combined(over_channels, _attended(level, value, slope), exact(given))
            _add(to_locations, np.s_[:, :, :, number, :, k], scaled(weights * level.size[1 - k], along))
            is_between[:, :, :, number, :, k] = level.is_between[1 - k]
    return to_value, PartlySpecified(to_locations, is_between), to_weights


def _value_gradient(level: _Level, given: Array, weights: Array) -> WithTerms:
    """What the cells of a level get: (B, cells, M, D)."""
    b, _, heads, d = given.shape
    size = level.size[0] * level.size[1]
    parts = []
    for image, its in enumerate(level.samples):
        for head in range(heads):
            products = given[image, :, head].T[:, :, np.newaxis] * weights[image, :, head]
            parts.append(combined(put(its.index[:, :, head], size), _head(its.weight, head), exact(products)))
    planes = stacked(parts, (b, heads, d, size))
    return WithTerms(np.moveaxis(planes.value, 3, 1), np.moveaxis(planes.terms, 3, 1))


def _add(total: WithTerms, where: Any, part: WithTerms) -> None:
    total.value[where] += part.value
    total.terms[where] += part.terms

"""Cases of MMCV's operators with orientation: pooling of rotated RoIs, feature alignment, active rotated filters.

A region of interest (RoI) is divided into bins, and a function pools the features in each bin. A template describes
cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). A case does not pass arguments whose names start
with `_`; it computes other arguments from them. Smoke cases belong to the shortest level of the suite. The leading
element type is float32, or the first type of a function without float32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.case import Values
from diopi_test.cases.domains import Domain, any_value, choice, half_nan, integer_values, normal, uniform
from diopi_test.cases.layouts import channels_last, contiguous, strided, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    CaseTemplate,
    DtypeSelection,
    TensorTemplate,
    register,
    same_layout,
    tensor,
)
from diopi_test.cases.tensors import zeros

F64, I32 = Dtype.float64, Dtype.int32
"""Short names for the element types of auxiliary tensors and of indices."""

FEATURES = normal()
"""The domain of normally distributed features."""

ANY_ANGLE = uniform(-3, 3)
"""A domain of angles in radians. The range is nearly a full turn."""

# Rotated RoIs


@dataclass(frozen=True, kw_only=True)
class RotatedSizes:
    """The sizes and attributes of a call that pools rotated regions.

    Attributes:
        shape: The shape of the features: samples, channels, height and width.
        bins: The numbers of bins along the regions' height and width.
        regions: The number of random regions.
        scale: The argument spatial_scale, the size of the features relative to the image.
        ratio: The number of samples per bin along an axis. If it is 0 or negative, the number depends on the size of a
            region.
        aligned: Whether regions are moved by half a cell.
        clockwise: Whether angles count clockwise.
        orientations: The number of orientations of rotation-invariant pooling.
        centers: The minimum and maximum coordinate of a center, as a fraction of the size of the features.
        extent: The minimum and maximum side of a region, in elements per bin.
        angles: The domain of the angles.
        fixed_regions: The regions (image, x, y, width, height, angle); empty if they are random.
        features: The domain of the features.
    """

    shape: tuple[int, int, int, int] = (2, 4, 4, 5)
    bins: tuple[int, int] = (2, 3)
    regions: int = 3
    scale: float = 1.0
    ratio: int = 2
    aligned: bool = True
    clockwise: bool = False
    orientations: int = 4
    centers: tuple[float, float] = (0.1, 0.9)
    extent: tuple[float, float] = (0.5, 2.0)
    angles: Domain = ANY_ANGLE
    fixed_regions: Sequence[Sequence[float]] = ()
    features: Domain = FEATURES

    @property
    def region_count(self) -> int:
        """Return the number of regions."""
        return len(self.fixed_regions) or self.regions

    @property
    def rois(self) -> Mapping[str, TensorTemplate]:
        """Return the argument `rois` with fixed or random regions, and the arguments from which it is computed."""
        if self.fixed_regions:
            return {"rois": tensor(self.region_count, 6, compute=lambda values: self.fixed_regions)}
        return {
            "_centers": tensor(self.regions, 2, domain=uniform(*self.centers), dtype=F64),
            "_sizes": tensor(self.regions, 2, domain=uniform(*self.extent), dtype=F64),
            "_angles": tensor(self.regions, 1, domain=self.angles, dtype=F64),
            "rois": tensor(self.regions, 6, compute=self._regions),
        }

    def _regions(self, values: Values) -> Any:
        """Return the random regions as rows (image, x, y, width, height, angle).

        If `ratio` is 0 or negative, no side is near a length at which the number of samples changes.

        Args:
            values: The values of the arguments `_centers`, `_sizes` and `_angles`.

        Returns:
            An array of the shape (regions, 6).
        """
        sizes = values["_sizes"]
        if self.ratio <= 0:
            sizes = np.floor(sizes) + 0.3 + 0.4 * (sizes % 1)
        centers = values["_centers"] * np.array(self.shape[:1:-1])
        samples = np.arange(self.regions)[::-1, np.newaxis] % self.shape[0]
        sides = sizes * np.array(self.bins[::-1])
        return np.concatenate([samples, centers / self.scale, sides / self.scale, values["_angles"]], -1)


def rotated_arguments(template: CaseTemplate[RotatedSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of rotated and rotation-invariant RoiAlign and of their gradients for a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to the gradient.
        dtype: Not used; all tensors have the type under test.

    Returns:
        The arguments by name, for all four functions.
    """
    sizes = template.sizes
    maps = tensor(*sizes.shape, domain=sizes.features, layout=template.layout)
    (height, width), ratio = sizes.bins, sizes.ratio
    return {
        **dict.fromkeys(("input", "features"), maps),
        "bottom_grad": zeros(*sizes.shape, layout=template.result_layout),
        "top_grad": tensor(sizes.region_count, sizes.shape[1], *sizes.bins, layout=template.layout),
        **sizes.rois,
        **dict.fromkeys(("aligned_height", "pooled_height"), height),
        **dict.fromkeys(("aligned_width", "pooled_width"), width),
        **dict.fromkeys(("sampling_ratio", "num_samples"), ratio),
        "num_orientations": sizes.orientations,
        "spatial_scale": sizes.scale,
        "aligned": sizes.aligned,
        "clockwise": sizes.clockwise,
    }


ROTATED_SMOKE = CaseTemplate("rotated", RotatedSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template of random rotated regions: smoke cases in every element type."""

ROTATED_LEADING = ROTATED_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template of random rotated regions, in the leading element type and without smoke cases."""

NONZERO = choice([-4, -3, -2, -1, 1, 2, 3, 4])
"""A domain of integers other than 0.

A sum of their products is +0 and not −0 if it cancels or has no terms.
"""

NONZERO_INTEGERS = dict.fromkeys(("input", "features", "top_grad"), NONZERO)
"""Domains by argument name: small integers other than 0, whose averages are exact."""

UPRIGHT_REGIONS = [1, 2.5, 2, 4, 2, 0], [0, 2, 2.5, 2, 4, 0]
"""Regions (image, x, y, width, height, angle) that are not rotated. Their samples are at halves of a cell."""

EDGE_REGIONS = [1, 1.5, 1.5, 7.5, 10, 0], [0, 1.5, 1.5, 7.5, 5, 0]
"""Regions (image, x, y, width, height, angle) that extend beyond features of 4 × 4 cells.

Along x, the first and the last samples are at -1 and 4, the ends of the range in which samples count; so they are along
y in the first region. Beyond these ends, a sample is 0.
"""

ROTATED_TEMPLATES = (
    ROTATED_SMOKE,
    ROTATED_SMOKE.with_sizes("clockwise", scale=0.5, aligned=False, clockwise=True).replace(
        smoke=False, **same_layout(strided)
    ),
    ROTATED_SMOKE.with_sizes("exact", bins=(2, 2), ratio=1, aligned=False, fixed_regions=UPRIGHT_REGIONS).replace(
        domains=NONZERO_INTEGERS, exact=True, smoke=False
    ),
    ROTATED_SMOKE.with_sizes(
        "exact-edges", shape=(2, 4, 4, 4), bins=(2, 3), ratio=1, aligned=False, fixed_regions=EDGE_REGIONS
    ).replace(domains=NONZERO_INTEGERS, exact=True, smoke=False),
    ROTATED_LEADING.with_sizes("adaptive", ratio=0, bins=(3, 2)),
    ROTATED_LEADING.with_sizes(
        "adaptive-clockwise", ratio=-1, scale=0.25, clockwise=True, aligned=False, extent=(0.5, 3)
    ),
    ROTATED_LEADING.with_sizes("one-sample", ratio=1, bins=(3, 1)),
    ROTATED_LEADING.with_sizes("three-samples", ratio=3, bins=(1, 2), scale=2.0),
    ROTATED_LEADING.with_sizes("smaller-than-one", aligned=False, extent=(0.05, 0.2), regions=5),
    ROTATED_LEADING.with_sizes("smaller-than-one-aligned", extent=(0.05, 0.2), regions=5),
    ROTATED_LEADING.with_sizes("beyond-the-features", extent=(2, 5), regions=5),
    ROTATED_LEADING.with_sizes("nearly-around", angles=choice([6.1, -6.1, 4.5, -4.5]), regions=4),
    ROTATED_LEADING.with_sizes("scaled-by-tenths", scale=0.3, bins=(3, 2)),
    ROTATED_LEADING.with_sizes("two-orientations", orientations=2, shape=(2, 6, 4, 5)),
    ROTATED_LEADING.with_sizes("eight-orientations", orientations=8, shape=(2, 8, 4, 5), regions=5),
    ROTATED_LEADING.with_sizes("one-orientation", orientations=1, shape=(2, 3, 4, 5)),
    ROTATED_LEADING.with_sizes("undefined", features=half_nan, centers=(0.4, 0.6), extent=(0.1, 0.3)),
    ROTATED_LEADING.replace("channels-last", **same_layout(channels_last)),
    ROTATED_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    ROTATED_LEADING.with_sizes("long", shape=(2, 8, 7, 9), bins=(3, 4), regions=9),
    ROTATED_LEADING.with_sizes("no-regions", regions=0),
    ROTATED_LEADING.with_sizes("pyramid", shape=(2, 36, 31, 33), bins=(5, 7), regions=41).replace(large=True),
)
"""The templates of both poolings and of their gradients."""

register(
    "diopiRoiAlignRotatedMmcv",
    "diopiRoiAlignRotatedBackwardMmcv",
    "diopiRiroiAlignRotatedMmcv",
    "diopiRiroiAlignRotatedBackwardMmcv",
    templates=ROTATED_TEMPLATES,
    derive=rotated_arguments,
)

# Feature alignment


@dataclass(frozen=True, kw_only=True)
class AlignmentSizes:
    """The sizes of rotated feature alignment, which has one box per position of the features.

    Attributes:
        shape: The shape of the features: samples, channels, height and width.
        points: The number of sample points of a box: 1 (the center) or 5 (also the corners).
        scale: The argument spatial_scale, the size of the features relative to the image.
        centers: The minimum and maximum coordinate of a center, as a fraction of the size of the features.
        extent: The minimum and maximum side of a box.
        angles: The domain of the angles.
        features: The domain of the features.
        has_exact_positions: Whether centers and sides are multiples of half a cell, so that results can be exact.
    """

    shape: tuple[int, int, int, int] = (2, 2, 3, 4)
    points: int = 5
    scale: float = 1.0
    centers: tuple[float, float] = (0.0, 1.0)
    extent: tuple[float, float] = (0.5, 3.0)
    angles: Domain = ANY_ANGLE
    features: Domain = FEATURES
    has_exact_positions: bool = False

    def boxes(self, values: Values) -> Any:
        """Return the boxes (y, x, width, height, angle) for the values of `_centers`, `_sizes` and `_angles`."""
        centers = values["_centers"] * np.array(self.shape[2:])
        lengths = np.concatenate([centers, values["_sizes"]], -1)
        if self.has_exact_positions:
            lengths = np.rint(2 * lengths) / 2
        return np.concatenate([lengths / self.scale, values["_angles"]], -1)


def alignment_arguments(template: CaseTemplate[AlignmentSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiRotatedFeatureAlignMmcv` and its gradient for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to the gradient.
        dtype: Not used; all tensors have the type under test.

    Returns:
        The arguments by name, for both functions.
    """
    sizes = template.sizes
    n, _, h, w = sizes.shape
    return {
        "features": tensor(*sizes.shape, domain=sizes.features, layout=template.layout),
        "bottom_grad": zeros(*sizes.shape, layout=template.result_layout),
        "top_grad": tensor(*sizes.shape, layout=template.layout),
        "_centers": tensor(n, h, w, 2, domain=uniform(*sizes.centers), dtype=F64),
        "_sizes": tensor(n, h, w, 2, domain=uniform(*sizes.extent), dtype=F64),
        "_angles": tensor(n, h, w, 1, domain=sizes.angles, dtype=F64),
        "best_bboxes": tensor(n, h, w, 5, layout=template.layout, compute=sizes.boxes),
        "spatial_scale": sizes.scale,
        "points": sizes.points,
    }


ALIGNMENT_SMOKE = CaseTemplate("corners", AlignmentSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template of boxes with five sample points: smoke cases in every element type."""

ALIGNMENT_LEADING = ALIGNMENT_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template of boxes with five sample points, in the leading element type and without smoke cases."""

UPRIGHT_BOXES = ALIGNMENT_SMOKE.with_sizes(angles=choice([0.0]), has_exact_positions=True).replace(
    domains=NONZERO_INTEGERS, exact=True, smoke=False
)
"""A template of boxes that are not rotated, with exact results."""

ALIGNMENT_TEMPLATES = (
    ALIGNMENT_SMOKE,
    ALIGNMENT_SMOKE.with_sizes("center", points=1, scale=0.5).replace(
        smoke=False, layout=strided, result_layout=transposed
    ),
    UPRIGHT_BOXES.replace("exact"),
    UPRIGHT_BOXES.with_sizes("exact-around", scale=0.25, centers=(-0.6, 1.6), extent=(0, 4)),
    UPRIGHT_BOXES.with_sizes("exact-center", points=1, centers=(-0.5, 1.5)),
    ALIGNMENT_LEADING.with_sizes("doubled", scale=2.0),
    ALIGNMENT_LEADING.with_sizes("tenths", scale=0.3, points=1),
    ALIGNMENT_LEADING.with_sizes("small-boxes", extent=(0.05, 0.3)),
    ALIGNMENT_LEADING.with_sizes("large-boxes", extent=(3, 9)),
    ALIGNMENT_LEADING.with_sizes("outside", centers=(-0.6, 1.6)),
    ALIGNMENT_LEADING.with_sizes("one-channel", shape=(3, 1, 5, 2)),
    ALIGNMENT_LEADING.with_sizes("many-channels", shape=(1, 9, 2, 3)),
    ALIGNMENT_LEADING.with_sizes("one-place", shape=(4, 2, 1, 1), extent=(0.05, 0.5)),
    ALIGNMENT_LEADING.with_sizes("undefined", features=half_nan),
    ALIGNMENT_LEADING.replace("channels-last", **same_layout(channels_last)),
    ALIGNMENT_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    ALIGNMENT_LEADING.with_sizes("long", shape=(1, 5, 13, 14)),
    ALIGNMENT_LEADING.with_sizes("no-images", shape=(0, 2, 3, 4)),
    ALIGNMENT_LEADING.with_sizes("no-channels", shape=(2, 0, 3, 4)),
    ALIGNMENT_LEADING.with_sizes("every-place", shape=(1, 67, 33, 31)).replace(large=True),
)
"""The templates of rotated feature alignment and of its gradient."""

register(
    "diopiRotatedFeatureAlignMmcv",
    "diopiRotatedFeatureAlignBackwardMmcv",
    templates=ALIGNMENT_TEMPLATES,
    derive=alignment_arguments,
)

# Active rotated filters


@dataclass(frozen=True)
class RotatedFilterSizes:
    """The sizes of active rotated filters.

    Attributes:
        shape: The shape (P, Q, O, kH, kW) of the filters, for P outputs, Q inputs and O orientations.
        rotations: The number of rotations of each filter.
    """

    shape: tuple[int, int, int, int, int] = (2, 3, 2, 2, 3)
    rotations: int = 3

    def draw_permutations(self, rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Return a random permutation of the entries of a filter per rotation, a domain. Entries count from 1.

        Args:
            rng: The random generator.
            count: Not used; the fields determine the number of indices.
            dtype: Not used.

        Returns:
            A vector of indices. The rotation varies fastest.
        """
        entries = int(np.prod(self.shape[2:]))
        permutation_per_rotation = [rng.permutation(entries) + 1 for _ in range(self.rotations)]
        return np.reshape(permutation_per_rotation, (self.rotations, entries)).T.reshape(-1)


def filter_arguments(template: CaseTemplate[RotatedFilterSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiActiveRotatedFilterMmcv` and its gradient for the sizes of a template.

    Args:
        template: The template. Its layout applies to all tensors.
        dtype: Not used; all floating-point tensors have the type under test.

    Returns:
        The arguments by name, for both functions.
    """
    sizes = template.sizes
    p, q, o, *kernel = sizes.shape
    layout = template.layout
    return {
        "input": tensor(*sizes.shape, domain=any_value, layout=layout),
        "grad_out": tensor(p * sizes.rotations, q * o, *kernel, layout=layout),
        "indices": tensor(
            *sizes.shape[2:],
            sizes.rotations,
            domain=sizes.draw_permutations,
            dtype=I32,
            layout=contiguous if layout is channels_last else layout,
        ),
    }


FILTERS_SMOKE = CaseTemplate("filters", RotatedFilterSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes: smoke cases in every element type."""

FILTERS_LEADING = FILTERS_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template with the default sizes, in the leading element type and without smoke cases."""

FILTER_TEMPLATES = (
    FILTERS_SMOKE,
    FILTERS_SMOKE.replace("exact", domains={"grad_out": integer_values(-9, 9)}, exact=True, smoke=False),
    FILTERS_SMOKE.with_sizes("square", shape=(3, 2, 1, 3, 3), rotations=8).replace(
        smoke=False, layout=strided, result_layout=transposed
    ),
    FILTERS_LEADING.with_sizes("one-rotation", rotations=1),
    FILTERS_LEADING.with_sizes("one-entry", shape=(5, 4, 1, 1, 1)),
    FILTERS_LEADING.with_sizes("many-orientations", shape=(1, 2, 8, 1, 1), rotations=8),
    FILTERS_LEADING.with_sizes("one-filter", shape=(1, 1, 2, 3, 3), rotations=4),
    FILTERS_LEADING.with_sizes("many-filters", shape=(17, 9, 1, 2, 2)),
    FILTERS_LEADING.replace("strided", **same_layout(strided)),
    FILTERS_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    FILTERS_LEADING.replace("transposed-result", layout=strided, result_layout=transposed),
    FILTERS_LEADING.with_sizes("long", shape=(5, 7, 4, 3, 3), rotations=8),
    FILTERS_LEADING.with_sizes("no-filters", shape=(0, 3, 2, 2, 3)),
    FILTERS_LEADING.with_sizes("no-channels", shape=(2, 0, 2, 2, 3)),
    FILTERS_LEADING.with_sizes("many-filters", shape=(37, 29, 8, 3, 3), rotations=8).replace(large=True),
)
"""The templates of active rotated filters and of their gradient."""

register(
    "diopiActiveRotatedFilterMmcv",
    "diopiActiveRotatedFilterBackwardMmcv",
    templates=FILTER_TEMPLATES,
    derive=filter_arguments,
    non_discriminating={"one-entry": "a filter with one entry has only one permutation"},
)

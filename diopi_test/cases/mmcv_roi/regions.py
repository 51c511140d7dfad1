"""Shared parts of the cases of RoI pooling: regions of interest, and the arguments of all functions.

A region of interest (RoI) is a row (image, x1, y1, x2, y2). It is divided into bins, and a function pools the features
in each bin. Regions are random or fixed. A template describes cases that differ only in their element type
(`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). A case does not pass arguments whose names start
with `_`; it computes other arguments from them. Smoke cases belong to the shortest level of the suite. The leading
element type is float32, or the first type of a function without float32. Large cases belong to a level with the sizes
of real models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.detection import HALF_ELEMENT_REGIONS, Pooling
from diopi_test.cases.domains import Domain, choice, normal
from diopi_test.cases.layouts import Layout, contiguous, strided
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, TensorTemplate, tensor
from diopi_test.cases.tensors import zeros

F64, I32 = Dtype.float64, Dtype.int32
"""Short names for the element types of auxiliary tensors and of positions."""

MAXIMUM, MEAN = 0, 1
"""The values of the argument pool_mode."""

FEATURES = normal()
"""The domain of normally distributed features."""


@dataclass(frozen=True, kw_only=True)
class Regions(Pooling):
    """The sizes and attributes of a call of MMCV's functions that pool features in regions of interest.

    Attributes:
        pool_mode: The argument pool_mode: `MAXIMUM` or `MEAN`.
        features: The domain of the features.
        fixed_regions: The regions (image, x1, y1, x2, y2); empty if they are random.
        has_argmax_tensors: Whether a call that computes means also has tensors for the positions of maxima.
        gamma: The argument gamma of DeformRoiPool, the factor of offsets.
        offset: The domain of the offsets of DeformRoiPool; None for a call without offsets.
    """

    pool_mode: int = MEAN
    features: Domain = FEATURES
    fixed_regions: Sequence[Sequence[float]] = ()
    has_argmax_tensors: bool = False
    gamma: float = 0.125
    offset: Domain | None = None

    @property
    def result_shape(self) -> tuple[int, int, int, int]:
        """Return the shape of the result, (regions, channels, height, width)."""
        return self.region_count, self.shape[1], *self.bins

    @property
    def region_count(self) -> int:
        """Return the number of regions."""
        return len(self.fixed_regions) or self.regions

    def rois(self, layout: Layout) -> Mapping[str, TensorTemplate]:
        """Return the argument `rois`, and the arguments from which it is computed.

        Args:
            layout: The layout of random regions. Fixed regions are contiguous.

        Returns:
            The arguments by name.
        """
        if self.fixed_regions:
            return {"rois": tensor(self.region_count, 5, compute=lambda values: self.fixed_regions)}
        return self.random_regions(layout)


def shared_arguments(template: CaseTemplate[Regions]) -> dict[str, Any]:
    """Return the arguments that MMCV's pooling functions share, for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to the gradient.

    Returns:
        The arguments by name. `_input` equals `input`, for gradients that need a result of the forward function.
    """
    sizes = template.sizes
    maps = tensor(*sizes.shape, domain=sizes.features, layout=template.layout)
    return {
        "input": maps,
        "_input": maps,
        "grad_output": tensor(*sizes.result_shape, layout=template.layout),
        "grad_input": zeros(*sizes.shape, layout=template.result_layout),
        **sizes.rois(contiguous if template.layout is contiguous else strided),
        "pooled_height": sizes.bins[0],
        "pooled_width": sizes.bins[1],
        "spatial_scale": sizes.scale,
    }


REGION_SMOKE = CaseTemplate("mean", Regions(shape=(2, 2, 4, 5)), **SMOKE_IN_ALL_DTYPES)
"""A template of means of the features in random regions: smoke cases in every element type."""

REGION_LEADING = REGION_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template of means in random regions, in the leading element type and without smoke cases."""

PYRAMID = REGION_LEADING.with_sizes("pyramid", shape=(2, 37, 29, 31), bins=(7, 7), regions=67).replace(large=True)
"""A large template with the sizes of a feature pyramid."""

NONZERO_NUMBERS = choice([-4, -3, -2, -1, 1, 2, 3, 4])
"""A domain of integers other than 0.

A sum of their products is +0 and not −0 if it cancels or has no terms.
"""

NONZERO_INTEGERS = dict.fromkeys(("input", "_input", "grad_output"), NONZERO_NUMBERS)
"""Domains by argument name: small integers other than 0, whose averages are exact."""

FLAT_REGIONS = [0, 1, 3, 3, 1.5], [1, 4, 1, 2, 3.25], [0, 0.5, 0.5, 4.125, 2.875]
"""Three regions, two of which end before they begin along one axis.

These two regions have no samples if the number of samples depends on the size of a region.
"""

EXACT_REGIONS = REGION_SMOKE.with_sizes(
    "exact", shape=(2, 3, 5, 6), bins=(2, 1), scale=0.5, aligned=False, fixed_regions=HALF_ELEMENT_REGIONS
).replace(smoke=False)
"""A template of regions whose samples lie at positions with exact interpolation."""

INVERTED_REGIONS = [0, 1, 1.25, 3.75, 3.9375], [1, 4, 1, 1, 3], [0, 1.25, 4, 3.0625, 1], [1, 2, 2, 1, 1]
"""Four regions. The last three end before they begin along one axis or both, and the last region covers nothing."""

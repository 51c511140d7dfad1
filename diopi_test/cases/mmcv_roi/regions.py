"""Regions of interest, drawn or given, and what all functions that pool them take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.detection import HALVES, Pooling
from diopi_test.cases.domains import Domain, choice, normal
from diopi_test.cases.layouts import Layout, contiguous, strided
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, TensorTemplate, tensor
from diopi_test.cases.tensors import zeros

F64, I32 = Dtype.float64, Dtype.int32

MAXIMUM, MEAN = 0, 1

FEATURES = normal()
"""Usual features."""


@dataclass(frozen=True, kw_only=True)
class Regions(Pooling):
    """One way of pooling regions.

    Attributes:
        mode: The argument pool_mode.
        features: The domain of the features.
        fixed: The regions; empty if they are random.
        argmax_given: Whether a call that computes means also gets tensors for the positions of maxima.
        gamma: The argument gamma of DeformRoiPool.
        offset: The domain of the offsets of DeformRoiPool; None without offsets.
    """

    mode: int = MEAN
    features: Domain = FEATURES
    fixed: Sequence[Sequence[float]] = ()
    argmax_given: bool = False
    gamma: float = 0.125
    offset: Domain | None = None

    @property
    def pooled(self) -> tuple[int, int, int, int]:
        """Return the shape of the result."""
        return self.number, self.shape[1], *self.bins

    @property
    def number(self) -> int:
        """Return the number of regions."""
        return len(self.fixed) or self.regions

    def rois(self, layout: Layout) -> Mapping[str, TensorTemplate]:
        """Return the fixed or the random regions."""
        if self.fixed:
            return {"rois": tensor(self.number, 5, compute=lambda values: self.fixed)}
        return self.drawn_regions(layout)


def common_tensors(template: CaseTemplate[Regions]) -> dict[str, Any]:
    """Return the arguments that the functions of this family have in common."""
    sizes = template.sizes
    maps = tensor(*sizes.shape, domain=sizes.features, layout=template.layout)
    return {
        "input": maps,
        "_input": maps,
        "grad_output": tensor(*sizes.pooled, layout=template.layout),
        "grad_input": zeros(*sizes.shape, layout=template.result_layout),
        **sizes.rois(contiguous if template.layout is contiguous else strided),
        "pooled_height": sizes.bins[0],
        "pooled_width": sizes.bins[1],
        "spatial_scale": sizes.scale,
    }


REGION = CaseTemplate("mean", Regions(shape=(2, 2, 4, 5)), **SMOKE_IN_ALL_DTYPES)
REGIONS = REGION.replace(dtypes=DtypeSelection.leading, smoke=False)
"""The template in the leading element type only, without smoke cases."""

PYRAMID = REGIONS.with_sizes("pyramid", shape=(2, 37, 29, 31), bins=(7, 7), regions=67).replace(large=True)
"""A large case with the sizes of a feature pyramid."""

NONZERO = choice([-4, -3, -2, -1, 1, 2, 3, 4])
"""Whole numbers, so that a weighted sum is +0 where it cancels or where nothing is sampled."""

WHOLE = dict.fromkeys(("input", "_input", "grad_output"), NONZERO)
"""Small integers other than 0, whose averages are exact."""

FLAT = [0, 1, 3, 3, 1.5], [1, 4, 1, 2, 3.25], [0, 0.5, 0.5, 4.125, 2.875]
"""Three regions, two of which end before they begin: they have no samples where the extent determines their number."""

EXACT = REGION.with_sizes("exact", shape=(2, 3, 5, 6), bins=(2, 1), scale=0.5, aligned=False, fixed=HALVES).replace(
    smoke=False
)
"""Regions whose samples lie at exact positions."""

INVERTED = [0, 1, 1.25, 3.75, 3.9375], [1, 4, 1, 1, 3], [0, 1.25, 4, 3.0625, 1], [1, 2, 2, 1, 1]
"""A region, and three that end before they begin, of which the last covers nothing."""

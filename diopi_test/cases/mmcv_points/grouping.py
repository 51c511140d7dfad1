"""Cases of functions that gather, group or interpolate the features of selected points, and of their gradients.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). Smoke cases belong to the shortest level of the
suite. The leading element type is float32, or the first type of a function without float32. Large cases belong to a
level with the sizes of real models. `Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.case import TensorSpec
from diopi_test.cases.domains import Domain, any_value, integer_values, uniform
from diopi_test.cases.layouts import Layout, strided, transposed
from diopi_test.cases.mmcv_points.sets import I32, OTHER_SIZES_REASON, STACK_LEADING, STACK_SMOKE, StackedSets
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, tensor
from diopi_test.cases.tensors import literal, positions, zeros

LAYOUT_PAIRS = (strided, transposed), (transposed, strided)
"""Pairs of the layouts of arguments and results, which templates get in rotation."""


@dataclass(frozen=True, kw_only=True)
class SelectedPoints:
    """The sizes of a call that selects points of sets and reads or changes their features.

    Attributes:
        batch: The number of sets.
        channels: The number of features of a point.
        points: The number of points of a set.
        shape: The shape of the indices of a set.
        low: The least index.
        high: The end of the range of indices, which is not included; 0 for the number of points.
    """

    batch: int = 2
    channels: int = 3
    points: int = 9
    shape: tuple[int, ...] = (7,)
    low: int = 0
    high: int = 0

    def indices(self, layout: Layout) -> TensorSpec:
        """Return the argument `idx`, a tensor of random indices. Some of them are equal.

        Args:
            layout: The layout of the tensor.

        Returns:
            The tensor, of the shape (batch, *shape).
        """
        end = max(self.high or self.points, 1)
        return positions(self.batch, *self.shape, low=self.low, end=end, dtype=I32, layout=layout)


def _selection_arguments(template: CaseTemplate[SelectedPoints]) -> dict[str, Any]:
    """Return the arguments of all functions that read the features of selected points or add to them.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to gradients.

    Returns:
        The arguments by name.
    """
    sizes = template.sizes
    features, layout = (sizes.batch, sizes.channels, sizes.points), template.layout
    return {
        "points": tensor(*features, domain=any_value, layout=layout),
        "grad_points": zeros(*features, layout=template.result_layout),
        "grad_out": tensor(sizes.batch, sizes.channels, *sizes.shape, layout=layout),
        "idx": sizes.indices(layout),
        "b": sizes.batch,
        "c": sizes.channels,
        "n": sizes.points,
    }


def gather_arguments(template: CaseTemplate[SelectedPoints], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of gathering and grouping points, and of their gradients, for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to gradients.
        dtype: Not used; all floating-point tensors have the type under test.

    Returns:
        The arguments by name, for all functions.
    """
    sizes = template.sizes
    return {**_selection_arguments(template), "npoints": sizes.shape[0], "nsample": sizes.shape[-1]}


def interpolation_arguments(template: CaseTemplate[SelectedPoints], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiThreeInterpolateMmcv` and its gradient for the sizes of a template.

    Each result is a weighted sum of the features of three points. The parameter `m` is the number of points here, and
    `n` the number of results.

    Args:
        template: The template. The indices of a set get an additional axis of length 3.
        dtype: Not used; all floating-point tensors have the type under test.

    Returns:
        The arguments by name, for both functions.
    """
    sizes = template.sizes
    triples = template.with_sizes(shape=(*sizes.shape, 3))
    return {
        **_selection_arguments(triples),
        "points": tensor(sizes.batch, sizes.channels, sizes.points, layout=template.layout),
        "grad_out": tensor(sizes.batch, sizes.channels, *sizes.shape, layout=template.layout),
        "weight": tensor(sizes.batch, *sizes.shape, 3, domain=uniform(-1, 1), layout=template.layout),
        "m": sizes.points,
        "n": sizes.shape[0],
    }


SELECTION_SMOKE = CaseTemplate("points", SelectedPoints(), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes: smoke cases in every element type."""

SELECTION_LEADING = SELECTION_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template with the default sizes, in the leading element type and without smoke cases."""

SMALL_INTEGERS = dict.fromkeys(("grad_out", "weight", "points"), integer_values(-3, 3))
"""Domains by argument name: small integers, whose sums are exact."""


def selection_templates(*shape: int) -> tuple[CaseTemplate[SelectedPoints], ...]:
    """Return the templates of a function of selected points. Most points are selected several times.

    Args:
        *shape: The shape of the indices of each set.

    Returns:
        The templates.
    """
    return (
        SELECTION_SMOKE.with_sizes(shape=shape),
        SELECTION_SMOKE.with_sizes("exact", shape=shape, points=4).replace(
            domains=SMALL_INTEGERS, exact=True, smoke=False
        ),
        *CaseTemplate.cycle_layouts(
            (
                SELECTION_SMOKE.with_sizes("few-of-many", shape=shape, points=40).replace(smoke=False),
                SELECTION_LEADING.with_sizes("one-set", batch=1, channels=5, shape=shape),
                SELECTION_LEADING.with_sizes("four-sets", batch=4, channels=2, points=6, shape=shape),
                SELECTION_LEADING.with_sizes("one-channel", channels=1, shape=shape),
                SELECTION_LEADING.with_sizes("many-channels", channels=33, shape=shape),
            ),
            *LAYOUT_PAIRS,
        ),
        SELECTION_LEADING.with_sizes("one-point", points=1, shape=shape),
        SELECTION_LEADING.with_sizes("always-the-same", low=3, high=4, shape=shape),
        SELECTION_LEADING.with_sizes("never-the-first-nor-the-last", points=12, low=1, high=11, shape=shape),
        SELECTION_LEADING.with_sizes("long", channels=2, points=1100, shape=(515, *shape[1:])),
        SELECTION_LEADING.with_sizes("long-sum", batch=1, channels=2, points=2, shape=(300, *shape[1:])).replace(
            dtypes=half
        ),
        SELECTION_LEADING.with_sizes("none-chosen", shape=(0, *shape[1:])),
        SELECTION_LEADING.with_sizes("no-channels", channels=0, shape=shape),
        SELECTION_LEADING.with_sizes("no-sets", batch=0, shape=shape),
    )


MANY_FEATURES = SELECTION_LEADING.with_sizes("many-features", batch=1, channels=37, points=2053, shape=(1031,)).replace(
    large=True
)
"""A large template with many points and features."""

LARGE_SELECTIONS = (
    MANY_FEATURES,
    MANY_FEATURES.with_sizes("half", batch=3).replace(dtypes=(Dtype.float16,), layout=strided),
)
"""The large templates of gathering and interpolation."""

SINGLE_POINT_REASONS = {"one-point|always-the-same": "a single point is always chosen"}
"""Why wrong results can pass a case (`Case.non_discriminating`), by a regular expression for labels."""

register(
    "diopiGatherPointsMmcv",
    "diopiGatherPointsBackwardMmcv",
    templates=(*selection_templates(7), *LARGE_SELECTIONS),
    derive=gather_arguments,
    non_discriminating=SINGLE_POINT_REASONS,
)
register(
    "diopiGroupPointsMmcv",
    "diopiGroupPointsBackwardMmcv",
    templates=(*selection_templates(4, 3), MANY_FEATURES.with_sizes(shape=(131, 17))),
    derive=gather_arguments,
    non_discriminating=SINGLE_POINT_REASONS,
)
register(
    "diopiThreeInterpolateMmcv",
    "diopiThreeInterpolateBackwardMmcv",
    templates=(*selection_templates(5), SELECTION_LEADING.with_sizes("points-of-16", shape=(16,)), *LARGE_SELECTIONS),
    derive=interpolation_arguments,
    non_discriminating=SINGLE_POINT_REASONS,
)

# Groups of stacked sets


def _index_domain(sizes: StackedSets) -> Domain:
    """Return a domain of indices for stacked sets.

    Args:
        sizes: The sizes. If `has_outside_indices` is true, some indices are beyond the points of every set. Otherwise
            every set has the points of all indices.

    Returns:
        The domain.
    """
    end = max(min((count for count in sizes.points if count), default=1), 1)
    return integer_values(-2, max(*sizes.points, 1) + 1) if sizes.has_outside_indices else integer_values(0, end - 1)


def stacked_group_arguments(template: CaseTemplate[StackedSets], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiStackGroupPointsMmcv` and its gradient for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to results.
        dtype: Not used; all floating-point tensors have the type under test.

    Returns:
        The arguments by name, for both functions.
    """
    sizes = template.sizes
    rows, points, layout = sum(sizes.centers), sum(sizes.points), template.layout
    groups = (rows, sizes.channels, sizes.sample_num)
    return {
        "out_tensor": zeros(*groups, layout=template.result_layout),
        "grad_features_tensor": zeros(points, sizes.channels, layout=template.result_layout),
        "features_tensor": tensor(points, sizes.channels, domain=any_value, layout=layout),
        "grad_out_tensor": tensor(*groups, layout=layout),
        "features_batch_cnt_tensor": literal(sizes.points, I32),
        "idx_tensor": tensor(rows, sizes.sample_num, domain=_index_domain(sizes), dtype=I32, layout=layout),
        "idx_batch_cnt_tensor": literal(sizes.centers, I32),
        "b": len(sizes.points),
        "c": sizes.channels,
        "m": rows,
        "n": points,
        "nsample": sizes.sample_num,
    }


INTEGER_GRADIENT = {"grad_out_tensor": integer_values(-3, 3)}
"""The domain of a gradient of small integers, whose sums are exact."""

STACKED_GROUP_TEMPLATES = (
    STACK_SMOKE.with_sizes(points=(7, 5)),
    STACK_SMOKE.with_sizes("some-outside", points=(7, 5), has_outside_indices=True).replace(smoke=False),
    STACK_SMOKE.with_sizes("exact", points=(3, 4)).replace(domains=INTEGER_GRADIENT, exact=True, smoke=False),
    STACK_LEADING.with_sizes("other-sizes", centers=(4, 3), points=(5, 7)),
    STACK_LEADING.with_sizes("one-set", centers=(7,), points=(12,)),
    STACK_LEADING.with_sizes(
        "four-sets", centers=(2, 1, 5, 3), points=(6, 9, 3, 8), sample_num=5, has_outside_indices=True
    ),
    STACK_LEADING.with_sizes("a-set-without-points", centers=(3, 4, 2), points=(6, 0, 5), has_outside_indices=True),
    STACK_LEADING.with_sizes("a-set-without-rows", centers=(3, 0, 4), points=(6, 4, 5)),
    STACK_LEADING.with_sizes("one-sample", sample_num=1, points=(6, 5)),
    STACK_LEADING.with_sizes("one-channel", channels=1, points=(6, 5)),
    STACK_LEADING.with_sizes("many-channels", channels=33, points=(6, 5)),
    STACK_LEADING.with_sizes("strided", points=(6, 5)).replace(layout=strided, result_layout=transposed),
    STACK_LEADING.with_sizes("transposed", points=(6, 5)).replace(layout=transposed, result_layout=strided),
    STACK_LEADING.with_sizes("long", centers=(300, 280), points=(600, 515), has_outside_indices=True),
    STACK_LEADING.with_sizes("long-sum", centers=(100, 90), points=(2, 1)).replace(dtypes=half),
    STACK_LEADING.with_sizes("no-rows", centers=(0, 0), points=(6, 5)),
    STACK_LEADING.with_sizes("no-samples", sample_num=0, points=(6, 5)),
    STACK_LEADING.with_sizes(
        "many-features", centers=(67, 41), points=(1031, 517), channels=67, has_outside_indices=True
    ).replace(large=True),
)
"""The templates of `diopiStackGroupPointsMmcv` and of its gradient."""

register(
    "diopiStackGroupPointsMmcv",
    "diopiStackGroupPointsBackwardMmcv",
    templates=STACKED_GROUP_TEMPLATES,
    derive=stacked_group_arguments,
    non_discriminating={"one-set|some-outside": OTHER_SIZES_REASON},
)

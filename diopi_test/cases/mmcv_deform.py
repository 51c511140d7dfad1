"""Cases of MMCV's deformable convolutions and multi-scale deformable attention, forward and backward.

Both functions read values at samples: positions between the cells of a map, where they interpolate. The derivatives
jump at the positions of cells. Samples therefore lie between cells, except for many samples in exact cases.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). A case does not pass arguments whose names start
with `_`; it computes other arguments from them. Smoke cases belong to the shortest level of the suite. The leading
element type is float32, or the first type of a function without float32. Large cases belong to a level with the sizes
of real models. `Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, choice, half_nan, integer_values, non_integers, uniform
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import literal, zeros

F64, I64 = Dtype.float64, Dtype.int64
"""Short names of two element types: float64 for auxiliary tensors, int64 for positions."""

Pair = tuple[int, int]
"""Two sizes: along H and along W."""

NEARBY_SHIFTS = non_integers(-2, 2)
"""A domain of shifts of samples by up to two cells, to positions between cells."""

HALF_CELL_SHIFTS = choice([-1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2])
"""A domain of shifts by multiples of half a cell."""


def _draw_rising(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return positive numbers that rise from the first to the last, so that the sums of channels differ."""
    return uniform(0.5, 1.5)(rng, count, dtype) * np.linspace(1, 4, count)


@dataclass(frozen=True, kw_only=True)
class DeformSizes:
    """The sizes of a deformable convolution. Pairs are along H and along W.

    Attributes:
        shape: The shape of the input, (N, C, H, W).
        output_channels: The number of output channels.
        kernel: The sizes of the kernel.
        stride: The distances between neighboring windows.
        padding: The number of cells added at either end of an axis.
        dilation: The distances between neighboring elements of a window.
        groups: The number of groups of channels that are convolved separately.
        deform_groups: The number of groups of channels with their own offsets.
        im2col_step, scale, with_bias: The arguments of these names.
        has_bias_elements: Whether the bias has elements.
        shifts: The domain of the offsets of samples, in cells.
        workspace_shape: The shape of the workspace tensors.
    """

    shape: tuple[int, int, int, int] = (2, 2, 4, 5)
    output_channels: int = 2
    kernel: Pair = (2, 3)
    stride: Pair = (1, 1)
    padding: Pair = (1, 1)
    dilation: Pair = (1, 1)
    groups: int = 1
    deform_groups: int = 1
    im2col_step: int = 64
    scale: float = 1.0
    with_bias: bool = True
    has_bias_elements: bool = True
    shifts: Domain = NEARBY_SHIFTS
    workspace_shape: tuple[int, ...] = (0,)

    @property
    def result_size(self) -> list[int]:
        """Return the sizes of the result along H and W."""
        axes = zip(self.shape[2:], self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return [(length + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for length, k, stride, pad, dilation in axes]

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Return the attributes of the convolution under the names that the functions of this family use."""
        pairs = {
            ("kH", "kW", "kernel_h", "kernel_w"): self.kernel,
            ("dH", "dW", "stride_h", "stride_w"): self.stride,
            ("padH", "padW", "pad_h", "pad_w"): self.padding,
            ("dilationH", "dilationW", "dilation_h", "dilation_w"): self.dilation,
        }
        geometry = {name: pair[k % 2] for names, pair in pairs.items() for k, name in enumerate(names)}
        groups = {"groups": self.groups, "deform_groups": self.deform_groups}
        groups |= {"group": self.groups, "deformable_group": self.deform_groups}
        settings = {"im2col_step": self.im2col_step, "scale": self.scale, "with_bias": self.with_bias}
        return {**geometry, **groups, **settings}


def convolution_arguments(template: CaseTemplate[DeformSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of both deformable convolutions and of their gradients for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to gradients.
        dtype: Not used; all tensors have the type under test.

    Returns:
        The arguments by name, for all functions.
    """
    sizes = template.sizes
    layout, result, (batch, c, *_) = template.layout, template.result_layout, sizes.shape
    taps = sizes.deform_groups * sizes.kernel[0] * sizes.kernel[1]
    shapes = {
        "input": sizes.shape,
        "weight": (sizes.output_channels, c // sizes.groups, *sizes.kernel),
        "bias": (sizes.output_channels if sizes.has_bias_elements else 0,),
        "offset": (batch, 2 * taps, *sizes.result_size),
        "mask": (batch, taps, *sizes.result_size),
        "output": (batch, sizes.output_channels, *sizes.result_size),
    }
    domains = {"offset": sizes.shifts, "mask": uniform(0.2, 1)}
    tensors = {name: tensor(*shape, domain=domains.get(name), layout=layout) for name, shape in shapes.items()}
    return {
        **tensors,
        **{f"grad_{name}": zeros(*shape, layout=result) for name, shape in shapes.items()},
        **{f"grad{name.title()}": zeros(*shape, layout=result) for name, shape in shapes.items()},
        **dict.fromkeys(("grad_output", "gradOutput"), tensors["output"]),
        **dict.fromkeys(("columns", "ones"), tensor(*sizes.workspace_shape)),
        **sizes.attributes,
    }


CONVOLUTION_LEADING = CaseTemplate("", DeformSizes())
"""A template of a convolution with the default sizes, in the leading element type."""

CONVOLUTION_IN_ALL_DTYPES = CONVOLUTION_LEADING.replace(dtypes=DtypeSelection.all)
"""A template of the same convolution in every element type."""

SMALL_INTEGERS = dict.fromkeys(("input", "weight", "bias", "mask", "grad_output", "gradOutput"), integer_values(-2, 2))
"""Domains by argument name: small integers, whose sums of products are exact."""

CONVOLUTION_TEMPLATES = (
    CONVOLUTION_LEADING.with_sizes("plain", shape=(1, 2, 3, 4), kernel=(2, 2), padding=(1, 0)).replace(
        **SMOKE_IN_ALL_DTYPES
    ),
    CONVOLUTION_IN_ALL_DTYPES.with_sizes(
        "all",
        shape=(2, 4, 6, 5),
        kernel=(3, 2),
        stride=(2, 1),
        padding=(2, 1),
        dilation=(1, 2),
        groups=2,
        deform_groups=2,
        scale=0.5,
    ).replace(layout=strided, result_layout=transposed),
    CONVOLUTION_IN_ALL_DTYPES.with_sizes("exact", shape=(1, 2, 4, 3), shifts=HALF_CELL_SHIFTS).replace(
        domains=SMALL_INTEGERS, exact=True
    ),
    CONVOLUTION_LEADING.with_sizes(
        "exact-groups", shape=(1, 4, 4, 3), deform_groups=2, groups=2, shifts=HALF_CELL_SHIFTS
    ).replace(domains=SMALL_INTEGERS, exact=True),
    CONVOLUTION_LEADING.with_sizes("strided-kernel", shape=(2, 2, 7, 6), stride=(3, 2)),
    CONVOLUTION_LEADING.with_sizes("strided-the-other-way", shape=(2, 2, 7, 6), stride=(2, 3), padding=(0, 2)),
    CONVOLUTION_LEADING.with_sizes("padded", padding=(2, 0), scale=2.0),
    CONVOLUTION_LEADING.with_sizes("dilated", shape=(2, 2, 6, 7), dilation=(2, 1)),
    CONVOLUTION_LEADING.with_sizes("dilated-the-other-way", shape=(2, 2, 6, 7), dilation=(1, 3), scale=-1.0),
    CONVOLUTION_LEADING.with_sizes("groups", shape=(2, 4, 4, 5), output_channels=6, groups=2),
    CONVOLUTION_LEADING.with_sizes("deformable-groups", shape=(2, 4, 4, 5), deform_groups=2),
    CONVOLUTION_LEADING.with_sizes(
        "more-deformable-groups", shape=(2, 6, 4, 3), output_channels=4, groups=2, deform_groups=3
    ),
    CONVOLUTION_LEADING.with_sizes("depthwise", shape=(2, 4, 4, 5), output_channels=4, groups=4),
    CONVOLUTION_LEADING.with_sizes("one-by-one", kernel=(1, 1), padding=(0, 0), output_channels=3),
    CONVOLUTION_LEADING.with_sizes("one-channel", shape=(2, 1, 5, 4), output_channels=1, kernel=(3, 3)),
    CONVOLUTION_LEADING.with_sizes("one-place", shape=(3, 4, 2, 3), padding=(0, 0)),
    CONVOLUTION_LEADING.with_sizes("steps", shape=(4, 2, 3, 4), im2col_step=2),
    CONVOLUTION_LEADING.with_sizes("step-by-step", shape=(3, 2, 3, 4), im2col_step=1),
    CONVOLUTION_LEADING.with_sizes("far-shifts", shape=(2, 2, 5, 6), shifts=non_integers(-9, 9)),
    CONVOLUTION_LEADING.with_sizes("room-to-work-in", workspace_shape=(5, 7)),
    CONVOLUTION_LEADING.with_sizes("without-bias", with_bias=False, output_channels=3, workspace_shape=(5, 7)).replace(
        smoke=True
    ),
    CONVOLUTION_LEADING.with_sizes("without-bias-given", with_bias=False, has_bias_elements=False),
    CONVOLUTION_LEADING.with_sizes("undefined", shape=(2, 2, 6, 6)).replace(domains={"input": half_nan}),
    CONVOLUTION_LEADING.replace("channels-last", **same_layout(channels_last)),
    CONVOLUTION_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    CONVOLUTION_LEADING.with_sizes("long", shape=(1, 40, 9, 8), output_channels=33, kernel=(3, 3)),
    CONVOLUTION_LEADING.with_sizes("long-sum", shape=(1, 32, 6, 6), output_channels=2, kernel=(3, 3)).replace(
        dtypes=half
    ),
    CONVOLUTION_LEADING.with_sizes(
        "long-sum-of-outputs", shape=(1, 2, 4, 3), output_channels=256, kernel=(2, 2)
    ).replace(dtypes=half),
    CONVOLUTION_LEADING.with_sizes(
        "long-sum-of-places", shape=(1, 4, 20, 20), output_channels=8, kernel=(1, 1), padding=(0, 0)
    ).replace(dtypes=half),
    CONVOLUTION_LEADING.with_sizes(
        "growing-sum-of-places",
        shape=(1, 4, 20, 20),
        output_channels=8,
        kernel=(1, 1),
        padding=(0, 0),
        shifts=choice([-0.5, 0.5]),
    ).replace(domains=dict.fromkeys(("input", "weight", "grad_output", "gradOutput"), _draw_rising), dtypes=half),
)
"""The templates of both convolutions and of their gradients, except for the large ones."""

MANY_CHANNELS = CONVOLUTION_LEADING.with_sizes(
    "many-channels", shape=(1, 64, 50, 50), output_channels=5, kernel=(3, 3)
).replace(large=True)
"""A large template with many channels, for the forward functions."""

LARGE_GROUPS = MANY_CHANNELS.with_sizes(
    "groups", shape=(1, 18, 63, 59), output_channels=6, groups=3, deform_groups=2, stride=(2, 1)
)
"""A large template with groups, for the gradients."""

CONVOLUTION_REASONS = {
    "undefined": "every sum over positions includes a NaN",
    "without-bias": "terms that are not added have the gradient 0",
}
"""Why wrong results can pass a case (`Case.non_discriminating`), by label."""

register(
    "diopiDeformConvMmcv",
    "diopiModulatedDeformConvMmcv",
    templates=(*CONVOLUTION_TEMPLATES, MANY_CHANNELS),
    derive=convolution_arguments,
    non_discriminating=CONVOLUTION_REASONS,
)
register(
    "diopiDeformConvBackwardInputMmcv",
    "diopiDeformConvBackwardParametersMmcv",
    "diopiModulatedDeformConvBackwardMmcv",
    templates=(*CONVOLUTION_TEMPLATES, LARGE_GROUPS),
    derive=convolution_arguments,
    non_discriminating=CONVOLUTION_REASONS,
)

# Multi-scale deformable attention

BETWEEN_CELLS = uniform(0.1, 0.9)
"""A domain of the positions of samples between two cells, as fractions of the distance of the cells."""


@dataclass(frozen=True, kw_only=True)
class DeformAttentionSizes:
    """The sizes of a call of multi-scale deformable attention. A level is a map of values with its own resolution.

    Attributes:
        levels: The height and width of each level.
        batch: The number of images.
        queries: The number of queries.
        heads: The number of heads.
        head_size: The number of elements of a head.
        points: The number of samples per query, head and level.
        im2col_step: The argument `im2col_step`.
        order: The order of the levels in memory; empty for the order of `levels`.
        cell_fractions: The domain of the positions of samples between two cells, as fractions of the distance of the
            cells.
    """

    levels: Sequence[Pair] = ((4, 5), (3, 2))
    batch: int = 2
    queries: int = 3
    heads: int = 2
    head_size: int = 4
    points: int = 2
    im2col_step: int = 64
    order: Sequence[int] = ()
    cell_fractions: Domain = BETWEEN_CELLS

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the weights: (images, queries, heads, levels, samples)."""
        return self.batch, self.queries, self.heads, len(self.levels), self.points

    @property
    def cells(self) -> list[int]:
        """Return the number of cells of each level."""
        return [h * w for h, w in self.levels]

    @property
    def start_rows(self) -> list[int]:
        """Return the row of `value` at which each level starts."""
        order = list(self.order or range(len(self.levels)))
        before = np.cumsum([0, *(self.cells[level] for level in order)])
        return [int(before[order.index(level)]) for level in range(len(self.levels))]

    def locations(self, values: Mapping[str, Any]) -> Any:
        """Return the positions (x, y) of samples as fractions of each level, up to one cell outside of the level.

        Args:
            values: The values of earlier arguments. `_places` determines the cell, and `_parts` the position between
                cells.

        Returns:
            An array of the shape (*shape, 2).
        """
        lengths = np.array(self.levels, float).reshape(-1, 1, 2)[..., ::-1]
        cells = np.floor(values["_places"] * (lengths + 2)) - 1
        return (cells + values["_parts"] + 0.5) / lengths


def attention_arguments(template: CaseTemplate[DeformAttentionSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiMsDeformAttnMmcv` and its gradient for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to gradients.
        dtype: Not used; all floating-point tensors have the type under test.

    Returns:
        The arguments by name, for both functions.
    """
    sizes = template.sizes
    layout, result, shape = template.layout, template.result_layout, sizes.shape
    value = (sizes.batch, sum(sizes.cells), sizes.heads, sizes.head_size)
    return {
        "_places": tensor(*shape, 2, domain=uniform(0, 1), dtype=F64),
        "_parts": tensor(*shape, 2, domain=sizes.cell_fractions, dtype=F64),
        "grad_value": zeros(*value, layout=result),
        "grad_sampling_loc": zeros(*shape, 2, layout=result),
        "grad_attn_weight": zeros(*shape, layout=result),
        "value": tensor(*value, layout=layout),
        "spatial_shapes": literal(np.reshape(sizes.levels, (-1, 2)), I64),
        "level_start_index": literal(sizes.start_rows, I64),
        "sampling_loc": tensor(*shape, 2, layout=layout, compute=sizes.locations),
        "attn_weight": tensor(*shape, domain=uniform(-0.5, 1), layout=layout),
        "grad_output": tensor(sizes.batch, sizes.queries, sizes.heads * sizes.head_size, layout=layout),
        "im2col_step": sizes.im2col_step,
    }


ATTENTION_SMOKE = CaseTemplate("two-levels", DeformAttentionSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template of attention to two levels: smoke cases in every element type."""

ATTENTION_LEADING = ATTENTION_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template of attention to two levels in the leading element type, without smoke cases."""

MANY_QUERIES = ATTENTION_LEADING.with_sizes(
    "many-queries", levels=((67, 61), (31, 29)), batch=1, queries=263, heads=3, head_size=5, points=3
).replace(large=True)
"""A large template of attention."""

SMALL_INTEGER_ATTENTION = dict.fromkeys(("value", "attn_weight", "grad_output"), integer_values(-2, 2))
"""Domains by argument name: small integers, whose weighted sums are exact."""

ATTENTION_TEMPLATES = (
    ATTENTION_SMOKE,
    ATTENTION_SMOKE.with_sizes("exact", levels=((4, 8), (2, 4)), cell_fractions=choice([0, 0.5])).replace(
        domains=SMALL_INTEGER_ATTENTION, exact=True, smoke=False
    ),
    ATTENTION_SMOKE.with_sizes("other-order", order=(1, 0)).replace(
        smoke=False, layout=strided, result_layout=transposed
    ),
    ATTENTION_LEADING.with_sizes("one-level", levels=((5, 3),), points=4),
    ATTENTION_LEADING.with_sizes("four-levels", levels=((6, 5), (3, 4), (2, 2), (1, 1)), points=1),
    ATTENTION_LEADING.with_sizes("three-in-other-order", levels=((3, 4), (2, 5), (4, 2)), order=(2, 0, 1)),
    ATTENTION_LEADING.with_sizes("one-head", heads=1, head_size=5),
    ATTENTION_LEADING.with_sizes("many-heads", heads=8, head_size=1, queries=2),
    ATTENTION_LEADING.with_sizes("one-query", queries=1, batch=3),
    ATTENTION_LEADING.with_sizes("more-queries", queries=9, batch=1, points=3),
    ATTENTION_LEADING.with_sizes("steps", batch=4, im2col_step=2, queries=2),
    ATTENTION_LEADING.with_sizes("step-by-step", batch=3, im2col_step=1, queries=2),
    ATTENTION_LEADING.with_sizes("one-cell", levels=((1, 1), (1, 1)), queries=7),
    ATTENTION_LEADING.with_sizes("heads-of-16", head_size=16, queries=2),
    ATTENTION_LEADING.with_sizes("wide-heads", head_size=33, queries=2),
    ATTENTION_LEADING.replace("undefined", domains={"value": half_nan}),
    ATTENTION_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    ATTENTION_LEADING.with_sizes(
        "long", levels=((12, 11), (6, 7)), batch=1, queries=40, heads=3, head_size=17, points=4
    ),
    ATTENTION_LEADING.with_sizes("no-queries", queries=0),
    ATTENTION_LEADING.with_sizes("no-points", points=0),
    MANY_QUERIES,
    MANY_QUERIES.with_sizes(
        "half", levels=((47, 41), (13, 11)), batch=2, queries=131, heads=5, head_size=4, points=2
    ).replace(dtypes=(Dtype.float16,), layout=strided),
)
"""The templates of multi-scale deformable attention and of its gradient."""

register(
    "diopiMsDeformAttnMmcv",
    "diopiMsDeformAttnBackwardMmcv",
    templates=ATTENTION_TEMPLATES,
    derive=attention_arguments,
    non_discriminating={"one-level": "the only level starts at position 0"},
)

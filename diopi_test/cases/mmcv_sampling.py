"""MMCV's resampling and rearranging of feature maps: CARAFE, correlation, FIR, PSA masks, im2col, TIN shift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import between, choice, half_nan, whole
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.template import BASIC, CaseTemplate, Types, register, tensor, throughout
from diopi_test.cases.tensors import arbitrary, literal, zeros

F32, I32, I64 = Dtype.float32, Dtype.int32, Dtype.int64

Pair = tuple[int, int]
"""Along H and along W."""

Shape4 = tuple[int, int, int, int]

GROWING = {
    **dict.fromkeys(("input", "features", "rfeatures", "top_grad"), between(0.7, 0.74)),
    **dict.fromkeys(("kernel", "masks"), choice([1.0])),
}
"""Sums that grow until half precision rounds what is added, always the same way."""

ALIKE = {"growing-sum": "all weights are alike, so that the sum grows"}

# CARAFE


@dataclass(frozen=True)
class Carafe:
    """Sizes of an upsampling.

    Attributes:
        shape: of the features.
        k, g, s: size of the kernels, groups of channels, scale.
        workspace: shape of the room to work in.
        flat: whether the features with channels last are declared as a vector.
    """

    shape: Shape4 = (2, 2, 2, 3)
    k: int = 3
    g: int = 1
    s: int = 2
    workspace: tuple[int, ...] = (5, 7)
    flat: bool = False


def carafe(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Carafe = template.sizes
    n, c, h, w = sizes.shape
    masks, output = (n, sizes.g * sizes.k**2, sizes.s * h, sizes.s * w), (n, c, sizes.s * h, sizes.s * w)
    layout, result, rows = template.layout, template.result, (n * c * h * w,) if sizes.flat else (n, h, w, c)
    room = ("routput", "rmasks", "rtop_grad", "rbottom_grad_hs", "rbottom_grad", "rmask_grad")
    return {
        **dict.fromkeys(room, tensor(*sizes.workspace)),
        "bottom_grad": zeros(*sizes.shape, layout=result),
        "mask_grad": zeros(*masks, layout=result),
        "top_grad": tensor(*output, layout=layout),
        "features": tensor(*sizes.shape, layout=layout),
        "rfeatures": tensor(*rows, layout=layout),
        "masks": tensor(*masks, layout=layout),
        "kernel_size": sizes.k,
        "group_size": sizes.g,
        "scale_factor": sizes.s,
    }


UPSAMPLED = CaseTemplate("plain", Carafe(), **BASIC)
UP = UPSAMPLED.but(dtypes=Types.leading, smoke=False)
WHOLE = whole(-2, 2)
WHOLE_MAPS = dict.fromkeys(("features", "rfeatures", "masks", "top_grad"), WHOLE)

UPSAMPLINGS = (
    UPSAMPLED,
    UPSAMPLED.but("exact", shape=(1, 4, 3, 2), g=2, domains=WHOLE_MAPS, exact=True, smoke=False),
    UP.but("groups", shape=(2, 6, 3, 4), g=3, **throughout(strided)),
    UP.but("one-cell-each", shape=(2, 4, 5, 4), s=1, g=2),
    UP.but("three-times", shape=(1, 4, 3, 2), s=3, g=2),
    UP.but("wide-kernel", shape=(1, 2, 6, 7), k=5),
    UP.but("wider-than-the-map", shape=(2, 2, 2, 3), k=7),
    UP.but("pointwise", shape=(3, 4, 3, 5), k=1, g=2),
    UP.but("group-of-each-channel", shape=(2, 3, 4, 2), g=3),
    UP.but("one-channel", shape=(3, 1, 3, 4)),
    UP.but("many-channels", shape=(1, 33, 3, 2)),
    UP.but("one-row", shape=(2, 2, 1, 9)),
    UP.but("one-column", shape=(2, 2, 9, 1)),
    UP.but("no-room-to-work-in", workspace=(0,)),
    UP.but("rows-in-a-vector", shape=(2, 4, 3, 2), g=2, flat=True),
    UP.but("channels-last", shape=(2, 4, 3, 5), g=2, **throughout(channels_last)),
    UP.but("transposed", shape=(2, 4, 3, 5), layout=transposed, result=strided),
    UP.but("long", shape=(1, 5, 17, 13), k=5),
    UP.but("long-sum", shape=(1, 66, 6, 5), k=9, s=1, dtypes=half),
    UP.but("growing-sum", shape=(1, 2, 14, 13), k=13, s=1, domains=GROWING, dtypes=half),
    UP.but("growing-sum-of-channels", shape=(1, 250, 2, 3), k=1, domains=GROWING, dtypes=half),
    UP.but("no-samples", shape=(0, 2, 3, 4)),
    UP.but("no-channels", shape=(2, 0, 3, 4)),
)

register(
    "diopiCarafeMmcv",
    "diopiCarafeBackwardMmcv",
    "diopiCarafeNaiveMmcv",
    "diopiCarafeNaiveBackwardMmcv",
    templates=UPSAMPLINGS,
    derive=carafe,
    weak=ALIKE,
)

# Correlation


@dataclass(frozen=True)
class Correlated:
    """Sizes of a correlation; pairs are along H and along W."""

    shape: Shape4 = (2, 2, 4, 5)
    kernel: Pair = (1, 1)
    patch: Pair = (3, 3)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    dilation_patch: Pair = (1, 1)
    stride: Pair = (1, 1)

    @property
    def size(self) -> list[int]:
        """Of the result along H and W."""
        axes = zip(self.shape[2:], self.kernel, self.stride, self.padding, self.dilation, strict=True)
        return [(length + 2 * pad - far * (k - 1) - 1) // step + 1 for length, k, step, pad, far in axes]


def correlated(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Correlated = template.sizes
    pairs = {
        "k": sizes.kernel,
        "patch": sizes.patch,
        "pad": sizes.padding,
        "dilation": sizes.dilation,
        "dilation_patch": sizes.dilation_patch,
        "d": sizes.stride,
    }
    return {
        "grad_input1": zeros(*sizes.shape, layout=template.result),
        "grad_input2": zeros(*sizes.shape, layout=template.result),
        "grad_output": tensor(sizes.shape[0], *sizes.patch, *sizes.size, layout=template.layout),
        "input1": tensor(*sizes.shape, layout=template.layout),
        "input2": tensor(*sizes.shape, layout=template.layout),
        **{f"{name}{axis}": pair[k] for name, pair in pairs.items() for k, axis in enumerate("HW")},
    }


CORRELATED = CaseTemplate("plain", Correlated(), **BASIC)
CORRELATE = CORRELATED.but(dtypes=Types.leading, smoke=False)
WHOLE_PAIRS = dict.fromkeys(("input1", "input2", "grad_output"), WHOLE)

CORRELATIONS = (
    CORRELATED,
    CORRELATED.but(
        "all",
        shape=(2, 3, 9, 8),
        kernel=(2, 3),
        patch=(3, 5),
        padding=(2, 1),
        dilation=(3, 1),
        dilation_patch=(1, 2),
        stride=(2, 1),
        smoke=False,
        layout=strided,
        result=transposed,
    ),
    CORRELATED.but("exact", kernel=(2, 2), padding=(1, 1), domains=WHOLE_PAIRS, exact=True, smoke=False),
    CORRELATE.but("kernel", shape=(2, 2, 5, 6), kernel=(3, 2)),
    CORRELATE.but("kernel-the-other-way", shape=(2, 2, 5, 6), kernel=(2, 3)),
    CORRELATE.but("tall-patch", patch=(5, 1)),
    CORRELATE.but("wide-patch", patch=(1, 5)),
    CORRELATE.but("padded", padding=(2, 0)),
    CORRELATE.but("padded-the-other-way", padding=(0, 2)),
    CORRELATE.but("dilated", shape=(2, 2, 6, 7), kernel=(3, 2), dilation=(2, 3)),
    CORRELATE.but("dilated-the-other-way", shape=(2, 2, 6, 7), kernel=(2, 3), dilation=(3, 2)),
    CORRELATE.but("far-patch", shape=(2, 2, 6, 7), dilation_patch=(2, 3)),
    CORRELATE.but("far-patch-the-other-way", shape=(2, 2, 6, 7), dilation_patch=(3, 2)),
    CORRELATE.but("strided-result", shape=(2, 2, 7, 6), stride=(2, 3)),
    CORRELATE.but("strided-the-other-way", shape=(2, 2, 7, 6), stride=(3, 2)),
    CORRELATE.but("two-ways-to-a-size", shape=(2, 2, 7, 7), kernel=(3, 3), padding=(1, 1)),
    CORRELATE.but("dilated-to-a-size", shape=(2, 2, 7, 7), kernel=(3, 3), padding=(2, 2), dilation=(2, 2)),
    CORRELATE.but("dilated-kernel", shape=(2, 2, 8, 8), kernel=(3, 3), dilation=(2, 2)),
    CORRELATE.but("large-kernel", shape=(2, 2, 8, 8), kernel=(5, 5)),
    *(
        CORRELATE.but(f"kernel-{h}-{w}-by-twos", shape=(2, 2, 7, 7), kernel=(h, w), stride=(2, 2))
        for h, w in ((2, 2), (2, 3), (3, 2))
    ),
    *(CORRELATE.but(f"two-places-by-{h}-{w}", shape=(2, 2, 4, 4), stride=(h, w)) for h, w in ((2, 2), (2, 3), (3, 2))),
    CORRELATE.but("no-displacement", shape=(3, 3, 4, 3), patch=(1, 1)),
    CORRELATE.but("beyond-the-map", shape=(1, 2, 3, 2), patch=(7, 9)),
    CORRELATE.but("one-channel", shape=(3, 1, 4, 3)),
    CORRELATE.but("many-channels", shape=(1, 33, 3, 4)),
    CORRELATE.but("channels-last", **throughout(channels_last)),
    CORRELATE.but("transposed", layout=transposed, result=strided),
    CORRELATE.but("long", shape=(1, 8, 17, 19), patch=(5, 5), kernel=(3, 3), padding=(1, 1)),
    CORRELATE.but("long-sum", shape=(1, 130, 5, 6), kernel=(3, 3), padding=(1, 1), dtypes=half),
    CORRELATE.but("no-samples", shape=(0, 2, 4, 5)),
)

register("diopiCorrelationMmcv", "diopiCorrelationBackwardMmcv", templates=CORRELATIONS, derive=correlated)

# FIR


@dataclass(frozen=True)
class Filtered:
    """Sizes of a filter; pairs are along H and along W, margins before and after."""

    shape: Shape4 = (2, 2, 4, 5)
    kernel: Pair = (2, 3)
    up: Pair = (1, 1)
    down: Pair = (1, 1)
    rows: Pair = (0, 0)
    columns: Pair = (0, 0)


def filtered(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Filtered = template.sizes
    return {
        "input": tensor(*sizes.shape, layout=template.layout),
        "kernel": tensor(*sizes.kernel, dtype=F32, layout=template.layout),
        **{
            f"{name}_{axis}": pair[k]
            for name, pair in (("up", sizes.up), ("down", sizes.down))
            for k, axis in enumerate("yx")
        },
        **{f"pad_y{k}": pad for k, pad in enumerate(sizes.rows)},
        **{f"pad_x{k}": pad for k, pad in enumerate(sizes.columns)},
    }


FILTERED = CaseTemplate("plain", Filtered(), **BASIC)
FILTER = FILTERED.but(dtypes=Types.leading, smoke=False)

FILTERS = (
    FILTERED,
    FILTERED.but(
        "all",
        shape=(2, 3, 5, 4),
        kernel=(3, 4),
        up=(2, 3),
        down=(3, 2),
        rows=(2, 1),
        columns=(1, 3),
        smoke=False,
        layout=strided,
    ),
    FILTERED.but(
        "exact",
        up=(2, 2),
        rows=(1, 2),
        columns=(2, 0),
        domains={"input": WHOLE, "kernel": WHOLE},
        exact=True,
        smoke=False,
    ),
    FILTER.but("up", up=(2, 3)),
    FILTER.but("up-the-other-way", up=(3, 2)),
    FILTER.but("down", shape=(2, 2, 7, 8), down=(2, 3)),
    FILTER.but("down-the-other-way", shape=(2, 2, 7, 8), down=(3, 2)),
    FILTER.but("margins-before", rows=(2, 0), columns=(1, 0)),
    FILTER.but("margins-after", rows=(0, 2), columns=(0, 1)),
    FILTER.but("more-columns", rows=(0, 1), columns=(2, 0)),
    FILTER.but("cut-before", shape=(2, 2, 6, 7), rows=(-1, 0), columns=(-2, 0)),
    FILTER.but("cut-after", shape=(2, 2, 6, 7), rows=(0, -1), columns=(0, -2)),
    FILTER.but("cut-and-padded", shape=(2, 2, 6, 7), up=(2, 1), rows=(-3, 2), columns=(2, -1)),
    FILTER.but("up-and-down", shape=(2, 2, 4, 3), up=(2, 2), down=(2, 2), rows=(1, 1), columns=(1, 2)),
    FILTER.but("one-weight", kernel=(1, 1), shape=(2, 3, 4, 3)),
    FILTER.but("one-place", kernel=(4, 5)),
    FILTER.but("row-of-weights", kernel=(1, 4)),
    FILTER.but("column-of-weights", kernel=(4, 1)),
    FILTER.but("larger-than-the-map", shape=(2, 2, 2, 3), kernel=(4, 5), rows=(2, 2), columns=(3, 1)),
    FILTER.but("one-plane", shape=(1, 1, 6, 5)),
    FILTER.but("undefined", domains={"input": half_nan}),
    FILTER.but("channels-last", layout=channels_last),
    FILTER.but("transposed", layout=transposed),
    FILTER.but("long", shape=(1, 3, 31, 29), kernel=(4, 4), up=(2, 2), rows=(2, 1), columns=(2, 1)),
    FILTER.but("long-sum", shape=(1, 1, 21, 20), kernel=(19, 17), dtypes=half),
    FILTER.but("growing-sum", shape=(1, 1, 21, 20), kernel=(19, 17), domains=GROWING, dtypes=half),
    FILTER.but("no-samples", shape=(0, 2, 4, 5)),
    FILTER.but("no-channels", shape=(2, 0, 4, 5)),
)

register(
    "diopiUpfirdn2dOpMmcv",
    templates=FILTERS,
    derive=filtered,
    weak=ALIKE,
)

# Point-wise spatial attention


@dataclass(frozen=True)
class Psa:
    """Samples, sizes of the map and of the masks, the place of a position in its own mask."""

    n: int = 2
    feature: Pair = (2, 3)
    mask: Pair = (3, 5)
    half: Pair = (1, 2)
    psa_type: int = 0


def psa(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Psa = template.sizes
    masks = (sizes.n, sizes.mask[0] * sizes.mask[1], *sizes.feature)
    maps = (sizes.n, sizes.feature[0] * sizes.feature[1], *sizes.feature)
    return {
        "output": zeros(*maps, layout=template.result),
        "grad_input": zeros(*masks, layout=template.result),
        "input": arbitrary(*masks, layout=template.layout),
        "grad_output": arbitrary(*maps, layout=template.layout),
        "psa_type": sizes.psa_type,
        "num_": sizes.n,
        **{f"{axis}_feature": sizes.feature[k] for k, axis in enumerate("hw")},
        **{f"{axis}_mask": sizes.mask[k] for k, axis in enumerate("hw")},
        **{f"half_{axis}_mask": sizes.half[k] for k, axis in enumerate("hw")},
    }


COLLECTED = CaseTemplate("collected", Psa(), **BASIC)
COLLECT = COLLECTED.but(dtypes=Types.leading, smoke=False)

PSA = (
    COLLECTED,
    COLLECTED.but("distributed", psa_type=1, smoke=False),
    COLLECT.but("collected-whole", feature=(3, 4), mask=(5, 7), half=(2, 3)),
    COLLECT.but("distributed-whole", feature=(3, 4), mask=(5, 7), half=(2, 3), psa_type=1),
    COLLECT.but("small-masks", feature=(4, 5), mask=(3, 3), half=(1, 1)),
    COLLECT.but("small-masks-distributed", feature=(4, 5), mask=(3, 3), half=(1, 1), psa_type=1),
    COLLECT.but("to-the-right", feature=(4, 5), mask=(3, 3), half=(0, 0)),
    COLLECT.but("to-the-left", feature=(4, 5), mask=(3, 3), half=(2, 2)),
    COLLECT.but("up-and-right", feature=(4, 5), mask=(3, 3), half=(2, 0), psa_type=1),
    COLLECT.but("tall-masks", feature=(4, 5), mask=(7, 1), half=(3, 0)),
    COLLECT.but("wide-masks", feature=(4, 5), mask=(1, 7), half=(0, 3), psa_type=1),
    COLLECT.but("even-masks", feature=(4, 3), mask=(4, 2), half=(2, 1)),
    COLLECT.but("large-masks", feature=(2, 2), mask=(7, 9), half=(3, 4), n=1),
    COLLECT.but("one-row", feature=(1, 6), mask=(1, 5), half=(0, 2), n=3),
    COLLECT.but("one-column", feature=(6, 1), mask=(5, 1), half=(2, 0), psa_type=1, n=1),
    COLLECT.but("strided", layout=strided, result=transposed),
    COLLECT.but("transposed", layout=transposed, result=strided, psa_type=1),
    COLLECT.but("channels-last", **throughout(channels_last)),
    COLLECT.but("long", feature=(9, 7), mask=(17, 13), half=(8, 6), n=1),
    COLLECT.but("no-samples", n=0),
)

register("diopiPsamaskMmcv", "diopiPsamaskBackwardMmcv", templates=PSA, derive=psa)

# Masked convolution


@dataclass(frozen=True)
class Masked:
    """The image (channels, height, width), and how many of its positions are chosen.

    Attributes:
        count: of the positions; None for all.
        kernel, padding: along H and along W.
    """

    image: tuple[int, int, int] = (3, 4, 5)
    count: int | None = 7
    kernel: Pair = (3, 2)
    padding: Pair = (1, 1)

    @property
    def chosen(self) -> Any:
        """Rows and columns of different positions in no order."""
        cells = np.arange(self.image[1] * self.image[2])
        shuffled = np.random.default_rng(len(cells)).permutation(cells)[: self.count]
        return shuffled // max(self.image[2], 1), shuffled % max(self.image[2], 1)


def masked(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Masked = template.sizes
    (c, h, w), (rows, columns) = sizes.image, sizes.chosen
    return {
        "col": arbitrary(c, len(rows), layout=template.layout),
        "mask_h_idx": literal(rows, I64, template.layout),
        "mask_w_idx": literal(columns, I64, template.layout),
        "kernel_h": sizes.kernel[0],
        "kernel_w": sizes.kernel[1],
        "pad_h": sizes.padding[0],
        "pad_w": sizes.padding[1],
        "height": h,
        "width": w,
        "channels": c,
    }


def to_columns(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    return {**masked(template, dtype), "im": arbitrary(1, *template.sizes.image, layout=template.layout)}


def to_image(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    return {**masked(template, dtype), "im": zeros(1, *template.sizes.image, layout=template.result)}


CHOSEN = CaseTemplate("some", Masked(), **BASIC)
CHOICE = CHOSEN.but(dtypes=Types.leading, smoke=False)

MASKED = (
    CHOSEN,
    CHOSEN.but("all", image=(2, 3, 4), count=None, smoke=False, layout=strided, result=transposed),
    CHOICE.but("one", count=1),
    CHOICE.but("one-channel", image=(1, 5, 4)),
    CHOICE.but("many-channels", image=(33, 3, 4), count=5),
    CHOICE.but("wide", image=(2, 2, 17), count=11),
    CHOICE.but("tall", image=(2, 17, 2), count=11),
    CHOICE.but("one-row", image=(3, 1, 9)),
    CHOICE.but("one-column", image=(3, 9, 1)),
    CHOICE.but("channels-last", **throughout(channels_last)),
    CHOICE.but("transposed", layout=transposed, result=strided),
    CHOICE.but("long", image=(3, 40, 41), count=1100),
    CHOICE.but("none", count=0),
    CHOICE.but("no-channels", image=(0, 4, 5)),
)

KERNELS = (
    CHOICE.but("one-weight", kernel=(1, 1), padding=(0, 0)),
    CHOICE.but("kernel-the-other-way", kernel=(2, 3)),
    CHOICE.but("without-padding", padding=(0, 0)),
    CHOICE.but("more-padding", padding=(2, 0)),
    CHOICE.but("more-padding-the-other-way", padding=(0, 2)),
    CHOICE.but("larger-than-the-image", image=(2, 2, 3), count=4, kernel=(5, 7), padding=(2, 3)),
)

register("diopiMaskedIm2colMmcv", templates=(*MASKED, *KERNELS), derive=to_columns)
register(
    "diopiMaskedCol2imMmcv",
    templates=MASKED,
    derive=to_image,
    weak={"one$": "one position of the image is written", "one-row|one-column": "all positions are on the one line"},
)

# Temporal shift


@dataclass(frozen=True)
class Shifted:
    """Sizes of the frames (N, T, C, S), groups of channels, and how far they are shifted at most."""

    shape: Shape4 = (2, 5, 4, 3)
    groups: int = 2
    low: int = -2
    high: int = 2


def shifted(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    sizes: Shifted = template.sizes
    return {
        "output": zeros(*sizes.shape, layout=template.result),
        "grad_input": zeros(*sizes.shape, layout=template.result),
        "input": arbitrary(*sizes.shape, layout=template.layout),
        "grad_output": arbitrary(*sizes.shape, layout=template.layout),
        "shift": tensor(
            sizes.shape[0], sizes.groups, dtype=I32, domain=whole(sizes.low, sizes.high), layout=template.layout
        ),
    }


SHIFTED = CaseTemplate("frames", Shifted(), **BASIC)
SHIFT = SHIFTED.but(dtypes=Types.leading, smoke=False)

SHIFTS = (
    SHIFTED,
    SHIFTED.but("far", low=-7, high=7, shape=(3, 4, 6, 2), groups=3, smoke=False, layout=strided, result=transposed),
    SHIFT.but("forward", low=1, high=3),
    SHIFT.but("back", low=-3, high=-1),
    SHIFT.but("not-at-all", low=0, high=0),
    SHIFT.but("out", low=5, high=9),
    SHIFT.but("one-group", groups=1, shape=(4, 6, 3, 2)),
    SHIFT.but("group-of-each-channel", groups=4),
    SHIFT.but("many-groups", groups=16, shape=(1, 4, 32, 2)),
    SHIFT.but("one-frame", shape=(3, 1, 4, 5)),
    SHIFT.but("two-frames", shape=(3, 2, 4, 5)),
    SHIFT.but("one-place", shape=(2, 6, 4, 1)),
    SHIFT.but("channels-last", **throughout(channels_last)),
    SHIFT.but("transposed", layout=transposed, result=strided),
    SHIFT.but("long", shape=(1, 16, 12, 49), groups=4, low=-4, high=4),
    SHIFT.but("no-samples", shape=(0, 5, 4, 3)),
    SHIFT.but("no-places", shape=(2, 5, 4, 0)),
)

register(
    "diopiTinShiftMmcv",
    "diopiTinShiftBackwardMmcv",
    templates=SHIFTS,
    derive=shifted,
    weak={"out": "shifted out of sight, nothing is left"},
)

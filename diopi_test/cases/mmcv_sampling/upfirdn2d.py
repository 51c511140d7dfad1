"""Cases of `diopiUpfirdn2dOpMmcv`, which upsamples, filters (FIR) and downsamples a map.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

Smoke cases belong to the shortest level of the suite. The leading element type is float32, or the first type of a
function without float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import half_nan
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.mmcv_sampling.values import (
    EQUAL_ELEMENTS_REASONS,
    F16,
    F32,
    GROWING_SUM_DOMAINS,
    SMALL_INTEGERS,
    Pair,
    Shape4,
)
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, tensor


@dataclass(frozen=True, kw_only=True)
class FilterSizes:
    """The sizes of a filter. Pairs are along the height and the width.

    Attributes:
        shape: The numbers of images and channels, the height and the width. Channels are the last axis of the input.
        kernel: The size of the kernel.
        up: The factors of upsampling.
        down: The factors of downsampling.
        row_margins: The margins before and after the height. Negative margins remove rows.
        column_margins: The margins before and after the width. Negative margins remove columns.
    """

    shape: Shape4 = (2, 2, 4, 5)
    kernel: Pair = (2, 3)
    up: Pair = (1, 1)
    down: Pair = (1, 1)
    row_margins: Pair = (0, 0)
    column_margins: Pair = (0, 0)


def filter_arguments(template: CaseTemplate[FilterSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiUpfirdn2dOpMmcv` for the sizes of a template.

    Args:
        template: The template. Its layout applies to input and kernel.
        dtype: Not used; the input has the type under test, and the kernel is float32.

    Returns:
        The arguments by name.
    """
    sizes = template.sizes
    batch, channels, *plane = sizes.shape
    return {
        "input": tensor(batch, *plane, channels, layout=template.layout),
        "kernel": tensor(*sizes.kernel, dtype=F32, layout=template.layout),
        **{
            f"{name}_{axis}": pair[k]
            for name, pair in (("up", sizes.up), ("down", sizes.down))
            for k, axis in enumerate("yx")
        },
        **{f"pad_y{k}": pad for k, pad in enumerate(sizes.row_margins)},
        **{f"pad_x{k}": pad for k, pad in enumerate(sizes.column_margins)},
    }


FILTER_SMOKE = CaseTemplate("plain", FilterSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes: smoke cases in every element type."""

FILTER_LEADING = FILTER_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template with the default sizes, in the leading element type and without smoke cases."""

FILTER_TEMPLATES = (
    FILTER_SMOKE,
    FILTER_SMOKE.with_sizes(
        "all", shape=(2, 3, 5, 4), kernel=(3, 4), up=(2, 3), down=(3, 2), row_margins=(2, 1), column_margins=(1, 3)
    ).replace(smoke=False, layout=strided),
    FILTER_SMOKE.with_sizes("exact", up=(2, 2), row_margins=(1, 2), column_margins=(2, 0)).replace(
        domains={"input": SMALL_INTEGERS, "kernel": SMALL_INTEGERS}, exact=True, smoke=False
    ),
    FILTER_LEADING.with_sizes("up", up=(2, 3)),
    FILTER_LEADING.with_sizes("up-the-other-way", up=(3, 2)),
    FILTER_LEADING.with_sizes("down", shape=(2, 2, 7, 8), down=(2, 3)),
    FILTER_LEADING.with_sizes("down-the-other-way", shape=(2, 2, 7, 8), down=(3, 2)),
    FILTER_LEADING.with_sizes("margins-before", row_margins=(2, 0), column_margins=(1, 0)),
    FILTER_LEADING.with_sizes("margins-after", row_margins=(0, 2), column_margins=(0, 1)),
    FILTER_LEADING.with_sizes("more-columns", row_margins=(0, 1), column_margins=(2, 0)),
    FILTER_LEADING.with_sizes("cut-before", shape=(2, 2, 6, 7), row_margins=(-1, 0), column_margins=(-2, 0)),
    FILTER_LEADING.with_sizes("cut-after", shape=(2, 2, 6, 7), row_margins=(0, -1), column_margins=(0, -2)),
    FILTER_LEADING.with_sizes(
        "cut-and-padded", shape=(2, 2, 6, 7), up=(2, 1), row_margins=(-3, 2), column_margins=(2, -1)
    ),
    FILTER_LEADING.with_sizes(
        "up-and-down", shape=(2, 2, 4, 3), up=(2, 2), down=(2, 2), row_margins=(1, 1), column_margins=(1, 2)
    ),
    FILTER_LEADING.with_sizes("one-weight", kernel=(1, 1), shape=(2, 3, 4, 3)),
    FILTER_LEADING.with_sizes("one-place", kernel=(4, 5)),
    FILTER_LEADING.with_sizes("row-of-weights", kernel=(1, 4)),
    FILTER_LEADING.with_sizes("column-of-weights", kernel=(4, 1)),
    FILTER_LEADING.with_sizes(
        "larger-than-the-map", shape=(2, 2, 2, 3), kernel=(4, 5), row_margins=(2, 2), column_margins=(3, 1)
    ),
    FILTER_LEADING.with_sizes("one-plane", shape=(1, 1, 6, 5)),
    FILTER_LEADING.replace("undefined", domains={"input": half_nan}),
    FILTER_LEADING.replace("channels-last", layout=channels_last),
    FILTER_LEADING.replace("transposed", layout=transposed),
    FILTER_LEADING.with_sizes(
        "long", shape=(1, 3, 31, 29), kernel=(4, 4), up=(2, 2), row_margins=(2, 1), column_margins=(2, 1)
    ),
    FILTER_LEADING.with_sizes("long-sum", shape=(1, 1, 21, 20), kernel=(19, 17)).replace(dtypes=half),
    FILTER_LEADING.with_sizes("growing-sum", shape=(1, 1, 21, 20), kernel=(19, 17)).replace(
        domains=GROWING_SUM_DOMAINS, dtypes=half
    ),
    FILTER_LEADING.with_sizes("no-samples", shape=(0, 2, 4, 5)),
    FILTER_LEADING.with_sizes("no-channels", shape=(2, 0, 4, 5)),
    FILTER_LEADING.with_sizes(
        "up", shape=(1, 7, 101, 97), kernel=(4, 4), up=(2, 2), row_margins=(2, 1), column_margins=(2, 1)
    ).replace(large=True),
    FILTER_LEADING.with_sizes(
        "half-down", shape=(3, 11, 47, 53), kernel=(7, 5), down=(2, 3), row_margins=(3, 3)
    ).replace(layout=strided, dtypes=F16, large=True),
)
"""The templates of `diopiUpfirdn2dOpMmcv`. Unequal sizes along H and W reveal a vendor that exchanges the axes."""

register(
    "diopiUpfirdn2dOpMmcv",
    templates=FILTER_TEMPLATES,
    derive=filter_arguments,
    non_discriminating=EQUAL_ELEMENTS_REASONS,
)

"""Cases of masked convolution, which computes only the selected positions of an image.

`diopiMaskedIm2colMmcv` copies the windows at the selected positions into columns. `diopiMaskedCol2imMmcv` writes
columns to the selected positions. A template describes cases that differ only in their element type
(`diopi_test.cases.template`).

Smoke cases belong to the shortest level of the suite. The leading element type is float32, or the first type of a
function without float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.domains import any_value
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.mmcv_sampling.values import F16, I64, Pair
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import literal, zeros


@dataclass(frozen=True, kw_only=True)
class MaskedImage:
    """The sizes of an image in which some positions are selected.

    Attributes:
        image: The numbers of channels, the height and the width of the image.
        selected_count: The number of selected positions; None for all positions.
        kernel: The sizes of a window along the height and the width.
        padding: The number of cells added at either end of the height and the width.
    """

    image: tuple[int, int, int] = (3, 4, 5)
    selected_count: int | None = 7
    kernel: Pair = (3, 2)
    padding: Pair = (1, 1)

    @property
    def selected_cells(self) -> Any:
        """Return the rows and the columns of the selected positions, which are different and in random order."""
        cells = np.arange(self.image[1] * self.image[2])
        shuffled = np.random.default_rng(len(cells)).permutation(cells)[: self.selected_count]
        return shuffled // max(self.image[2], 1), shuffled % max(self.image[2], 1)


def masked_arguments(template: CaseTemplate[MaskedImage], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments that both functions of masked convolution have in common.

    Args:
        template: The template. Its layout applies to all tensors.
        dtype: Not used; floating-point tensors have the type under test.

    Returns:
        The arguments by name.
    """
    sizes = template.sizes
    (c, h, w), (rows, columns) = sizes.image, sizes.selected_cells
    return {
        "col": tensor(c, len(rows), domain=any_value, layout=template.layout),
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


def im2col_arguments(template: CaseTemplate[MaskedImage], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiMaskedIm2colMmcv` for the sizes of a template.

    Args:
        template: The template. Its layout applies to all tensors.
        dtype: Not used; floating-point tensors have the type under test.

    Returns:
        The arguments by name.
    """
    return {
        **masked_arguments(template, dtype),
        "im": tensor(1, *template.sizes.image, domain=any_value, layout=template.layout),
    }


def col2im_arguments(template: CaseTemplate[MaskedImage], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiMaskedCol2imMmcv` for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to the image.
        dtype: Not used; floating-point tensors have the type under test.

    Returns:
        The arguments by name. The image contains zeros before the call.
    """
    return {**masked_arguments(template, dtype), "im": zeros(1, *template.sizes.image, layout=template.result_layout)}


SELECTION_SMOKE = CaseTemplate("some", MaskedImage(), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes: smoke cases in every element type."""

SELECTION_LEADING = SELECTION_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template with the default sizes, in the leading element type and without smoke cases."""

MASKED_TEMPLATES = (
    SELECTION_SMOKE,
    SELECTION_SMOKE.with_sizes("all", image=(2, 3, 4), selected_count=None).replace(
        smoke=False, layout=strided, result_layout=transposed
    ),
    SELECTION_LEADING.with_sizes("one", selected_count=1),
    SELECTION_LEADING.with_sizes("one-channel", image=(1, 5, 4)),
    SELECTION_LEADING.with_sizes("many-channels", image=(33, 3, 4), selected_count=5),
    SELECTION_LEADING.with_sizes("wide", image=(2, 2, 17), selected_count=11),
    SELECTION_LEADING.with_sizes("tall", image=(2, 17, 2), selected_count=11),
    SELECTION_LEADING.with_sizes("one-row", image=(3, 1, 9)),
    SELECTION_LEADING.with_sizes("one-column", image=(3, 9, 1)),
    SELECTION_LEADING.replace("channels-last", **same_layout(channels_last)),
    SELECTION_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    SELECTION_LEADING.with_sizes("long", image=(3, 40, 41), selected_count=1100),
    SELECTION_LEADING.with_sizes("none", selected_count=0),
    SELECTION_LEADING.with_sizes("no-channels", image=(0, 4, 5)),
    SELECTION_LEADING.with_sizes("some", image=(67, 41, 43), selected_count=1031).replace(large=True),
    SELECTION_LEADING.with_sizes(
        "half-all", image=(11, 79, 83), selected_count=None, kernel=(1, 2), padding=(0, 1)
    ).replace(layout=strided, dtypes=F16, large=True),
)
"""The templates that both functions have."""

KERNEL_TEMPLATES = (
    SELECTION_LEADING.with_sizes("one-weight", kernel=(1, 1), padding=(0, 0)),
    SELECTION_LEADING.with_sizes("kernel-the-other-way", kernel=(2, 3)),
    SELECTION_LEADING.with_sizes("without-padding", padding=(0, 0)),
    SELECTION_LEADING.with_sizes("more-padding", padding=(2, 0)),
    SELECTION_LEADING.with_sizes("more-padding-the-other-way", padding=(0, 2)),
    SELECTION_LEADING.with_sizes(
        "larger-than-the-image", image=(2, 2, 3), selected_count=4, kernel=(5, 7), padding=(2, 3)
    ),
)
"""Templates of `diopiMaskedIm2colMmcv` with other kernels and paddings."""

register("diopiMaskedIm2colMmcv", templates=(*MASKED_TEMPLATES, *KERNEL_TEMPLATES), derive=im2col_arguments)
register(
    "diopiMaskedCol2imMmcv",
    templates=MASKED_TEMPLATES,
    derive=col2im_arguments,
    non_discriminating={
        "one$": "only one position of the image is written",
        "one-row|one-column": "all positions are on the only row",
    },
)

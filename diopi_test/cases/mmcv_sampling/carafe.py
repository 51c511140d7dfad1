"""Cases of CARAFE, upsampling with a separate kernel for each position, and of its gradient.

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
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.mmcv_sampling.values import (
    EQUAL_ELEMENTS_REASONS,
    F16,
    GROWING_SUM_DOMAINS,
    SMALL_INTEGERS,
    Shape4,
)
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import zeros


@dataclass(frozen=True, kw_only=True)
class CarafeSizes:
    """The sizes of an upsampling.

    Attributes:
        shape: The shape of the features, (N, C, H, W).
        kernel_size: The size of a kernel along both axes.
        groups: The number of groups of channels. All channels of a group have the same kernel.
        scale: The factor of both axes.
        workspace_shape: The shape of the workspace tensors.
        has_flat_rows: Whether the tensor `rfeatures`, the features with channels last, has one axis.
    """

    shape: Shape4 = (2, 2, 2, 3)
    kernel_size: int = 3
    groups: int = 1
    scale: int = 2
    workspace_shape: tuple[int, ...] = (5, 7)
    has_flat_rows: bool = False


def carafe_arguments(template: CaseTemplate[CarafeSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of both forms of CARAFE and of their gradients for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to gradients.
        dtype: Not used; all tensors have the type under test.

    Returns:
        The arguments by name, for all four functions.
    """
    sizes = template.sizes
    n, c, h, w = sizes.shape
    masks, output = (
        (n, sizes.groups * sizes.kernel_size**2, sizes.scale * h, sizes.scale * w),
        (n, c, sizes.scale * h, sizes.scale * w),
    )
    layout, result, rows = (
        template.layout,
        template.result_layout,
        (n * c * h * w,) if sizes.has_flat_rows else (n, h, w, c),
    )
    workspaces = ("routput", "rmasks", "rtop_grad", "rbottom_grad_hs", "rbottom_grad", "rmask_grad")
    return {
        **dict.fromkeys(workspaces, tensor(*sizes.workspace_shape)),
        "bottom_grad": zeros(*sizes.shape, layout=result),
        "mask_grad": zeros(*masks, layout=result),
        "top_grad": tensor(*output, layout=layout),
        "features": tensor(*sizes.shape, layout=layout),
        "rfeatures": tensor(*rows, layout=layout),
        "masks": tensor(*masks, layout=layout),
        "kernel_size": sizes.kernel_size,
        "group_size": sizes.groups,
        "scale_factor": sizes.scale,
    }


UPSAMPLING_SMOKE = CaseTemplate("plain", CarafeSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes: smoke cases in every element type."""

UPSAMPLING_LEADING = UPSAMPLING_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template with the default sizes, in the leading element type and without smoke cases."""

SMALL_INTEGER_MAPS = dict.fromkeys(("features", "rfeatures", "masks", "top_grad"), SMALL_INTEGERS)
"""Domains by argument name: small integers, whose sums of products are exact."""

UPSAMPLING_TEMPLATES = (
    UPSAMPLING_SMOKE,
    UPSAMPLING_SMOKE.with_sizes("exact", shape=(1, 4, 3, 2), groups=2).replace(
        domains=SMALL_INTEGER_MAPS, exact=True, smoke=False
    ),
    UPSAMPLING_LEADING.with_sizes("groups", shape=(2, 6, 3, 4), groups=3).replace(**same_layout(strided)),
    UPSAMPLING_LEADING.with_sizes("one-cell-each", shape=(2, 4, 5, 4), scale=1, groups=2),
    UPSAMPLING_LEADING.with_sizes("three-times", shape=(1, 4, 3, 2), scale=3, groups=2),
    UPSAMPLING_LEADING.with_sizes("wide-kernel", shape=(1, 2, 6, 7), kernel_size=5),
    UPSAMPLING_LEADING.with_sizes("wider-than-the-map", shape=(2, 2, 2, 3), kernel_size=7),
    UPSAMPLING_LEADING.with_sizes("pointwise", shape=(3, 4, 3, 5), kernel_size=1, groups=2),
    UPSAMPLING_LEADING.with_sizes("group-of-each-channel", shape=(2, 3, 4, 2), groups=3),
    UPSAMPLING_LEADING.with_sizes("one-channel", shape=(3, 1, 3, 4)),
    UPSAMPLING_LEADING.with_sizes("many-channels", shape=(1, 33, 3, 2)),
    UPSAMPLING_LEADING.with_sizes("one-row", shape=(2, 2, 1, 9)),
    UPSAMPLING_LEADING.with_sizes("one-column", shape=(2, 2, 9, 1)),
    UPSAMPLING_LEADING.with_sizes("no-room-to-work-in", workspace_shape=(0,)),
    UPSAMPLING_LEADING.with_sizes("rows-in-a-vector", shape=(2, 4, 3, 2), groups=2, has_flat_rows=True),
    UPSAMPLING_LEADING.with_sizes("channels-last", shape=(2, 4, 3, 5), groups=2).replace(**same_layout(channels_last)),
    UPSAMPLING_LEADING.with_sizes("transposed", shape=(2, 4, 3, 5)).replace(layout=transposed, result_layout=strided),
    UPSAMPLING_LEADING.with_sizes("long", shape=(1, 5, 17, 13), kernel_size=5),
    UPSAMPLING_LEADING.with_sizes("long-sum", shape=(1, 66, 6, 5), kernel_size=9, scale=1).replace(dtypes=half),
    UPSAMPLING_LEADING.with_sizes("growing-sum", shape=(1, 2, 14, 13), kernel_size=13, scale=1).replace(
        domains=GROWING_SUM_DOMAINS, dtypes=half
    ),
    UPSAMPLING_LEADING.with_sizes("growing-sum-of-channels", shape=(1, 250, 2, 3), kernel_size=1).replace(
        domains=GROWING_SUM_DOMAINS, dtypes=half
    ),
    UPSAMPLING_LEADING.with_sizes("no-samples", shape=(0, 2, 3, 4)),
    UPSAMPLING_LEADING.with_sizes("no-channels", shape=(2, 0, 3, 4)),
    UPSAMPLING_LEADING.with_sizes("wide-kernel", shape=(1, 7, 53, 47), kernel_size=5).replace(large=True),
    UPSAMPLING_LEADING.with_sizes("half-groups", shape=(2, 33, 13, 11), groups=3, scale=3).replace(
        layout=strided, dtypes=F16, large=True
    ),
)
"""The templates of both forms of CARAFE and of their gradients. Long sums reveal half-precision accumulation."""

register(
    "diopiCarafeMmcv",
    "diopiCarafeBackwardMmcv",
    "diopiCarafeNaiveMmcv",
    "diopiCarafeNaiveBackwardMmcv",
    templates=UPSAMPLING_TEMPLATES,
    derive=carafe_arguments,
    non_discriminating=EQUAL_ELEMENTS_REASONS,
)

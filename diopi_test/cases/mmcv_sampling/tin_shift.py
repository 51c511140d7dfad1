"""Cases of the temporal interlacing network (TIN), which moves each group of channels by some frames.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

Smoke cases belong to the shortest level of the suite. The leading element type is float32, or the first type of a
function without float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.domains import any_value, integer_values
from diopi_test.cases.layouts import channels_last, strided, transposed
from diopi_test.cases.mmcv_sampling.values import F16, I32, Shape4
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import zeros


@dataclass(frozen=True, kw_only=True)
class ShiftSizes:
    """The sizes of a call that shifts frames.

    Attributes:
        shape: The shape of the frames, (samples, frames, channels, positions).
        groups: The number of groups of channels. Each group of each sample has its own shift.
        min_shift: The smallest shift, in frames.
        max_shift: The largest shift, in frames.
    """

    shape: Shape4 = (2, 5, 4, 3)
    groups: int = 2
    min_shift: int = -2
    max_shift: int = 2


def shift_arguments(template: CaseTemplate[ShiftSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiTinShiftMmcv` and its gradient for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to results.
        dtype: Not used; all floating-point tensors have the type under test.

    Returns:
        The arguments by name, for both functions.
    """
    sizes = template.sizes
    return {
        "output": zeros(*sizes.shape, layout=template.result_layout),
        "grad_input": zeros(*sizes.shape, layout=template.result_layout),
        "input": tensor(*sizes.shape, domain=any_value, layout=template.layout),
        "grad_output": tensor(*sizes.shape, domain=any_value, layout=template.layout),
        "shift": tensor(
            sizes.shape[0],
            sizes.groups,
            dtype=I32,
            domain=integer_values(sizes.min_shift, sizes.max_shift),
            layout=template.layout,
        ),
    }


SHIFT_SMOKE = CaseTemplate("frames", ShiftSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes: smoke cases in every element type."""

SHIFT_LEADING = SHIFT_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template with the default sizes, in the leading element type and without smoke cases."""

SHIFT_TEMPLATES = (
    SHIFT_SMOKE,
    SHIFT_SMOKE.with_sizes("far", min_shift=-7, max_shift=7, shape=(3, 4, 6, 2), groups=3).replace(
        smoke=False, layout=strided, result_layout=transposed
    ),
    SHIFT_LEADING.with_sizes("forward", min_shift=1, max_shift=3),
    SHIFT_LEADING.with_sizes("back", min_shift=-3, max_shift=-1),
    SHIFT_LEADING.with_sizes("not-at-all", min_shift=0, max_shift=0),
    SHIFT_LEADING.with_sizes("out", min_shift=5, max_shift=9),
    SHIFT_LEADING.with_sizes("one-group", groups=1, shape=(4, 6, 3, 2)),
    SHIFT_LEADING.with_sizes("group-of-each-channel", groups=4),
    SHIFT_LEADING.with_sizes("many-groups", groups=16, shape=(1, 4, 32, 2)),
    SHIFT_LEADING.with_sizes("one-frame", shape=(3, 1, 4, 5)),
    SHIFT_LEADING.with_sizes("two-frames", shape=(3, 2, 4, 5)),
    SHIFT_LEADING.with_sizes("one-place", shape=(2, 6, 4, 1)),
    SHIFT_LEADING.replace("channels-last", **same_layout(channels_last)),
    SHIFT_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    SHIFT_LEADING.with_sizes("long", shape=(1, 16, 12, 49), groups=4, min_shift=-4, max_shift=4),
    SHIFT_LEADING.with_sizes("no-samples", shape=(0, 5, 4, 3)),
    SHIFT_LEADING.with_sizes("no-places", shape=(2, 5, 4, 0)),
    SHIFT_LEADING.with_sizes("frames", shape=(2, 16, 66, 47), groups=6, min_shift=-5, max_shift=5).replace(large=True),
    SHIFT_LEADING.with_sizes("half-places", shape=(1, 9, 4, 2803), groups=4).replace(
        layout=strided, dtypes=F16, large=True
    ),
)
"""The templates of `diopiTinShiftMmcv` and of its gradient."""

register(
    "diopiTinShiftMmcv",
    "diopiTinShiftBackwardMmcv",
    templates=SHIFT_TEMPLATES,
    derive=shift_arguments,
    non_discriminating={"out": "all frames are shifted out of the range, so every element is 0"},
)

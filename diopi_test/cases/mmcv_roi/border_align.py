"""Cases of BorderAlign, which takes the maximum of the sample points on each border of a box, and of its gradient.

A feature map has a box per position (h, w), and separate channels for each of the four borders of a box. A template
describes cases that differ only in their element type (`diopi_test.cases.template`).

A template describes cases that differ only in their element type (`diopi_test.cases.template`). A case does not pass
arguments whose names start with `_`; it computes other arguments from them. Smoke cases belong to the shortest level of
the suite. The leading element type is float32, or the first type of a function without float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOf, Values
from diopi_test.cases.domains import distinct, uniform
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.mmcv_roi.regions import F64, I32, NONZERO_INTEGERS
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import zeros


@dataclass(frozen=True, kw_only=True)
class BorderSizes:
    """The sizes of a call of BorderAlign, from which `border_arguments` derives the arguments.

    Attributes:
        shape: The shape of the features of one border, (N, C, H, W). The input has 4 · C channels.
        pool_size: The argument pool_size, the number of intervals between the sample points of a border.
        extent: The minimum and maximum side of a box, in cells. A negative side gives a box that ends before it begins.
        starts: The minimum and maximum coordinate at which a box begins, in cells.
        has_quarter_coordinates: Whether all coordinates are multiples of a quarter of a cell, so that results can be
            exact.
    """

    shape: tuple[int, int, int, int] = (2, 2, 3, 4)
    pool_size: int = 3
    extent: tuple[float, float] = (0.5, 3.0)
    starts: tuple[float, float] = (-0.5, 2.0)
    has_quarter_coordinates: bool = False

    def boxes(self, values: Values) -> Any:
        """Return the boxes (x1, y1, x2, y2) as an array.

        Args:
            values: The values of earlier arguments: `_starts` contains the first corners, and `_sizes` the sides.

        Returns:
            An array of the shape (N, H · W, 4).
        """
        corners = np.concatenate([values["_starts"], values["_starts"] + values["_sizes"]], -1)
        return np.rint(4 * corners) / 4 if self.has_quarter_coordinates else corners


def border_arguments(template: CaseTemplate[BorderSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiBorderAlignMmcv` and its gradient for the sizes of a template.

    Args:
        template: The template. Its layout applies to inputs, and its result layout to the gradient.
        dtype: Not used; all floating-point tensors have the type under test.

    Returns:
        The arguments by name, for both functions. The forward function computes `argmax_idx` for the gradient.
    """
    sizes = template.sizes
    n, c, h, w = sizes.shape
    maps = tensor(n, 4 * c, h, w, domain=distinct, layout=template.layout)
    forward = ResultOf("diopiBorderAlignMmcv", "argmax_idx", {"input": "_input"})
    return {
        "input": maps,
        "_input": maps,
        "grad_input": zeros(n, 4 * c, h, w, layout=template.result_layout),
        "grad_output": tensor(n, c, h * w, 4, layout=template.layout),
        "_starts": tensor(n, h * w, 2, domain=uniform(*sizes.starts), dtype=F64),
        "_sizes": tensor(n, h * w, 2, domain=uniform(*sizes.extent), dtype=F64),
        "boxes": tensor(n, h * w, 4, layout=template.layout, compute=sizes.boxes),
        "pool_size": sizes.pool_size,
        "argmax_idx": tensor(n, c, h * w, 4, dtype=I32, compute=forward),
    }


BOXES_SMOKE = CaseTemplate("boxes", BorderSizes(), **SMOKE_IN_ALL_DTYPES)
"""A template with the default sizes: smoke cases in every element type."""

BOXES_LEADING = BOXES_SMOKE.replace(dtypes=DtypeSelection.leading, smoke=False)
"""A template with the default sizes, in the leading element type and without smoke cases."""

BORDER_TEMPLATES = (
    BOXES_SMOKE,
    BOXES_SMOKE.with_sizes("exact", has_quarter_coordinates=True, pool_size=2).replace(
        domains=NONZERO_INTEGERS, exact=True, smoke=False
    ),
    BOXES_SMOKE.with_sizes("exact-around", has_quarter_coordinates=True, pool_size=4, starts=(-2, 4)).replace(
        domains=NONZERO_INTEGERS, exact=True, smoke=False
    ),
    BOXES_LEADING.with_sizes("two-points", pool_size=1),
    BOXES_LEADING.with_sizes("many-points", pool_size=10, shape=(1, 2, 3, 3)),
    BOXES_LEADING.with_sizes("small-boxes", extent=(0.05, 0.4)),
    BOXES_LEADING.with_sizes("large-boxes", starts=(-3, 0), extent=(3, 7)),
    BOXES_LEADING.with_sizes("without-extent", extent=(0, 0)),
    BOXES_LEADING.with_sizes("inverted", starts=(1, 3), extent=(-2, 1)),
    BOXES_LEADING.with_sizes("one-channel", shape=(3, 1, 2, 5)),
    BOXES_LEADING.with_sizes("many-channels", shape=(1, 9, 2, 3)),
    BOXES_LEADING.with_sizes("one-place", shape=(4, 2, 1, 1), starts=(-0.4, 0.2), extent=(0.1, 0.6)),
    BOXES_LEADING.replace("strided", **same_layout(strided)),
    BOXES_LEADING.replace("transposed", layout=transposed, result_layout=strided),
    BOXES_LEADING.with_sizes("long", shape=(1, 5, 11, 10), pool_size=5, starts=(-0.5, 8)),
    BOXES_LEADING.with_sizes("no-images", shape=(0, 2, 3, 4)),
    BOXES_LEADING.with_sizes("no-channels", shape=(2, 0, 3, 4)),
    BOXES_LEADING.with_sizes("every-place", shape=(1, 17, 31, 33), pool_size=5, starts=(-0.5, 28)).replace(large=True),
)
"""The templates of BorderAlign and of its gradient."""

register(
    "diopiBorderAlignMmcv",
    "diopiBorderAlignBackwardMmcv",
    templates=BORDER_TEMPLATES,
    derive=border_arguments,
    non_discriminating={"without-extent|one-place": "all points of a border have the same value"},
)

CaseFacts(finds_extremes=True).declare("diopiBorderAlignMmcv")

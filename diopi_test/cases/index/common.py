"""What the cases of this family share: templates of tables of sizes, layouts by turns, sums of gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from diopi_proto.dtypes import complexes, floating, half
from diopi_proto.types import Dtype
from diopi_test.cases.axes import untested_axes
from diopi_test.cases.domains import choice, integer_values, uniform
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.template import CaseTemplate, DtypeSelection
from diopi_test.cases.tensors import literal

ONE_DTYPE_PER_KIND = (Dtype.float32, Dtype.bfloat16, Dtype.int64, Dtype.complex64)
"""One element type of each kind, for templates that matter in more than one."""

INEXACT = (*floating, *complexes)

ALIKE = [(layout, layout) for layout in (contiguous, transposed, strided)]
"""Layouts of arguments and result, for `cycle_layouts`: the same one."""

UNLIKE = [(contiguous, transposed), (strided, contiguous)]
"""Different layouts of arguments and result."""

SUMMANDS = integer_values(-3, 3)
"""Numbers a few dozen of which have an exact sum in every floating type, whatever their order."""

POSITIVE = uniform(0.7, 0.74)
"""Numbers that a running sum in half precision rounds to a half or to one, always the same way, then to nothing."""

OFTEN = literal(np.resize([1, 1, 1, 0], 1100))
"""Two places of three, the one named 825 times, the other 275 times."""

MOST_OFTEN = literal(np.resize([1, 1, 1, 0], 8000))
"""As `OFTEN`, so many times that the roundings of a few numbers show, which are alike."""

LARGE = choice([2**62 + i for i in range(-20, 20)])
"""Different numbers of int64, equal as float64."""

ONE_PLACE = "there is but one place"
ALL_TRUE = "the mask is true everywhere"
ALL_FALSE = "the mask is false everywhere"


def sized(table: Mapping[str, Any], long: DtypeSelection = DtypeSelection.leading) -> list[CaseTemplate[Any]]:
    """A template for each row of a table of sizes by label; `long` are the element types of the row of this label."""
    return [
        CaseTemplate(label, sizes, dtypes=long if label == "long" else DtypeSelection.leading)
        for label, sizes in table.items()
    ]


def sums(gradient: str, exact: Any, long: Any, dtypes: Sequence[Dtype] = half) -> list[CaseTemplate[Any]]:
    """Templates of sizes for which many numbers of the gradient are added up, and of so many that the sum stops."""
    return [
        CaseTemplate("exact", exact, {}, {gradient: SUMMANDS}, dtypes=INEXACT, exact=True),
        CaseTemplate("long-sum", long, {}, {gradient: POSITIVE}, dtypes=dtypes),
    ]


def and_untried(
    templates: Sequence[CaseTemplate[Any]], sizes: Callable[[tuple[int, ...], int], Any]
) -> list[CaseTemplate[Any]]:
    """The templates, whose sizes begin with a shape and an axis, and those of the axes that none of them is along."""
    tried = {(len(template.sizes[0]), template.sizes[1]) for template in templates}
    return [*templates, *(CaseTemplate(label, sizes(shape, axis)) for label, shape, axis in untested_axes(tried))]

"""Cases of scaled masked softmax and of its gradient.

The function scales attention scores, masks some of them, and computes the softmax along the last axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, nan, prod
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.attention.calls import F16, F32, Shape
from diopi_test.cases.case import ResultOf
from diopi_test.cases.domains import choice, integer_values, normal
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor
from diopi_test.cases.tensors import literal


@dataclass(frozen=True)
class MaskedScores:
    """The sizes of a template of masked softmax.

    Attributes:
        shape: The shape of the scores.
        mask: The shape of the mask, which is broadcast to the shape of the scores.
        dtype: The element type of the mask: bool, or a floating-point type. An element that is not 0 masks a score.
    """

    shape: Shape
    mask: Shape
    dtype: Dtype = Dtype.bool


def masked_template(
    label: str,
    shape: Shape,
    *mask: int,
    scale: float = 0.7,
    triangle: bool = False,
    mask_dtype: Dtype = Dtype.bool,
    **fields: Any,
) -> CaseTemplate[MaskedScores]:
    """Return a template of masked softmax.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the scores.
        *mask: The shape of the mask, which is broadcast to `shape`.
        scale: The factor of the scores.
        triangle: Whether the call masks the keys after the position of each query instead of using the mask.
        mask_dtype: The element type of the mask.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    return CaseTemplate(
        label, MaskedScores(shape, mask, mask_dtype), {"scale": scale, "fixed_triu_mask": triangle}, **fields
    )


def masked_softmax_arguments(template: CaseTemplate[MaskedScores], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiScaledMaskedSoftmax` and its gradient for the sizes of a template.

    Every third element of the mask is true, or −0.5 in a floating-point mask; the other elements are false or 0. The
    gradient does not take `_input`. It takes `output`, which the reference computes from `_input`.
    """
    sizes, layout = template.sizes, template.layout
    scores = tensor(*sizes.shape, domain=normal(2), layout=layout)
    every_third = np.arange(prod(sizes.mask)).reshape(sizes.mask) % 3 == 1
    mask = literal(every_third if sizes.dtype is Dtype.bool else np.where(every_third, -0.5, 0), sizes.dtype, layout)
    attributes = {"scale": template.argument("scale"), "fixed_triu_mask": template.argument("fixed_triu_mask")}
    forward = ResultOf("diopiScaledMaskedSoftmax", "output", extra_arguments=attributes)
    return {
        "input": scores,
        "_input": scores,
        "grad_output": tensor(*sizes.shape, layout=layout),
        "mask": mask,
        "output": tensor(*sizes.shape, layout=layout, compute=replace(forward, argument_names={"input": "_input"})),
    }


SCORES = (2, 3, 4, 5)
"""The shape of scores: batch, heads, queries, keys."""

SOFTMAX = (
    masked_template("", SCORES, 2, 1, 4, 5, **SMOKE_IN_ALL_DTYPES),
    masked_template("triangle", (2, 5, 5), 2, 5, 5, triangle=True, **SMOKE_IN_ALL_DTYPES),
    masked_template("no-triangle", (2, 5, 5), 2, 5, 5),
    masked_template("whole-mask", SCORES, *SCORES, dtypes=DtypeSelection.all),
    masked_template("row-mask", (3, 4, 7), 7),
    masked_template("rows-masked", (3, 5, 4), 3, 5, 1),
    masked_template("float-mask", (2, 4, 5), 2, 4, 5, mask_dtype=F32),
    masked_template("half-mask", (2, 4, 5), 4, 5, mask_dtype=F16, dtypes=(F16,)),
    masked_template("wide-triangle", (2, 3, 7), 3, 7, triangle=True),
    masked_template("tall-triangle", (2, 7, 3), 7, 3, triangle=True),
    masked_template("matrix", (6, 9), 6, 9, dtypes=DtypeSelection.all),
    masked_template("negative-scale", (2, 4, 5), 2, 4, 5, scale=-1.3),
    masked_template("scale-1", (2, 4, 5), 2, 4, 5, scale=1.0),
    masked_template("steep", (3, 4, 9), 4, 9, scale=6.0, dtypes=DtypeSelection.all),
    masked_template("long", (2, 2, 1031), 1, 1031, dtypes=DtypeSelection.all),
    masked_template("width-of-models", (2, 3, 768), 3, 768),
    masked_template("transposed", (3, 4, 5), 3, 4, 5, **same_layout(transposed)),
    masked_template("strided", (3, 4, 5), 3, 4, 5, **same_layout(strided), dtypes=DtypeSelection.all),
    masked_template("empty", (0, 4, 5), 1, 4, 5),
    masked_template("attention", (2, 5, 131, 257), 2, 1, 131, 257, dtypes=[F16], large=True),
    masked_template("triangle", (3, 517, 517), 3, 517, 517, triangle=True, large=True),
    masked_template("rows", (70_001, 3), 70_001, 3, large=True),
)
"""The templates that the function and its gradient share."""

register(
    "diopiScaledMaskedSoftmax",
    templates=(
        *SOFTMAX,
        masked_template("special", (12, 7), 12, 7, domains={"input": choice([1.0, -inf, 0.5, nan, 2.0, *range(9)])}),
        masked_template(
            "far", (3, 4, 9), 4, 9, domains={"input": choice([2000.0, -2000.0, 0.0, 1990.0, 5.0])}, scale=1.0
        ),
        masked_template("long-masked", (3, 131), 3, 131, domains={"input": choice([1.0, -inf, 0.5, 2.0, *range(9)])}),
        masked_template("unmasked", (3, 8), 3, 8).replace(arguments={"mask": literal(np.zeros((3, 8)), Dtype.bool)}),
    ),
    derive=masked_softmax_arguments,
)

register(
    "diopiScaledMaskedSoftmaxBackward",
    templates=(
        # Class `aliased` passes one tensor as grad_output and mask. With an output of the function itself, all results
        # would be 0, whatever the mask is. This template comes first, so that the class is derived from it.
        masked_template("float-mask-any-output", (2, 4, 5), 2, 4, 5, mask_dtype=F32).replace(
            arguments={"output": tensor(2, 4, 5, domain=choice([0.125, 0.25, 0.5]))}
        ),
        *SOFTMAX,
        masked_template("special", (12, 7), 12, 7, domains={"grad_output": choice([1.0, 0.5, nan, 2.0, *range(9)])}),
        masked_template("exact", (6, 64), 6, 64, scale=0.5, dtypes=DtypeSelection.all, exact=True).replace(
            arguments={"output": tensor(6, 64, domain=choice([0.125, 0.25, 0.5]))},
            domains={"grad_output": integer_values(-4, 4)},
        ),
    ),
    derive=masked_softmax_arguments,
)

CaseFacts(finds_extremes=True).declare("diopiScaledMaskedSoftmax")

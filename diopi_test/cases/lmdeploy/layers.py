"""Cases of layers: root mean square norms, and the gated feed-forward layer.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). Smoke cases belong to the shortest level of the
suite.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from typing import Any

from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import avoid_points, choice, log_uniform, normal
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.lmdeploy.arguments import F32, MANY_ROWS, NO_WORKSPACE, smoke_template, workspace_calls
from diopi_test.cases.template import CaseTemplate, DtypeSelection, register, tensor

Shape = tuple[int, ...]
"""The sizes of a template."""

# Norms of rows

EPS = 2.0**-17
"""The number that the norms add under the root; a power of two, so that float32 represents it exactly."""


def _norm_arguments(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of both norms for the sizes (rows, elements per row) of a template."""
    rows, width = template.sizes
    data = tensor(rows, width, domain=normal(2), layout=template.layout)
    parameter = tensor(width, domain=avoid_points([0], normal()))
    return {"inoutput": data, "residual": data, "bias": parameter, "scale": parameter, "eps": EPS}


def _normal_starting_with(value: float) -> Any:
    """Return a domain of normally distributed numbers, in which the first number is replaced by `value`."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Return normally distributed numbers, beginning with `value`."""
        values = normal()(rng, count, dtype)
        values[:1] = value
        return values

    return draw


ZERO = choice([0.0])
"""The domain that contains only 0."""

NORM_TEMPLATES = (
    smoke_template("rows", 4, 33),
    CaseTemplate("one-row", (1, 64), dtypes=DtypeSelection.all),
    CaseTemplate("many-rows", (67, 5), dtypes=half),
    CaseTemplate("one-column", (5, 1)),
    CaseTemplate("no-rows", (0, 8)),
    CaseTemplate("long", (2, 4099), dtypes=(F32, Dtype.bfloat16)),
    CaseTemplate("strided", (3, 17), layout=strided, dtypes=DtypeSelection.all),
    CaseTemplate("transposed", (6, 9), layout=transposed),
    CaseTemplate("scale-strided", (3, 17), {"scale": tensor(17, layout=strided)}),
    CaseTemplate("eps-large", (4, 9), {"eps": 0.5}, dtypes=DtypeSelection.all),
    CaseTemplate("eps-0", (4, 9), {"eps": 0.0}),
    CaseTemplate("below-eps", (4, 9), {"eps": 0.25}, domains={"inoutput": normal(0.01), "residual": normal(0.01)}),
    CaseTemplate("squares-overflow", (3, 40), domains={"inoutput": normal(900), "residual": normal(90)}, dtypes=half),
    CaseTemplate("far-apart", (4, 21), domains={"inoutput": log_uniform(-20, 20)}),
    CaseTemplate("nan", (4, 9), domains={"inoutput": _normal_starting_with(nan)}),
    CaseTemplate("infinity", (4, 9), domains={"inoutput": _normal_starting_with(-inf)}),
    CaseTemplate("many-rows", (MANY_ROWS, 3), large=True),
    CaseTemplate("long-rows", (17, 4_099), dtypes=(Dtype.float16,), large=True),
)
"""The templates that both norms have. Their sizes are (rows, elements per row)."""

register("diopiRootMeanSquareNormInp", templates=NORM_TEMPLATES, derive=_norm_arguments)
register(
    "diopiFusedAddRootMeanSquareNormInp",
    templates=(
        *NORM_TEMPLATES,
        CaseTemplate("no-bias", (4, 33), {"bias": None}, dtypes=DtypeSelection.all),
        CaseTemplate("residual-alone", (4, 9), domains={"inoutput": ZERO, "bias": ZERO}),
        CaseTemplate("residual-transposed", (4, 9), {"residual": tensor(4, 9, layout=transposed)}),
        CaseTemplate("inoutput-transposed", (4, 9), {"inoutput": tensor(4, 9, layout=transposed)}),
    ),
    derive=_norm_arguments,
)

# The feed-forward layer


def _ffn_arguments(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiFusedSiluFfnInp` for the sizes (rows, width, inner width) of a template."""
    rows, width, inner = template.sizes
    weights: dict[str, Any] = {"layout": template.layout, "domain": normal(0.5)}
    return {
        "inoutput": tensor(rows, width, layout=template.layout),
        "weight1": tensor(width, inner, **weights),
        "weight2": tensor(inner, width, **weights),
        "weight3": tensor(width, inner, **weights),
        **NO_WORKSPACE,
    }


def _draw_open_gates(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return random weights that are 0 or 64, so that the gates are 0 or at least 64.

    The logistic function σ of at least 64 rounds to 1. The products of the layer are therefore integers.
    """
    return 64.0 * rng.integers(0, 2, count)


_NEARLY_CLOSED_GATES = choice([-15.0, -14.5, -14.0])
"""A domain of weights; the sum of six of them is between −90 and −84.

For such gates, the logistic function σ returns about the smallest normal number of float32, and its underflow matters.
"""

FFN_SMOKE = smoke_template("plain", 5, 12, 7)
"""A feed-forward layer with the default sizes: a template of smoke cases in every element type."""

register(
    "diopiFusedSiluFfnInp",
    templates=(
        FFN_SMOKE,
        CaseTemplate("wide", (3, 6, 29), dtypes=DtypeSelection.all),
        CaseTemplate("one-row", (1, 16, 11), dtypes=DtypeSelection.all),
        CaseTemplate("one-inside", (4, 5, 1)),
        CaseTemplate("as-wide-inside", (4, 6, 6), dtypes=DtypeSelection.all),
        CaseTemplate("many-rows", (37, 4, 6), dtypes=half),
        CaseTemplate("no-rows", (0, 4, 6)),
        CaseTemplate("long", (2, 515, 9), dtypes=(F32, Dtype.bfloat16)),
        CaseTemplate("long-inside", (2, 9, 515), dtypes=(F32, Dtype.float16)),
        CaseTemplate("strided", (4, 6, 5), layout=strided),
        CaseTemplate("transposed", (4, 6, 5), layout=transposed, dtypes=DtypeSelection.all),
        CaseTemplate("steep", (4, 6, 5), domains={"weight1": normal(8)}),
        CaseTemplate("nan", (4, 6, 5), domains={"inoutput": _normal_starting_with(nan)}),
        CaseTemplate("nearly-closed", (4, 6, 17), domains={"inoutput": choice([1.0]), "weight1": _NEARLY_CLOSED_GATES}),
        CaseTemplate(
            "exact",
            (6, 4, 6),
            domains={
                "inoutput": choice([0.0, 1.0]),
                "weight1": _draw_open_gates,
                "weight2": choice([-1.0, 1.0]),
                "weight3": choice([-1.0, 1.0, 0.0]),
            },
            dtypes=DtypeSelection.all,
            exact=True,
        ),
        *workspace_calls(FFN_SMOKE),
        CaseTemplate("wide", (131, 513, 1_031), large=True),
    ),
    derive=_ffn_arguments,
)

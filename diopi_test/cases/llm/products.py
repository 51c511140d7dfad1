"""Cases of `diopiMatmulAllReduce`, a matrix product that is summed over devices.

The suite uses a single device, so that the sum over devices is the product of that device. A template describes cases
that differ only in their element type (`diopi_test.cases.template`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, nan
from typing import Any

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import choice
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.llm.numbers import F16, POSITIVE, Shape
from diopi_test.cases.products import exact_numbers
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, same_layout, tensor


@dataclass(frozen=True)
class ProductSizes:
    """The sizes of a matrix product.

    Attributes:
        first_shape: The shape of the first factor, [M, K] or [batch, M, K].
        columns: The number of columns of the second factor, which has K rows.
    """

    first_shape: Shape
    columns: int


COMMUNICATION_ATTRIBUTES = {"group": "world", "reduce_op": "sum", "comm_turn": 0, "stream_mode": 1}
"""The attributes of the communication between devices. They do not change the result of a single device."""


def product_template(label: str, *first_shape: int, columns: int = 4, **fields: Any) -> CaseTemplate[ProductSizes]:
    """Return a template of a matrix product.

    Args:
        label: The label of the cases without the element type.
        *first_shape: The shape of the first factor.
        columns: The number of columns of the second factor.
        **fields: Fields of the template. `arguments` replace the defaults in `COMMUNICATION_ATTRIBUTES`.

    Returns:
        The template.
    """
    arguments = {**COMMUNICATION_ATTRIBUTES, **fields.pop("arguments", {})}
    return CaseTemplate(label, ProductSizes(first_shape, columns), arguments, **fields)


def product_arguments(template: CaseTemplate[ProductSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the tensor arguments of `diopiMatmulAllReduce` for the sizes of a template.

    Args:
        template: The template. Its layout applies to both factors.
        dtype: Not used; all tensors have the type under test.

    Returns:
        Both factors and the bias, by name.
    """
    sizes, layout = template.sizes, template.layout
    return {
        "x1": tensor(*sizes.first_shape, layout=layout),
        "x2": tensor(sizes.first_shape[-1], sizes.columns, layout=layout),
        "bias": tensor(sizes.columns),
    }


NO_BIAS = {"bias": None}
"""The argument that omits the bias."""

_EXACT_DOMAINS = dict.fromkeys(("x1", "x2", "bias"), exact_numbers)
"""Domains by argument name: integers whose products and sums are exact."""

register(
    "diopiMatmulAllReduce",
    templates=(
        product_template("", 3, 5, **SMOKE_IN_ALL_DTYPES),
        product_template("no-bias", 3, 5, arguments=NO_BIAS, dtypes=DtypeSelection.all, smoke=True),
        product_template("batch", 2, 3, 5, dtypes=DtypeSelection.all),
        product_template("batch-no-bias", 2, 3, 5, arguments=NO_BIAS),
        product_template("row", 1, 7),
        product_template("column", 6, 3, columns=1),
        product_template("outer", 4, 1),
        product_template("long", 3, 1031, dtypes=DtypeSelection.all),
        product_template("accumulated", 2, 2000, columns=3, domains=dict.fromkeys(("x1", "x2"), POSITIVE), dtypes=half),
        product_template("wide", 2, 3, columns=517),
        product_template("no-rows", 0, 5),
        product_template("nothing-to-sum", 3, 0),
        product_template("hints", 3, 5, arguments={"comm_turn": 2, "stream_mode": 0, "group": "other"}),
        product_template("transposed", 4, 6, **same_layout(transposed)),
        product_template("strided", 4, 6, **same_layout(strided), dtypes=DtypeSelection.all),
        product_template("special", 7, 5, domains={"x1": choice([1.0, nan, inf, *range(9)])}),
        product_template("exact", 5, 64, dtypes=DtypeSelection.all, domains=_EXACT_DOMAINS, exact=True),
        product_template("square", 257, 1031, columns=509, large=True),
        product_template("half", 3, 131, 517, columns=263, layout=transposed, dtypes=[F16], large=True),
    ),
    derive=product_arguments,
    non_discriminating={"accumulated": "the sum is so large that adding the bias does not change it"},
)

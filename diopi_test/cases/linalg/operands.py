"""Templates whose sizes are operands: the shapes and layouts of a function's tensor arguments, in order.

A template describes cases that differ only in their element type. Smoke cases are the small set of cases that every run
contains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from diopi_proto.dtypes import half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case
from diopi_test.cases.domains import Domain, integer_values, normal
from diopi_test.cases.elementwise import Operands
from diopi_test.cases.layouts import Layout, contiguous, strided, transposed
from diopi_test.cases.template import CaseTemplate, DtypeSelection, TensorTemplate, expand

REPRESENTATIVE_DTYPES = (Dtype.float32, Dtype.float16, Dtype.int32)
"""The default element types of templates: one single-precision, one half-precision and one integer type."""

REAL_AND_COMPLEX = (Dtype.float32, Dtype.complex64)
"""One real and one complex element type, for functions that accept only float32, float64 and complex types."""

SMOKE_FIELDS: Mapping[str, Any] = {"dtypes": DtypeSelection.all, "smoke": True}
"""The fields of templates of smoke cases in all element types."""

FLOAT16_FIELDS: Mapping[str, Any] = {"dtypes": (Dtype.float16,)}
"""The field that limits a template to float16."""

EXACT_FIELDS: Mapping[str, Any] = {"dtypes": DtypeSelection.all, "exact": True}
"""The fields of templates in all element types whose results have no rounding errors."""

MIXED_LAYOUTS: Mapping[str, Any] = {
    "layouts": (strided, transposed, strided),
    "result_layout": transposed,
    "dtypes": DtypeSelection.all,
}
"""The fields of templates whose three operands are strided, transposed and strided, and whose result is transposed."""

TRANSPOSED_RESULT: Mapping[str, Any] = {
    "layouts": (transposed, strided),
    "result_layout": transposed,
    "dtypes": DtypeSelection.all,
}
"""The fields of templates whose first operand is transposed, the others strided, and the result transposed."""

STRIDED_RESULT: Mapping[str, Any] = {"layouts": (transposed, strided, transposed), "result_layout": strided}
"""The fields of templates whose first two operands are transposed and strided, and whose result is strided."""

ACCUMULATED_FIELDS: Mapping[str, Any] = {"domain": integer_values(1, 7), "dtypes": half, "exact": True}
"""The fields of templates of long sums of positive integers, which float32 represents exactly.

A float16 or bfloat16 accumulator rounds these sums.
"""


def operand_template(
    label: str,
    *shapes: tuple[int, ...],
    layouts: Sequence[Layout] = (contiguous,),
    domain: Domain | None = None,
    **fields: Any,
) -> CaseTemplate[Operands]:
    """Return a template whose sizes are operands.

    Args:
        label: The label of the cases without the element type.
        *shapes: The shapes of the operands.
        layouts: The layouts of the operands; the last one is also the layout of all remaining operands.
        domain: The domain of the operands; None for normally distributed numbers.
        **fields: Further fields of the template. The element types are `REPRESENTATIVE_DTYPES` by default.

    Returns:
        The template.
    """
    all_layouts = [*layouts, *[layouts[-1]] * len(shapes)]
    tensors = (TensorTemplate(shape, domain or normal(), all_layouts[i]) for i, shape in enumerate(shapes))
    return CaseTemplate(label, tuple(tensors), **{"dtypes": REPRESENTATIVE_DTYPES, **fields})


def large_operand_template(label: str, *shapes: tuple[int, ...], **fields: Any) -> CaseTemplate[Operands]:
    """Return a template of large tensors, in float32 by default.

    Args:
        label: The label of the cases without the element type.
        *shapes: The shapes of the operands.
        **fields: Further arguments of `operand_template`.

    Returns:
        The template.
    """
    return operand_template(label, *shapes, **{"dtypes": (Dtype.float32,), "large": True, **fields})


def longest_axis(case: Case) -> int:
    """Return the length of the longest axis of all tensors of a case.

    No sum in a matrix product has more terms.
    """
    return max((size for shape in case.shapes for size in shape), default=1)


def expand_in_order(prototype: Prototype, templates: Sequence[CaseTemplate[Operands]]) -> Iterator[Case]:
    """Return the cases of templates whose operands are the tensor arguments of the function, in order.

    Args:
        prototype: The prototype of the function. If it has more tensor arguments than operands, the template itself has
            the remaining arguments.
        templates: The templates.

    Returns:
        The cases.
    """
    names = [p.name for p in prototype.arguments if p.is_tensor]
    return expand(prototype, templates, lambda template, dtype: dict(zip(names, template.sizes, strict=False)))

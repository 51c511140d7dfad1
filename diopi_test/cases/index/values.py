"""Templates for the argument `value` of functions that write one value to many positions.

A template describes cases that differ only in their element type. `value` is a number or a tensor without axes,
depending on the form of the function. The function converts it to the element type of the tensor to which it writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, nan
from typing import Any

from diopi_proto import parameters as kinds
from diopi_proto.dtypes import category
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.index.positions import Sizes
from diopi_test.cases.template import ByDtype, CaseTemplate, Derive
from diopi_test.cases.tensors import literal


def _takes_number(prototype: Prototype) -> bool:
    """Return whether this form of the function takes `value` as a number; otherwise it takes a tensor without axes."""
    return bool(prototype.parameter("value").annotation is kinds.Scalar)


def unconverted_value(prototype: Prototype) -> ByDtype:
    """Return an argument `value` that needs no conversion to the element type under test.

    It is True for bool, 77 for integer types, −2.625 for floating-point types, and for complex types −2.625 as a number
    or −2.625 + 0.5j as a tensor.

    Args:
        prototype: The prototype of the function or form.

    Returns:
        The argument of a template: a number, or a tensor without axes.
    """
    if _takes_number(prototype):
        return ByDtype(lambda dtype: (True, 77, -2.625, -2.625)[category(dtype)])
    return ByDtype(lambda dtype: literal((True, 77, -2.625, -2.625 + 0.5j)[category(dtype)], dtype))


CONVERSIONS: Mapping[str, tuple[Dtype, Any, Dtype]] = {
    "plain-false": (Dtype.bool, False, Dtype.bool),
    "zero-to-bool": (Dtype.bool, 0.0, Dtype.float32),
    "int-to-float": (Dtype.float32, 3, Dtype.int64),
    "int-to-half": (Dtype.float16, -7, Dtype.int32),
    "int-to-complex": (Dtype.complex64, 3, Dtype.int64),
    "float-to-int": (Dtype.int32, -2.75, Dtype.float32),
    "float-to-byte": (Dtype.uint8, 7.5, Dtype.float64),
    "float-to-bool": (Dtype.bool, 0.25, Dtype.float32),
    "int-to-bool": (Dtype.bool, 2, Dtype.int64),
    "double-to-float": (Dtype.float32, 0.1, Dtype.float64),
    "double-to-half": (Dtype.float16, 0.1, Dtype.float64),
    "double-to-double": (Dtype.float64, 0.1, Dtype.float64),
    "nan": (Dtype.float32, nan, Dtype.float32),
    "infinity": (Dtype.bfloat16, -inf, Dtype.bfloat16),
    "negative-zero": (Dtype.float32, -0.0, Dtype.float32),
    "large": (Dtype.int64, 2**53 + 1, Dtype.int64),
    "least": (Dtype.int64, -(2**63), Dtype.int64),
}
"""By label: the element type under test, the value, and the element type of the value before its conversion.

If the form of the function takes a number, the last entry is not used.
"""


def conversion_templates(prototype: Prototype, sizes: Sizes) -> Iterator[CaseTemplate[Sizes]]:
    """Yield one template with the sizes `sizes` per entry of `CONVERSIONS`."""
    for label, (dtype, number, number_dtype) in CONVERSIONS.items():
        value = number if _takes_number(prototype) else literal(number, number_dtype)
        yield CaseTemplate(label, sizes, {"value": value}, dtypes=(dtype,), smoke=label == "plain-false")


def derive_with_value(prototype: Prototype, derive: Derive[Sizes]) -> Derive[Sizes]:
    """Return a function that returns the arguments of `derive` and the argument `value`, which needs no conversion.

    Args:
        prototype: The prototype of the function or form.
        derive: Returns the other arguments for a template and an element type.

    Returns:
        The function, for `expand`. A `value` in the template takes precedence.
    """
    return lambda template, dtype: {**derive(template, dtype), "value": unconverted_value(prototype)}

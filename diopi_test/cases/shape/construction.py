"""Cases of functions that fill a new tensor: with one number, or with a sequence of numbers.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

Large cases belong to a level with the sizes of real models. `Case.non_discriminating` is the reason why a wrong result
can pass a case.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from typing import Any, Unpack

from diopi_proto.dtypes import DtypeSet, all_dtypes, category, floating, half, integer
from diopi_proto.types import Dtype
from diopi_test.cases.case import CaseClass, ResultOverride
from diopi_test.cases.layouts import Layout, channels_last, contiguous, strided, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    Arguments,
    ByDtype,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    register,
)

Shape = tuple[int, ...]
"""The sizes of a tensor."""

HALF: DtypeSet = (Dtype.float16,)
"""The element types of large cases in half precision."""

PLANE = (263, 257)
"""The shape of large matrices; both sizes are prime numbers, so that no block size divides them."""

LINE = (70_001,)
"""The length of long vectors, as a shape."""

IN_ALL_DTYPES: Mapping[str, Any] = {"dtypes": DtypeSelection.all}
"""The field of a template that yields a case for every element type."""

BOOLEAN_ATTRIBUTE: Mapping[str, Any] = {
    "dtypes": (Dtype.bool, Dtype.int32, Dtype.float32, Dtype.complex64),
    "case_class": CaseClass.callers,
}
"""Fields of templates whose cases pass a bool for a numeric argument, as some programs do.

The cases use one element type each of the categories bool, integer, floating and complex.
"""


def fill_template(
    label: str,
    shape: Shape,
    layout: Layout = contiguous,
    /,
    arguments: Arguments | None = None,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate[Shape]:
    """Return a template of calls that write a tensor of this shape and layout, in the element type under test.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the tensor.
        layout: The layout of the tensor.
        arguments: The arguments, except those that the function passed to `register` derives.
        **fields: Further fields of the template.

    Returns:
        The template. Depending on the function, the tensor is called `out`, `input` or `self`.
    """
    result = ByDtype(lambda dtype: ResultOverride(dtype, layout, shape))
    template = CaseTemplate(label, shape, arguments or {}, **fields)
    return template.replace(results=dict.fromkeys(("out", "input", "self"), result))


FILLED_TENSORS = (
    fill_template("matrix", (3, 4), **SMOKE_IN_ALL_DTYPES),
    fill_template("strided", (2, 3, 2), strided, **IN_ALL_DTYPES),
    fill_template("transposed", (4, 3, 2), transposed),
    fill_template("channels-last", (2, 3, 2, 2), channels_last),
    fill_template("rows-of-16", (3, 16)),
    fill_template("scalar", ()),
    fill_template("empty", (0, 3)),
    fill_template("one", (1,), strided),
    fill_template("long", (1031,), dtypes=DtypeSelection.one_per_size),
    fill_template("plane", PLANE, large=True),
    fill_template("half-line", LINE, dtypes=HALF, large=True),
)
"""Templates of functions that fill a tensor, for various shapes and layouts; see `fill_arguments`."""

FILLINGS: Mapping[int, Mapping[str, float]] = {
    0: {"zero": 0, "two": 2, "fraction": 0.5, "not-a-number": nan},
    1: {"zero": 0, "fraction": 5.9, "largest-of-all": 127},
    2: {"whole": 3, "tenth": -0.1, "negative-zero": -0.0, "infinite": -inf, "not-a-number": nan},
    3: {"whole": -2, "tenth": 0.1, "not-a-number": nan},
}
"""The values for `diopiFill` by category of the element type, and within a category by label.

The categories are those of `diopi_proto.dtypes.category`: 0 for bool, 1 for integer, 2 for floating and 3 for complex.
"""

EXTREME_FILLINGS: Mapping[Dtype, tuple[float, ...]] = {
    Dtype.int64: (2**53 + 1, -(2**63)),
    Dtype.int32: (-(2**31), 2**24 + 1, -2.9),
    Dtype.int16: (-300,),
    Dtype.int8: (-128,),
    Dtype.uint8: (255,),
    Dtype.float32: (2**24 + 3,),
    Dtype.float64: (2**53 - 1,),
}
"""Further values for `diopiFill` by element type.

Most are limits of the type, or integers that a conversion to a narrower floating-point type would change. The value
−2.9 is truncated in int32.
"""

FILL_TEMPLATES = (
    *FILLED_TENSORS,
    *(
        fill_template(
            label,
            (2, 3),
            arguments={"value": value},
            dtypes=[dtype for dtype in all_dtypes if category(dtype) == number],
        )
        for number, values in FILLINGS.items()
        for label, value in values.items()
    ),
    *(
        fill_template(f"value{value}", (2, 3), arguments={"value": value}, dtypes=(dtype,))
        for dtype, extremes in EXTREME_FILLINGS.items()
        for value in extremes
    ),
    fill_template("truth", (2, 3), arguments={"value": True}, **BOOLEAN_ATTRIBUTE),
)
"""The templates of `diopiFill`."""

EQUAL_ELEMENTS_REASONS = {".*": "the function returns equal elements"}
"""The reason why these cases cannot detect exchanged elements, by a regular expression for labels.

`register` accepts such reasons as `non_discriminating`.
"""


def fill_arguments(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of functions that fill a tensor.

    Args:
        template: The template. A `value` in its arguments takes precedence.
        dtype: Not used.

    Returns:
        The arguments `size`, and `value` with the default 1. Functions without these parameters, such as
        `diopiZeroInp`, ignore them.
    """
    return {"size": template.sizes, "value": 1}


register(
    "diopiOnes",
    "diopiZeros",
    "diopiZeroInp",
    templates=FILLED_TENSORS,
    derive=fill_arguments,
    non_discriminating=EQUAL_ELEMENTS_REASONS,
)
register("diopiFill", templates=FILL_TEMPLATES, derive=fill_arguments, non_discriminating=EQUAL_ELEMENTS_REASONS)


def range_template(
    label: str,
    start: float,
    end: float,
    step: float,
    length: int,
    layout: Layout = contiguous,
    /,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate[Shape]:
    """Return a template of `diopiArange`: numbers from `start` to `end` (not included) at the distance `step`.

    Args:
        label: The label of the cases.
        start: The first number.
        end: The end of the range, which the result does not contain.
        step: The difference of consecutive numbers.
        length: The expected number of elements.
        layout: The layout of the result.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    return fill_template(label, (length,), layout, {"start": start, "end": end, "step": step}, **fields)


ARANGE = (
    range_template("up", 0, 7, 1, 7, exact=True, **SMOKE_IN_ALL_DTYPES),
    range_template("third", 2, 20, 3, 6, strided, exact=True, **IN_ALL_DTYPES),
    range_template("not-reaching", 1, 12, 4, 3, exact=True, **IN_ALL_DTYPES),
    range_template("down", 9, 1, -2, 4, exact=True, **IN_ALL_DTYPES),
    range_template("one", 3, 4, 5, 1, exact=True, **IN_ALL_DTYPES),
    range_template("none", 4, 4, 1, 0, exact=True, **IN_ALL_DTYPES),
    range_template("quarters", -1.0, 1.5, 0.25, 10, dtypes=floating),
    range_template("tenths", 0.0, 1.05, 0.1, 11, dtypes=floating),
    range_template("down-across-zero", 2.3, -3.2, -0.7, 8, dtypes=floating),
    range_template("mixed-payloads", 1, 3.4, 0.5, 5, dtypes=floating),
    range_template("long", -3.73, 48.0, 0.05, 1035, dtypes=(Dtype.float32, Dtype.float64)),
    range_template("long", 0, 1031, 1, 1031, dtypes=half),
    range_template("long", -500, 2593, 3, 1031, dtypes=(Dtype.int32,)),
    range_template("beyond-double", 2**53 + 1, 2**53 + 6, 1, 5, dtypes=(Dtype.int64,)),
    range_template("truncated", 1.9, 7.9, 2.2, 3, dtypes=(Dtype.int32, Dtype.int64, Dtype.uint8)),
    range_template("truncated-negative", -1.9, -7.9, -2.2, 3, dtypes=(Dtype.int32,)),
    range_template("rows-of-16", 3, 35, 1, 32, exact=True),
    range_template("to-zero", -2.6, 0.0, 0.4, 7, dtypes=(Dtype.float32,)),
    range_template("from-truth", True, 6, 1, 5, exact=True, **BOOLEAN_ATTRIBUTE),
    range_template("to-truth", -4, True, 1, 5, exact=True, **BOOLEAN_ATTRIBUTE),
    range_template("by-truth", 2, 7, True, 5, exact=True, **BOOLEAN_ATTRIBUTE),
    range_template("line", 0, 70_001, 1, 70_001, exact=True, large=True),
    range_template("int32-steps", -7, 210_000, 3, 70_003, exact=True, dtypes=(Dtype.int32,), large=True),
)
"""The templates of `diopiArange`.

Their cases detect a wrong length, and the rounding errors of a vendor that adds the step repeatedly. "truth" in a label
means that a bool is passed for a number.
"""

register(
    "diopiArange",
    templates=ARANGE,
    non_discriminating={"one": "a single element is the start value, whatever the step is"},
)


def linspace_template(
    label: str,
    start: float,
    end: float,
    steps: int,
    layout: Layout = contiguous,
    /,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate[Shape]:
    """Return a template of `diopiLinspace`: `steps` equally spaced numbers from `start` to `end`.

    Args:
        label: The label of the cases.
        start: The first number.
        end: The last number, if there are at least two.
        steps: The number of elements.
        layout: The layout of the result.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    return fill_template(label, (steps,), layout, {"start": start, "end": end, "steps": steps}, **fields)


LINSPACE = (
    linspace_template("up", 0, 8, 5, exact=True, **SMOKE_IN_ALL_DTYPES),
    linspace_template("down", 9, 1, 9, exact=True, **IN_ALL_DTYPES),
    linspace_template("one", 3, 7, 1, exact=True, **IN_ALL_DTYPES),
    linspace_template("two", 3, 7, 2, exact=True, **IN_ALL_DTYPES),
    linspace_template("constant", 5, 5, 4, exact=True, **IN_ALL_DTYPES),
    linspace_template("thirds", 1, 12, 4, strided, **IN_ALL_DTYPES),
    linspace_template("across-zero", -3.7, 7.9, 9, dtypes=floating),
    linspace_template("symmetric", -1.0, 1.0, 8, dtypes=floating),
    linspace_template("backwards", 0.3, -0.55, 7, dtypes=floating),
    linspace_template("mixed-payloads", -1, 2.5, 6, dtypes=floating),
    # Results of these cases are integers, truncated if necessary. If an implementation adds an inexact step repeatedly,
    # the sum may fall just below an integer, and truncation then returns the preceding integer.
    linspace_template("counted", 0, 49, 50, dtypes=integer),
    linspace_template("counted-down", 52, 3, 50, dtypes=integer),
    linspace_template("sevenths", 0, 7, 50, dtypes=integer),
    linspace_template("elevenths", 100, 3, 12, dtypes=integer),
    linspace_template("counted-wide", -(2**40), 2**41, 8, dtypes=(Dtype.int64,)),
    linspace_template("rows-of-16", 1, 32, 32, exact=True),
    linspace_template("none", 0, 1, 0),
    linspace_template("long", -10.5, 99.25, 1031, dtypes=(Dtype.float32, *half)),
    linspace_template("truncated", 2.9, 10.9, 4, dtypes=(Dtype.int32,)),
    linspace_template("towards-zero", -9, 7, 6, dtypes=(Dtype.int32, Dtype.int64)),
    linspace_template("to-zero", -1.3, 0.0, 6, dtypes=(Dtype.float32,)),
    linspace_template("from-truth", True, 9, 5, exact=True, **BOOLEAN_ATTRIBUTE),
    linspace_template("to-truth", -7, True, 5, exact=True, **BOOLEAN_ATTRIBUTE),
    linspace_template("line", -11, 37, 70_001, large=True),
    linspace_template("half", -11, 37, 70_001, dtypes=HALF, large=True),
)
"""The templates of `diopiLinspace`."""

register("diopiLinspace", templates=LINSPACE, non_discriminating={"constant": "the start equals the end"})

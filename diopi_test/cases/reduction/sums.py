"""Cases of sums, means, standard deviations, products and running sums.

A template describes cases that differ only in their element type (`diopi_test.cases.template`). A pattern is a template
with a shape and axes, but without a domain of the input; `with_domain` adds the domain.

A domain draws the values of a tensor (`diopi_test.cases.domains`). Large cases belong to a level with the sizes of real
models. `Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from math import inf, nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import category, complexes, floating, half, integer, integral
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases import half_sums
from diopi_test.cases.axes import ONE_AXIS, Axes
from diopi_test.cases.case import Case, CaseClass, TensorSpec, cases_for
from diopi_test.cases.domains import (
    Domain,
    choice,
    full_range,
    integer_values,
    log_uniform,
    normal,
    uniform,
    with_value_in_middle,
)
from diopi_test.cases.exact_integers import integers_without_overflow
from diopi_test.cases.layouts import strides
from diopi_test.cases.reduction.patterns import (
    ALL_ELEMENTS,
    ANY_AXES_TEMPLATES,
    BF16,
    CHOSEN_TYPE_ROWS,
    COLUMNS,
    COLUMNS_OF_16,
    F16,
    F32,
    F64,
    FAR_ROWS,
    INEXACT_DTYPES,
    KEPT_COLUMNS,
    LONG,
    LONG_ROWS,
    NO_ELEMENTS,
    ONE_OR_ALL_AXES_TEMPLATES,
    ROWS,
    SIX_AXES,
    domain_by_type,
    patterns_from_domain,
    reduction_cases,
    result_type,
    with_domain,
)
from diopi_test.cases.template import CaseTemplate, DtypeSelection
from diopi_test.cases.type_promotion import IntegerGap

POWER_OF_TWO_ROWS = Axes.template("", (2, 1024), (1,))
"""A pattern of rows whose length is a power of two, so that their mean is exact if their sum is."""

WIDER_DTYPES = {F16: F32, BF16: F32, F32: F64}
"""By type of the summands, a type of the result that represents a sum exactly although the summands' type does not."""

INFINITE_NUMBERS = choice([inf, -inf, nan, *[0.5, 1.0, -2.0, 3.0, -0.25] * 6])
"""A domain of numbers, a few of which are infinite or NaN."""


def _draw_cancelling(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return columns of 16 numbers that add up to 16 or less, while partial sums leave the range of float16."""
    large = [32768.0] * 7 + [-32768.0] * 7
    columns = [[*large, 3.0, 13.0 - 2 * number] for number in range(count // 16)]
    return rng.permuted(np.array(columns), axis=1).T.reshape(-1)


def _large_integers(dtype: Dtype) -> Domain:
    """Return a domain of integers so large that their sums need a wider type than `dtype`."""
    largest = 2**24 if dtype is F32 else 9
    return integer_values(largest // 2, largest)


LARGE_AXES = (
    Axes.template("long-rows", (5, 65_537), (1,), large=True),
    Axes.template("many-rows", (70_001, 3), (1,), large=True),
    Axes.template("long-columns", (32_003, 7), (0,), large=True),
    Axes.template("long-rows-added", (17, 50_021), (0,), large=True),
    Axes.template("six-axes", SIX_AXES, (1, 3, 4), large=True),
)
"""Large patterns: long rows, many rows, long columns, and three of six axes."""


def large_templates(domain: Domain, **fields: Any) -> Iterator[CaseTemplate[Axes]]:
    """Yield large templates of sums.

    Args:
        domain: The domain of the summands.
        **fields: Other fields of the templates.

    Yields:
        The templates for all patterns in `LARGE_AXES`, and one in float16 with gaps between rows.
    """
    yield from patterns_from_domain(LARGE_AXES, domain, INEXACT_DTYPES, **fields)
    yield with_domain(FAR_ROWS, domain, (F16,), **fields)


ALL_OF_PLANE = Axes.template("all", (263, 257), (), large=True)
"""A pattern of a large matrix that is reduced to one element."""

HUGE_ROWS = Axes.template("huge", (70_001, 3), (1,), layout=strides(7_703, 1), large=True)
"""A pattern of rows so far apart that they span more than 2^31 bytes."""

SUMS = (
    *patterns_from_domain(ANY_AXES_TEMPLATES, normal(mean=0.5), INEXACT_DTYPES),
    with_domain(POWER_OF_TWO_ROWS, integer_values(1, 9), INEXACT_DTYPES, "exact", exact=True),
    with_domain(COLUMNS_OF_16, _draw_cancelling, INEXACT_DTYPES, "exact-cancelling", exact=True),
    with_domain(LONG_ROWS, log_uniform(-6, 4, signed=False), (*half, F32, Dtype.complex64), "long-rows-positive"),
    *(
        with_domain(
            POWER_OF_TWO_ROWS,
            _large_integers(source),
            (source,),
            f"to-{target.name}",
            results=result_type(target, (2,)),
            exact=True,
        )
        for source, target in WIDER_DTYPES.items()
    ),
    with_domain(COLUMNS, INFINITE_NUMBERS, floating, "infinite"),
    *large_templates(normal(mean=0.5)),
    *patterns_from_domain((ALL_OF_PLANE, HUGE_ROWS), normal(mean=0.5), INEXACT_DTYPES),
)
"""Templates of sums and means of floating-point and complex numbers.

The exact cases reveal an accumulator that has too few bits.
"""


def _rounded_integers(dtype: Dtype) -> Domain:
    """Return a domain of integers that the floating type rounds. Sums and means of four rounded integers are exact."""
    start = 2 * IntegerGap(dtype).first
    return choice([sign * (start + offset) for offset in (1, 15) for sign in (1, -1)])


VERY_LONG_ROWS = Axes.template("", (3, 150_001), (1,), large=True)
"""A pattern of three rows of 150,001 elements."""

LARGE_SUMMANDS = (
    with_domain(ROWS, integers_without_overflow(terms=5), (Dtype.int32, Dtype.int64), "without-overflow"),
    with_domain(LONG, uniform(2**14, 2**15 - 1), (Dtype.int16,), "without-overflow"),
    with_domain(VERY_LONG_ROWS, uniform(120, 127), (Dtype.uint8, Dtype.int8), "very-long-without-overflow"),
)
"""Templates of integers whose sums a floating-point type can't represent, although they do not overflow."""

FRACTIONS = choice([1.7, -2.7, 3.5, -0.9, 2.2])
"""A domain of numbers that a conversion to integers truncates."""

COMPLEX_NUMBERS = choice([1.5 + 2j, -0.5 - 1j, 2 + 1j])
"""A domain of complex numbers that are converted to a real type."""

SUMMANDS_BY_TYPES: dict[tuple[Dtype, Dtype], Domain] = {
    (F32, Dtype.int32): FRACTIONS,
    (F64, Dtype.uint8): choice([1.7, 2.7, 3.5, 1.9]),
    (F32, Dtype.bool): choice([0.5, -0.25, *[0.0] * 12]),
    (F64, F32): _rounded_integers(F32),
    (F32, F16): _rounded_integers(F16),
    (Dtype.int32, F16): _rounded_integers(F16),
    (Dtype.int32, Dtype.int8): choice([300, 7, -3, 1, 515]),
    (Dtype.complex64, F32): COMPLEX_NUMBERS,
}
"""The domain of summands, by the element type of the input and the element type that the caller requests.

The function converts the summands to the requested type before it adds them.
"""

FACTORS_BY_TYPES: dict[tuple[Dtype, Dtype], Domain] = {
    **SUMMANDS_BY_TYPES,
    (F32, Dtype.bool): choice([*[0.5, -0.25] * 6, 0.0]),
    (F64, F32): choice([1e39, -1e-3, 0.5, 3.0]),
    (F32, F16): choice([7e4, -1e-3, 0.5, 3.0]),
    (Dtype.int32, F16): choice([3, -2, 1]),
}
"""The domain of factors of products, by the element type of the input and the element type that the caller requests.

Some factors are infinite in the requested type.
"""


def result_type_templates(
    prototype: Prototype,
    numbers: Mapping[tuple[Dtype, Dtype], Domain],
    shape: tuple[int, ...] = CHOSEN_TYPE_ROWS.sizes.reduced_shape,
) -> Iterator[CaseTemplate[Axes]]:
    """Yield templates whose result has an element type that the caller chooses.

    Args:
        prototype: The prototype of the function.
        numbers: The domain, by the element types of the input and of the result. Products use `FACTORS_BY_TYPES`.
        shape: The shape of the result.

    Yields:
        The templates. They are exact, except for products and for complex input.
    """
    for (source, target), domain in numbers.items():
        if target in prototype.selectable_dtypes:
            template = with_domain(
                CHOSEN_TYPE_ROWS, domain, (source,), f"ordered-{target.name}", case_class=CaseClass.callers
            )
            exact = numbers is not FACTORS_BY_TYPES and domain is not COMPLEX_NUMBERS
            yield template.replace(results=result_type(target, shape), exact=exact)


def _count_terms(case: Case) -> int:
    """Return the number of terms of each sum in a case of a reduction."""
    shape, axes = case.arguments["input"].shape, case.arguments["dim"]
    return math.prod(shape[axis] for axis in axes or range(len(shape)))


@cases_for("diopiSum")
def sum_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiSum`."""
    integers = (
        *(with_domain(pattern, full_range, integral) for pattern in (ROWS, KEPT_COLUMNS, ALL_ELEMENTS, NO_ELEMENTS[0])),
        with_domain(LONG, full_range, (Dtype.bool, Dtype.uint8, Dtype.int32)),
    )
    cases = reduction_cases(
        prototype, (*SUMS, *result_type_templates(prototype, SUMMANDS_BY_TYPES), *integers, *LARGE_SUMMANDS)
    )
    return half_sums.reveal_half_sums(cases, _count_terms, domain_of=half_sums.integer_factors(1))


@cases_for("diopiMean")
def mean_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiMean`."""
    # PyTorch computes means in half precision after it has converted an input of any type to float32
    added = {types: domain for types, domain in SUMMANDS_BY_TYPES.items() if types[1] not in half}
    # their sum is beyond the range of the type, their mean is not
    large = with_domain(ROWS, uniform(50000, 65000), (F16,), "large")
    cases = reduction_cases(prototype, (*SUMS, *result_type_templates(prototype, added), large))
    return half_sums.reveal_half_sums(cases, _count_terms, domain_of=half_sums.integer_multiples)


STANDARD = normal()
"""The domain of the standard normal distribution."""

NO_DEVIATION_REASONS = {
    "length-one|one-element": "the deviation of a single element is 0",
    "correction-[57]": "with 5 elements and a correction of 5 or more, the divisor is 0",
}
"""Why wrong results can pass a case (`Case.non_discriminating`), by a regular expression for labels."""


def _draw_widening(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return normally distributed numbers whose standard deviation grows from 0.5 to 4, from the first to the last."""
    return rng.normal(0, 1, count) * np.linspace(0.5, 4, count)


def deviation_template(
    label: str, pattern: CaseTemplate[Axes], correction: float | None, domain: Domain = STANDARD, **fields: Any
) -> CaseTemplate[Axes]:
    """Return a template of a standard deviation.

    Args:
        label: The label of the cases without the element type.
        pattern: The pattern.
        correction: The number that is subtracted from the number of elements in the divisor of the variance; None for
            the default.
        domain: The domain of the input.
        **fields: Other fields of the template.

    Returns:
        The template.
    """
    return with_domain(pattern, domain, label=label, arguments={"correction": correction}).replace(**fields)


ROWS_OF_5 = Axes.template("", (7, 5), (1,))
"""A pattern of a matrix whose rows of 5 elements are reduced. The templates must add a label."""

DEVIATIONS = (
    *patterns_from_domain(ANY_AXES_TEMPLATES, STANDARD, INEXACT_DTYPES, arguments={"correction": None}),
    *(deviation_template(f"correction-{number}", ROWS_OF_5, number, dtypes=DtypeSelection.all) for number in (0, 1.5)),
    *(deviation_template(f"correction-{number}", ROWS_OF_5, number) for number in (1, 2, 1.0, 5, 7)),
    deviation_template("far-from-zero", LONG_ROWS, 0, normal(1, 16), dtypes=DtypeSelection.all),
    deviation_template("one-element", Axes.template("", (3, 1), (1,)), None),
    deviation_template("one-element-correction-0", Axes.template("", (1, 3), (0,)), 0),
    deviation_template("very-long-rows", Axes.template("", (20, 400), (1,)), None, _draw_widening, dtypes=half),
    deviation_template(
        "large", ROWS_OF_5, 0, uniform(300, 3000), dtypes=(F16,)
    ),  # their squares are beyond the range of the type
    deviation_template("infinite", COLUMNS, 1, choice([nan, inf, -inf, *[1.0, -2.0, 0.5, -3.0] * 7]), dtypes=floating),
    *large_templates(STANDARD, arguments={"correction": None}),
)
"""The templates of `diopiStd`."""


def _lengthen(sizes: Axes) -> Axes | None:
    """Return the sizes of a template with longer slices, or None if they can't be longer.

    Args:
        sizes: The sizes.

    Returns:
        Sizes with at least 24 slices of 307 elements along the reduced axis. None if there are several reduced axes,
        fewer than two axes, or fewer than 4 elements per slice.
    """
    if len(sizes.axes) != 1 or len(sizes.shape) < 2 or sizes.shape[sizes.axes[0]] < 4:
        return None
    reduced = sizes.axes[0] % len(sizes.shape)
    shape = [307 if axis == reduced else size + 1 for axis, size in enumerate(sizes.shape)]
    shape[0 if reduced else 1] += 24
    return Axes(tuple(shape), sizes.axes, sizes.keepdim)


@cases_for("diopiStd", non_discriminating=NO_DEVIATION_REASONS)
def std_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiStd`."""
    infinite = [template for template in DEVIATIONS if template.label == "infinite"]  # a long row has only NaN
    finite = [template for template in DEVIATIONS if template.label != "infinite"]
    return reduction_cases(prototype, (*half_sums.templates_with_long_half_rows(finite, _lengthen), *infinite))


def _draw_balanced(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return rows of 18 factors with a small product; partial products leave the range of float16, not of float32."""
    rows = [[16.0] * 8 + [1 / 16] * 8 + [3.0, 1.0 - 2 * number] for number in range(count // 18)]
    return rng.permuted(np.array(rows), axis=1)


LARGE_PRODUCTS = (
    Axes.template("many-rows", (70_001, 3), (1,), large=True),
    Axes.template("long-rows", (257, 263), (1,), large=True),
    Axes.template("long-columns", (131, 517), (0,), large=True),
)
"""Large patterns of products."""

PRODUCTS = (
    *patterns_from_domain(ONE_OR_ALL_AXES_TEMPLATES, log_uniform(-1, 1), INEXACT_DTYPES),
    *patterns_from_domain(ONE_OR_ALL_AXES_TEMPLATES, choice([1, 1, 1, 1, 1, 1, 1, 0]), (Dtype.bool,)),
    *patterns_from_domain(ONE_OR_ALL_AXES_TEMPLATES, full_range, integer),
    with_domain(ROWS, integers_without_overflow(factors=5), (Dtype.int32, Dtype.int64), "without-overflow"),
    with_domain(ROWS, choice([3.0, 5.0, -7.0]), floating, "exact", exact=True),
    with_domain(ROWS, choice([1 + 2j, -3j, 2 - 1j]), complexes, "exact", exact=True),
    with_domain(COLUMNS, choice([inf, nan, -inf, *[0.5, -2.0, 4.0, 1.0] * 6]), floating, "infinite"),
    with_domain(COLUMNS, choice([0.0, -0.0, *[0.5, -2.0, 4.0] * 4]), floating, "zeros", exact=True),
    with_domain(Axes.template("", (5, 18), (1,)), _draw_balanced, (F16,), "partial-overflow", exact=True),
    *patterns_from_domain(LARGE_PRODUCTS, log_uniform(-1, 1), INEXACT_DTYPES),
)
"""The templates of `diopiProd` that do not request an element type of the result."""


@cases_for("diopiProd")
def prod_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiProd`."""
    return reduction_cases(prototype, (*result_type_templates(prototype, FACTORS_BY_TYPES), *PRODUCTS))


LARGE_RUNNING_TEMPLATES = (
    Axes.template("long-rows", (5, 32_003), (1,), large=True),
    Axes.template("many-rows", (70_001, 3), (1,), large=True),
    Axes.template("middle", (7, 1031, 11), (1,), large=True),
)
"""Large patterns of running sums."""

RUNNING_TEMPLATES = (*ONE_AXIS, Axes.template("empty-slices", (3, 0), (1,), all_dtypes=True))
"""Patterns of running sums."""


def _count_steps(case: Case) -> int:
    """Return the number of terms of the longest running sum in a case."""
    tensor_spec = next(value for value in case.arguments.values() if isinstance(value, TensorSpec))
    return tensor_spec.shape[case.arguments["dim"]] if tensor_spec.shape else 1


@cases_for("diopiCumsum", "diopiCumsumBackward")
def cumsum_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiCumsum` and of its gradient."""
    domain = domain_by_type(lambda dtype: normal() if category(dtype) > 1 else full_range)
    templates = (
        *result_type_templates(prototype, SUMMANDS_BY_TYPES, CHOSEN_TYPE_ROWS.sizes.shape),
        *patterns_from_domain((*RUNNING_TEMPLATES, *LARGE_RUNNING_TEMPLATES), domain, prototype.dtypes),
        with_domain(Axes.template("half", (67, 1031), (1,), large=True), domain, (F16,)),
        with_domain(LONG, integer_values(0, 9), (*INEXACT_DTYPES, Dtype.bool), "exact", exact=True),
        with_domain(COLUMNS, choice([nan, inf, -inf, *[1.0, -2.0, 0.5] * 9]), floating, "infinite"),
        with_domain(LONG, with_value_in_middle(nan, integer_values(0, 9)), floating, "one-nan"),
        *LARGE_SUMMANDS,
    )
    cases = reduction_cases(prototype, templates, lambda sizes: sizes.shape)
    return half_sums.reveal_half_sums(cases, _count_steps, domain_of=half_sums.integer_factors(1))

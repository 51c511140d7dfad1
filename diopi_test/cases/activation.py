"""The cases of activation functions and their gradients.

A template describes cases that differ only in their element type. A pattern is a template that has only shapes and
layouts. `with_domains` adds a label to a pattern, and the domains from which the elements of the arguments are drawn. A
domain is a distribution or a set of values. Smoke cases are the small set of cases that every run contains.

A case is non-discriminating if an implementation with a coarse error passes it. Such a case states the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import all_dtypes, floating, half, real
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.axes import ONE_AXIS, Axes
from diopi_test.cases.case import Case, CaseClass, ResultOf, ResultOverride, Values, cases_for
from diopi_test.cases.domains import (
    Domain,
    avoid_points,
    choice,
    full_range,
    integer_values,
    non_integers,
    normal,
    special,
    special_except,
    uniform,
)
from diopi_test.cases.elementwise import UNIFORM, Elementwise, Operands, pattern_template, vary_argument
from diopi_test.cases.facts import CaseFacts, NumberChoice
from diopi_test.cases.layouts import strides, transposed
from diopi_test.cases.template import Arguments, ByDtype, CaseTemplate, DtypeSelection, TensorTemplate, expand, tensor
from lib_rt.formats import format_of

Shape = tuple[int, ...]
"""The sizes of a tensor."""

ROWS_TEMPLATE = ONE_AXIS[0]
"""A template of a 7 × 5 matrix, for functions such as softmax that normalize its rows."""

ELEMENTWISE_PATTERNS = [
    pattern.replace(dtypes=DtypeSelection.all if pattern.smoke else DtypeSelection.leading) for pattern in UNIFORM
]
"""The patterns `UNIFORM`: smoke patterns in every element type, the others in the leading type (usually float32)."""

MATRIX_PATTERN = pattern_template("matrix", (7, 5))
"""A pattern of a 7 × 5 matrix, in the leading element type of a function (usually float32)."""

MATRIX_PATTERN_IN_ALL_DTYPES = MATRIX_PATTERN.replace(dtypes=DtypeSelection.all)
"""The pattern `MATRIX_PATTERN`, in all element types of a function."""

SPECIAL_PATTERN = pattern_template("special", (19,), smoke=True, dtypes=DtypeSelection.all)
"""A pattern for special values, such as NaN and infinities: a vector of 19 elements, one per special value."""

SPECIAL_PAIRS_PATTERN = pattern_template("ends", (6, 19), smoke=True, dtypes=DtypeSelection.all)
"""A pattern of 6 × 19 elements for gradients whose grad_output has special values, such as NaN and infinities.

Each row of grad_output contains all 19 special values of a floating-point type. The other tensor has one value per row,
so that each special value is combined with several values of the other tensor.
"""

MODERATE_GRADIENTS = choice([1.5, -0.75, 3.0, nan, -0.3])
"""Values of grad_output for derivatives that are sums of several terms: numbers of moderate magnitude, and NaN.

Products with these numbers neither overflow nor underflow, so the result does not depend on the order of the terms.
"""

INPUTS_AROUND_ONE = choice([-1.0, 1.0, 0.0, -0.0, 0.5, -1.5, 1.5, inf, -inf])
"""Inputs of the gradient of hardtanh at, between and outside the bounds −1 and 1."""

INPUTS_AROUND_ZERO = choice([0.0, -0.0, 1.0, -1.0, inf, -inf, nan])
"""Inputs of functions whose derivative jumps at 0: zeros and infinities of both signs, 1, −1 and NaN."""

ADJACENT_INTEGERS = choice([2**62 + i for i in range(12)])
"""Twelve successive int64 numbers from 2^62 on, which become equal if a kernel converts them to float64."""

DTYPES_EXCEPT_UINT8 = [dtype for dtype in all_dtypes if dtype is not Dtype.uint8]
"""All element types except uint8, which has no negative numbers."""


def with_all_patterns(
    domains: Mapping[str, Domain], label: str = "", arguments: Arguments | None = None
) -> list[CaseTemplate[Operands]]:
    """Return one template per pattern in `ELEMENTWISE_PATTERNS`.

    Args:
        domains: The domains of the tensors, by argument name.
        label: The start of the labels. A dash and the label of the pattern follow it.
        arguments: The arguments of all templates that are not tensors, by name.

    Returns:
        The templates.
    """
    return [pattern.with_domains(domains, label, arguments) for pattern in ELEMENTWISE_PATTERNS]


HARDTANH_BOUNDS: dict[str, Mapping[str, float]] = {
    "unit": {"min_val": -1.0, "max_val": 1.0},
    "fractions": {"min_val": -0.3, "max_val": 1.7},
    "integers": {"min_val": -1, "max_val": 2},
    "positive": {"min_val": 0.5, "max_val": 1.5},
}
"""The bounds of hardtanh, as arguments by name, for each label of a template."""

EQUAL_HARDTANH_BOUNDS = {"min_val": 0.75, "max_val": 0.75}
"""Bounds of hardtanh that are equal, so that every result is 0.75."""


def _bounds_by_dtype(factor: float) -> Mapping[str, ByDtype]:
    """Return bounds of hardtanh that every element type can represent, except that integer types truncate fractions.

    Args:
        factor: The factor by which the bounds are multiplied. A factor such as 1.3 makes the bounds fractions.

    Returns:
        The arguments `min_val` and `max_val`. For uint8, they are factor · 2 and factor · 5. For every other type, they
        are factor · −2 and factor · 3.
    """

    def bound(uint8_bound: float, other_bound: float) -> ByDtype:
        return ByDtype(lambda dtype: factor * (uint8_bound if dtype is Dtype.uint8 else other_bound))

    return {"min_val": bound(2.0, -2.0), "max_val": bound(5.0, 3.0)}


def _draw_around_bounds(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw inputs of hardtanh for the bounds `_bounds_by_dtype(1)`: below, between and above the bounds."""
    return (uniform(0, 9) if dtype is Dtype.uint8 else normal(3))(rng, count, dtype)


def _domains_away_from_bounds(bounds: Mapping[str, float]) -> Mapping[str, Domain]:
    """Return the domains of grad_output and input for the gradient of hardtanh with the bounds `bounds`.

    No input is near a bound, because the derivative of hardtanh jumps there.
    """
    return {"grad_output": normal(), "input": avoid_points([*bounds.values()], normal(2))}


THRESHOLDS = vary_argument("", "threshold", {"zero": 0, "integer": 1, "fraction": 1.7})
"""The argument `threshold` of the gradient of threshold, for each label of a template."""

GELU_FORMULAS: Mapping[str, Arguments] = {name: {"approximate": name} for name in ("none", "tanh")}
"""The argument `approximate` of gelu by label: `none` uses the error function erf, `tanh` approximates it with tanh."""

LEAKY_RELU_SLOPES = vary_argument("", "negative_slope", {"default": 0.01, "integer": 2, "zero": 0, "negative": -0.5})
"""The argument `negative_slope` of leaky ReLU, for each label of a template."""

USES_RESULT, USES_INPUT = {"input_is_result": True}, {"input_is_result": False}
"""Arguments of the gradient of leaky ReLU: its argument `input` is the forward function's result, or input."""

EQUAL_SIGN_REASON = "with a positive slope, input and result have the same sign"
"""The reason why an implementation passes some cases although it ignores `input_is_result`."""

NORMAL_DOMAINS: Mapping[str, Domain] = {"grad_output": normal(), "input": normal()}
"""Domains of a gradient: normally distributed numbers for grad_output and input."""

SPECIAL_GRADIENT_DOMAINS: Mapping[str, Domain] = {"grad_output": special, "input": INPUTS_AROUND_ZERO}
"""Domains of a gradient whose derivative jumps at 0: special values for grad_output, and inputs around 0."""

INTEGER_INPUT_DOMAINS: Mapping[str, Domain] = {"grad_output": full_range, "input": integer_values(-2, 2)}
"""Domains of a gradient: numbers from the whole range of the type for grad_output, and small integers for input."""

HARDSWISH_JUMP_DOMAINS: Mapping[str, Domain] = {
    "grad_output": choice([1.5, -0.75, 3.0]),
    "input": choice([-3.0, 3.0, -4.0, 4.0]),
}
"""Domains of the gradient of hardswish, with inputs at −3 and 3, where its derivative jumps, and beyond.

Every element type represents these inputs and all results exactly.
"""

ELEMENTWISE_TEMPLATES: Mapping[str, Sequence[CaseTemplate[Operands]]] = {
    "diopiRelu": [*with_all_patterns({"input": full_range}), SPECIAL_PATTERN.with_domains({"input": special})],
    "diopiHardtanh": [
        *with_all_patterns({"input": _draw_around_bounds}, arguments=_bounds_by_dtype(1.0)),
        MATRIX_PATTERN_IN_ALL_DTYPES.with_domains(
            {"input": _draw_around_bounds}, "truncated-bounds", _bounds_by_dtype(1.3)
        ),
        SPECIAL_PATTERN.with_domains({"input": special}, arguments=_bounds_by_dtype(1.0)),
        MATRIX_PATTERN.with_domains(
            {"input": choice([-0.0, 0.0, 1.0, -1.0])}, "zeros-at-bound", {"min_val": -2.0, "max_val": 0.0}
        ),
        MATRIX_PATTERN.with_domains(
            {"input": choice([-0.0, 0.0, 1.0, -1.0])},
            "zeros",
            {"min_val": 0.0, "max_val": 0.0},
            floating,
            non_discriminating="both bounds are 0",
        ),
        *MATRIX_PATTERN.variants({"input": normal(2)}, HARDTANH_BOUNDS),
        MATRIX_PATTERN.with_domains(
            {"input": normal(2)}, "point", EQUAL_HARDTANH_BOUNDS, non_discriminating="both bounds are equal"
        ),
        MATRIX_PATTERN.with_domains(
            {"input": ADJACENT_INTEGERS}, "neighbors", {"min_val": 2**62 + 3, "max_val": 2**62 + 8}, [Dtype.int64]
        ),
    ],
    "diopiHardtanhBackward": [
        *with_all_patterns(
            _domains_away_from_bounds({"min_val": -1.25, "max_val": 0.75}),
            arguments={"min_val": -1.25, "max_val": 0.75},
        ),
        *(
            MATRIX_PATTERN.with_domains(_domains_away_from_bounds(bounds), label, bounds)
            for label, bounds in HARDTANH_BOUNDS.items()
        ),
        MATRIX_PATTERN.with_domains(
            _domains_away_from_bounds(EQUAL_HARDTANH_BOUNDS),
            "point",
            EQUAL_HARDTANH_BOUNDS,
            non_discriminating="no element lies between equal bounds",
        ),
        SPECIAL_PAIRS_PATTERN.with_domains(
            {"grad_output": special, "input": INPUTS_AROUND_ONE}, arguments={"min_val": -1, "max_val": 1.0}
        ),
    ],
    "diopiHardswish": [
        *with_all_patterns({"input": uniform(-5, 5)}),
        MATRIX_PATTERN.with_domains({"input": uniform(-1, 1)}, "middle"),
        MATRIX_PATTERN_IN_ALL_DTYPES.with_domains({"input": choice([-3, 3, 3.5, -3.5, 100])}, "ends"),
        SPECIAL_PATTERN.with_domains({"input": special_except(-inf)}),
    ],
    "diopiHardswishBackward": [
        *with_all_patterns({"grad_output": normal(), "input": avoid_points([-3, 3], uniform(-5, 5))}),
        SPECIAL_PAIRS_PATTERN.with_domains(
            {"grad_output": special, "input": choice([-3.0, 3.0, -4.0, 4.0, inf, -inf])}
        ),
        MATRIX_PATTERN_IN_ALL_DTYPES.with_domains(HARDSWISH_JUMP_DOMAINS, "jumps", exact=True),
    ],
    "diopiThreshold": [
        *with_all_patterns({"input": non_integers(-9, 9)}, arguments={"threshold": 1.0, "value": 20.0}),
        MATRIX_PATTERN_IN_ALL_DTYPES.with_domains(
            {"input": integer_values(-3, 3)}, "integers", {"threshold": 1, "value": 9}
        ),
        MATRIX_PATTERN_IN_ALL_DTYPES.with_domains(
            {"input": integer_values(-3, 3)}, "fractions", {"threshold": 1.7, "value": 9.6}
        ),
        MATRIX_PATTERN.with_domains(
            {"input": integer_values(-3, 3)}, "negative", {"threshold": -1.7, "value": -8.6}, DTYPES_EXCEPT_UINT8
        ),
        MATRIX_PATTERN.with_domains(
            {"input": integer_values(-3, 3)}, "zeros", {"threshold": 0, "value": 0.0}, DTYPES_EXCEPT_UINT8
        ),
        MATRIX_PATTERN.with_domains(
            {"input": integer_values(2, 9)}, "wrapped-numbers", {"threshold": 5 - 256, "value": 77 - 256}, [Dtype.uint8]
        ),
        MATRIX_PATTERN.with_domains(
            {"input": ADJACENT_INTEGERS}, "neighbors", {"threshold": 2**62 + 5, "value": 2**62 + 9}, [Dtype.int64]
        ),
        SPECIAL_PATTERN.with_domains({"input": special}, arguments={"threshold": 0.75, "value": 1.5}),
    ],
    "diopiThresholdBackward": [
        *with_all_patterns(
            {"grad_output": full_range, "input": avoid_points([0.6], normal())}, arguments={"threshold": 0.6}
        ),
        *MATRIX_PATTERN.variants(INTEGER_INPUT_DOMAINS, THRESHOLDS, DtypeSelection.all),
        MATRIX_PATTERN.with_domains(INTEGER_INPUT_DOMAINS, "negative", {"threshold": -1.7}, DTYPES_EXCEPT_UINT8),
        SPECIAL_PAIRS_PATTERN.with_domains(SPECIAL_GRADIENT_DOMAINS, "", {"threshold": 0.0}, floating),
    ],
    "diopiGelu": [
        template
        for label, formula in GELU_FORMULAS.items()
        for template in (
            *with_all_patterns({"input": uniform(-4, 4)}, label, formula),
            MATRIX_PATTERN.with_domains({"input": uniform(-6, -2)}, f"{label}-tail", formula),
            MATRIX_PATTERN.with_domains({"input": uniform(-0.01, 0.01)}, f"{label}-near-zero", formula),
            SPECIAL_PATTERN.with_domains({"input": special_except(-inf)}, label, formula),
        )
    ],
    "diopiGeluBackward": [
        template
        for label, formula in GELU_FORMULAS.items()
        for template in (
            *with_all_patterns({"grad_output": normal(), "input": uniform(-4, 4)}, label, formula),
            MATRIX_PATTERN.with_domains({"grad_output": normal(), "input": uniform(-12, -4)}, f"{label}-tail", formula),
            SPECIAL_PAIRS_PATTERN.with_domains(
                {"grad_output": MODERATE_GRADIENTS, "input": choice([0.0, -0.0, 0.5, -0.5, 2.0, nan])}, label, formula
            ),
        )
    ],
    "diopiLeakyRelu": [
        *with_all_patterns({"input": normal()}, arguments={"negative_slope": 0.3}),
        *MATRIX_PATTERN.variants({"input": normal()}, LEAKY_RELU_SLOPES),
        SPECIAL_PATTERN.with_domains({"input": special}, arguments={"negative_slope": 0.25}),
    ],
    "diopiLeakyReluBackward": [
        *with_all_patterns(NORMAL_DOMAINS, arguments={"negative_slope": 0.3, **USES_INPUT}),
        MATRIX_PATTERN_IN_ALL_DTYPES.with_domains(
            NORMAL_DOMAINS, "of-result", {"negative_slope": 0.3, **USES_RESULT}, non_discriminating=EQUAL_SIGN_REASON
        ),
        *(
            MATRIX_PATTERN.with_domains(NORMAL_DOMAINS, label, {**slope, **USES_INPUT})
            for label, slope in LEAKY_RELU_SLOPES.items()
        ),
        SPECIAL_PAIRS_PATTERN.with_domains(
            SPECIAL_GRADIENT_DOMAINS, "", {"negative_slope": 0.25, **USES_RESULT}, non_discriminating=EQUAL_SIGN_REASON
        ),
    ],
    "diopiSigmoid": [
        *with_all_patterns({"input": uniform(-9, 9)}),
        MATRIX_PATTERN.with_domains({"input": uniform(-80, 80)}, "wide", dtypes=floating),
        MATRIX_PATTERN.with_domains(
            {"input": uniform(-700, -90)}, "far-left", dtypes=(Dtype.float64, Dtype.complex128)
        ),
        SPECIAL_PATTERN.with_domains({"input": special}, dtypes=real),
    ],
    "diopiSigmoidBackward": [
        *with_all_patterns({"grad_output": normal(), "output": uniform(0, 1)}),
        SPECIAL_PAIRS_PATTERN.with_domains(
            {"grad_output": special, "output": choice([0.0, 1.0, 0.5, nan])}, dtypes=floating
        ),
    ],
    "diopiSilu": [
        *with_all_patterns({"input": uniform(-9, 9)}),
        MATRIX_PATTERN_IN_ALL_DTYPES.with_domains({"input": uniform(-80, 80)}, "wide"),
        SPECIAL_PATTERN.with_domains({"input": special_except(-inf)}),
    ],
    "diopiSiluBackward": [
        *with_all_patterns({"grad_output": normal(), "input": uniform(-9, 9)}),
        MATRIX_PATTERN_IN_ALL_DTYPES.with_domains({"grad_output": normal(), "input": uniform(-60, 60)}, "tails"),
        SPECIAL_PAIRS_PATTERN.with_domains(
            {"grad_output": MODERATE_GRADIENTS, "input": choice([0.0, -0.0, 1.0, -1.0, 20.0, nan])}
        ),
    ],
}
"""The templates of each elementwise activation function and gradient."""


@cases_for(*ELEMENTWISE_TEMPLATES)
def activation_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield the cases of an elementwise activation function or gradient."""
    return Elementwise(prototype).cases(ELEMENTWISE_TEMPLATES[prototype.base])


# Softmax


AXIS_TEMPLATES = (
    *ONE_AXIS,
    Axes.template("many-rows", (24, 150), (1,), all_dtypes=True),
    Axes.template("empty-slices", (3, 0), (1,)),
)
"""The templates of shapes and axes for functions that normalize along one axis."""

UNTESTED_AXIS_TEMPLATES = Axes.untested_templates(AXIS_TEMPLATES)
"""Templates of the combinations of rank (1 to 4) and axis that `AXIS_TEMPLATES` lacks."""

LONG_AXIS_TEMPLATE = Axes.template("", (2, 2000), (1,))
"""A template of an axis of length 2000: a sum along it has a large error if a 16-bit type accumulates it."""

TRIVIAL_REASONS = {
    "length-one": "the softmax of a single element is always 1",
    "all-masked": "the softmax of elements that are all -inf is NaN",
}
"""The reasons why a wrong implementation can pass cases of softmax, by label."""

MASKED_LOGITS = choice([-inf, 0.0, 1.5, -2.0, -inf, 3.25, -inf])
"""A domain of logits of which three in seven are −∞, like masked logits in attention."""


def _axis_template(
    axis_template: CaseTemplate[Axes],
    label: str | None = None,
    domain: Domain | None = None,
    gradient_domain: Domain | None = None,
    **fields: Any,
) -> CaseTemplate[Shape]:
    """Return a template of softmax, log-softmax or one of their gradients.

    Args:
        axis_template: A template with the shape, the axis, the layouts and the element types.
        label: The label of the new template; None for the label of `axis_template`. With a label, the new template has
            no smoke cases unless `fields` contain `smoke`.
        domain: The domain of the input; in a gradient, of the forward function's input. None for normal(2).
        gradient_domain: The domain of grad_output; None for normal().
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    input_domain = domain or normal(2)
    default_fields = {
        "dtypes": axis_template.dtypes,
        "smoke": axis_template.smoke and label is None,
        "large": axis_template.large,
    }
    return CaseTemplate(
        axis_template.label if label is None else label,
        axis_template.sizes.shape,
        {"dim": axis_template.sizes.axis},
        domains={"input": input_domain, "_input": input_domain, "grad_output": gradient_domain or normal()},
        layout=axis_template.layout,
        result_layout=axis_template.result_layout,
        **{**default_fields, **fields},
    )


def _draw_powers_of_two(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw rows of 600 logits whose softmax is exact: 16 · 2^i logits of row i are equal, and all others are −∞.

    Args:
        rng: The generator, which chooses the positions of the equal numbers.
        count: The number of elements; a multiple of 600, for at most 6 rows.
        dtype: The element type; not used.

    Returns:
        The elements. The softmax of row i consists of 2^−(4 + i) and 0.
    """
    rows = np.arange(count // 600)[:, None]
    is_finite = rng.permuted(np.arange(600) < 16 << rows, axis=1)
    return np.where(is_finite, 3.0 * rows, -inf)


def _draw_dominant_logit(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return rows of 150 logits: a logit at a random position is 0, and the other logits are between −17.2 and −16.7.

    The exponential of every negative logit is less than half an ulp of 1 in float32. A float32 accumulator that adds
    these exponentials to 1 one after another never changes.
    """
    rows = rng.uniform(-17.2, -16.7, (count // 150, 150))
    rows[np.arange(len(rows)), rng.integers(150, size=len(rows))] = 0
    return rows


def _wider_result_template(narrow: Dtype, wide: Dtype) -> CaseTemplate[Shape]:
    """Return a template whose input has the type `narrow` and whose result has the wider type `wide`."""
    arguments: Arguments = {"input": tensor(5, 7, dtype=narrow, domain=normal(2)), "dim": 1}
    return CaseTemplate(f"of-{narrow.name}", (), arguments, dtypes=[wide], results={"out": ResultOverride(wide)})


def _narrower_result_template(source: Dtype, target: Dtype) -> CaseTemplate[Shape]:
    """Return a template whose input has the type `source` and whose result has the narrower type `target`.

    The function must convert the input to `target` before it computes. The input contains two different numbers that
    this conversion makes equal, so that the result shows the order of conversion and computation.
    """
    input_domain = choice([512 * (1 + 0.45 * format_of(target).epsilon), 512.0, 510.0])
    return CaseTemplate(
        f"ordered-{target.name}",
        (5, 7),
        {"dim": 1},
        domains={"input": input_domain},
        dtypes=[source],
        results={"out": ResultOverride(target)},
        case_class=CaseClass.callers,
    )


ATTENTION_SCORES = Axes.template(
    "attention", (2, 3, 5, 67, 129), (1,), layout=strides(301_003, 99_991, 19_973, 263, 2), large=True
)
"""A template of a large tensor of attention scores with five axes and gaps between the elements along every axis."""

WIDTH_OF_MODELS = Axes.template("width-of-models", (2, 768), (1,))
"""A pattern of rows of one and a half blocks of 512 elements, which is the width of many language models."""

HIGH_PLANE = Axes.template("high-plane", (1031, 3), (0,))
"""A pattern of long columns, whose elements are not neighbors."""

LOG_SOFTMAX_TEMPLATES = (
    *map(_axis_template, AXIS_TEMPLATES),
    _axis_template(ROWS_TEMPLATE, "offset", normal(1, 100)),
    _axis_template(ROWS_TEMPLATE, "steep", normal(30)),
    _axis_template(ROWS_TEMPLATE, "masked", MASKED_LOGITS),
    _axis_template(ROWS_TEMPLATE, "far-apart", choice([900.0, -900.0, 0.0, 3.0, 450.0])),
    _axis_template(Axes.template("", (24, 150), (1,)), "one-far-above", _draw_dominant_logit, dtypes=(Dtype.float32,)),
    _axis_template(ROWS_TEMPLATE, "special", special, smoke=True),
    _axis_template(Axes.template("", (6, 3), (0,), all_dtypes=True), "all-masked", choice([-inf])),
    _axis_template(
        Axes.template("", (3, 131), (1,)), "long-masked", MASKED_LOGITS, dtypes=(Dtype.float32, Dtype.float16)
    ),
    *(_axis_template(pattern, dtypes=(Dtype.float32, Dtype.float16)) for pattern in (WIDTH_OF_MODELS, HIGH_PLANE)),
    _axis_template(Axes.template("many-short-rows", (4_099, 3), (1,))),
    _axis_template(LONG_AXIS_TEMPLATE, "accumulated", normal(0.5), dtypes=half),
    _wider_result_template(Dtype.float16, Dtype.float32),
    _wider_result_template(Dtype.bfloat16, Dtype.float32),
    _wider_result_template(Dtype.float32, Dtype.float64),
    _narrower_result_template(Dtype.float64, Dtype.float32),
    _narrower_result_template(Dtype.float32, Dtype.float16),
    *map(_axis_template, UNTESTED_AXIS_TEMPLATES),
    _axis_template(Axes.template("vocabulary", (7, 32_003), (1,), large=True)),
    _axis_template(Axes.template("many-rows", (70_001, 3), (-1,), large=True)),
    _axis_template(Axes.template("first-axis", (4097, 19), (0,), layout=transposed, large=True)),
    _axis_template(ATTENTION_SCORES, dtypes=(Dtype.float16,)),
)
"""The templates of log-softmax. Softmax has the same templates and one more."""

SOFTMAX_TEMPLATES = (
    *LOG_SOFTMAX_TEMPLATES,
    _axis_template(Axes.template("", (6, 600), (1,), all_dtypes=True), "exact", _draw_powers_of_two, exact=True),
)
"""The templates of softmax: those of log-softmax, and a template whose results have no rounding error."""


@cases_for("diopiSoftmax", "diopiLogSoftmax", non_discriminating=TRIVIAL_REASONS)
def softmax_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield the cases of softmax or log-softmax."""

    def tensors(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, TensorTemplate]:
        return {"input": tensor(*template.sizes, layout=template.layout)}

    return expand(prototype, SOFTMAX_TEMPLATES if prototype.base == "diopiSoftmax" else LOG_SOFTMAX_TEMPLATES, tensors)


SOFTMAX_GRADIENT_TEMPLATES = (
    *map(_axis_template, AXIS_TEMPLATES),
    _axis_template(ROWS_TEMPLATE, "steep", normal(30)),
    _axis_template(ROWS_TEMPLATE, "masked", MASKED_LOGITS),
    _axis_template(ROWS_TEMPLATE, "nan", choice([1.0, 2.0, nan, *range(9)])),
    _axis_template(LONG_AXIS_TEMPLATE, "positive", normal(), uniform(0.5, 1), dtypes=half),
    *map(_axis_template, UNTESTED_AXIS_TEMPLATES),
    _axis_template(Axes.template("vocabulary", (3, 32_003), (1,), large=True)),
    _axis_template(Axes.template("many-rows", (70_001, 3), (1,), large=True)),
    _axis_template(
        Axes.template("attention", (30, 67, 129), (1,), layout=strides(19_973, 263, 2), large=True),
        dtypes=(Dtype.float16,),
    ),
)
"""The templates of the gradients of softmax and log-softmax."""


@cases_for("diopiSoftmaxBackward", "diopiLogSoftmaxBackward", non_discriminating=TRIVIAL_REASONS)
def softmax_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield the cases of the gradient of softmax or log-softmax.

    The argument `output` is the forward function's result for the tensor `_input`. The call does not pass `_input`.
    """
    is_log = prototype.base == "diopiLogSoftmaxBackward"

    def tensors(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, TensorTemplate]:
        return {
            "_input": tensor(*template.sizes),
            "grad_output": tensor(*template.sizes, layout=template.layout),
            "output": tensor(
                *template.sizes,
                layout=template.result_layout,
                compute=lambda values: _compute_softmax(values, template.argument("dim"), is_log),
            ),
        }

    yield from expand(prototype, SOFTMAX_GRADIENT_TEMPLATES, tensors)
    # The outputs are powers of two, or the logarithms 0 and −∞. Sums and products are therefore exact.
    outputs = tensor(3, 1031, domain=choice([0.0, -inf] if is_log else [0.125, 0.25, 0.5]))
    arguments: Arguments = {"grad_output": tensor(3, 1031, domain=integer_values(-9, 8)), "output": outputs, "dim": -1}
    yield from expand(prototype, [CaseTemplate("exact", (), arguments, dtypes=DtypeSelection.all, exact=True)])


def _compute_softmax(values: Values, dim: int, is_log: bool) -> NDArray[Any]:
    """Return the softmax of the tensor `_input` in `values` along the axis `dim`; its logarithm if `is_log` is true."""
    x = np.atleast_1d(values["_input"])
    with np.errstate(invalid="ignore", divide="ignore"):
        e = np.exp(x - np.max(x, dim, keepdims=True, initial=-inf))
        y = e / np.sum(e, dim, keepdims=True)
        return np.reshape(np.log(y) if is_log else y, values["_input"].shape)


CaseFacts(saved={"output": ResultOf("diopiSoftmax", argument_names={"input": "_input"})}).declare(
    "diopiSoftmaxBackward"
)
CaseFacts(saved={"output": ResultOf("diopiLogSoftmax", argument_names={"input": "_input"})}).declare(
    "diopiLogSoftmaxBackward"
)
CaseFacts(number_choices=[NumberChoice("min_val", "bool", False)]).declare("diopiHardtanh", "diopiHardtanhBackward")
CaseFacts(number_choices=[NumberChoice("negative_slope", "bool", False)]).declare(
    "diopiLeakyRelu", "diopiLeakyReluBackward"
)
CaseFacts(huge_form="plain").declare("diopiGelu")
CaseFacts(finds_extremes=True).declare("diopiSoftmax", "diopiLogSoftmax")

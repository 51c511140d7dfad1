"""The cases of activation functions and their gradients.

A template describes cases that differ only in their element type. A pattern is a template of shapes and layouts alone;
`with_domains` adds a label and the domains, from which the elements of each argument are drawn.
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

ROWS = ONE_AXIS[0]
"""A matrix whose rows are normalized, the first of the patterns of one axis."""

ALL = [shapes.replace(dtypes=DtypeSelection.all if shapes.smoke else DtypeSelection.leading) for shapes in UNIFORM]
"""All patterns in float32, few in the other element types."""

MATRIX = pattern_template("matrix", (7, 5))
MATRIX_IN_ALL_DTYPES = MATRIX.replace(dtypes=DtypeSelection.all)
"""The same matrix in all element types of a function."""

SPECIAL = pattern_template("special", (19,), smoke=True, dtypes=DtypeSelection.all)
"""A pattern for special values, such as NaN and infinities."""

ENDS = pattern_template("ends", (6, 19), smoke=True, dtypes=DtypeSelection.all)
"""Every special value of grad_output together with several values of the other tensor."""

MODERATE = choice([1.5, -0.75, 3.0, nan, -0.3])
"""Inputs of gradients that may be computed as a sum of parts, which must neither overflow nor vanish."""

AROUND_ONE = choice([-1.0, 1.0, 0.0, -0.0, 0.5, -1.5, 1.5, inf, -inf])
"""Inputs at, between and beyond the bounds −1 and 1."""

KINKS = choice([0.0, -0.0, 1.0, -1.0, inf, -inf, nan])
"""Points where gradients jump, and points on either side."""

NEIGHBOURS = choice([2**62 + i for i in range(12)])
"""Numbers of int64 that are equal as float64."""

NOT_UINT8 = [dtype for dtype in all_dtypes if dtype is not Dtype.uint8]
"""The element types except uint8, which has no negative numbers."""


def with_all_patterns(
    domains: Mapping[str, Domain], label: str = "", arguments: Arguments | None = None
) -> list[CaseTemplate[Operands]]:
    """Return a template for every pattern of shapes and layouts, with inputs from these domains."""
    return [shapes.with_domains(domains, label, arguments) for shapes in ALL]


BOUNDS: dict[str, Mapping[str, float]] = {
    "unit": {"min_val": -1.0, "max_val": 1.0},
    "fractions": {"min_val": -0.3, "max_val": 1.7},
    "integers": {"min_val": -1, "max_val": 2},
    "positive": {"min_val": 0.5, "max_val": 1.5},
}
"""The bounds of hardtanh by label."""

POINT = {"min_val": 0.75, "max_val": 0.75}
"""Equal bounds."""


def _limits(factor: float) -> Mapping[str, ByDtype]:
    """Return bounds, times `factor`, that some of the values of `_draw_around_limits` exceed."""

    def limit(of_uint8: float, other_dtypes: float) -> ByDtype:
        return ByDtype(lambda dtype: factor * (of_uint8 if dtype is Dtype.uint8 else other_dtypes))

    return {"min_val": limit(2.0, -2.0), "max_val": limit(5.0, 3.0)}


def _draw_around_limits(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw numbers on both sides of the bounds of `_limits`."""
    return (uniform(0, 9) if dtype is Dtype.uint8 else normal(3))(rng, count, dtype)


def _domains_off_limits(bounds: Mapping[str, float]) -> Mapping[str, Domain]:
    """Return domains of a gradient and of inputs that keep away from the bounds, where the derivative jumps."""
    return {"grad_output": normal(), "input": avoid_points([*bounds.values()], normal(2))}


CUTS = vary_argument("", "threshold", {"zero": 0, "integer": 1, "fraction": 1.7})
"""The thresholds by label."""

FORMULAS: Mapping[str, Arguments] = {name: {"approximate": name} for name in ("none", "tanh")}
"""The two formulas of gelu by label: with erf, and its approximation with tanh."""

SLOPES = vary_argument("", "negative_slope", {"default": 0.01, "integer": 2, "zero": 0, "negative": -0.5})
"""The slopes for negative inputs by label."""

OF_RESULT, OF_INPUT = {"input_is_result": True}, {"input_is_result": False}
"""Whether a gradient receives the result or the input of the forward function."""

ONE_SIGN_REASON = "with a positive slope, input and result have the same sign"
"""The reason why a case does not show whether a gradient uses the result or the input."""

NORMAL: Mapping[str, Domain] = {"grad_output": normal(), "input": normal()}
"""Normal numbers as gradient and as input."""

JUMPING: Mapping[str, Domain] = {"grad_output": special, "input": KINKS}
"""Special gradients, and inputs on both sides of the jumps of the derivative."""

WHOLE: Mapping[str, Domain] = {"grad_output": full_range, "input": integer_values(-2, 2)}
"""Any numbers as gradient, and small integers as input."""

JUMPS: Mapping[str, Domain] = {"grad_output": choice([1.5, -0.75, 3.0]), "input": choice([-3.0, 3.0, -4.0, 4.0])}
"""Inputs at the jumps of the derivative of hardswish, which rounding does not move."""

ELEMENTWISE: Mapping[str, Sequence[CaseTemplate[Operands]]] = {
    "diopiRelu": [*with_all_patterns({"input": full_range}), SPECIAL.with_domains({"input": special})],
    "diopiHardtanh": [
        *with_all_patterns({"input": _draw_around_limits}, arguments=_limits(1.0)),
        MATRIX_IN_ALL_DTYPES.with_domains({"input": _draw_around_limits}, "truncated-bounds", _limits(1.3)),
        SPECIAL.with_domains({"input": special}, arguments=_limits(1.0)),
        MATRIX.with_domains(
            {"input": choice([-0.0, 0.0, 1.0, -1.0])}, "zeros-at-bound", {"min_val": -2.0, "max_val": 0.0}
        ),
        MATRIX.with_domains(
            {"input": choice([-0.0, 0.0, 1.0, -1.0])},
            "zeros",
            {"min_val": 0.0, "max_val": 0.0},
            floating,
            non_discriminating="both bounds are 0",
        ),
        *MATRIX.variants({"input": normal(2)}, BOUNDS),
        MATRIX.with_domains({"input": normal(2)}, "point", POINT, non_discriminating="both bounds are equal"),
        MATRIX.with_domains(
            {"input": NEIGHBOURS}, "neighbours", {"min_val": 2**62 + 3, "max_val": 2**62 + 8}, [Dtype.int64]
        ),
    ],
    "diopiHardtanhBackward": [
        *with_all_patterns(
            _domains_off_limits({"min_val": -1.25, "max_val": 0.75}), arguments={"min_val": -1.25, "max_val": 0.75}
        ),
        *(MATRIX.with_domains(_domains_off_limits(bounds), label, bounds) for label, bounds in BOUNDS.items()),
        MATRIX.with_domains(
            _domains_off_limits(POINT), "point", POINT, non_discriminating="no element lies between equal bounds"
        ),
        ENDS.with_domains({"grad_output": special, "input": AROUND_ONE}, arguments={"min_val": -1, "max_val": 1.0}),
    ],
    "diopiHardswish": [
        *with_all_patterns({"input": uniform(-5, 5)}),
        MATRIX.with_domains({"input": uniform(-1, 1)}, "middle"),
        MATRIX_IN_ALL_DTYPES.with_domains({"input": choice([-3, 3, 3.5, -3.5, 100])}, "ends"),
        SPECIAL.with_domains({"input": special_except(-inf)}),
    ],
    "diopiHardswishBackward": [
        *with_all_patterns({"grad_output": normal(), "input": avoid_points([-3, 3], uniform(-5, 5))}),
        ENDS.with_domains({"grad_output": special, "input": choice([-3.0, 3.0, -4.0, 4.0, inf, -inf])}),
        MATRIX_IN_ALL_DTYPES.with_domains(JUMPS, "jumps", exact=True),
    ],
    "diopiThreshold": [
        *with_all_patterns({"input": non_integers(-9, 9)}, arguments={"threshold": 1.0, "value": 20.0}),
        MATRIX_IN_ALL_DTYPES.with_domains({"input": integer_values(-3, 3)}, "integers", {"threshold": 1, "value": 9}),
        MATRIX_IN_ALL_DTYPES.with_domains(
            {"input": integer_values(-3, 3)}, "fractions", {"threshold": 1.7, "value": 9.6}
        ),
        MATRIX.with_domains(
            {"input": integer_values(-3, 3)}, "negative", {"threshold": -1.7, "value": -8.6}, NOT_UINT8
        ),
        MATRIX.with_domains({"input": integer_values(-3, 3)}, "zeros", {"threshold": 0, "value": 0.0}, NOT_UINT8),
        MATRIX.with_domains(
            {"input": integer_values(2, 9)}, "wrapped-numbers", {"threshold": 5 - 256, "value": 77 - 256}, [Dtype.uint8]
        ),
        MATRIX.with_domains(
            {"input": NEIGHBOURS}, "neighbours", {"threshold": 2**62 + 5, "value": 2**62 + 9}, [Dtype.int64]
        ),
        SPECIAL.with_domains({"input": special}, arguments={"threshold": 0.75, "value": 1.5}),
    ],
    "diopiThresholdBackward": [
        *with_all_patterns(
            {"grad_output": full_range, "input": avoid_points([0.6], normal())}, arguments={"threshold": 0.6}
        ),
        *MATRIX.variants(WHOLE, CUTS, DtypeSelection.all),
        MATRIX.with_domains(WHOLE, "negative", {"threshold": -1.7}, NOT_UINT8),
        ENDS.with_domains(JUMPING, "", {"threshold": 0.0}, floating),
    ],
    "diopiGelu": [
        template
        for label, formula in FORMULAS.items()
        for template in (
            *with_all_patterns({"input": uniform(-4, 4)}, label, formula),
            MATRIX.with_domains({"input": uniform(-6, -2)}, f"{label}-tail", formula),
            MATRIX.with_domains({"input": uniform(-0.01, 0.01)}, f"{label}-near-zero", formula),
            SPECIAL.with_domains({"input": special_except(-inf)}, label, formula),
        )
    ],
    "diopiGeluBackward": [
        template
        for label, formula in FORMULAS.items()
        for template in (
            *with_all_patterns({"grad_output": normal(), "input": uniform(-4, 4)}, label, formula),
            MATRIX.with_domains({"grad_output": normal(), "input": uniform(-12, -4)}, f"{label}-tail", formula),
            ENDS.with_domains(
                {"grad_output": MODERATE, "input": choice([0.0, -0.0, 0.5, -0.5, 2.0, nan])}, label, formula
            ),
        )
    ],
    "diopiLeakyRelu": [
        *with_all_patterns({"input": normal()}, arguments={"negative_slope": 0.3}),
        *MATRIX.variants({"input": normal()}, SLOPES),
        SPECIAL.with_domains({"input": special}, arguments={"negative_slope": 0.25}),
    ],
    "diopiLeakyReluBackward": [
        *with_all_patterns(NORMAL, arguments={"negative_slope": 0.3, **OF_INPUT}),
        MATRIX_IN_ALL_DTYPES.with_domains(
            NORMAL, "of-result", {"negative_slope": 0.3, **OF_RESULT}, non_discriminating=ONE_SIGN_REASON
        ),
        *(MATRIX.with_domains(NORMAL, label, {**slope, **OF_INPUT}) for label, slope in SLOPES.items()),
        ENDS.with_domains(JUMPING, "", {"negative_slope": 0.25, **OF_RESULT}, non_discriminating=ONE_SIGN_REASON),
    ],
    "diopiSigmoid": [
        *with_all_patterns({"input": uniform(-9, 9)}),
        MATRIX.with_domains({"input": uniform(-80, 80)}, "wide", dtypes=floating),
        MATRIX.with_domains({"input": uniform(-700, -90)}, "far-left", dtypes=(Dtype.float64, Dtype.complex128)),
        SPECIAL.with_domains({"input": special}, dtypes=real),
    ],
    "diopiSigmoidBackward": [
        *with_all_patterns({"grad_output": normal(), "output": uniform(0, 1)}),
        ENDS.with_domains({"grad_output": special, "output": choice([0.0, 1.0, 0.5, nan])}, dtypes=floating),
    ],
    "diopiSilu": [
        *with_all_patterns({"input": uniform(-9, 9)}),
        MATRIX_IN_ALL_DTYPES.with_domains({"input": uniform(-80, 80)}, "wide"),
        SPECIAL.with_domains({"input": special_except(-inf)}),
    ],
    "diopiSiluBackward": [
        *with_all_patterns({"grad_output": normal(), "input": uniform(-9, 9)}),
        MATRIX_IN_ALL_DTYPES.with_domains({"grad_output": normal(), "input": uniform(-60, 60)}, "tails"),
        ENDS.with_domains({"grad_output": MODERATE, "input": choice([0.0, -0.0, 1.0, -1.0, 20.0, nan])}),
    ],
}
"""The templates of each elementwise activation function and gradient."""


@cases_for(*ELEMENTWISE)
def activation_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield the cases of an elementwise activation function or gradient."""
    return Elementwise(prototype).cases(ELEMENTWISE[prototype.base])


# Softmax


AXES = (
    *ONE_AXIS,
    Axes.template("many-rows", (24, 150), (1,), all_dtypes=True),
    Axes.template("empty-slices", (3, 0), (1,)),
)
"""Shapes and axes for functions that normalize along one axis."""

OTHER_AXES = Axes.untested_templates(AXES)
"""Templates of the axes that `AXES` lacks, by rank and position."""

LONG = Axes.template("", (2, 2000), (1,))
"""An axis so long that sums along it show the width of the accumulator."""

TRIVIAL_REASONS = {
    "length-one": "the softmax of a single element is always 1",
    "all-masked": "the softmax of elements that are all -inf is NaN",
}
"""The reasons of cases that do not discriminate."""

MASKED = choice([-inf, 0.0, 1.5, -2.0, -inf, 3.25, -inf])
"""Logits of which several are −∞, as masks set them."""


def _axis_template(
    call: CaseTemplate[Axes],
    label: str | None = None,
    domain: Domain | None = None,
    gradient: Domain | None = None,
    **fields: Any,
) -> CaseTemplate[Shape]:
    """Return a template for the axis of `call`; the input, or the input of the forward function, is from `domain`."""
    inputs = domain or normal(2)
    usual = {"dtypes": call.dtypes, "smoke": call.smoke and label is None, "large": call.large}
    return CaseTemplate(
        call.label if label is None else label,
        call.sizes.shape,
        {"dim": call.sizes.axis},
        domains={"input": inputs, "_input": inputs, "grad_output": gradient or normal()},
        layout=call.layout,
        result_layout=call.result_layout,
        **{**usual, **fields},
    )


def _draw_powers_of_two(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw rows of 600 with 16, 32, 64, … equal numbers and −∞ otherwise: their softmax is a power of two or 0."""
    rows = np.arange(count // 600)[:, None]
    equal = rng.permuted(np.arange(600) < 16 << rows, axis=1)
    return np.where(equal, 3.0 * rows, -inf)


def _draw_one_far_above(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw rows of 150 with one 0; the exponential of any other number is less than half an ulp of 1 in float32."""
    rows = rng.uniform(-17.2, -16.7, (count // 150, 150))
    rows[np.arange(len(rows)), rng.integers(150, size=len(rows))] = 0
    return rows


def _wider_result_template(narrow: Dtype, wide: Dtype) -> CaseTemplate[Shape]:
    """Return a template whose input is of the type `narrow` and whose result has the type `wide`."""
    arguments: Arguments = {"input": tensor(5, 7, dtype=narrow, domain=normal(2)), "dim": 1}
    return CaseTemplate(f"of-{narrow.name}", (), arguments, dtypes=[wide], results={"out": ResultOverride(wide)})


def _narrower_result_template(source: Dtype, target: Dtype) -> CaseTemplate[Shape]:
    """Return a template with a narrower result, to whose type the function converts the input before anything else."""
    near = choice([512 * (1 + 0.45 * format_of(target).epsilon), 512.0, 510.0])
    return CaseTemplate(
        f"ordered-{target.name}",
        (5, 7),
        {"dim": 1},
        domains={"input": near},
        dtypes=[source],
        results={"out": ResultOverride(target)},
        case_class=CaseClass.callers,
    )


ATTENTION = Axes.template(
    "attention", (2, 3, 5, 67, 129), (1,), layout=strides(301_003, 99_991, 19_973, 263, 2), large=True
)
"""The scores of attention in a large tensor with gaps between all axes."""

LOG_SOFTMAX = (
    *map(_axis_template, AXES),
    _axis_template(ROWS, "offset", normal(1, 100)),
    _axis_template(ROWS, "steep", normal(30)),
    _axis_template(ROWS, "masked", MASKED),
    _axis_template(ROWS, "far-apart", choice([900.0, -900.0, 0.0, 3.0, 450.0])),
    _axis_template(Axes.template("", (24, 150), (1,)), "one-far-above", _draw_one_far_above, dtypes=(Dtype.float32,)),
    _axis_template(ROWS, "special", special, smoke=True),
    _axis_template(Axes.template("", (6, 3), (0,), all_dtypes=True), "all-masked", choice([-inf])),
    _axis_template(LONG, "accumulated", normal(0.5), dtypes=half),
    _wider_result_template(Dtype.float16, Dtype.float32),
    _wider_result_template(Dtype.bfloat16, Dtype.float32),
    _wider_result_template(Dtype.float32, Dtype.float64),
    _narrower_result_template(Dtype.float64, Dtype.float32),
    _narrower_result_template(Dtype.float32, Dtype.float16),
    *map(_axis_template, OTHER_AXES),
    _axis_template(Axes.template("vocabulary", (7, 32_003), (1,), large=True)),
    _axis_template(Axes.template("many-rows", (70_001, 3), (-1,), large=True)),
    _axis_template(Axes.template("first-axis", (4097, 19), (0,), layout=transposed, large=True)),
    _axis_template(ATTENTION, dtypes=(Dtype.float16,)),
)
"""The templates of log-softmax, which softmax shares."""

SOFTMAX = (
    *LOG_SOFTMAX,
    _axis_template(Axes.template("", (6, 600), (1,), all_dtypes=True), "exact", _draw_powers_of_two, exact=True),
)
"""The templates of softmax: also one whose results are exact."""


@cases_for("diopiSoftmax", "diopiLogSoftmax", non_discriminating=TRIVIAL_REASONS)
def softmax_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield the cases of softmax or log-softmax."""

    def tensors(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, TensorTemplate]:
        return {"input": tensor(*template.sizes, layout=template.layout)}

    return expand(prototype, SOFTMAX if prototype.base == "diopiSoftmax" else LOG_SOFTMAX, tensors)


GRADIENTS = (
    *map(_axis_template, AXES),
    _axis_template(ROWS, "steep", normal(30)),
    _axis_template(ROWS, "masked", MASKED),
    _axis_template(ROWS, "nan", choice([1.0, 2.0, nan, *range(9)])),
    _axis_template(LONG, "positive", normal(), uniform(0.5, 1), dtypes=half),
    *map(_axis_template, OTHER_AXES),
    _axis_template(Axes.template("vocabulary", (3, 32_003), (1,), large=True)),
    _axis_template(Axes.template("many-rows", (70_001, 3), (1,), large=True)),
    _axis_template(
        Axes.template("attention", (30, 67, 129), (1,), layout=strides(19_973, 263, 2), large=True),
        dtypes=(Dtype.float16,),
    ),
)
"""The templates of the gradients of both."""


@cases_for("diopiSoftmaxBackward", "diopiLogSoftmaxBackward", non_discriminating=TRIVIAL_REASONS)
def softmax_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield the cases of a gradient, which receives the result of the forward function."""
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

    yield from expand(prototype, GRADIENTS, tensors)
    # powers of two, or logarithms of 1 and 0: sums and products are exact
    shares = tensor(3, 1031, domain=choice([0.0, -inf] if is_log else [0.125, 0.25, 0.5]))
    arguments: Arguments = {"grad_output": tensor(3, 1031, domain=integer_values(-9, 8)), "output": shares, "dim": -1}
    yield from expand(prototype, [CaseTemplate("exact", (), arguments, dtypes=DtypeSelection.all, exact=True)])


def _compute_softmax(values: Values, dim: int, is_log: bool) -> NDArray[Any]:
    """Compute softmax of the input along an axis, or its logarithm."""
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

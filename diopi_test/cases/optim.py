"""Cases of optimizer steps and of gradient clipping. A call is one update of parameters in place.

Every element type represents the attributes (such as the learning rate) of most cases exactly, so that the error budget
need not include their rounding. Learning rates and eps are large, so that the rounding of a parameter does not hide an
update.

A template describes cases that differ only in their element type (`diopi_test.cases.template`). A step template has
attributes and state tensors, but no shape. `step_cases` combines it with patterns, which have a shape and a layout.

Labels that begin with "idle" mean that the call passes a state tensor which the attributes disable. Labels with "usual"
mean the attributes that frameworks use by default.

A domain draws the values of a tensor (`diopi_test.cases.domains`). Smoke cases belong to the shortest level of the
suite. Large cases belong to a level with the sizes of real models. `Case.non_discriminating` is the reason why a wrong
result can pass a case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np

from diopi_proto.dtypes import floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, cases_for
from diopi_test.cases.domains import Domain, avoid_points, choice, integer_values, normal, uniform
from diopi_test.cases.facts import CaseFacts, NumberChoice
from diopi_test.cases.layouts import Layout, contiguous, strided, strides, transposed
from diopi_test.cases.template import Arguments, CaseTemplate, TensorTemplate, expand, tensor

Shape = tuple[int, ...]
"""The sizes of a tensor."""

F16, BF16, F32, F64 = floating
"""Short names for the floating-point types."""

POSITIVE = uniform(0.05, 2)
"""The domain of second moments. A step takes their square roots, so that they must be positive."""

ZERO = choice([0.0])
"""The domain of states before the first step: only 0."""

GRADIENT = avoid_points([0], normal())
"""The domain of gradients: normally distributed numbers at a distance from 0, so that every element is updated."""

# Single steps

MATRIX = CaseTemplate("matrix", (4, 5), dtypes=floating, smoke=True)
"""The pattern of most steps: contiguous tensors of 4 × 5 elements."""

PATTERNS = (
    MATRIX,
    CaseTemplate("strided", (3, 2, 4), layout=strided, dtypes=floating),
    CaseTemplate("transposed", (4, 6), layout=transposed, dtypes=floating),
    CaseTemplate("grad-transposed", (4, 6), {"grad": tensor(4, 6, domain=GRADIENT, layout=transposed)}, dtypes=(F32,)),
    CaseTemplate("scalar", (), dtypes=(F16, F32)),
    CaseTemplate("empty", (0, 3), dtypes=(F32, BF16)),
    CaseTemplate("long", (1031,), dtypes=(F32, BF16)),
)
"""Patterns: shapes and layouts of the tensors of a step."""

FAR_APART = strides(1031, 2)
"""A layout with gaps between rows and between the elements of a row."""

LARGE_PATTERNS = (
    CaseTemplate("layer", (263, 257), dtypes=(F32,), large=True),
    CaseTemplate(
        "half-far-apart", (131, 517), {"param": tensor(131, 517, layout=FAR_APART)}, dtypes=(F16,), large=True
    ),
)
"""Patterns of large cases."""


def step_template(
    label: str, attributes: Mapping[str, Any], states: Mapping[str, Domain], dtypes: Sequence[Dtype]
) -> CaseTemplate[Shape]:
    """Return a template of an optimizer step, without shape.

    Args:
        label: The label of the step. Steps whose label contains "usual" are not smoke cases.
        attributes: The attributes by name, such as the learning rate.
        states: The domains of the optimizer's state tensors. Other state tensors are NULL.
        dtypes: The element types.

    Returns:
        The template.
    """
    return CaseTemplate(
        label, arguments=attributes, domains=states, dtypes=dtypes, smoke=() if "usual" in label else (F32,)
    )


def step_cases(prototype: Prototype, steps: Sequence[CaseTemplate[Shape]]) -> Iterator[Case]:
    """Return the cases of an optimizer step.

    Args:
        prototype: The prototype of the function.
        steps: Step templates. The first template is combined with all patterns, the others with `MATRIX`.

    Returns:
        The cases.
    """
    first_step, *other_steps = steps
    templates = [
        _shaped_template(first_step.replace(dtypes=p.dtypes, smoke=p.smoke), p) for p in (*PATTERNS, *LARGE_PATTERNS)
    ]
    templates += [_shaped_template(step, MATRIX) for step in other_steps]

    def derive_tensors(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, TensorTemplate | None]:
        """Return the tensors of a step: parameter, gradient, and the states that have a domain in the template."""
        domains = {"param": normal(), "grad": GRADIENT, **template.domains}
        return {
            p.name: tensor(*template.sizes, domain=domains[p.name], layout=template.layout)
            if p.name in domains
            else None
            for p in prototype.arguments
            if p.is_tensor
        }

    return expand(prototype, templates, derive_tensors)


def _shaped_template(template: CaseTemplate[Shape], pattern: CaseTemplate[Shape]) -> CaseTemplate[Shape]:
    """Return a step template with a shape.

    Args:
        template: The step template, without shape.
        pattern: The pattern, which provides the shape, the layout and further arguments.

    Returns:
        The template. Its label is that of the pattern if the pattern is large, else it combines both labels.
    """
    label = pattern.label if pattern.large else f"{template.label}-{pattern.label}"
    shaped = template.replace(label, pattern.arguments, layout=pattern.layout, large=pattern.large)
    return replace(shaped, sizes=pattern.sizes)


# Steps with a state for each parameter


def sgd_template(
    label: str, dtypes: Sequence[Dtype] = (F32,), *, has_buffer: bool = True, **attributes: Any
) -> CaseTemplate[Shape]:
    """Return a template of a step of stochastic gradient descent.

    Args:
        label: The label of the step.
        dtypes: The element types.
        has_buffer: Whether the call has a momentum buffer; otherwise the buffer is NULL.
        **attributes: Attributes that differ from those of a step without momentum and weight decay.

    Returns:
        The template.
    """
    defaults = {"lr": 0.125, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False}
    return step_template(label, {**defaults, **attributes}, {"buf": normal()} if has_buffer else {}, dtypes)


SGD = (
    sgd_template("all", floating, momentum=0.75, dampening=0.25, weight_decay=0.5),
    sgd_template("plain", floating, has_buffer=False),
    sgd_template("decay", weight_decay=0.5, has_buffer=False),
    sgd_template("idle-buffer", (F16, F32), dampening=0.25, weight_decay=0.5),
    sgd_template("momentum", momentum=0.75),
    sgd_template("dampening", momentum=0.75, dampening=0.5),
    sgd_template("nesterov", (BF16, F32), momentum=0.75, nesterov=True),
    sgd_template("nesterov-decay", momentum=0.75, weight_decay=0.5, nesterov=True),
    sgd_template("first", (F16, F32), momentum=0.75, dampening=0.25, weight_decay=0.5, has_buffer=False),
    sgd_template("first-nesterov", momentum=0.75, weight_decay=0.5, nesterov=True, has_buffer=False),
    sgd_template("usual", floating, lr=0.01, momentum=0.9, dampening=0.1, weight_decay=1e-4),
    sgd_template("idle-nesterov", nesterov=True, has_buffer=False),
    *(sgd_template(f"momentum-{momentum}", momentum=momentum).replace(smoke=()) for momentum in (0.1, 0.5, 0.99)),
)
"""The step templates of `diopiSgd`."""


@cases_for("diopiSgd")
def sgd_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiSgd`, a step of stochastic gradient descent."""
    return step_cases(prototype, SGD)


def adam_template(
    label: str,
    dtypes: Sequence[Dtype] = (F32,),
    *,
    has_max_moment: bool = False,
    has_zero_moments: bool = False,
    **attributes: Any,
) -> CaseTemplate[Shape]:
    """Return a template of a step of Adam or AdamW.

    Args:
        label: The label of the step.
        dtypes: The element types.
        has_max_moment: Whether the call has the largest second moment of earlier steps; otherwise it is NULL.
        has_zero_moments: Whether both moments are 0, as before the first step.
        **attributes: Attributes that differ from the default.

    Returns:
        The template.
    """
    defaults = {
        "lr": 0.125,
        "beta1": 0.75,
        "beta2": 0.875,
        "eps": 0.25,
        "weight_decay": 0.5,
        "step": 3,
        "amsgrad": False,
    }
    moments = (
        {"exp_avg": ZERO, "exp_avg_sq": ZERO} if has_zero_moments else {"exp_avg": normal(), "exp_avg_sq": POSITIVE}
    )
    return step_template(
        label,
        {**defaults, **attributes},
        {**moments, **({"max_exp_avg_sq": POSITIVE} if has_max_moment else {})},
        dtypes,
    )


FRAMEWORK_DEFAULTS: Mapping[str, Any] = {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01}
"""The attributes of Adam that frameworks use by default. Only the step is not among them."""

ADAM = (
    adam_template("amsgrad", floating, amsgrad=True, has_max_moment=True),
    adam_template("decay", floating),
    adam_template("plain", floating, weight_decay=0.0),
    adam_template("first", floating, step=1, has_zero_moments=True),
    adam_template("first-amsgrad", step=1, amsgrad=True, has_max_moment=True, has_zero_moments=True),
    adam_template("first-with-moments", (F16, F32), step=1),
    adam_template("second", step=2),
    adam_template("late", (BF16, F32), step=1000),
    adam_template("idle-largest", (F16, F32), has_max_moment=True),
    adam_template("usual", floating, step=10, **FRAMEWORK_DEFAULTS),
    adam_template("usual-first", (F32, F64), step=1, **FRAMEWORK_DEFAULTS, has_zero_moments=True),
    adam_template("usual-amsgrad", (BF16, F32), step=7, **FRAMEWORK_DEFAULTS, amsgrad=True, has_max_moment=True),
)
"""The step templates of `diopiAdam` and `diopiAdamW`."""


@cases_for("diopiAdam", "diopiAdamW")
def adam_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiAdam` or `diopiAdamW`."""
    return step_cases(prototype, ADAM)


def adadelta_template(
    label: str, dtypes: Sequence[Dtype], states: Domain = POSITIVE, **attributes: Any
) -> CaseTemplate[Shape]:
    """Return a template of a step of Adadelta.

    Args:
        label: The label of the step.
        dtypes: The element types.
        states: The domain of both state tensors.
        **attributes: The attributes.

    Returns:
        The template.
    """
    return step_template(label, attributes, {"square_avg": states, "acc_delta": states}, dtypes)


ADADELTA = (
    adadelta_template("decay", floating, lr=0.125, rho=0.75, eps=0.25, weight_decay=0.5),
    adadelta_template("plain", floating, lr=0.5, rho=0.75, eps=0.25, weight_decay=0.0),
    adadelta_template("usual", floating, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.01),
    adadelta_template("slow", (F32,), lr=2.0, rho=0.96875, eps=0.0625, weight_decay=0.25),
    adadelta_template("without-eps", (F32, BF16), lr=1.0, rho=0.5, eps=0.0, weight_decay=0.0),
    adadelta_template("first", (F32, F64, BF16), ZERO, lr=0.125, rho=0.75, eps=0.25, weight_decay=0.5).replace(
        smoke=()
    ),
)
"""The step templates of `diopiAdadelta`."""


@cases_for("diopiAdadelta")
def adadelta_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiAdadelta`."""
    return step_cases(prototype, ADADELTA)


RMS_STATES: Mapping[str, Domain] = {"square_avg": uniform(1, 4), "grad_avg": normal(0.25), "momentum_buf": normal()}
"""The domain of each state tensor of RMSprop.

The mean of squares is larger than the square of the mean gradient, because the centered variant takes the root of their
difference.
"""


def rmsprop_template(
    label: str,
    dtypes: Sequence[Dtype] = (F32,),
    *,
    has_mean_gradient: bool = False,
    has_momentum_buffer: bool = False,
    **attributes: Any,
) -> CaseTemplate[Shape]:
    """Return a template of a step of RMSprop.

    Args:
        label: The label of the step.
        dtypes: The element types.
        has_mean_gradient: Whether the call has the mean gradient, the state of the centered variant; otherwise it is
            NULL.
        has_momentum_buffer: Whether the call has the state for momentum; otherwise it is NULL.
        **attributes: Attributes that differ from the default.

    Returns:
        The template.
    """
    defaults = {"lr": 0.125, "alpha": 0.75, "eps": 0.25, "weight_decay": 0.5, "momentum": 0.0, "centered": False}
    is_present = {"square_avg": True, "grad_avg": has_mean_gradient, "momentum_buf": has_momentum_buffer}
    states = {name: domain for name, domain in RMS_STATES.items() if is_present[name]}
    return step_template(label, {**defaults, **attributes}, states, dtypes)


RMSPROP = (
    rmsprop_template("all", floating, has_mean_gradient=True, has_momentum_buffer=True, momentum=0.5, centered=True),
    rmsprop_template("plain", floating, weight_decay=0.0),
    rmsprop_template("decay", (F16, F32)),
    rmsprop_template("momentum", floating, has_momentum_buffer=True, momentum=0.5),
    rmsprop_template("centered", floating, has_mean_gradient=True, centered=True),
    rmsprop_template("idle-mean", (BF16, F32), has_mean_gradient=True, has_momentum_buffer=True, momentum=0.5),
    rmsprop_template("idle-momentum", (F16, F32), has_mean_gradient=True, has_momentum_buffer=True, centered=True),
    rmsprop_template("idle-both", has_mean_gradient=True, has_momentum_buffer=True),
    rmsprop_template("usual", floating, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.01),
    rmsprop_template("usual-momentum", has_momentum_buffer=True, lr=0.01, alpha=0.99, eps=1e-8, momentum=0.9),
    rmsprop_template("first", (F32, BF16), weight_decay=0.0).replace(domains={"square_avg": ZERO}, smoke=()),
    rmsprop_template("no-memory", alpha=0.0).replace(
        non_discriminating="earlier gradients have the weight 0 in the mean of squares", smoke=()
    ),
    *(rmsprop_template(f"momentum-{m}", has_momentum_buffer=True, momentum=m).replace(smoke=()) for m in (0.1, 0.99)),
)
"""The step templates of `diopiRmsprop`."""


@cases_for("diopiRmsprop")
def rmsprop_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiRmsprop`."""
    return step_cases(prototype, RMSPROP)


# The fused step of many parameters


COUNTER = tensor(dtype=F32)
"""A float32 tensor that contains a number of steps."""


def fused_template(
    label: str,
    shapes: Sequence[tuple[int, ...]] = ((3, 4), (5,), ()),
    steps: Sequence[int] = (3, 1, 40),
    *,
    counter: TensorTemplate = COUNTER,
    arguments: Mapping[str, Any] | None = None,
    **fields: Any,
) -> CaseTemplate[Sequence[tuple[int, ...]]]:
    """Return a template of one step of AdamW for a list of parameters.

    Args:
        label: The label of the cases without the element type.
        shapes: The shapes of the parameters.
        steps: For each parameter, the number of its step.
        counter: The template of the tensors that contain these numbers.
        arguments: Further arguments.
        **fields: Fields of the template.

    Returns:
        The template.
    """
    counters = [replace(counter, domain=choice([number])) for number in steps]
    attributes = {"state_steps": counters, **FUSED_ATTRIBUTES, **(arguments or {})}
    return CaseTemplate(label, shapes, attributes, **{"dtypes": (F32,), **fields})


FUSED_ATTRIBUTES: Mapping[str, Any] = {
    "lr": 0.125,
    "beta1": 0.75,
    "beta2": 0.875,
    "eps": 0.25,
    "weight_decay": 0.5,
    "amsgrad": False,
    "maximize": False,
}
"""The attributes of most fused steps. They are large, so that each attribute affects the result visibly."""

MAX_MOMENT_DOMAINS: Mapping[str, Domain] = {"max_exp_avg_sqs": POSITIVE}
"""The domain of the argument with the largest earlier second moments, which only the AMSGrad variant uses."""

AMSGRAD_FIELDS: Mapping[str, Any] = {"arguments": {"amsgrad": True}, "domains": MAX_MOMENT_DOMAINS}
"""The fields of templates of the AMSGrad variant, which divides by the largest second moment of all steps."""

FUSED_DOMAINS: Mapping[str, Domain] = {
    "params": normal(),
    "grads": GRADIENT,
    "exp_avgs": normal(),
    "exp_avg_sqs": POSITIVE,
}
"""The domains of the lists of tensors of a fused step."""

LAYER_SHAPES = ((263, 257), (4097,), (1, 3, 1, 5))
"""The shapes of the parameters of large cases."""

HALF_LAYERS = [tensor(509), tensor(131, 517, layout=FAR_APART), tensor(3, 1031)]
"""The parameters of the large case in half precision. One parameter has gaps in memory."""

MOMENTS_IN_OTHER_LAYOUTS: Mapping[str, Any] = {
    "exp_avgs": [tensor(3, 4, layout=transposed), tensor(2, 5, layout=strided)],
    "exp_avg_sqs": [tensor(3, 4, domain=POSITIVE), tensor(2, 5, domain=POSITIVE, layout=transposed)],
}
"""Lists of moments whose layouts differ from those of the parameters."""

FUSED_TEMPLATES = (
    fused_template("amsgrad", **AMSGRAD_FIELDS, dtypes=floating, smoke=True),
    fused_template("decay", dtypes=floating, smoke=True),
    fused_template("plain", arguments={"weight_decay": 0.0}),
    fused_template("maximize", arguments={"maximize": True}, dtypes=(F16, F32)),
    fused_template(
        "maximize-amsgrad",
        arguments={"maximize": True, "amsgrad": True},
        domains=MAX_MOMENT_DOMAINS,
        dtypes=(BF16, F32),
    ),
    fused_template("idle-largest", domains=MAX_MOMENT_DOMAINS, dtypes=(F16, F32)),
    fused_template("int64-steps", counter=tensor(1, dtype=Dtype.int64), dtypes=(F32, BF16)),
    fused_template("one-element-steps", counter=tensor(1, dtype=F32)),
    fused_template("transposed", ((3, 4), (2, 3, 2)), (2, 5), layout=transposed, dtypes=floating),
    fused_template("strided", ((3, 4), (5,)), (2, 5), **AMSGRAD_FIELDS, layout=strided, dtypes=(F32, F16)),
    fused_template("moments-elsewhere", ((3, 4), (2, 5)), (2, 5), arguments=MOMENTS_IN_OTHER_LAYOUTS),
    fused_template("one", ((4, 5),), (7,), dtypes=floating),
    fused_template("with-empty", ((2, 3), (0, 3), (4,)), (1, 2, 3)),
    fused_template("many", ((3,),) * 9, range(1, 10), dtypes=(F32, BF16)),
    fused_template("very-many", ((2,),) * 75, range(1, 76), **AMSGRAD_FIELDS),
    fused_template("usual", arguments={**FRAMEWORK_DEFAULTS, "lr": 0.001}, dtypes=floating),
    fused_template("long", ((1031,), (7,)), (2, 3), **AMSGRAD_FIELDS),
    fused_template("model", LAYER_SHAPES, large=True),
    fused_template(
        "half-far-apart",
        arguments=dict.fromkeys(FUSED_DOMAINS, HALF_LAYERS),
        domains=FUSED_DOMAINS,
        dtypes=(F16,),
        large=True,
    ),
)
"""The templates of `diopiFusedAdamW`."""


@cases_for("diopiFusedAdamW")
def fused_adamw_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiFusedAdamW`, a step of AdamW for lists of tensors."""

    def derive_tensors(template: CaseTemplate[Sequence[tuple[int, ...]]], dtype: Dtype) -> Mapping[str, Any]:
        """Return the lists of tensors of a step. The list of largest moments is NULL unless it has a domain."""
        lists = {
            name: [tensor(*shape, domain=domain, layout=template.layout) for shape in template.sizes]
            for name, domain in {**FUSED_DOMAINS, **template.domains}.items()
        }
        return lists if "max_exp_avg_sqs" in lists else {**lists, "max_exp_avg_sqs": None}

    return expand(prototype, FUSED_TEMPLATES, derive_tensors)


# Clipping


def _normal_with_value(value: float) -> Domain:
    """Return a domain of normally distributed numbers, with the number in the middle replaced by `value`."""

    def draw(rng: Any, count: int, dtype: Dtype) -> Any:
        """Return the numbers."""
        values = rng.normal(0, 1, count)
        return np.where(np.arange(count) == count // 2, value, values)

    return draw


def _zero_vectors(length: int) -> Domain:
    """Return a domain that draws zeros for tensors of one size, and 1 and −1 at random for all other tensors.

    Args:
        length: The number of elements of the tensors that contain zeros.

    Returns:
        The domain.
    """

    def draw(rng: Any, count: int, dtype: Dtype) -> Any:
        """Return zeros, or 1 and −1."""
        return np.zeros(count) if count == length else rng.choice([-1.0, 1.0], count)

    return draw


def clip_template(
    label: str,
    max_norm: float = 1.5,
    norm_type: float = 2.0,
    shapes: Sequence[tuple[int, ...]] = ((3, 4), (5,), ()),
    domain: Domain = GRADIENT,
    *,
    layout: Layout = contiguous,
    remaining_dtype: Dtype | None = None,
    must_be_finite: bool = False,
    **fields: Any,
) -> CaseTemplate[Shape]:
    """Return a template of clipping gradients by their common norm.

    Args:
        label: The label of the cases without the element type.
        max_norm: The largest norm that is not clipped.
        norm_type: The order of the norm.
        shapes: The shapes of the gradients.
        domain: The domain of the gradients.
        layout: The layout of the gradients.
        remaining_dtype: The element type of all gradients except the first; None for the type under test.
        must_be_finite: Whether the call must fail if the norm is not finite.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    grads = [
        tensor(*shape, domain=domain, layout=layout, dtype=remaining_dtype if number else None)
        for number, shape in enumerate(shapes)
    ]
    arguments: Arguments = {
        "grads": grads,
        "max_norm": max_norm,
        "norm_type": norm_type,
        "error_if_nonfinite": must_be_finite,
    }
    return CaseTemplate(label, arguments=arguments, **{"dtypes": (F32,), **fields})


ZERO_NORM_REASON = "gradients with the norm 0 stay 0"
"""The reason why wrong results can pass cases whose gradients are 0 (`Case.non_discriminating`)."""

TWO_SHAPES, THREE_SHAPES = ((3, 4), (5,)), ((3, 4), (5,), (2, 2))
"""The shapes of two and of three gradients."""

FURTHER_ORDERS = (-1.0, -0.5, 0.25, 1.5, 2.5, 4.0, 6.0)
"""Orders of the norm for which there is one case each."""

CLIP_TEMPLATES = (
    clip_template("two", dtypes=floating, smoke=True),
    clip_template("two-strict", must_be_finite=True, dtypes=(F16, F32)),
    clip_template("within", 100.0, dtypes=floating),
    clip_template("one", norm_type=1.0, dtypes=floating),
    clip_template("maximum", 0.5, inf, dtypes=floating),
    clip_template("three", norm_type=3.0, dtypes=(F32, F64)),
    clip_template("half", norm_type=0.5, max_norm=20.0),
    clip_template("minimum", 0.01, -inf, TWO_SHAPES),
    clip_template("count", 2.0, 0.0, (*THREE_SHAPES, ()), dtypes=(F32, BF16)),
    clip_template("count-of-some", 4.0, 0.0, THREE_SHAPES, _zero_vectors(5), dtypes=floating, exact=True),
    clip_template("count-of-nothing", 0.5, 0.0, TWO_SHAPES, ZERO, exact=True, non_discriminating=ZERO_NORM_REASON),
    clip_template("nothing", 1.0, 2.0, TWO_SHAPES, ZERO, exact=True, non_discriminating=ZERO_NORM_REASON),
    clip_template(
        "max-norm-0", 0.0, domain=uniform(0.5, 2), non_discriminating="gradients that are clipped to the norm 0 are 0"
    ),
    clip_template("no-gradients", shapes=(), exact=True),
    clip_template("with-empty", 1.0, 2.0, ((2, 3), (0, 3), (4,))),
    clip_template("single", 0.75, 2.0, ((4, 5),), dtypes=floating),
    clip_template("exactly-within", 16.0, 1.0, ((2, 4), (3,)), choice([1.0, -1.0]), dtypes=floating, exact=True),
    clip_template("transposed", 1.0, 2.0, ((3, 4), (2, 3, 2)), layout=transposed, dtypes=(F16, F32)),
    clip_template("strided", 1.0, 2.0, TWO_SHAPES, layout=strided, dtypes=(BF16, F32)),
    clip_template(
        "mixed-half", shapes=((3, 3), (4, 4), ()), domain=choice([1.0, -1.0]), remaining_dtype=F16
    ),  # single norms are exact
    clip_template("mixed-wide", remaining_dtype=F64),
    clip_template("infinite", shapes=TWO_SHAPES, domain=_normal_with_value(inf), dtypes=(F16, F32)),
    clip_template(
        "nan",
        shapes=TWO_SHAPES,
        domain=_normal_with_value(nan),
        dtypes=(F32, BF16),
        non_discriminating="a NaN makes every result NaN",
    ),
    clip_template("infinite-maximum", 1.0, inf, TWO_SHAPES, _normal_with_value(-inf)),
    clip_template("long", 3.0, 2.0, ((1031,), (7,)), dtypes=(F32, BF16)),
    clip_template("long-one", 6000.0, 1.0, ((1024,),), choice([3.0, -3.0]), dtypes=floating, exact=True),
    clip_template("long-two", 6000.0, 2.0, ((1024,),), choice([3.0, -3.0]), dtypes=floating, exact=True),
    clip_template("very-many", 1.0, 2.0, ((2,),) * 150, integer_values(-4, 4)),
    clip_template("many", 1.0, 2.0, ((3,),) * 12, integer_values(-4, 4)),
    clip_template("model", shapes=LAYER_SHAPES, large=True),
    clip_template("half-far-apart", dtypes=(F16,), domains={"grads": GRADIENT}, large=True).replace(
        arguments={"grads": HALF_LAYERS}
    ),
    *(clip_template(f"order-{p}", 0.0005 if p < 0 else 1.0, p, domain=uniform(0.5, 2)) for p in FURTHER_ORDERS),
)
"""The templates of `diopiClipGradNorm`."""


@cases_for("diopiClipGradNorm")
def clip_grad_norm_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiClipGradNorm`, which clips a list of gradients by their common norm."""
    return expand(prototype, CLIP_TEMPLATES)


NO_MEMORY_REASON = "the decay is 0, so the earlier state does not affect the result"
"""The reason why wrong results can pass cases with a decay of 0 (`Case.non_discriminating`)."""

CaseFacts(number_choices=[NumberChoice("dampening", "whole", 2.0)]).declare("diopiSgd")
CaseFacts(
    number_choices=[NumberChoice(name, "zero", 0.0, non_discriminating=NO_MEMORY_REASON) for name in ("beta1", "beta2")]
).declare("diopiAdam", "diopiAdamW", "diopiFusedAdamW")
CaseFacts(number_choices=[NumberChoice("rho", "zero", 0.0, non_discriminating=NO_MEMORY_REASON)]).declare(
    "diopiAdadelta"
)

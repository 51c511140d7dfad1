"""Cases of losses that work element by element, and their gradients.

A template describes cases that differ only in their element type (`diopi_test.cases.template`). `shape_variant`
combines two partial templates:

- A variant has the arguments of the loss, such as domains of `input` and `target`, but no shape.
- A pattern has a shape, a reduction and layouts, but no tensors.

A domain draws the values of a tensor (`diopi_test.cases.domains`). A case does not pass arguments whose names start
with `_`; it computes other arguments from them. Smoke cases belong to the shortest level of the suite. Large cases
belong to a level with the sizes of real models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

from diopi_proto.dtypes import floating, integer, integral
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Reduction
from diopi_test.cases.case import Case, CaseClass, TensorSpec, cases_for
from diopi_test.cases.domains import Domain, avoid_points, choice, integer_values, log_uniform, normal, uniform
from diopi_test.cases.facts import CallsUndefinedInPyTorch, CaseFacts
from diopi_test.cases.layouts import Layout, contiguous, strided, strides, transposed
from diopi_test.cases.loss.reduced import MEAN, NONE, SUM, loss_cases, result_shape
from diopi_test.cases.template import CaseTemplate, DtypeSelection, TensorTemplate, tensor

Shape = tuple[int, ...]
"""The sizes of a tensor."""

F16, BF16, F32, F64 = floating
"""Short names for the floating-point types."""

LOGITS, PROBABILITIES, ZEROS_AND_ONES = normal(1.5), uniform(0, 1), choice([0.0, 1.0])
"""Domains of logits, of probabilities in [0, 1), and of the probabilities 0 and 1."""

# Patterns


def reduced_pattern(
    label: str, reduction: Reduction, shape: tuple[int, ...], layout: Layout = contiguous, **fields: Any
) -> CaseTemplate[Shape]:
    """Return a pattern: a template whose only argument is `reduction`.

    Args:
        label: The end of the labels of cases.
        reduction: The reduction.
        shape: The shape of the input.
        layout: The layout of the input, and of the result unless `fields` contain `result_layout`.
        **fields: Further fields of the template. Only `usual_templates` uses the fields `dtypes` and `smoke`.

    Returns:
        The pattern.
    """
    return CaseTemplate(label, shape, {"reduction": reduction}, layout=layout, **{"result_layout": layout, **fields})


SIMPLE_PATTERNS = (
    reduced_pattern("none", NONE, (4, 5), smoke=True, dtypes=floating),
    reduced_pattern("mean", MEAN, (3, 5), smoke=True, dtypes=floating),
    reduced_pattern("sum", SUM, (3, 5)),
)
"""The small contiguous patterns, one per reduction. Most variants have cases with all or some of these patterns."""

USUAL_PATTERNS = (
    *SIMPLE_PATTERNS,
    reduced_pattern("none-rank3-transposed", NONE, (3, 4, 5), transposed, dtypes=floating),
    reduced_pattern("none-strided", NONE, (3, 2, 5), strided),
    reduced_pattern("none-to-transposed", NONE, (4, 5), result_layout=transposed),
    reduced_pattern("none-scalar", NONE, (), dtypes=(F16, F32)),
    reduced_pattern("none-empty", NONE, (0, 5)),
    reduced_pattern("mean-rank3-transposed", MEAN, (3, 4, 5), transposed, dtypes=(BF16, F32)),
    reduced_pattern("mean-scalar", MEAN, ()),
    reduced_pattern("mean-empty", MEAN, (0, 5), dtypes=(F16, F32)),
    reduced_pattern("mean-long", MEAN, (206, 5)),
    reduced_pattern("sum-strided", SUM, (3, 2, 5), strided, dtypes=floating),
    reduced_pattern("sum-empty", SUM, (0, 5)),
    reduced_pattern("sum-long", SUM, (206, 5)),
)
"""The patterns of the usual variant of a loss, with various shapes and layouts."""

LARGE_PATTERNS = (
    reduced_pattern("each", NONE, (263, 257), large=True),
    reduced_pattern("mean", MEAN, (70_001,), large=True),
)
"""The large patterns of the usual variant of a loss."""

HALF_FAR_APART = reduced_pattern("half-far-apart", MEAN, (131, 517), dtypes=(F16,), large=True)
"""The pattern of a large case in float16. `usual_templates` places gaps between the elements of the input."""

EXACT_SUM_PATTERNS = (reduced_pattern("mean", MEAN, (16, 128)), reduced_pattern("sum", SUM, (9, 115)))
"""Patterns for variants with integer losses of about 48 per element.

Float32 represents the sums exactly, and half precision does not. The sum of the first pattern, about 98,000, exceeds
the range of float16.
"""

# Variants: arguments whose tensors get their shapes from a pattern

INPUT_SHAPE = (-2,)
"""A placeholder: a tensor of a variant with this shape gets the shape of the input.

In other shapes of a variant, −1 stands for the length of the input's axis at this position, counted from the last axis.
For the input shape (4, 5), the shape (-1, 1) becomes (4, 1).
"""


def like_input(domain: Domain, **fields: Any) -> TensorTemplate:
    """Return a tensor of a variant, which gets the shape and layout of the input.

    Args:
        domain: The domain of the values.
        **fields: Further fields of `TensorTemplate`.

    Returns:
        The tensor.
    """
    return TensorTemplate(INPUT_SHAPE, domain, **fields)


def new_variant(label: str = "", dtypes: Sequence[Dtype] = (F32,), **arguments: Any) -> CaseTemplate[Shape]:
    """Return a variant: a template with arguments, but without a shape.

    Args:
        label: The start of the labels of cases.
        dtypes: The element types.
        **arguments: The arguments. A domain (a callable object) becomes a tensor with the shape of the input.

    Returns:
        The variant.
    """
    templates = {name: like_input(value) if callable(value) else value for name, value in arguments.items()}
    return CaseTemplate(label, arguments=templates, dtypes=dtypes)


def shape_variant(variant: CaseTemplate[Shape], pattern: CaseTemplate[Shape]) -> CaseTemplate[Shape]:
    """Return the template that combines a variant with a pattern.

    Args:
        variant: A template with arguments, element types and smoke flag. Its label begins the new label.
        pattern: A template with shape, layouts, reduction and the flag `large`. Its label ends the new label. Its
            element types and smoke flag are ignored.

    Returns:
        A template with the arguments of the variant in the shape of the pattern, and with the argument `grad_output` in
        the shape of the loss. `grad_output` has float64 elements if the variant sets this type for the target.
    """
    arguments = {name: _with_shape_and_layout(value, pattern) for name, value in variant.arguments.items()}
    gradient_dtype = F64 if arguments["target"].dtype is F64 else None
    grad_output = tensor(*result_shape(pattern.argument("reduction"), pattern.sizes), dtype=gradient_dtype)
    label = "-".join(filter(None, [variant.label, pattern.label]))
    template = variant.replace(label, {**arguments, "grad_output": grad_output, **pattern.arguments})
    return replace(
        template,
        sizes=pattern.sizes,
        layout=pattern.layout,
        result_layout=pattern.result_layout,
        large=pattern.large,
    )


def _with_shape_and_layout(value: Any, pattern: CaseTemplate[Shape]) -> Any:
    """Return an argument of a variant with the shape that it has for a pattern.

    Args:
        value: The argument. Only tensors are changed.
        pattern: The pattern. Tensors of the shape `INPUT_SHAPE` also get its layout.

    Returns:
        The argument.
    """
    if not isinstance(value, TensorTemplate):
        return value
    shape, rank = pattern.sizes, len(value.shape)
    if value.shape == INPUT_SHAPE:
        return replace(value, shape=shape, layout=pattern.layout)
    return replace(value, shape=tuple(shape[i - rank] if n == -1 else n for i, n in enumerate(value.shape)))


def usual_templates(variant: CaseTemplate[Shape]) -> list[CaseTemplate[Shape]]:
    """Return templates that combine a variant with all patterns, including the large ones.

    The element types and smoke flags are those of the patterns, not those of the variant.
    """
    patterns = (*USUAL_PATTERNS, *LARGE_PATTERNS, HALF_FAR_APART)
    *templates, half = (
        shape_variant(variant.replace(dtypes=pattern.dtypes, smoke=pattern.smoke), pattern) for pattern in patterns
    )
    inputs = {name: half.argument(name) for name in ("input", "inputs") if name in half.arguments}
    far_apart = {name: replace(value, layout=strides(1031, 2)) for name, value in inputs.items()}
    return [*templates, half.replace(arguments=far_apart)]


def simple_templates(*variants: CaseTemplate[Shape]) -> list[CaseTemplate[Shape]]:
    """Return templates that combine each variant with each of the patterns `SIMPLE_PATTERNS`.

    The element types and smoke flags are those of the variants.
    """
    return [shape_variant(variant, pattern) for variant in variants for pattern in SIMPLE_PATTERNS]


def exact_sum_templates(variant: CaseTemplate[Shape]) -> list[CaseTemplate[Shape]]:
    """Return templates that combine a variant with `EXACT_SUM_PATTERNS`, whose long sums are exact in float32.

    They are for losses only, because the gradients contain no sums.
    """
    return [
        shape_variant(variant.replace("exact", dtypes=floating, exact=True), pattern) for pattern in EXACT_SUM_PATTERNS
    ]


def caller_habit_templates(variants: Iterable[CaseTemplate[Shape]]) -> Iterator[CaseTemplate[Shape]]:
    """Yield templates of the class `callers`: calls that programs make, with unusual element types or shapes.

    Args:
        variants: The variants of these calls.

    Yields:
        For each variant a template without reduction, and one with the mean in only the function's leading type.
    """
    for variant in variants:
        caller_variant = variant.replace(case_class=CaseClass.callers)
        yield from (
            shape_variant(caller_variant, SIMPLE_PATTERNS[0]),
            shape_variant(caller_variant.replace(dtypes=DtypeSelection.leading), SIMPLE_PATTERNS[1]),
        )


def templates_of_other_types(
    variant: CaseTemplate[Shape], name: str, other_dtypes: Sequence[Dtype]
) -> Iterator[CaseTemplate[Shape]]:
    """Yield variants whose argument `name` has another element type than the input.

    Args:
        variant: The variant.
        name: The argument: `target`, `weight` or `pos_weight`.
        other_dtypes: The element types of the argument.

    Yields:
        A variant for each element type of the argument, with small integers as values.
    """
    for dtype in other_dtypes:
        # values for uint8 start at 1: PyTorch subtracts 1 from a pos_weight, and in uint8, 0 − 1 wraps around
        lowest = 1 if dtype is Dtype.uint8 else -3 if name == "target" else 0
        dtypes = (F32,) if dtype in floating else (F32, F16)
        yield variant.replace(
            f"{name}-{dtype.name}", {name: like_input(integer_values(lowest, 4), dtype=dtype)}, dtypes=dtypes
        )


ROW_WEIGHTS, COLUMN_WEIGHTS, FULL_WEIGHTS, SCALAR_WEIGHT = (
    tensor(*shape, domain=uniform(0.25, 3)) for shape in ((5,), (-1, 1), INPUT_SHAPE, ())
)
"""Weights for an input of the shape (n, 5), with the shapes (5,), (n, 1), (n, 5) and ()."""


def target_templates(variant: CaseTemplate[Shape]) -> Iterator[CaseTemplate[Shape]]:
    """Yield templates of the class `callers` whose targets have another element type or a smaller shape than the input.

    Args:
        variant: The variant, with `input` and `target`.

    Yields:
        Templates with bool, integer and float64 targets, and templates with targets that are broadcast.
    """
    yield from caller_habit_templates(templates_of_other_types(variant, "target", (*integral, F64)))
    shapes = {"row": (5,), "column": (-1, 1), "scalar": (), "one": (1,)}
    yield from caller_habit_templates(
        variant.replace(f"target-{label}", {"target": tensor(*shape)}) for label, shape in shapes.items()
    )


# Distances

MSE = (
    *usual_templates(new_variant(input=normal(), target=normal(mean=0.5))),
    *target_templates(new_variant(input=normal(), target=normal())),
)
"""The templates that the mean squared error and its gradient have."""


@cases_for("diopiMSELoss", "diopiMSELossBackward")
def mse_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiMSELoss` or of its gradient."""
    return loss_cases(
        prototype,
        MSE,
        loss_only=exact_sum_templates(new_variant(input=integer_values(-8, 8), target=integer_values(-8, 8))),
    )


TARGET_AT_GAP = like_input(normal(), compute=lambda values: values["input"] - values["_gap"])
"""Targets computed as input − `_gap`, where `_gap` is a tensor that is not passed to the function."""


def gap_variant(label: str, dtypes: Sequence[Dtype], beta: float, domain: Domain) -> CaseTemplate[Shape]:
    """Return a variant of the smooth L1 loss whose differences input − target are drawn from `domain`.

    The gradient jumps or bends at the differences 0 and ±beta. A domain of differences can avoid these points.

    Args:
        label: The start of the labels of cases.
        dtypes: The element types.
        beta: The difference at which the loss changes from a parabola to a line.
        domain: The domain of the differences. Rounding of the target changes them slightly.

    Returns:
        The variant.
    """
    return new_variant(label, dtypes, _gap=domain, input=normal(), target=TARGET_AT_GAP, beta=beta)


def tie_template(beta: float) -> CaseTemplate[Shape]:
    """Return a template of the unreduced smooth L1 loss in which some differences are 0 or ±beta.

    At ±beta, the parabola and the line of the loss meet. Both formulas must give the same result there.

    Args:
        beta: The difference at which the loss changes from a parabola to a line: 0, 0.5 or 1.

    Returns:
        The template.
    """
    ties = new_variant(input=choice([1.0, 2.0, 2.5, 3.0]), target=choice([1.0, 1.5, 2.0]), beta=beta)
    domains = {"grad_output": choice([1.0, 2.0, 3.0])}
    template = shape_variant(ties, reduced_pattern("", NONE, (4, 6)))
    return template.replace(f"ties-beta{beta:g}", domains=domains, dtypes=floating, smoke=(F32,), exact=True)


BOOL_TARGET = {"target": like_input(integer_values(0, 1), dtype=Dtype.bool)}
"""The argument of a call of the smooth L1 loss with a bool target."""

SMOOTH_L1 = (
    *usual_templates(gap_variant("", (), 1.0, avoid_points([0, -1, 1], normal(1.2)))),
    *simple_templates(
        gap_variant("beta0.3", (F16, F32), 0.3, avoid_points([0, -0.3, 0.3], normal(0.6))),
        gap_variant("beta2.5", (F32, F64), 2.5, avoid_points([0], normal(2))),
        gap_variant("beta0", (BF16, F32), 0.0, avoid_points([0], normal())),
    ),
    *map(tie_template, (0.0, 0.5, 1.0)),
    *target_templates(new_variant(input=normal(1.2), target=normal(), beta=1.0)),
    *caller_habit_templates(
        [new_variant(input=avoid_points([0, 1], normal(1.2)), beta=0.0).replace("target-truths-beta0", BOOL_TARGET)]
    ),
)
"""The templates that the smooth L1 loss and its gradient have."""


@cases_for("diopiSmoothL1Loss", "diopiSmoothL1LossBackward")
def smooth_l1_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiSmoothL1Loss` or of its gradient."""
    loss_only = exact_sum_templates(
        new_variant(input=integer_values(-60, 60), target=integer_values(-60, 60), beta=4.0)
    )
    return loss_cases(prototype, SMOOTH_L1, loss_only=loss_only)


# Binary cross entropy

bce_variant = partial(new_variant, input=uniform(0.05, 0.95), target=PROBABILITIES, weight=None)
"""Return a variant of the binary cross entropy of probabilities; arguments of the call replace these defaults."""

BCE = (
    *usual_templates(bce_variant()),
    *simple_templates(
        bce_variant("weight-row", (BF16, F32), weight=ROW_WEIGHTS),
        bce_variant("weight-column", (BF16, F32), weight=COLUMN_WEIGHTS),
        bce_variant("weight-full", (F16, F64), weight=FULL_WEIGHTS),
        bce_variant("weight-scalar", weight=SCALAR_WEIGHT),
    ),
    *caller_habit_templates(templates_of_other_types(bce_variant(), "weight", (*integral, F64))),
)
"""The templates that binary cross entropy of probabilities and its gradient have."""

PROBABILITY_ENDS = bce_variant(
    "ends", floating, input=ZEROS_AND_ONES, target=choice([0.25, 0.5, 0.75]), weight=choice([0.5, 1.0])
)
"""A variant with the probabilities 0 and 1. The loss replaces their logarithm −∞ by −100."""

TINY_PROBABILITIES = bce_variant("ends", (BF16, F32, F64), input=log_uniform(-70, -45, signed=False))
"""A variant with probabilities p from 2⁻⁷⁰ to 2⁻⁴⁵, for which the gradient's denominator p·(1 − p) is below 1e−12.

The gradient replaces the denominator by 1e−12. Float16 has no numbers in this range.
"""


@cases_for("diopiBCELoss", "diopiBCELossBackward")
def bce_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiBCELoss`, binary cross entropy of probabilities, or of its gradient."""
    loss_only = [
        shape_variant(PROBABILITY_ENDS.replace(exact=True), reduced_pattern("none", NONE, (4, 6))),
        *exact_sum_templates(PROBABILITY_ENDS),
    ]
    return loss_cases(prototype, BCE, loss_only=loss_only, gradient_only=simple_templates(TINY_PROBABILITIES))


logits_variant = partial(new_variant, input=LOGITS, target=PROBABILITIES, weight=None, pos_weight=None)
"""Return a variant of the binary cross entropy of logits; arguments of the call replace these defaults."""

BCE_WITH_LOGITS = (
    *usual_templates(logits_variant()),
    *simple_templates(
        logits_variant("weight-row", (F16, F32), weight=ROW_WEIGHTS),
        logits_variant("pos-weight-row", (BF16, F32), pos_weight=ROW_WEIGHTS),
        logits_variant("weight-column", (F16, F32), weight=COLUMN_WEIGHTS),
        logits_variant("pos-weight-column", (BF16, F32), pos_weight=COLUMN_WEIGHTS),
        logits_variant("both-weights", (F16, F32, F64), weight=FULL_WEIGHTS, pos_weight=ROW_WEIGHTS),
        logits_variant("pos-weight-int64", pos_weight=tensor(5, domain=integer_values(0, 4), dtype=Dtype.int64)),
    ),
    *caller_habit_templates(templates_of_other_types(logits_variant(), "weight", (*integral, F64))),
    *caller_habit_templates(templates_of_other_types(logits_variant(), "pos_weight", (*integer, F64))),
    *simple_templates(
        logits_variant(
            "far", floating, input=uniform(-30, 30), target=ZEROS_AND_ONES, weight=ROW_WEIGHTS, pos_weight=ROW_WEIGHTS
        )
    ),
)
"""The templates that binary cross entropy of logits and its gradient have."""

INFINITE_LOGITS = choice([inf, -inf, 1.5, -0.25, 2.0])
"""A domain of infinite and moderate logits."""

POWERS_OF_TWO, QUARTERS = choice([0.25, 0.5, 1.0, 2.0]), choice([0.0, 0.25, 0.5, 0.75, 1.0])
"""Domains of numbers whose products are exact: powers of two, and quarters."""

LINEAR_LOSS = logits_variant(
    input=choice([-128.0, 128.0]), target=QUARTERS, weight=tensor(-1, 1, domain=POWERS_OF_TWO), pos_weight=POWERS_OF_TWO
)
"""A variant with logits of ±128, for which ln(1 + e⁻¹²⁸) is too small to affect a sum.

For the target t, a loss is 128·(1 − t) for the logit 128 and 128·t·pos_weight for −128, each times the weight.
"""


@cases_for("diopiBCEWithLogits", "diopiBCEWithLogitsBackward")
def bce_with_logits_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiBCEWithLogits`, binary cross entropy of logits, or of its gradient."""
    infinite = shape_variant(logits_variant("infinite", (F32, F16), input=INFINITE_LOGITS), SIMPLE_PATTERNS[0])
    return loss_cases(prototype, (*BCE_WITH_LOGITS, infinite), loss_only=exact_sum_templates(LINEAR_LOSS))


def focal_variant(
    label: str = "",
    dtypes: Sequence[Dtype] = (F32,),
    input: Domain = LOGITS,
    target: Domain = ZEROS_AND_ONES,
    alpha: float = 0.25,
    gamma: float = 2.0,
) -> CaseTemplate[Shape]:
    """Return a variant of the focal loss of sigmoid probabilities.

    The loss names its tensors `inputs` and `targets`, the gradient `input` and `target`. The variant has all four.

    Args:
        label: The start of the labels of cases.
        dtypes: The element types.
        input: The domain of the logits.
        target: The domain of the targets.
        alpha: The weight of the target 1; the target 0 has the weight 1 − alpha. A negative number disables weights.
        gamma: The exponent.

    Returns:
        The variant.
    """
    tensors = {"inputs": input, "targets": target, "input": input, "target": target}
    return new_variant(label, dtypes, **tensors, alpha=alpha, gamma=gamma)


FOCAL = (
    *usual_templates(focal_variant()),
    *simple_templates(
        focal_variant("no-alpha", (F32, BF16), alpha=-1.0),
        focal_variant("alpha0", alpha=0.0, gamma=1.0),
        focal_variant("gamma0", (F32, F16), alpha=0.7, gamma=0.0),
        focal_variant("gamma1.3", (F32, F64), alpha=0.4, gamma=1.3),
        focal_variant("soft-targets", target=PROBABILITIES, alpha=0.3, gamma=3.0),
        focal_variant("far", (F32, BF16), input=uniform(-20, 20), alpha=0.6),
    ),
)
"""The templates that the focal loss and its gradient have."""

SATURATED_FOCAL_LOSS = focal_variant(input=choice([-160.0, 160.0]))
"""A variant with logits of ±160, for which the probability is rounded to 0 or 1.

A loss is therefore 0 for a correct prediction. For a wrong prediction, it is 160·alpha or 160·(1 − alpha).
"""


@cases_for("diopiSigmoidFocalLoss", "diopiSigmoidFocalLossBackward")
def sigmoid_focal_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiSigmoidFocalLoss` or of its gradient."""
    infinite = shape_variant(focal_variant("infinite", input=INFINITE_LOGITS, target=choice([0.0])), SIMPLE_PATTERNS[0])
    return loss_cases(prototype, FOCAL, loss_only=[*exact_sum_templates(SATURATED_FOCAL_LOSS), infinite])


def _has_float64_range_ends(prototype: Prototype, case: Case) -> bool:
    """Return whether the case is in float64 and has the label word "ends", as cases of `TINY_PROBABILITIES` do."""
    return case.dtype is Dtype.float64 and "ends" in case.label.split("-")


def _has_tie_at_beta_0(prototype: Prototype, case: Case) -> bool:
    """Return whether beta is 0 and the label contains "ties": some elements of input and target are equal."""
    return case.arguments["beta"] == 0 and "ties" in case.label


def _has_bool_at_beta_0(prototype: Prototype, case: Case) -> bool:
    """Return whether beta is 0 and a tensor has the type bool."""
    tensors = [value for value in case.arguments.values() if isinstance(value, TensorSpec)]
    return case.arguments["beta"] == 0 and any(tensor.dtype is Dtype.bool for tensor in tensors)


def _has_soft_targets(prototype: Prototype, case: Case) -> bool:
    """Return whether the label contains "soft-targets": some targets are probabilities other than 0 and 1."""
    return "soft-targets" in case.label


CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _has_float64_range_ends,
            "the least denominator of torch.ops.aten.binary_cross_entropy_backward is 1e-12 rounded to float32",
        )
    ]
).declare("diopiBCELossBackward")
CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _has_tie_at_beta_0,
            "with beta 0 at a tie, the gradient of torch.nn.functional.smooth_l1_loss is 0, that of "
            "torch.ops.aten.smooth_l1_loss_backward −grad_output",
        )
    ]
).declare("diopiSmoothL1LossBackward")
CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _has_bool_at_beta_0,
            "with beta 0, torch.nn.functional.smooth_l1_loss subtracts the target, which torch.sub rejects for bool",
        )
    ]
).declare("diopiSmoothL1Loss", "diopiSmoothL1LossBackward")
CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _has_soft_targets,
            "focal loss is defined for targets 0 and 1; between them, different formulas of the loss disagree",
        )
    ]
).declare("diopiSigmoidFocalLoss", "diopiSigmoidFocalLossBackward")

"""Cases of losses over classes, and their gradients: cross entropy and negative log-likelihood.

A template describes cases that differ only in their element type (`diopi_test.cases.template`). Most templates are for
both losses; `with_logits` gives them the input values of a loss.

A domain draws the values of a tensor (`diopi_test.cases.domains`). A case does not pass arguments whose names start
with `_`; it computes other arguments from them. Large cases belong to a level with the sizes of real models.
`Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from diopi_proto.dtypes import floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Reduction
from diopi_test.cases.case import Case, CaseClass, ResultOf, ResultOverride, TensorSpec, cases_for
from diopi_test.cases.domains import Domain, choice, integer_values, normal, uniform
from diopi_test.cases.facts import CallsUndefinedInPyTorch, CaseFacts
from diopi_test.cases.layouts import Layout, channels_last, contiguous, strided, transposed
from diopi_test.cases.loss.reduced import MEAN, NONE, SUM, loss_cases, result_shape
from diopi_test.cases.products import fixed_values
from diopi_test.cases.template import CaseTemplate, TensorTemplate, tensor

F16, BF16, F32, F64 = floating
"""Short names for the floating-point types."""

WEIGHTS = uniform(0.25, 3)
"""The domain of the weights of classes. No weight is near 0, so that ignoring a weight changes the result."""

SCALAR, VECTOR = ResultOverride(), ResultOverride(shape=(1,))
"""Overrides of the result `totalWeight`, the sum of the weights of all targets: with the shape () or (1,).

A caller may choose either shape.
"""


def classes_template(
    label: str,
    shape: tuple[int, ...] = (6, 5),
    reduction: Reduction = MEAN,
    has_class_weights: bool = False,
    ignore_index: int = -100,
    targets: Domain | None = None,
    *,
    smoothing: float = 0.0,
    has_probability_targets: bool = False,
    weights: Domain = WEIGHTS,
    index_dtype: Dtype = Dtype.int64,
    layout: Layout = contiguous,
    total_weight: ResultOverride | None = SCALAR,
    **fields: Any,
) -> CaseTemplate:
    """Return a template of a loss over classes.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the input. The classes are on axis 1, or on axis 0 if it is the only axis.
        reduction: The reduction of the losses.
        has_class_weights: Whether the classes have weights.
        ignore_index: The target class whose positions are ignored.
        targets: The domain of the target classes; None for all classes.
        smoothing: The label smoothing, the share of the target that is spread over all classes.
        has_probability_targets: Whether the target contains probabilities of all classes instead of one class per
            position.
        weights: The domain of the weights of classes, if `has_class_weights` is true.
        index_dtype: The element type of the target classes.
        layout: The layout of the input, and of results that are not reduced.
        total_weight: The override of the result `totalWeight`, for functions that have it; None omits it.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    axis = min(1, len(shape) - 1)
    outer = shape[:axis] + shape[axis + 1 :]
    arguments = {
        "input": tensor(*shape, layout=layout),
        **_target_arguments(
            shape,
            axis,
            transposed if layout is transposed else contiguous,
            None if has_probability_targets else index_dtype,
            targets,
        ),
        "weight": tensor(shape[axis], domain=weights) if has_class_weights else None,
        **{"reduction": reduction, "ignore_index": ignore_index, "label_smoothing": smoothing},
        # The total weight differs from the sum of the targets' weights, so that a function that ignores it fails.
        "totalWeight": tensor(*(1,) * ("weight" in label), domain=uniform(3, 9)),
        "grad_output": tensor(*result_shape(reduction, outer)),
    }
    return CaseTemplate(
        label, arguments=arguments, results={"totalWeight": total_weight}, result_layout=layout, **fields
    )


def _target_arguments(
    shape: tuple[int, ...], axis: int, layout: Layout, index_dtype: Dtype | None, classes: Domain | None
) -> dict[str, TensorTemplate]:
    """Return the argument `target`, and the argument `_scores` from which probabilities are computed.

    Args:
        shape: The shape of the input.
        axis: The axis of the classes.
        layout: The layout of the target.
        index_dtype: The element type of target classes; None for a target of probabilities.
        classes: The domain of target classes; None for all classes.

    Returns:
        The arguments by name: only `target` for classes, or `_scores` and `target` for probabilities.
    """
    if index_dtype is not None:
        outer = shape[:axis] + shape[axis + 1 :]
        return {
            "target": TensorTemplate(outer, classes or integer_values(0, shape[axis] - 1), layout, dtype=index_dtype)
        }
    softmax = tensor(*shape, layout=layout, compute=lambda values: special.softmax(values["_scores"], axis))
    return {"_scores": tensor(*shape, dtype=F32), "target": softmax}


def with_logits(templates: Iterable[CaseTemplate], logits: Domain) -> list[CaseTemplate]:
    """Return copies of templates with another domain of the argument `input`.

    Args:
        templates: The templates.
        logits: The domain of `input`: logits, or logarithms of probabilities.

    Returns:
        The new templates.
    """
    return [template.replace(domains={"input": logits}) for template in templates]


def _large_template(label: str, shape: tuple[int, ...], **fields: Any) -> CaseTemplate:
    """Return a large template with class weights and the mean as reduction.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the input.
        **fields: Further arguments of `classes_template`.

    Returns:
        The template. The gradient receives a total weight of the shape (1,).
    """
    total_weight = {"totalWeight": tensor(1, domain=uniform(3, 9))}
    return classes_template(label, shape, has_class_weights=True, large=True, **fields).replace(arguments=total_weight)


TARGETS_WITH_NEGATIVE = choice([0, 1, -1, 2, 3, 4, 3, 4, -1, 0])
"""A domain of five target classes and −1. Cases with this domain ignore the class −1."""

IGNORED_TARGETS = choice([-100])
"""A domain of targets that are all −100, the class that functions ignore by default."""

CLASS_TARGETS = (
    classes_template("none", reduction=NONE, dtypes=floating, smoke=True),
    classes_template("mean-weight", has_class_weights=True, dtypes=floating, smoke=True, total_weight=VECTOR),
    classes_template("mean-weight-ignore", (2, 4, 3, 2), MEAN, True, 2, dtypes=floating),
    classes_template(
        "none-weight-rank3-transposed", (6, 4, 5), NONE, True, layout=transposed, dtypes=floating, total_weight=None
    ),
    classes_template("sum", (7, 3), SUM, total_weight=VECTOR),
    classes_template("mean", (7, 3), total_weight=None),
    classes_template("sum-weight-ignore", (7, 5), SUM, True, 0),
    classes_template("none-ignore-negative", (10, 5), NONE, True, -1, TARGETS_WITH_NEGATIVE, smoke=True),
    classes_template("mean-ignore-negative", (10, 5), MEAN, True, -1, TARGETS_WITH_NEGATIVE, smoke=True),
    classes_template("mean-ignore-default", (10, 5), targets=choice([0, 1, 2, 3, 4, -100, -100])),
    classes_template("mean-all-ignored", (4, 5), ignore_index=3, targets=choice([3])),
    classes_template("sum-all-ignored", (4, 5), SUM, True, 3, choice([3])),
    classes_template("mean-int32", (6, 5), MEAN, True, 2, index_dtype=Dtype.int32, smoke=True),
    classes_template("none-int32-rank3", (3, 4, 2), NONE, index_dtype=Dtype.int32),
    classes_template("none-vector", (5,), NONE, True),
    classes_template("mean-vector", (5,), MEAN, True),
    classes_template("mean-empty", (0, 4)),
    classes_template("sum-empty", (0, 4), SUM),
    classes_template("none-empty", (0, 4, 3), NONE),
    classes_template("none-one-class", (4, 1), NONE),
    classes_template("none-one-class-of-pixels", (2, 1, 3, 2), NONE),
    classes_template("none-no-classes", (4, 0), NONE, True, targets=IGNORED_TARGETS),
    classes_template("sum-no-classes", (2, 0, 3, 2), SUM, True, targets=IGNORED_TARGETS),
    classes_template("mean-no-classes", (4, 0), targets=IGNORED_TARGETS),
    classes_template("none-no-classes-vector", (0,), NONE, targets=IGNORED_TARGETS),
    classes_template("mean-channels-last", (2, 4, 3, 2), MEAN, True, layout=channels_last),
    classes_template("none-strided", (4, 5), NONE, True, layout=strided),
    classes_template("mean-rank5", (2, 3, 2, 1, 2), MEAN, True, 1),
    classes_template("mean-long", (1030, 4), MEAN, True, 1, dtypes=(BF16, F32)),
    classes_template("sum-long", (300, 4), SUM),
    classes_template("none-many-classes", (3, 1031), NONE, True, dtypes=(F16, BF16, F32)),
    classes_template("width-of-models", (2, 768), NONE),
    classes_template("mean-square", (10, 10), MEAN, True, -1, TARGETS_WITH_NEGATIVE),
    classes_template("vocabulary", (11, 32_003), NONE, large=True),
    _large_template("many-samples", (70_001, 3)),
    _large_template("pixels", (3, 19, 67, 41)),
    _large_template("half", (131, 1031), dtypes=(F16,)),
)
"""Templates whose targets are one class per position, for both losses and their gradients."""

EXACT_WEIGHTS, EXACT_TARGETS = fixed_values([5, 1, 1]), choice([0, 1, 1, 2])
"""Domains of the weights of three classes (5, 1, 1), and of targets: 1/4 are class 0, 1/2 class 1, 1/4 class 2.

The weights of 2048 such targets add up to 4096, a power of 2. The weighted mean is therefore exact.
"""

exact_template = partial(classes_template, dtypes=floating, exact=True)
"""Return a `classes_template` whose results are exact, in every floating-point type."""

EXACT = (
    exact_template("exact-sum", (1035, 3), SUM, False, 1),
    exact_template("exact-mean", (2048, 3), MEAN, True, targets=EXACT_TARGETS, weights=EXACT_WEIGHTS),
)
"""Templates of sums and means of losses, which are exact if the losses are integers."""

SMOOTHED = (
    classes_template("smooth-none", (4, 5), NONE, smoothing=0.3, dtypes=floating),
    classes_template(
        "smooth-mean-weight-ignore", (3, 5, 2), MEAN, True, 1, smoothing=0.2, dtypes=(BF16, F32), smoke=True
    ),
    classes_template("smooth-mean-ignore-negative", (10, 5), MEAN, False, -1, TARGETS_WITH_NEGATIVE, smoothing=0.25),
    classes_template("smooth-none-weight-ignore", (10, 5), NONE, True, -1, TARGETS_WITH_NEGATIVE, smoothing=0.25),
    classes_template("smooth-sum-weight", (4, 3, 3), SUM, True, smoothing=0.4),
    classes_template("smooth-fully", (4, 5), MEAN, True, smoothing=1.0),
    classes_template("smooth-vector", (5,), NONE, smoothing=0.1),
    classes_template("smooth-all-ignored", (4, 5), MEAN, False, 3, choice([3]), smoothing=0.1),
)
"""Templates of cross entropy with label smoothing."""

probabilities_template = partial(classes_template, has_probability_targets=True)
"""Return a `classes_template` whose targets are probabilities of all classes."""

PROBABILITIES = (
    probabilities_template("probabilities-none", (4, 5), NONE, dtypes=floating, smoke=True),
    probabilities_template("probabilities-mean-weight", (2, 4, 3), MEAN, True, dtypes=floating, smoke=True),
    probabilities_template("probabilities-mean", (6, 3)),
    probabilities_template("probabilities-sum-weight-smooth", (3, 5, 2), SUM, True, smoothing=0.3),
    probabilities_template("probabilities-none-weight-smooth", (4, 5), NONE, True, smoothing=0.3, dtypes=(F16, F32)),
    probabilities_template("probabilities-mean-smooth-transposed", (3, 4, 2), smoothing=0.2, layout=transposed),
    probabilities_template("probabilities-none-vector", (5,), NONE, True, smoothing=0.1),
    probabilities_template("probabilities-mean-empty", (0, 4)),
)
"""Templates of cross entropy whose targets are probabilities of all classes."""

BYTE_TARGETS, TARGETS_WITH_255 = choice([0, 3, 1, 4, 2]), choice([0, 255, 3, 1, 255, 4])
"""Domains of targets that uint8 represents: five classes, and four classes with 255, which is ignored."""

caller_template = partial(classes_template, case_class=CaseClass.callers)
"""Return a `classes_template` of the class `callers`: a call that frameworks make."""

CALLER_TEMPLATES = (
    caller_template("uint8-none", (6, 5), NONE, True, index_dtype=Dtype.uint8, targets=BYTE_TARGETS, dtypes=(F16, F32)),
    caller_template("uint8-mean", (7, 5, 3), MEAN, True, 255, TARGETS_WITH_255, index_dtype=Dtype.uint8),
    caller_template("ignored-outside", (8, 5), NONE, True, 255, TARGETS_WITH_255),
    caller_template("ignored-outside-mean", (6, 5, 2), MEAN, True, 255, TARGETS_WITH_255),
    caller_template("ignored-outside-int32", (8, 5), SUM, False, 255, TARGETS_WITH_255, index_dtype=Dtype.int32),
    caller_template("mean-no-places", (3, 4, 0)),
    caller_template("sum-no-places", (3, 4, 0), SUM, True),
    caller_template("none-no-places", (0, 4, 3, 2), NONE, True),
)
"""Templates of calls that frameworks make, for both losses.

They have uint8 targets, an ignored class outside the range of classes, or empty input.
"""

SMOOTHED_CALLER_TEMPLATES = (
    caller_template("ignored-outside-smooth", (8, 5), MEAN, True, 255, TARGETS_WITH_255, smoothing=0.3),
    caller_template("negative-smoothing", (6, 5), NONE, True, smoothing=-0.5, dtypes=(F16, F32)),
    caller_template("negative-smoothing-mean", (6, 5), ignore_index=2, smoothing=-1.0),
    caller_template(
        "probabilities-negative-smoothing", (4, 5), NONE, True, smoothing=-0.5, has_probability_targets=True
    ),
    caller_template("smooth-no-places", (0, 5, 3), smoothing=0.2),
    caller_template("probabilities-no-places", (3, 5, 0), smoothing=0.2, has_probability_targets=True),
)
"""Templates of calls with label smoothing that frameworks make, for cross entropy."""


# Logits, and logarithms of probabilities


def _draw_far_apart(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return rows of three logits that are about 40 apart, as float64.

    Each log-softmax is then the difference from the largest logit, an integer, because exp(−39) does not change the
    sum.
    """
    centers = 40.0 * rng.permuted(np.resize([-1, 0, 1], (count // 3, 3)), axis=1).reshape(-1)
    return centers + rng.integers(0, 2, count, endpoint=True)


def _masked_beyond_first(classes: int) -> Domain:
    """Return a domain of logits in rows of this number of classes.

    Some logits are −∞, as masked logits are, but never the first one of a row.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        is_masked = (rng.random(count) < 0.4) & (np.arange(count) % classes > 0)
        return np.where(is_masked, -np.inf, rng.normal(0, 2, count))

    return draw


def masked_template(label: str, shape: tuple[int, ...] = (8, 6)) -> CaseTemplate:
    """Return an unreduced `classes_template` in which every target is class 0."""
    return classes_template(label, shape, NONE, targets=choice([0]), dtypes=(F16, F32))


FAR_APART = (
    classes_template("far", (12, 6), NONE, dtypes=floating),
    classes_template("far-smooth", (12, 6), MEAN, True, smoothing=0.1),
)
"""Templates of cross entropy for logits in [−60, 60], whose exponentials overflow or underflow in float16."""

CROSS_ENTROPY = (
    *with_logits((*CLASS_TARGETS, *SMOOTHED, *PROBABILITIES, *CALLER_TEMPLATES, *SMOOTHED_CALLER_TEMPLATES), normal(2)),
    *with_logits(FAR_APART, uniform(-60, 60)),
    *with_logits([masked_template("masked")], _masked_beyond_first(6)),
    *with_logits([masked_template("long-masked", (3, 131))], _masked_beyond_first(131)),
)
"""The templates that cross entropy and its gradient have."""

CROSS_ENTROPY_ONLY = with_logits(EXACT, _draw_far_apart)
"""Templates of cross entropy that its gradient does not have."""

NLL = with_logits((*CLASS_TARGETS, *CALLER_TEMPLATES), uniform(-6, -0.05))
"""The templates that negative log-likelihood and its gradient have."""

NLL_ONLY = with_logits([masked_template("impossible-classes")], _masked_beyond_first(6))
"""Templates of negative log-likelihood that its gradient does not have."""

NLL_CERTAIN = with_logits([masked_template("certain")], choice([0.0, -0.0, -1.5, -3.0]))
"""Templates of negative log-likelihood with log-probabilities of 0 and −0: some targets have the probability 1."""

NLL_EXACT = with_logits(EXACT, integer_values(-80, 0))
"""Templates of negative log-likelihood whose losses are integers with exact sums."""

ALL_IGNORED_REASONS = {"(mean|sum|smooth)-all-ignored|no-classes": "every target is ignored"}
"""Why wrong results can pass some cases (`Case.non_discriminating`), by a regular expression for labels."""

NO_OTHER_CLASS_REASONS = {"none-one-class": "there is only one class that a target can name"}
"""Why the case with this label cannot detect that a function reads wrong targets (`Case.non_discriminating`)."""

ONE_CLASS_REASONS = {"none-one-class": "the softmax of one class is 1"}
"""Why the case with this label cannot detect that a function reads wrong input (`Case.non_discriminating`)."""

ONE_TARGET_REASONS = {"none-many-classes": "only the target class has a gradient other than 0"}
"""Why many wrong results can pass the case with this label (`Case.non_discriminating`)."""


@cases_for(
    "diopiCrossEntropyLoss",
    "diopiCrossEntropyLossBackward",
    non_discriminating={**ALL_IGNORED_REASONS, **ONE_CLASS_REASONS},
)
def cross_entropy_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiCrossEntropyLoss` or of its gradient."""
    return loss_cases(prototype, CROSS_ENTROPY, loss_only=CROSS_ENTROPY_ONLY)


@cases_for("diopiNLLLoss", "diopiNLLLossV2", non_discriminating={**ALL_IGNORED_REASONS, **NO_OTHER_CLASS_REASONS})
@cases_for(
    "diopiNLLLossBackward", non_discriminating={**ALL_IGNORED_REASONS, **ONE_TARGET_REASONS, **NO_OTHER_CLASS_REASONS}
)
def nll_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiNLLLoss`, `diopiNLLLossV2` or the gradient of the former."""
    return loss_cases(prototype, NLL, loss_only=(*NLL_ONLY, *NLL_CERTAIN, *NLL_EXACT), gradient_only=NLL_EXACT)


@cases_for(
    "diopiNLLLossV2Backward",
    non_discriminating={**ALL_IGNORED_REASONS, **ONE_TARGET_REASONS, **NO_OTHER_CLASS_REASONS},
)
def nll_v2_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the gradient of `diopiNLLLossV2`.

    There are no exact cases, because the gradient of a mean is divided by the argument `totalWeight`.
    """
    return loss_cases(prototype, NLL)


def _has_rank_3_or_5(prototype: Prototype, case: Case) -> bool:
    """Return whether the rank of the input is neither 1, 2 nor 4; the cases then have rank 3 or 5."""
    return len(case.arguments["input"].shape) not in (1, 2, 4)


def _is_non_contiguous_image(prototype: Prototype, case: Case) -> bool:
    """Return whether the input is an image batch that is not contiguous."""
    spec: TensorSpec = case.arguments["input"]
    return len(spec.shape) == 4 and not spec.has_layout(contiguous)


CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _has_rank_3_or_5,
            "torch.ops.aten.nll_loss_forward takes ranks 1 and 2, nll_loss2d_forward rank 4; callers reshape others",
        )
    ]
).declare("diopiNLLLossV2", "diopiNLLLossV2Backward")
CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _is_non_contiguous_image,
            "torch.ops.aten.nll_loss2d_backward rejects input that is not contiguous: grad_input must be contiguous",
        )
    ]
).declare("diopiNLLLossBackward", "diopiNLLLossV2Backward")
CaseFacts(
    saved={"totalWeight": ResultOf("diopiNLLLossV2", "totalWeight")},
    attribute_changes={"float32-none": [{"ignore_index": 2}]},
).declare("diopiNLLLossV2Backward")
CaseFacts(finds_extremes=True).declare("diopiCrossEntropyLoss", "diopiCrossEntropyLossBackward")

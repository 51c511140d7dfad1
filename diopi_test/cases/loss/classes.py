"""Losses over classes, and their gradients: cross entropy and negative log-likelihood."""

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
"""The floating-point types."""

WEIGHTS = uniform(0.25, 3)
"""The domain of the weights of classes."""

SCALAR, VECTOR = ResultOverride(), ResultOverride(shape=(1,))
"""Overrides of the result `totalWeight`: with the shape () or (1,). A caller may choose either."""


def classes_template(
    label: str,
    shape: tuple[int, ...] = (6, 5),
    reduction: Reduction = MEAN,
    weighted: bool = False,
    ignore_index: int = -100,
    targets: Domain | None = None,
    *,
    smoothing: float = 0.0,
    soft: bool = False,
    weights: Domain = WEIGHTS,
    index: Dtype = Dtype.int64,
    layout: Layout = contiguous,
    total: ResultOverride | None = SCALAR,
    **fields: Any,
) -> CaseTemplate:
    """Return a template of a loss over classes.

    Args:
        label: the label of the cases.
        shape: the shape of the input; the classes are on axis 1, or on axis 0 if that is the only one.
        reduction: how the losses are reduced.
        weighted: whether the classes have weights.
        ignore_index: the target class whose positions are ignored.
        targets: the domain of the target classes; None for all classes.
        smoothing: the label smoothing, the share of the target that is spread over all classes.
        soft: whether the target contains probabilities of all classes instead of one class per position.
        weights: the domain of the weights of classes, if `weighted` is true.
        index: the element type of the target classes.
        layout: the layout of the input, and of results that are not reduced.
        total: the override of the result `totalWeight`, for functions that have it; None omits it.
        **fields: further fields of the template.

    Returns:
        The template.
    """
    axis = min(1, len(shape) - 1)
    outer = shape[:axis] + shape[axis + 1 :]
    arguments = {
        "input": tensor(*shape, layout=layout),
        **_targets(shape, axis, transposed if layout is transposed else contiguous, None if soft else index, targets),
        "weight": tensor(shape[axis], domain=weights) if weighted else None,
        **{"reduction": reduction, "ignore_index": ignore_index, "label_smoothing": smoothing},
        # The total weight differs from the sum of the targets' weights, so that a function that ignores it fails.
        "totalWeight": tensor(*(1,) * ("weight" in label), domain=uniform(3, 9)),
        "grad_output": tensor(*result_shape(reduction, outer)),
    }
    return CaseTemplate(label, arguments=arguments, results={"totalWeight": total}, result_layout=layout, **fields)


def _targets(
    shape: tuple[int, ...], axis: int, layout: Layout, index: Dtype | None, classes: Domain | None
) -> dict[str, TensorTemplate]:
    """Return the argument `target`, and the argument from which it is computed.

    Args:
        shape: The shape of the input.
        axis: The axis of the classes.
        layout: The layout of the target.
        index: The element type of target classes; None for a target of probabilities.
        classes: The domain of target classes; None for all.

    Returns:
        The arguments by name: only `target` for classes, or `_scores` and `target` for probabilities.
    """
    if index is not None:
        outer = shape[:axis] + shape[axis + 1 :]
        return {"target": TensorTemplate(outer, classes or integer_values(0, shape[axis] - 1), layout, dtype=index)}
    softmax = tensor(*shape, layout=layout, compute=lambda values: special.softmax(values["_scores"], axis))
    return {"_scores": tensor(*shape, dtype=F32), "target": softmax}


def with_logits(templates: Iterable[CaseTemplate], logits: Domain) -> list[CaseTemplate]:
    """Return copies of the templates whose argument `input` has the domain `logits`."""
    return [template.replace(domains={"input": logits}) for template in templates]


def _large_template(label: str, shape: tuple[int, ...], **fields: Any) -> CaseTemplate:
    """Return a large template with weighted classes and the mean as reduction."""
    total = {"totalWeight": tensor(1, domain=uniform(3, 9))}
    return classes_template(label, shape, weighted=True, large=True, **fields).replace(arguments=total)


NEGATIVE = choice([0, 1, -1, 2, 3, 4, 3, 4, -1, 0])
"""A domain of five target classes and −1, which cases with this domain ignore."""

NONE_OF_THEM = choice([-100])
"""A domain of targets that are all −100, the index that is ignored by default."""

CLASSES = (
    classes_template("none", reduction=NONE, dtypes=floating, smoke=True),
    classes_template("mean-weight", weighted=True, dtypes=floating, smoke=True, total=VECTOR),
    classes_template("mean-weight-ignore", (2, 4, 3, 2), MEAN, True, 2, dtypes=floating),
    classes_template(
        "none-weight-rank3-transposed", (6, 4, 5), NONE, True, layout=transposed, dtypes=floating, total=None
    ),
    classes_template("sum", (7, 3), SUM, total=VECTOR),
    classes_template("mean", (7, 3), total=None),
    classes_template("sum-weight-ignore", (7, 5), SUM, True, 0),
    classes_template("none-ignore-negative", (10, 5), NONE, True, -1, NEGATIVE, smoke=True),
    classes_template("mean-ignore-negative", (10, 5), MEAN, True, -1, NEGATIVE, smoke=True),
    classes_template("mean-ignore-default", (10, 5), targets=choice([0, 1, 2, 3, 4, -100, -100])),
    classes_template("mean-all-ignored", (4, 5), ignore_index=3, targets=choice([3])),
    classes_template("sum-all-ignored", (4, 5), SUM, True, 3, choice([3])),
    classes_template("mean-int32", (6, 5), MEAN, True, 2, index=Dtype.int32, smoke=True),
    classes_template("none-int32-rank3", (3, 4, 2), NONE, index=Dtype.int32),
    classes_template("none-vector", (5,), NONE, True),
    classes_template("mean-vector", (5,), MEAN, True),
    classes_template("mean-empty", (0, 4)),
    classes_template("sum-empty", (0, 4), SUM),
    classes_template("none-empty", (0, 4, 3), NONE),
    classes_template("none-one-class", (4, 1), NONE),
    classes_template("none-no-classes", (4, 0), NONE, True, targets=NONE_OF_THEM),
    classes_template("sum-no-classes", (2, 0, 3, 2), SUM, True, targets=NONE_OF_THEM),
    classes_template("mean-no-classes", (4, 0), targets=NONE_OF_THEM),
    classes_template("none-no-classes-vector", (0,), NONE, targets=NONE_OF_THEM),
    classes_template("mean-channels-last", (2, 4, 3, 2), MEAN, True, layout=channels_last),
    classes_template("none-strided", (4, 5), NONE, True, layout=strided),
    classes_template("mean-rank5", (2, 3, 2, 1, 2), MEAN, True, 1),
    classes_template("mean-long", (1030, 4), MEAN, True, 1, dtypes=(BF16, F32)),
    classes_template("sum-long", (300, 4), SUM),
    classes_template("none-many-classes", (3, 1031), NONE, True, dtypes=(F16, BF16, F32)),
    classes_template("mean-square", (10, 10), MEAN, True, -1, NEGATIVE),
    classes_template("vocabulary", (11, 32_003), NONE, large=True),
    _large_template("many-samples", (70_001, 3)),
    _large_template("pixels", (3, 19, 67, 41)),
    _large_template("half", (131, 1031), dtypes=(F16,)),
)
"""Templates whose targets are one class per position."""

HEAVY, SPREAD = fixed_values([5, 1, 1]), choice([0, 1, 1, 2])
"""Domains of the weights of three classes (5, 1, 1) and of targets, of which a quarter are 0, half 1 and a quarter 2.

The weights of 2048 such targets add up to 4096, a power of 2.
"""

exact = partial(classes_template, dtypes=floating, exact=True)
"""Return a `classes_template` whose results are exact."""

EXACT = (
    exact("exact-sum", (1035, 3), SUM, False, 1),
    exact("exact-mean", (2048, 3), MEAN, True, targets=SPREAD, weights=HEAVY),
)
"""Exact sums and means of losses."""

SMOOTHED = (
    classes_template("smooth-none", (4, 5), NONE, smoothing=0.3, dtypes=floating),
    classes_template(
        "smooth-mean-weight-ignore", (3, 5, 2), MEAN, True, 1, smoothing=0.2, dtypes=(BF16, F32), smoke=True
    ),
    classes_template("smooth-mean-ignore-negative", (10, 5), MEAN, False, -1, NEGATIVE, smoothing=0.25),
    classes_template("smooth-none-weight-ignore", (10, 5), NONE, True, -1, NEGATIVE, smoothing=0.25),
    classes_template("smooth-sum-weight", (4, 3, 3), SUM, True, smoothing=0.4),
    classes_template("smooth-fully", (4, 5), MEAN, True, smoothing=1.0),
    classes_template("smooth-vector", (5,), NONE, smoothing=0.1),
    classes_template("smooth-all-ignored", (4, 5), MEAN, False, 3, choice([3]), smoothing=0.1),
)
"""Templates with label smoothing."""

probabilities = partial(classes_template, soft=True)
"""Return a `classes_template` whose targets are probabilities."""

PROBABILITIES = (
    probabilities("probabilities-none", (4, 5), NONE, dtypes=floating, smoke=True),
    probabilities("probabilities-mean-weight", (2, 4, 3), MEAN, True, dtypes=floating, smoke=True),
    probabilities("probabilities-mean", (6, 3)),
    probabilities("probabilities-sum-weight-smooth", (3, 5, 2), SUM, True, smoothing=0.3),
    probabilities("probabilities-none-weight-smooth", (4, 5), NONE, True, smoothing=0.3, dtypes=(F16, F32)),
    probabilities("probabilities-mean-smooth-transposed", (3, 4, 2), smoothing=0.2, layout=transposed),
    probabilities("probabilities-none-vector", (5,), NONE, True, smoothing=0.1),
    probabilities("probabilities-mean-empty", (0, 4)),
)
"""Templates whose targets are probabilities."""

BYTES, OUTSIDE = choice([0, 3, 1, 4, 2]), choice([0, 255, 3, 1, 255, 4])
"""Domains of targets for uint8: five classes, and some of these classes together with 255, which is ignored."""

called = partial(classes_template, case_class=CaseClass.callers)
"""Return a `classes_template` of the class `callers`: a call that frameworks make."""

CALLED = (
    called("uint8-none", (6, 5), NONE, True, index=Dtype.uint8, targets=BYTES, dtypes=(F16, F32)),
    called("uint8-mean", (7, 5, 3), MEAN, True, 255, OUTSIDE, index=Dtype.uint8),
    called("ignored-outside", (8, 5), NONE, True, 255, OUTSIDE),
    called("ignored-outside-mean", (6, 5, 2), MEAN, True, 255, OUTSIDE),
    called("ignored-outside-int32", (8, 5), SUM, False, 255, OUTSIDE, index=Dtype.int32),
    called("mean-no-places", (3, 4, 0)),
    called("sum-no-places", (3, 4, 0), SUM, True),
    called("none-no-places", (0, 4, 3, 2), NONE, True),
)
"""Templates of calls that frameworks make: uint8 targets, an ignored index outside the classes, and empty input."""

CALLED_SMOOTHED = (
    called("ignored-outside-smooth", (8, 5), MEAN, True, 255, OUTSIDE, smoothing=0.3),
    called("negative-smoothing", (6, 5), NONE, True, smoothing=-0.5, dtypes=(F16, F32)),
    called("negative-smoothing-mean", (6, 5), ignore_index=2, smoothing=-1.0),
    called("probabilities-negative-smoothing", (4, 5), NONE, True, smoothing=-0.5, soft=True),
    called("smooth-no-places", (0, 5, 3), smoothing=0.2),
    called("probabilities-no-places", (3, 5, 0), smoothing=0.2, soft=True),
)
"""Templates of calls that frameworks make, with label smoothing."""


# Logits, and logarithms of probabilities


def _draw_far_apart(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw rows of three logits about 40 apart, so that each log-softmax is the difference from the largest logit."""
    near = 40.0 * rng.permuted(np.resize([-1, 0, 1], (count // 3, 3)), axis=1).reshape(-1)
    return near + rng.integers(0, 2, count, endpoint=True)


def _draw_masked_beyond_first(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw logits in rows of six classes, of which some are −∞, but never the first of a row."""
    masked = (rng.random(count) < 0.4) & (np.arange(count) % 6 > 0)
    return np.where(masked, -np.inf, rng.normal(0, 2, count))


masked = partial(classes_template, shape=(8, 6), reduction=NONE, targets=choice([0]), dtypes=(F16, F32))
"""Return an unreduced `classes_template` of 8 rows and 6 classes, in which every target is class 0."""

FAR = (
    classes_template("far", (12, 6), NONE, dtypes=floating),
    classes_template("far-smooth", (12, 6), MEAN, True, smoothing=0.1),
)
"""Templates with logits that are far apart."""

CROSS_ENTROPY = (
    *with_logits((*CLASSES, *SMOOTHED, *PROBABILITIES, *CALLED, *CALLED_SMOOTHED), normal(2)),
    *with_logits(FAR, uniform(-60, 60)),
)
"""The templates of cross entropy and of its gradient."""

CROSS_ENTROPY_ALONE = (
    *with_logits([masked("masked")], _draw_masked_beyond_first),
    *with_logits(EXACT, _draw_far_apart),
)
"""Templates of cross entropy only, not of its gradient."""

NLL = with_logits((*CLASSES, *CALLED), uniform(-6, -0.05))
"""The templates of negative log-likelihood and of its gradient."""

NLL_ALONE = with_logits([masked("impossible-classes")], _draw_masked_beyond_first)
"""Templates of negative log-likelihood only, not of its gradient."""

NLL_CERTAIN = with_logits([masked("certain")], choice([0.0, -0.0, -1.5, -3.0]))
"""Templates of negative log-likelihood in which some targets have the probability 1."""

NLL_EXACT = with_logits(EXACT, integer_values(-80, 0))
"""The exact templates of negative log-likelihood."""

NOTHING_LEFT_REASONS = {"(mean|sum|smooth)-all-ignored|no-classes": "every target is ignored"}
"""Reasons why wrong results can pass some cases (`non_discriminating`), by a regular expression for labels."""

NO_OTHER_CLASS_REASONS = {"none-one-class": "there is only one class that a target can name"}
"""The reason why a case cannot detect that a function reads wrong targets (`non_discriminating`), by label."""

ONE_CLASS_REASONS = {"none-one-class": "the softmax of one class is 1"}
"""The reason why a case cannot detect that a function reads wrong input (`non_discriminating`), by label."""

ONE_TARGET_REASONS = {"none-many-classes": "only the target class has a gradient other than 0"}
"""The reason why many wrong results can pass a case (`non_discriminating`), by label."""


@cases_for(
    "diopiCrossEntropyLoss",
    "diopiCrossEntropyLossBackward",
    non_discriminating={**NOTHING_LEFT_REASONS, **ONE_CLASS_REASONS},
)
def cross_entropy_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of cross entropy, or of its gradient."""
    return loss_cases(prototype, CROSS_ENTROPY, of_loss=CROSS_ENTROPY_ALONE)


@cases_for("diopiNLLLoss", "diopiNLLLossV2", non_discriminating={**NOTHING_LEFT_REASONS, **NO_OTHER_CLASS_REASONS})
@cases_for(
    "diopiNLLLossBackward", non_discriminating={**NOTHING_LEFT_REASONS, **ONE_TARGET_REASONS, **NO_OTHER_CLASS_REASONS}
)
def nll_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of negative log-likelihood, or of its gradient."""
    return loss_cases(prototype, NLL, of_loss=(*NLL_ALONE, *NLL_CERTAIN, *NLL_EXACT), of_gradient=NLL_EXACT)


@cases_for(
    "diopiNLLLossV2Backward",
    non_discriminating={**NOTHING_LEFT_REASONS, **ONE_TARGET_REASONS, **NO_OTHER_CLASS_REASONS},
)
def nll_v2_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the gradient of `diopiNLLLossV2`.

    There are no exact cases, because the gradient of a mean is divided by the argument `totalWeight`.
    """
    return loss_cases(prototype, NLL)


def _has_rank_3_or_5(prototype: Prototype, case: Case) -> bool:
    """Return whether the rank of the input is neither 1, 2 nor 4."""
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
CaseFacts(finds_extremes=True).declare("diopiCrossEntropyLoss")

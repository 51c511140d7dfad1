"""Cases of MMCV's losses: focal loss of sigmoid and softmax probabilities, and chamfer distance of point sets.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). A case does not pass arguments whose names start
with `_`; it computes other arguments from them. `Case.non_discriminating` is the reason why a wrong result can pass a
case.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from typing import Any, Unpack

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOf, Values
from diopi_test.cases.domains import Domain, choice, integer_values, normal, uniform
from diopi_test.cases.layouts import Layout, contiguous, strided, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    Arguments,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    register,
    tensor,
)
from diopi_test.cases.tensors import literal

NORMAL_NUMBERS = normal()
"""The domain of the standard normal distribution."""

WEIGHTS = uniform(0.25, 2)
"""The domain of the weights of classes."""

MODERATE_LOGITS = uniform(-4, 4)
"""The domain of logits of moderate magnitude."""

SATURATED_LOGITS = choice([inf, -inf, 100.0, -100.0, 90.5, -90.5])
"""A domain of logits that saturate the sigmoid.

The probability p or 1 − p is 0, or below the least argument of the logarithm, the least normal float32 number.
"""


def class_domain(low: int, high: int) -> Domain:
    """Return a domain of the classes from `low` to `high`, in random order and as equally frequent as possible."""
    return choice(range(low, high + 1))


# Focal loss of sigmoid probabilities


def sigmoid_template(
    label: str,
    shape: tuple[int, int] = (6, 5),
    domain: Domain = MODERATE_LOGITS,
    gamma: float = 2.0,
    alpha: float = 0.25,
    *,
    weights: Domain | None = None,
    target: Domain | None = None,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of the focal loss of sigmoid probabilities and of its gradient.

    Args:
        label: The label of the cases without the element type.
        shape: The numbers of rows and of classes.
        domain: The domain of the logits.
        gamma: The exponent of the loss, called focus in labels.
        alpha: The factor of losses of the target class. Losses of the other classes have the factor 1 − alpha.
        weights: The domain of the weights of classes; None for an empty tensor, which means no weights.
        target: The domain of the target classes; None for all classes. Without weights, None includes the target C (the
            number of classes), which means background: no class is the target.
        **fields: Further fields of the template. `layout` is the layout of the matrices.

    Returns:
        The template.
    """
    (rows, columns), layout = shape, fields.get("layout", contiguous)
    default_targets = class_domain(0, columns - 1 if weights else columns)
    arguments: Arguments = {
        "input": tensor(rows, columns, domain=domain, layout=layout),
        "target": tensor(rows, domain=target or default_targets, layout=_vector_layout(layout), dtype=Dtype.int64),
        "weight": tensor(columns if weights else 0, domain=weights, layout=_vector_layout(layout)),
        "gamma": gamma,
        "alpha": alpha,
    }
    return CaseTemplate(label, arguments=arguments, result_layout=layout).replace(**fields)


def _vector_layout(layout: Layout) -> Layout:
    """Return the layout of the vectors in a case: contiguous if the matrices are contiguous, otherwise strided."""
    return contiguous if layout is contiguous else strided


SIGMOID_TEMPLATES = (
    sigmoid_template("plain", weights=WEIGHTS, **SMOKE_IN_ALL_DTYPES),
    sigmoid_template("background", (7, 3), **SMOKE_IN_ALL_DTYPES),
    sigmoid_template("strided", (5, 4), weights=WEIGHTS, layout=strided, dtypes=DtypeSelection.all),
    sigmoid_template("transposed", (4, 7), layout=transposed, dtypes=DtypeSelection.all),
    sigmoid_template("no-focus", gamma=0.0, alpha=0.4, weights=WEIGHTS),
    sigmoid_template("linear-focus", (6, 4), gamma=1.0, alpha=0.7),
    sigmoid_template("fractional-focus", (6, 4), gamma=0.7, alpha=0.3, weights=WEIGHTS, dtypes=DtypeSelection.all),
    sigmoid_template("strong-focus", (6, 4), uniform(-2, 2), gamma=5.0),
    sigmoid_template("all-positive", gamma=1.5, alpha=1.0),
    sigmoid_template("all-negative", gamma=1.5, alpha=0.0),
    sigmoid_template("near-zero", (6, 4), uniform(-0.02, 0.02), weights=WEIGHTS),
    sigmoid_template("weight-zero", (9, 3), weights=choice([0.0, 1.5, 0.5])),
    sigmoid_template("one-class", (9, 1), dtypes=DtypeSelection.all),
    sigmoid_template("one-row", (1, 9), weights=WEIGHTS),
    sigmoid_template("saturated", (6, 4), SATURATED_LOGITS, weights=WEIGHTS, dtypes=DtypeSelection.all),
    sigmoid_template("undefined", (6, 4), choice([nan, 0.5, -0.5]), gamma=1.0),
    sigmoid_template("no-rows", (0, 4), weights=WEIGHTS),
    sigmoid_template("no-classes", (4, 0), target=integer_values(0, 0)),
    sigmoid_template("large", (300, 40), weights=WEIGHTS),
    sigmoid_template("many", (811, 83), weights=WEIGHTS, large=True),
    sigmoid_template("background", (1021, 79), gamma=1.5, layout=strided, large=True),
    sigmoid_template("exact", (4, 5), choice([0.0, -0.0]), gamma=1.0, alpha=0.5),
)
"""The templates of the focal loss of sigmoid probabilities. The classes of a row are independent of each other."""

register("diopiSigmoidFocalLossMmcv", "diopiSigmoidFocalLossBackwardMmcv", templates=SIGMOID_TEMPLATES)


# Focal loss of softmax probabilities


def _softmax(values: Values) -> Any:
    """Return the softmax of each row of the argument value `_logits`."""
    exponentials = np.exp(values["_logits"])
    return exponentials / exponentials.sum(-1, keepdims=True)


def softmax_template(
    label: str,
    shape: tuple[int, int] = (6, 5),
    logits: Domain = MODERATE_LOGITS,
    gamma: float = 2.0,
    alpha: float = 0.25,
    *,
    weights: Domain | None = None,
    lowest_target: int = 0,
    probabilities: Any = None,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of the focal loss of softmax probabilities and of its gradient.

    Args:
        label: The label of the cases without the element type.
        shape: The numbers of rows and of classes.
        logits: The domain of the logits from which the argument `softmax` is computed.
        gamma: The exponent of the loss, called focus in labels.
        alpha: The factor of all losses.
        weights: The domain of the weights of classes; None for an empty tensor, which means no weights.
        lowest_target: The lowest target. A negative target means that the row has no target.
        probabilities: The values of the argument `softmax`; None to compute them from logits.
        **fields: Further fields of the template. `layout` is the layout of the matrices.

    Returns:
        The template. It has the argument `buff`, the workspace of the gradient.
    """
    (rows, columns), layout = shape, fields.get("layout", contiguous)
    arguments: Arguments = {
        "_logits": tensor(rows, columns, domain=logits, dtype=Dtype.float64),
        "buff": tensor(rows),
        "softmax": tensor(
            rows, columns, layout=layout, compute=(lambda values: probabilities) if probabilities else _softmax
        ),
        "target": tensor(
            rows, domain=class_domain(lowest_target, columns - 1), layout=_vector_layout(layout), dtype=Dtype.int64
        ),
        "weight": tensor(columns if weights else 0, domain=weights, layout=_vector_layout(layout)),
        "gamma": gamma,
        "alpha": alpha,
    }
    return CaseTemplate(label, arguments=arguments, result_layout=layout).replace(**fields)


CERTAIN_PROBABILITIES = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [nan, nan, nan]]
"""Rows of probabilities: four rows in which some probabilities are 0 or 1, and a row of NaN."""

SOFTMAX_TEMPLATES = (
    softmax_template("plain", weights=WEIGHTS, **SMOKE_IN_ALL_DTYPES),
    softmax_template("unweighted", (7, 3), **SMOKE_IN_ALL_DTYPES),
    softmax_template("strided", (5, 4), weights=WEIGHTS, layout=strided, dtypes=DtypeSelection.all),
    softmax_template("transposed", (4, 7), layout=transposed, dtypes=DtypeSelection.all),
    softmax_template("no-target", (9, 3), weights=WEIGHTS, lowest_target=-2, dtypes=DtypeSelection.all),
    softmax_template("no-target-unweighted", (9, 3), gamma=1.5, lowest_target=-1),
    softmax_template("no-focus", gamma=0.0, alpha=0.4, weights=WEIGHTS),
    softmax_template("linear-focus", (6, 4), gamma=1.0, alpha=0.7),
    softmax_template("fractional-focus", (6, 4), gamma=0.7, alpha=0.3, weights=WEIGHTS, dtypes=DtypeSelection.all),
    softmax_template("strong-focus", (6, 4), uniform(-2, 2), gamma=5.0),
    softmax_template("whole-alpha", gamma=1.5, alpha=1.0),
    softmax_template("unlikely", (9, 4), uniform(-12, 0), weights=WEIGHTS),
    softmax_template(
        "certain", (5, 3), weights=WEIGHTS, probabilities=CERTAIN_PROBABILITIES, dtypes=DtypeSelection.all
    ),
    softmax_template("one-row", (1, 9), weights=WEIGHTS),
    softmax_template("no-rows", (0, 4), weights=WEIGHTS),
    softmax_template("large", (300, 40), weights=WEIGHTS),
    softmax_template("many", (811, 83), weights=WEIGHTS, large=True),
    softmax_template("no-target", (70_001, 3), lowest_target=-1, large=True),
)
"""The templates of the focal loss of softmax probabilities and of its gradient."""

register("diopiSoftmaxFocalLossMmcv", "diopiSoftmaxFocalLossBackwardMmcv", templates=SOFTMAX_TEMPLATES)


# Point sets


def chamfer_template(
    label: str,
    batches: int,
    first_count: int,
    second_count: int,
    domain: Domain = NORMAL_NUMBERS,
    positions: Mapping[str, Any] | None = None,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of the chamfer distance of two sets of points in the plane, and of its gradient.

    The chamfer distance consists of the distances of each point from the nearest point of the other set.

    Args:
        label: The label of the cases without the element type.
        batches: The number of pairs of sets.
        first_count: The number of points in each first set.
        second_count: The number of points in each second set.
        domain: The domain of coordinates and of gradients of the distances.
        positions: The arguments `idx1` and `idx2` of the gradient: the positions of the nearest points in the other
            set. None to use the results of `diopiChamferDistanceMmcv`.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    layout = fields.get("layout", contiguous)
    nearest_positions = positions or {
        name: tensor(
            batches, count, dtype=Dtype.int32, layout=layout, compute=ResultOf("diopiChamferDistanceMmcv", name)
        )
        for name, count in (("idx1", first_count), ("idx2", second_count))
    }
    arguments: Arguments = {
        "xyz1": tensor(batches, first_count, 2, domain=domain, layout=layout),
        "xyz2": tensor(batches, second_count, 2, domain=domain, layout=layout),
        **nearest_positions,
        "grad_dist1": tensor(batches, first_count, domain=domain, layout=layout),
        "grad_dist2": tensor(batches, second_count, domain=domain, layout=layout),
        "grad_xyz1": tensor(batches, first_count, 2, domain=integer_values(0, 0), layout=layout),
        "grad_xyz2": tensor(batches, second_count, 2, domain=integer_values(0, 0), layout=layout),
    }
    return CaseTemplate(label, arguments=arguments, result_layout=layout).replace(**fields)


SHARED_NEAREST_POINTS = {
    "idx1": literal([[2] * 40, [0] * 40], Dtype.int32),
    "idx2": literal([[39, 0, 7]] * 2, Dtype.int32),
}
"""Values of `idx1` and `idx2` for two batches of 40 and 3 points.

All points of a first set have the same nearest point, so that the gradient of this point is a long sum.
"""

EXACT_DOMAINS = {
    "xyz1": choice([-5.0, -3.0, -1.0, 1.0, 3.0, 5.0]),
    "xyz2": choice([-8.0, -2.0, 0.0, 2.0, 6.0]),
    "grad_dist1": integer_values(1, 5),
    "grad_dist2": integer_values(1, 5),
}
"""Domains by argument name: small integers, whose squares and sums every element type represents.

The two sets have no common coordinate, so that no distance is 0.
"""

SINGLE_CANDIDATE_REASON = "there is only one candidate for the nearest point"
"""The reason why wrong positions can pass a case with a set of a single point (`Case.non_discriminating`).

This point is the nearest point of each point of the other set.
"""

CHAMFER_TEMPLATES = (
    chamfer_template("plain", 2, 7, 5, **SMOKE_IN_ALL_DTYPES),
    chamfer_template("strided", 2, 4, 6, layout=strided, dtypes=DtypeSelection.all),
    chamfer_template("transposed", 3, 5, 4, layout=transposed, dtypes=DtypeSelection.all),
    chamfer_template("whole", 2, 6, 9, exact=True, domains=EXACT_DOMAINS, dtypes=DtypeSelection.all),
    chamfer_template("equal-points", 1, 4, 4, choice([0.5]), non_discriminating="all distances are 0"),
    chamfer_template("one-point", 2, 1, 5, non_discriminating=SINGLE_CANDIDATE_REASON),
    chamfer_template("one-other", 2, 6, 1, dtypes=DtypeSelection.all, non_discriminating=SINGLE_CANDIDATE_REASON),
    chamfer_template("one-each", 3, 1, 1, non_discriminating=SINGLE_CANDIDATE_REASON),
    chamfer_template("far", 1, 8, 7, normal(0.5, 1000)),
    chamfer_template("tiny", 1, 8, 7, normal(1e-4)),
    chamfer_template("long", 1, 90, 110),
    chamfer_template("many-batches", 17, 3, 4),
    chamfer_template("no-batches", 0, 3, 4),
    chamfer_template("many", 2, 701, 503, large=True),
    chamfer_template("many-batches", 3001, 11, 13, large=True),
)
"""The templates of the chamfer distance and of its gradient."""

register("diopiChamferDistanceMmcv", templates=CHAMFER_TEMPLATES)
register(
    "diopiChamferDistanceBackwardMmcv",
    templates=(
        *CHAMFER_TEMPLATES,
        chamfer_template("crowded", 2, 40, 3, positions=SHARED_NEAREST_POINTS, dtypes=DtypeSelection.all),
    ),
)

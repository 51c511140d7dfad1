"""Shared parts of the cases of all losses: the reduction (none, mean or sum) and the shape of the result.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diopi_proto.prototype import Prototype
from diopi_proto.types import Reduction
from diopi_test.cases.case import Case
from diopi_test.cases.layouts import contiguous
from diopi_test.cases.template import CaseTemplate, expand

MEAN, SUM, NONE = Reduction.mean, Reduction.sum, Reduction.none
"""Short names for the values of the argument `reduction`."""

Templates = Sequence[CaseTemplate[tuple[int, ...]]]
"""Templates whose sizes are the shape of the input."""


def result_shape(reduction: Reduction, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a loss.

    Args:
        reduction: The reduction.
        shape: The shape of the loss before the reduction.

    Returns:
        `shape` if there is no reduction, else ().
    """
    return shape if reduction == NONE else ()


def loss_cases(
    prototype: Prototype, templates: Templates, *, loss_only: Templates = (), gradient_only: Templates = ()
) -> Iterator[Case]:
    """Return the cases of a loss, or of its gradient if the name of the function ends with `Backward`.

    Args:
        prototype: The prototype of the loss or of its gradient.
        templates: Templates for both. A loss that is reduced to a scalar gets a contiguous result.
        loss_only: Further templates for the loss.
        gradient_only: Further templates for the gradient.

    Returns:
        The cases.
    """
    if prototype.name.endswith("Backward"):
        return expand(prototype, (*templates, *gradient_only))
    return expand(prototype, map(_with_contiguous_scalar, (*templates, *loss_only)))


def _with_contiguous_scalar(template: CaseTemplate[tuple[int, ...]]) -> CaseTemplate[tuple[int, ...]]:
    """Return the template, with a contiguous result if its reduction is mean or sum.

    The result layout of a template applies only to losses that are not reduced.
    """
    return template if template.argument("reduction") == NONE else template.replace(result_layout=contiguous)

"""Cases of `diopiCdist`, which computes the distances between the rows of two matrices, and of its gradient.

The distance of two rows is the p-norm of their difference. The operands of a template are the shapes and layouts of
both inputs. The argument `compute_mode` selects the algorithm of PyTorch: 0 (the default) uses a matrix product for
more than 25 rows, 1 always uses a matrix product, and 2 never does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOf, Values, cases_for
from diopi_test.cases.domains import avoid_points, choice, integer_values, normal, tiny_multiples, with_value_in_middle
from diopi_test.cases.elementwise import Operands
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.linalg.operands import (
    EXACT_FIELDS,
    TRANSPOSED_RESULT,
    expand_in_order,
    large_operand_template,
    operand_template,
)
from diopi_test.cases.products import fixed_values, partly_infinite
from diopi_test.cases.template import Arguments, CaseTemplate, DtypeSelection, TensorTemplate, expand, tensor

ORDERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, np.inf)
"""The orders p of the norms that most templates have."""

RARE_ORDERS = (0.25, 2.5, 4.0, 5.0, 6.0)
"""Further orders p, with which only one template is combined."""

MATRICES = operand_template("matrices", (4, 5), (3, 5), dtypes=DtypeSelection.all)
"""A template of 4 rows and 3 rows of 5 coordinates, in all element types."""

LAYOUTS = operand_template("layouts", (2, 3, 4), (2, 5, 4), **TRANSPOSED_RESULT)
"""A template of batches of rows whose tensors and result are not contiguous."""

FEW_ROWS = (
    operand_template("batches", (2, 1, 3, 4), (3, 2, 4)),
    operand_template("strided", (3, 6), (2, 6), layouts=(strided, transposed), result_layout=strided),
    operand_template("one", (1, 1), (1, 1)),
    operand_template("no-rows", (0, 3), (2, 3)),
    operand_template("no-others", (2, 3), (0, 3)),
    operand_template("no-coordinates", (3, 0), (2, 0)),
    operand_template("no-batch", (0, 2, 3), (0, 4, 3)),
    operand_template("long", (2, 517), (2, 517)),
)
"""Templates of at most 25 rows, for which PyTorch does not use a matrix product by default."""

FAR_APART = operand_template("far-apart", (4, 16), (7, 16), domain=normal(1000))
"""A template of rows that are far from each other.

The sum under the root is so large that rounding the exponent 1/p to a narrower type changes the distances.
"""

MANY_ROWS = operand_template("many", (26, 3), (4, 3), dtypes=DtypeSelection.all)
"""A template with 26 rows in the first input, for which PyTorch uses a matrix product by default."""

LARGE_MATRICES = large_operand_template("", (263, 37), (257, 37))
"""A large template of hundreds of rows of 37 coordinates."""

MANY_SECOND_ROWS = operand_template("many-others", (4, 3), (26, 3), dtypes=DtypeSelection.all)
"""A template with 26 rows in the second input, for which PyTorch uses a matrix product by default."""


def distance_template(
    template: CaseTemplate[Operands], p: float, mode: int | None, *suffixes: str, **changes: Any
) -> CaseTemplate[Operands]:
    """Return a copy of a template for distances by the p-norm.

    Args:
        template: The template.
        p: The order of the norm.
        mode: The argument `compute_mode`; None for NULL.
        *suffixes: The end of the label, which follows the label of the template, p and the mode.
        **changes: New values of other fields.

    Returns:
        The copy.
    """
    label = "-".join([template.label, f"p{p:g}", *_mode_suffix(mode), *suffixes])
    return template.replace(label, {"p": p, "compute_mode": mode}, **changes)


def _mode_suffix(mode: int | None) -> list[str]:
    """Return the part of a label for the argument `compute_mode`, as a list of at most one word."""
    return [] if mode is None else [f"mode{mode}"]


SMALL_INTEGERS = dict.fromkeys(("input1", "input2"), integer_values(-2, 2))
"""Domains of both inputs: integers from −2 to 2, so that some coordinates of two rows are equal."""


def integer_template(bound: int) -> CaseTemplate[Operands]:
    """Return a template of coordinates that are integers from −bound to bound, whose distances are exact."""
    return operand_template("tails", (17, 37), (9, 37), domain=integer_values(-bound, bound), **EXACT_FIELDS)


def _shifted_rows(values: Values) -> NDArray[Any]:
    """Return rows that differ from the rows of `input1`, in reverse order, by `_step` / 64.

    Args:
        values: The values of the arguments `input1` and `_step`.

    Returns:
        The rows, for the argument `input2`.
    """
    return np.asarray(values["input1"][..., ::-1, :] + values["_step"] / 64)


def close_rows_template(label: str, rows: int, mode: int | None) -> CaseTemplate[Operands]:
    """Return a template of rows that are far from 0 and close to each other.

    An algorithm that computes a distance as a difference of large squares loses its digits.

    Args:
        label: The start of the label; the mode follows.
        rows: The number of rows of each input.
        mode: The argument `compute_mode`; None for NULL.

    Returns:
        The template.
    """
    arguments: Arguments = {
        "input1": tensor(rows, 3, domain=normal(mean=100)),
        "_step": tensor(rows, 3, domain=avoid_points([0], normal())),
        "input2": tensor(rows, 3, compute=_shifted_rows),
        "p": 2.0,
        "compute_mode": mode,
    }
    return CaseTemplate("-".join([label, *_mode_suffix(mode)]), arguments=arguments, dtypes=DtypeSelection.all)


WHOLE_DISTANCES = CaseTemplate(
    "whole-distances",
    (
        tensor(2, 5, domain=fixed_values([[1, -2, 0, 1, 3]])),
        tensor(3, 5, domain=fixed_values([[1, 1, 0, 5, 3], [6, -2, 12, 1, 3], [1, -2, 8, 1, 18]])),
    ),
    {"p": 2.0, "compute_mode": 2},
    **EXACT_FIELDS,
)
"""A template of rows whose coordinates differ by 3 and 4, 5 and 12, or 8 and 15.

Squares, sums and roots have no rounding errors.
"""

TINY_NUMBERS = tiny_multiples(2.0, 2.25, 2.5)
"""A domain of numbers near the smallest normal number, whose differences are subnormal or 0."""

DIFFERENT_TINY_NUMBERS = {"input1": tiny_multiples(2.0, 2.5), "input2": tiny_multiples(2.25, 2.75)}
"""Domains of both inputs like `TINY_NUMBERS`, but without differences of 0, at which the norm has no derivative."""

CDIST_TEMPLATES = (
    *(distance_template(MATRICES, p, None, domains=SMALL_INTEGERS if p == 0 else {}, smoke=True) for p in ORDERS),
    *(distance_template(LAYOUTS, p, 0, domains=SMALL_INTEGERS if p == 0 else {}) for p in ORDERS),
    *(distance_template(MATRICES, p, mode) for p, mode in product((2.0, 3.0), (1, 2))),
    *(distance_template(MANY_ROWS, 2.0, mode) for mode in (None, 0, 1, 2)),
    distance_template(MANY_SECOND_ROWS, 2.0, None),
    close_rows_template("close", 4, None),
    close_rows_template("close", 4, 2),
    close_rows_template("close-many", 26, 2),
    close_rows_template("close-25", 25, None),
    *(distance_template(integer_template(bound), p, None, "exact") for p, bound in ((0.0, 2), (1.0, 2), (np.inf, 50))),
    WHOLE_DISTANCES,
    distance_template(MATRICES, 0.0, None, "special", domains=dict.fromkeys(("input1", "input2"), partly_infinite)),
    distance_template(MATRICES, 0.0, None, "near-least", domains=dict.fromkeys(("input1", "input2"), TINY_NUMBERS)),
    distance_template(MATRICES, 0.5, None, "near-least", domains=DIFFERENT_TINY_NUMBERS),
    *(
        distance_template(MATRICES, p, None, "special", domains={"input1": partly_infinite})
        for p in (0.5, 1.0, 2.0, 3.0)
    ),
    *(distance_template(points, p, None) for points, p in product(FEW_ROWS, (2.0, np.inf))),
    *(distance_template(FAR_APART, p, None) for p in (1.5, 3.0)),
    *(distance_template(MATRICES, p, None, dtypes=DtypeSelection.leading) for p in RARE_ORDERS),
    distance_template(LARGE_MATRICES, 2.0, None).replace("many"),
    distance_template(large_operand_template("", (3, 71, 1031), (3, 67, 1031)), 1.0, None).replace("long"),
)
"""The templates of `diopiCdist`."""


@cases_for("diopiCdist")
def cdist_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the distances between the rows of `input1` and the rows of `input2`."""
    return expand_in_order(prototype, CDIST_TEMPLATES)


# Gradients


def gradient_template(template: CaseTemplate[Operands], p: float) -> CaseTemplate[Operands]:
    """Return a copy of a template for the gradient of distances by the p-norm.

    For p = 0 and p = ∞, the operands are integers, so that the results have no rounding error.

    Args:
        template: The template.
        p: The order of the norm.

    Returns:
        The copy.
    """
    exact = p in (0.0, np.inf)
    domains = dict.fromkeys(("input1", "input2", "grad_output"), integer_values(-9, 9)) if exact else {}
    non_discriminating = "how many coordinates differ has no gradient but 0" if p == 0 else ""
    return template.replace(
        f"{template.label}-p{p:g}", {"p": p}, domains=domains, exact=exact, non_discriminating=non_discriminating
    )


def axis_rows_template(p: float) -> CaseTemplate[Operands]:
    """Return a template of the gradient for rows that differ in at most one coordinate.

    Every term of a result is 0 or an element of grad_output, possibly negated. Therefore no result has a rounding
    error.
    """
    rows = tensor(3, 3, domain=fixed_values([[1, 2, 3], [1, 4, 3], [1, -5, 3]]))
    points = tensor(2, 2, 3, domain=fixed_values([[1, 2, 3], [1, 9, 3], [1, 4, 3], [1, 0, 3]]))
    grad = {"grad_output": choice([-3, -2, -1, 1, 2, 3])}
    return CaseTemplate(
        f"on-axes-p{p:g}", (rows, points), {"p": p}, domains=grad, dtypes=DtypeSelection.all, exact=True
    )


INFINITE_DOMAINS = dict.fromkeys(("input1", "input2"), with_value_in_middle(np.inf, normal()))
"""Domains of both inputs: each has one infinite element, in the middle."""

GRADIENTS = (
    *(gradient_template(MATRICES.replace(smoke=True), p) for p in ORDERS),
    *(gradient_template(LAYOUTS, p) for p in ORDERS),
    *(axis_rows_template(p) for p in (1.0, 2.0, np.inf)),
    *(
        gradient_template(MATRICES, p).replace(f"infinite-p{p:g}", domains=INFINITE_DOMAINS, exact=False)
        for p in (0.0, 1.0)
    ),
    *(MATRICES.replace(f"near-least-p{p:g}", {"p": p}, domains=DIFFERENT_TINY_NUMBERS) for p in (0.5, 1.0)),
    *(gradient_template(points, p) for points, p in product(FEW_ROWS, (1.5, 2.0))),
    *(gradient_template(MATRICES.replace(dtypes=DtypeSelection.leading), p) for p in RARE_ORDERS),
    gradient_template(operand_template("many-others", (4, 5), (1031, 5)), 1.5),
    gradient_template(LARGE_MATRICES, 2.0).replace("many"),
    gradient_template(large_operand_template("", (3, 71, 331), (3, 67, 331)), 1.0).replace("long"),
)
"""The templates of `diopiCdistBackward`."""


@cases_for("diopiCdistBackward")
def cdist_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the gradient of `input1`; the argument `cdist` is the result of `diopiCdist`."""

    def gradient(template: CaseTemplate[Operands], dtype: Dtype) -> Mapping[str, Any]:
        first, second = template.sizes
        batch = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
        shape = (*batch, first.shape[-2], second.shape[-2])
        p = template.argument("p")
        saved = ResultOf("diopiCdist", extra_arguments={"p": p, "compute_mode": 2})
        return {
            "input1": first,
            "input2": second,
            "grad_output": replace(first, shape=shape),
            "p": p,
            "cdist": TensorTemplate(shape, layout=second.layout, compute=saved),
        }

    return expand(prototype, GRADIENTS, gradient)


CaseFacts(saved={"cdist": ResultOf("diopiCdist")}).declare("diopiCdistBackward")

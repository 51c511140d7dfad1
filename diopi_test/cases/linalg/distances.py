"""Cases of `diopiCdist`, the distances between the rows of two matrices, and of its gradients."""

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
    EXACT,
    TO_TRANSPOSED,
    expand_in_order,
    large_operand_template,
    operand_template,
)
from diopi_test.cases.products import fixed_values, partly_infinite
from diopi_test.cases.template import Arguments, CaseTemplate, DtypeSelection, TensorTemplate, expand, tensor

POWERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, np.inf)
"""The orders p of the norms."""

FURTHER_POWERS = (0.25, 2.5, 4.0, 5.0, 6.0)
"""Orders p that have only a few cases."""

MATRICES = operand_template("matrices", (4, 5), (3, 5), dtypes=DtypeSelection.all)
"""4 rows and 3 rows of 5 coordinates, in all element types."""

LAYOUTS = operand_template("layouts", (2, 3, 4), (2, 5, 4), **TO_TRANSPOSED)
"""Batches of rows in other layouts."""

FEW_POINTS = (
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
"""Rows for which a rounded exponent 1/p gives wrong distances, because the sum under the root is far from 1."""

MANY_POINTS = operand_template("many", (26, 3), (4, 3), dtypes=DtypeSelection.all)
"""26 rows as the first operand: PyTorch uses a matrix product by default for more than 25 rows."""

LARGE_MATRICES = large_operand_template("", (263, 37), (257, 37))
"""Hundreds of rows of 37 coordinates, in the level `large`."""

MANY_OTHERS = operand_template("many-others", (4, 3), (26, 3), dtypes=DtypeSelection.all)
"""26 rows as the second operand, for which PyTorch uses a matrix product by default."""


def distance_template(
    template: CaseTemplate[Operands], p: float, mode: int | None, *words: str, **changes: Any
) -> CaseTemplate[Operands]:
    """Return the template for distances by the p-norm; the mode and the words `words` extend the label."""
    label = "-".join([template.label, f"p{p:g}", *_mode(mode), *words])
    return template.replace(label, {"p": p, "compute_mode": mode}, **changes)


def _mode(mode: int | None) -> list[str]:
    """Return the words of a case label that name the computation mode."""
    return [] if mode is None else [f"mode{mode}"]


SMALL_INTEGERS = dict.fromkeys(("input1", "input2"), integer_values(-2, 2))
"""Domains of both inputs with few different integers, so that some coordinates of two rows are equal."""


def whole_number_template(far: int) -> CaseTemplate[Operands]:
    """Return a template of integer coordinates from -far to far, whose distances are exact."""
    return operand_template("tails", (17, 37), (9, 37), domain=integer_values(-far, far), **EXACT)


def _near(values: Values) -> NDArray[Any]:
    """Return rows near the rows of `input1`, far from 0: a difference of large squares loses their distance."""
    return np.asarray(values["input1"][..., ::-1, :] + values["_step"] / 64)


def close_rows_template(label: str, rows: int, mode: int | None) -> CaseTemplate[Operands]:
    """Return a template of rows that are far from 0 and close to each other."""
    arguments: Arguments = {
        "input1": tensor(rows, 3, domain=normal(mean=100)),
        "_step": tensor(rows, 3, domain=avoid_points([0], normal())),
        "input2": tensor(rows, 3, compute=_near),
        "p": 2.0,
        "compute_mode": mode,
    }
    return CaseTemplate("-".join([label, *_mode(mode)]), arguments=arguments, dtypes=DtypeSelection.all)


WHOLE_DISTANCES = CaseTemplate(
    "whole-distances",
    (
        tensor(2, 5, domain=fixed_values([[1, -2, 0, 1, 3]])),
        tensor(3, 5, domain=fixed_values([[1, 1, 0, 5, 3], [6, -2, 12, 1, 3], [1, -2, 8, 1, 18]])),
    ),
    {"p": 2.0, "compute_mode": 2},
    **EXACT,
)
"""Rows whose coordinates differ by 3 and 4, 5 and 12, or 8 and 15: squares, sums and roots are exact."""

NEAR_LEAST = tiny_multiples(2.0, 2.25, 2.5)
"""Numbers whose differences are subnormal."""

UNEQUAL_NEAR_LEAST = {"input1": tiny_multiples(2.0, 2.5), "input2": tiny_multiples(2.25, 2.75)}
"""Numbers like `NEAR_LEAST`, but without differences of 0, where the modulus has a kink."""

CDIST = (
    *(distance_template(MATRICES, p, None, domains=SMALL_INTEGERS if p == 0 else {}, smoke=True) for p in POWERS),
    *(distance_template(LAYOUTS, p, 0, domains=SMALL_INTEGERS if p == 0 else {}) for p in POWERS),
    *(distance_template(MATRICES, p, mode) for p, mode in product((2.0, 3.0), (1, 2))),
    *(distance_template(MANY_POINTS, 2.0, mode) for mode in (None, 0, 1, 2)),
    distance_template(MANY_OTHERS, 2.0, None),
    close_rows_template("close", 4, None),
    close_rows_template("close", 4, 2),
    close_rows_template("close-many", 26, 2),
    close_rows_template("close-25", 25, None),
    *(distance_template(whole_number_template(far), p, None, "exact") for p, far in ((0.0, 2), (1.0, 2), (np.inf, 50))),
    WHOLE_DISTANCES,
    distance_template(MATRICES, 0.0, None, "special", domains=dict.fromkeys(("input1", "input2"), partly_infinite)),
    distance_template(MATRICES, 0.0, None, "near-least", domains=dict.fromkeys(("input1", "input2"), NEAR_LEAST)),
    distance_template(MATRICES, 0.5, None, "near-least", domains=UNEQUAL_NEAR_LEAST),
    *(
        distance_template(MATRICES, p, None, "special", domains={"input1": partly_infinite})
        for p in (0.5, 1.0, 2.0, 3.0)
    ),
    *(distance_template(points, p, None) for points, p in product(FEW_POINTS, (2.0, np.inf))),
    *(distance_template(FAR_APART, p, None) for p in (1.5, 3.0)),
    *(distance_template(MATRICES, p, None, dtypes=DtypeSelection.leading) for p in FURTHER_POWERS),
    distance_template(LARGE_MATRICES, 2.0, None).replace("many"),
    distance_template(large_operand_template("", (3, 71, 1031), (3, 67, 1031)), 1.0, None).replace("long"),
)
"""The templates of the distances."""


@cases_for("diopiCdist")
def cdist_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield the cases of the distances between the rows of `input1` and the rows of `input2`."""
    return expand_in_order(prototype, CDIST)


# Gradients


def gradient_template(template: CaseTemplate[Operands], p: float) -> CaseTemplate[Operands]:
    """Return the template of the gradient by the p-norm; for p = 0 and p = ∞, results of integers are exact."""
    exact = p in (0.0, np.inf)
    domains = dict.fromkeys(("input1", "input2", "grad_output"), integer_values(-9, 9)) if exact else {}
    non_discriminating = "how many coordinates differ has no gradient but 0" if p == 0 else ""
    return template.replace(
        f"{template.label}-p{p:g}", {"p": p}, domains=domains, exact=exact, non_discriminating=non_discriminating
    )


def axis_rows_template(p: float) -> CaseTemplate[Operands]:
    """Return a template of rows that differ in at most one coordinate: every term is 0 or ± the gradient, exactly."""
    rows = tensor(3, 3, domain=fixed_values([[1, 2, 3], [1, 4, 3], [1, -5, 3]]))
    points = tensor(2, 2, 3, domain=fixed_values([[1, 2, 3], [1, 9, 3], [1, 4, 3], [1, 0, 3]]))
    grad = {"grad_output": choice([-3, -2, -1, 1, 2, 3])}
    return CaseTemplate(
        f"on-axes-p{p:g}", (rows, points), {"p": p}, domains=grad, dtypes=DtypeSelection.all, exact=True
    )


INFINITE = dict.fromkeys(("input1", "input2"), with_value_in_middle(np.inf, normal()))
"""Domains of rows of which two have an infinite coordinate, in one case the same coordinate."""

GRADIENTS = (
    *(gradient_template(MATRICES.replace(smoke=True), p) for p in POWERS),
    *(gradient_template(LAYOUTS, p) for p in POWERS),
    *(axis_rows_template(p) for p in (1.0, 2.0, np.inf)),
    *(gradient_template(MATRICES, p).replace(f"infinite-p{p:g}", domains=INFINITE, exact=False) for p in (0.0, 1.0)),
    *(MATRICES.replace(f"near-least-p{p:g}", {"p": p}, domains=UNEQUAL_NEAR_LEAST) for p in (0.5, 1.0)),
    *(gradient_template(points, p) for points, p in product(FEW_POINTS, (1.5, 2.0))),
    *(gradient_template(MATRICES.replace(dtypes=DtypeSelection.leading), p) for p in FURTHER_POWERS),
    gradient_template(operand_template("many-others", (4, 5), (1031, 5)), 1.5),
    gradient_template(LARGE_MATRICES, 2.0).replace("many"),
    gradient_template(large_operand_template("", (3, 71, 331), (3, 67, 331)), 1.0).replace("long"),
)
"""The templates of the gradient of `input1`."""


@cases_for("diopiCdistBackward")
def cdist_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield the cases of the gradient of `input1`; the argument `cdist` is the result of `diopiCdist`."""

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

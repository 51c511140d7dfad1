"""Which arguments carry a declared arithmetic into a reference."""

from __future__ import annotations

import pytest

from diopi_impl import Numerics
from diopi_impl.numerics import ErrorBound
from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.arithmetic.declared_case import derive_declared_case
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, Expected

INEXACT_TANH = Numerics(name="inexact", elementary={"tanh": (ErrorBound(ulp=100),)})


def budget_of(case: BaselineCase) -> Budget:
    """Return the budget of the result of a case."""
    expected = case.expected["out"]
    assert isinstance(expected, Expected)
    assert expected.budget is not None
    return expected.budget


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool"])
def test_the_errors_of_functions_widen_the_budget_for_every_type_that_is_computed_in_float32(dtype: str) -> None:
    case = next(case for case in select_cases("diopiTanh", "full") if case.label == f"{dtype}-matrix")
    stored = compute_baseline_case(lookup("diopiTanh"), case)
    widened = budget_of(derive_declared_case(stored, INEXACT_TANH)).unit > budget_of(stored).unit
    assert widened.mean() > 0.3

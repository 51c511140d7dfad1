"""Faults of comparing: what shows that subnormal numbers are compared as zeros."""

from typing import Any

import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.baseline.evaluate import compute_baseline_case
from diopi_test.cases.domains import Domain, distinct, subnormal
from diopi_test.cases.model import Case, TensorSpec
from diopi_test.quality.audit.matrix import Trial, try_fault
from diopi_test.quality.audit.ordering import ordering_faults

FAULT = "subnormal numbers compared as zeros"

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "diopiSort": {"dim": 0, "descending": False, "pStable": True},
    "diopiTopk": {"k": 4, "dim": 0, "largest": True, "sorted": True},
    "diopiMax": {"dim": 0},
    "diopiMin": {"dim": 0},
}


def try_on(function: str, domain: Domain) -> Trial:
    fault = next(one for one in ordering_faults(function) if one.name == FAULT)
    input = TensorSpec((9,), Dtype.float32, domain)
    case = Case("float32-made-up", Dtype.float32, {"input": input, **ATTRIBUTES[function]})
    return try_fault(fault, [compute_baseline_case(lookup(function), case)])


@pytest.mark.parametrize("function", ATTRIBUTES)
def test_only_subnormal_numbers_show_that_they_are_compared_as_zeros(function: str) -> None:
    assert try_on(function, subnormal).caught_by == ("float32-made-up", ("values",))
    assert not try_on(function, distinct).shown


@pytest.mark.parametrize("function", ["diopiRelu", "diopiArgmax", "diopiSum"])
def test_functions_without_positions_have_no_such_fault(function: str) -> None:
    assert FAULT not in [fault.name for fault in ordering_faults(function)]

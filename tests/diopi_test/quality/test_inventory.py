"""Every function of functions.h is in every column: a reference, cases at both levels, the reference vendor."""

from functools import cache
from typing import Any

import pytest
from sampling import sampled

from diopi_impl import find_vendor
from diopi_proto.interface import header_order, lookup
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.reference import find_reference
from diopi_test.quality.inventory import list_functions

QUERIES = {"diopiGetVendorName", "diopiGetImplVersion", "diopiGetLastErrorString"}
"""Functions that return a text: they have no tensors, no reference and no cases."""

OPERATORS = [name for name in header_order()["functions.h"] if name not in QUERIES]


@cache
def rows() -> dict[str, dict[str, Any]]:
    """Return the rows of the inventory by function."""
    return {row["function"]: row for row in list_functions()}


def test_functions_h_has_396_operators() -> None:
    assert len(OPERATORS) == 396


@pytest.mark.exhaustive
def test_every_function_is_listed() -> None:
    assert len(rows()) == 541


@pytest.mark.parametrize("function", sampled(OPERATORS, 15, slow=25))
def test_every_operator_is_complete(function: str) -> None:
    assert find_reference(function)
    assert find_vendor("jax_cpu").has(function)
    assert len(select_cases(function, "full")) >= 8


@pytest.mark.parametrize("function", sampled(OPERATORS, 15, slow=25))
def test_both_levels_cover_the_dtypes_of_the_main_input(function: str) -> None:
    full, smoke = ({case.dtype for case in select_cases(function, level)} for level in ("full", "smoke"))
    assert smoke == full
    assert set(lookup(function).dtypes) - full == set(), "no case for these"


@pytest.mark.exhaustive
def test_the_suite_has_its_size() -> None:
    assert sum(len(select_cases(function, "full")) for function in OPERATORS) >= 11_000


@pytest.mark.exhaustive
def test_functions_of_other_headers_have_a_reference_if_they_have_cases() -> None:
    """References and cases are added together, so that every reference is tested."""
    unimplemented = [name for name in rows() if name not in OPERATORS]
    assert [name for name in unimplemented if (find_reference(name) is None) != (not select_cases(name, "full"))] == []

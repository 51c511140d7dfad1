"""Derive the out-of-place call with which an in-place case must agree."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from diopi_proto.interface import lookup, prototypes
from diopi_proto.prototype import Prototype
from diopi_test.oracle.records import BaselineCase, Expected

_FORMS = {"inplace": "plain", "inplace_scalar": "scalar"}
"""The out-of-place form (`Prototype.form`) that corresponds to each in-place form."""


def derive_out_of_place_case(case: BaselineCase) -> BaselineCase | None:
    """Return a call of the out-of-place form of an in-place function, with the same arguments.

    Its result has the layout of the tensor that the in-place call overwrites, and the element type that the standard
    infers from the arguments.

    Args:
        case: A case of an in-place function, or of any other function.

    Returns:
        The case; None if the function has no out-of-place form, or if it has several valid results.
    """
    prototype = lookup(case.function)
    plain = _out_of_place_form(prototype)
    if plain is None or prototype.guarantee not in ("exact", "rounded"):
        return None
    updated, (result,) = prototype.results[0].name, plain.results
    expected = case.expected[updated]
    return replace(
        case,
        function=plain.name,
        expected={
            result.name: [_expected_result(plain, case, e, number) for number, e in enumerate(expected)]
            if isinstance(expected, list)
            else _expected_result(plain, case, expected, None)
        },
        smoke=False,
    )


@cache
def _out_of_place_form(prototype: Prototype) -> Prototype | None:
    """Return the out-of-place form of a function; None if the function is not in-place or has no such form."""
    form = _FORMS.get(prototype.form)
    forms = (candidate for candidate in prototypes().values() if candidate.base == prototype.base)
    return next((candidate for candidate in forms if candidate.form == form), None)


def _expected_result(plain: Prototype, case: BaselineCase, expected: Any, number: int | None) -> Any:
    """Return the expected result of the out-of-place form.

    Args:
        plain: The prototype of the out-of-place form.
        case: The in-place case.
        expected: The expected result of the in-place case; None if it is omitted.
        number: The number of the entry in an array of results; None for a single result.
    """
    if not isinstance(expected, Expected):
        return None
    dtype = plain.infer(plain.results[0].name, case.arguments, number)
    assert dtype is not None
    return replace(expected, dtype=dtype)

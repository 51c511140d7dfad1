"""The out-of-place call that an in-place case is to agree with."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from diopi_proto.interface import lookup, prototypes
from diopi_proto.prototype import Prototype
from diopi_test.baseline.records import BaselineCase, Expected

_FORMS = {"inplace": "plain", "inplace_scalar": "scalar"}


def out_of_place(case: BaselineCase) -> BaselineCase | None:
    """The same arguments for the out-of-place form, its result with the layout of the tensor overwritten in place.

    Its element type is the one the standard gives it, which may be wider. None for functions that are no in-place form,
    those with more than one right result, and those whose standard has no out-of-place form.
    """
    prototype = lookup(case.function)
    plain = _plain_form(prototype)
    if plain is None or prototype.guarantee not in ("exact", "rounded"):
        return None
    updated, (result,) = prototype.results[0].name, plain.results
    expected = case.expected[updated]
    return replace(
        case,
        function=plain.name,
        expected={
            result.name: [_as_result(plain, case, e, number) for number, e in enumerate(expected)]
            if isinstance(expected, list)
            else _as_result(plain, case, expected, None)
        },
        smoke=False,
    )


@cache
def _plain_form(prototype: Prototype) -> Prototype | None:
    form = _FORMS.get(prototype.form)
    forms = (candidate for candidate in prototypes().values() if candidate.base == prototype.base)
    return next((candidate for candidate in forms if candidate.form == form), None)


def _as_result(plain: Prototype, case: BaselineCase, expected: Any, number: int | None) -> Any:
    """The expectation of an in-place result as one of the out-of-place form."""
    if not isinstance(expected, Expected):
        return None
    dtype = plain.infer(plain.results[0].name, case.arguments, number)
    assert dtype is not None
    return replace(expected, dtype=dtype)

"""The out-of-place call that an in-place case is to agree with."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from diopi_proto.interface import lookup, prototypes
from diopi_proto.parameters import Scalar
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Number
from diopi_test.baseline import BaselineCase, BaselineTensor, Expected

_FORMS = {"inplace": "plain", "inplace_scalar": "scalar"}


def counterpart(case: BaselineCase) -> BaselineCase | None:
    """The same arguments for the out-of-place form, its result with the layout of the tensor overwritten in place.

    Its element type is the one the standard gives it, which may be wider. None for functions that are no in-place form,
    those with more than one right result, and those whose standard has no out-of-place form.
    """
    prototype = lookup(case.function)
    plain = _plain_form(prototype)
    if plain is None or prototype.promise not in ("exact", "rounded"):
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
    forms = (other for other in prototypes().values() if other.base == prototype.base)
    return next((other for other in forms if other.form == form), None)


def _as_result(plain: Prototype, case: BaselineCase, expected: Any, number: int | None) -> Any:
    """The expectation of an in-place result as one of the out-of-place form."""
    if not isinstance(expected, Expected):
        return None
    dtype = plain.result_dtype(plain.results[0].name, _dtypes(case, number), _scalars(plain, case))
    return replace(expected, dtype=dtype)


def _dtypes(case: BaselineCase, number: int | None) -> list[Dtype]:
    """The element types of the tensor arguments; of arrays, those of entry `number`."""
    values = list(case.arguments.values())
    entries = [value[number] if isinstance(value, list) and number is not None else value for value in values]
    return [entry.dtype for entry in entries if isinstance(entry, BaselineTensor)]


def _scalars(plain: Prototype, case: BaselineCase) -> list[Number]:
    return [case.arguments[p.name] for p in plain.arguments if issubclass(p.annotation, Scalar)]

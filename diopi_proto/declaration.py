"""`@prototype`: declare a standard function and its derived forms with a Python function that has no body.

    @prototype(dtypes=numeric, result=promoted, inplace="diopiMulInp", scalar="diopiMulScalar")
    def diopiMul(ctx: Context, out: Out, input: In, other: In):
        "Product input · other. ..."

This declares `diopiMul`, `diopiMulInp(ctx, input, other)` and `diopiMulScalar(ctx, out, input, other)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, get_type_hints

from diopi_proto import dtypes as dtype_sets
from diopi_proto.docstrings import FORM_DOCS, extend_docstring
from diopi_proto.dtypes import DtypeSet, category, is_complex
from diopi_proto.parameters import Role, Scalar, derive_in_place, parse
from diopi_proto.prototype import Prototype, register


def prototype(
    *,
    inplace: str | None = None,
    scalar: str | None = None,
    inplace_scalar: str | None = None,
    scalar_arguments: Sequence[str] | None = None,
    **facts: Any,
) -> Callable[[Callable[..., Any]], Prototype]:
    """Declare the standard function that the decorated function's name, parameters and docstring describe.

    Args:
        inplace: name of the in-place form, in which the first input is overwritten with the result.
        scalar: name of the scalar form, which takes `scalar_arguments` as `diopiScalar_t`.
        inplace_scalar: name of the in-place scalar form.
        scalar_arguments: names of the inputs that are numbers in scalar forms; by default all inputs except the first.
        facts: the attributes of `Prototype` from `dtypes` on. `ignored` and `call_forms` add paragraphs to the
            docstring.

    Returns:
        A decorator that registers the function and its forms, and returns the plain prototype.
    """

    def declare(function: Callable[..., Any]) -> Prototype:
        plain = _declare_plain(function, facts)
        scalars = scalar_arguments or [p.name for p in plain.parameters if p.role is Role.input][1:]
        register(plain)
        for form, name in (("inplace", inplace), ("scalar", scalar), ("inplace_scalar", inplace_scalar)):
            if name:
                register(_derive(plain, form, name, scalars))
        return plain

    return declare


def _declare_plain(function: Callable[..., Any], facts: Mapping[str, Any]) -> Prototype:
    """Return the plain prototype that a function without a body and these facts declare."""
    hints = get_type_hints(function, include_extras=True)
    hints.pop("return", None)
    plain = Prototype(
        name=function.__name__,
        family=function.__module__.rsplit(".", 1)[-1],
        parameters=tuple(parse(name, annotation) for name, annotation in hints.items()),
        doc="",
        base=function.__name__,
        **facts,
    )
    doc = extend_docstring(inspect.getdoc(function) or "", plain.parameters, plain.ignored, plain.call_forms)
    return replace(plain, doc=doc)


elementwise = partial(prototype, elementwise=True)
"""`prototype` for functions whose tensors have the same shape or broadcast to one shape."""

arithmetic = partial(elementwise, common_type=True)
"""`elementwise` for functions that convert their operands to the common type first."""


def _derive(plain: Prototype, form: str, name: str, scalars: Sequence[str]) -> Prototype:
    """Return the in-place form, the scalar form, or both together, of a plain prototype."""
    parameters = list(plain.parameters)
    if form != "inplace":
        parameters = [replace(p, annotation=Scalar) if p.name in scalars else p for p in parameters]
    if form != "scalar":
        parameters = derive_in_place(parameters)
    first = next(p.name for p in plain.parameters if p.role is Role.input)
    listed = " and ".join(f"`{scalar}`" for scalar in scalars) + (" is" if len(scalars) == 1 else " are")
    summary = FORM_DOCS[form].format(base=plain.name, first=first, scalars=listed)
    doc = f"{summary}\n\n{plain.doc}"
    derived = replace(plain, name=name, form=form, parameters=tuple(parameters), doc=doc, backward=None)
    return replace(derived, dtypes=_in_place_dtypes(plain)) if derived.is_inplace else derived


def _in_place_dtypes(plain: Prototype) -> DtypeSet:
    """Return the element types in which an in-place form can store its result.

    An integer tensor cannot store a floating-point result, and the modulus of a complex number is not complex.
    """
    rule = plain.result
    if isinstance(rule, Mapping):
        return plain.dtypes
    if rule is dtype_sets.component:
        return tuple(dtype for dtype in plain.dtypes if not is_complex(dtype))
    return tuple(dtype for dtype in plain.dtypes if category(rule([dtype])) <= category(dtype))

"""`@prototype`: a bodiless Python function becomes a `Prototype` in the registry, with the forms derived from it.

    @prototype(dtypes=numeric, result=promoted, inplace="diopiMulInp", scalar="diopiMulScalar")
    def diopiMul(ctx: Context, out: Out, input: In, other: In):
        \"""Product input · other. ...\"""

enters `diopiMul`, `diopiMulInp(ctx, input, other)` and `diopiMulScalar(ctx, out, input, other)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_type_hints

from diopi_proto import dtypes as dtype_sets
from diopi_proto.dtypes import DtypeSet, ResultRule, category, is_complex
from diopi_proto.parameters import InOut, InOuts, Out, Outs, Parameter, Role, Scalar, parse
from diopi_proto.types import Dtype, Number

PROMISES = ("exact", "rounded", "any", "random")
"""What a floating result promises.

exact: the one representable answer, bit for bit; rounded: within the error budget; any: one of several right
answers, judged by meaning (the order of equal elements, say); random: drawn from a distribution.
Integer and boolean results of exact and rounded functions are exact. Both kinds of functions give the same bits
whenever they are called with the same arguments, on the same device, with tensors of the same alignment.
"""


class PrototypeError(Exception):
    """A prototype that contradicts itself or the registry."""


@dataclass(frozen=True, eq=False)
class Prototype:
    """What a standard operator is.

    Attributes:
        name: the C name.
        family: the module that declares it, the same name on every floor.
        parameters: in C order.
        doc: meaning, shapes, dtypes, errors, source.
        dtypes: element types the tensor inputs may have; `argument_dtypes` names the inputs that differ.
        result: rule (or rules, by result name) giving a result's element type from the inputs'.
        promise: what a floating result promises, one of `PROMISES`.
        base: the function this one is a form of; itself for a plain function.
        form: "plain", "inplace", "scalar" or "inplace_scalar".
        backward: name of its gradient function, if the standard has one.
        returns: the C return type.
    """

    name: str
    family: str
    parameters: tuple[Parameter, ...]
    doc: str
    dtypes: DtypeSet = ()
    argument_dtypes: Mapping[str, DtypeSet] = field(default_factory=dict)
    result: ResultRule | Mapping[str, ResultRule] = dtype_sets.same
    promise: str = "rounded"
    base: str = ""
    form: str = "plain"
    backward: str | None = None
    returns: str = "diopiError_t"

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """The parameters whose values go into the result, in order: what a functional implementation takes."""
        return tuple(parameter for parameter in self.parameters if parameter.is_argument)

    @property
    def results(self) -> tuple[Parameter, ...]:
        """The parameters the call writes, in order: what a functional implementation returns."""
        return tuple(parameter for parameter in self.parameters if parameter.is_result)

    @property
    def is_inplace(self) -> bool:
        """Whether this is the in-place form of another function."""
        return self.form in ("inplace", "inplace_scalar")

    def parameter(self, name: str) -> Parameter:
        """The parameter called `name`; KeyError with the known names if there is none."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise KeyError(f"{self.name} has no parameter {name!r}, it has {[p.name for p in self.parameters]}")

    def dtypes_of(self, argument: str) -> DtypeSet:
        """The element types tensor argument `argument` may have."""
        return self.argument_dtypes.get(self.parameter(argument).name, self.dtypes)

    def result_dtype(self, result: str, inputs: Sequence[Dtype], scalars: Sequence[Number] = ()) -> Dtype:
        """The element type of `result` when the tensor inputs have the types `inputs`, in order.

        Scalars take part where the inputs' common type does: one of a higher category lifts it. An in-place result
        keeps the type it has.
        """
        rule = self.result[result] if isinstance(self.result, Mapping) else self.result
        if rule in (dtype_sets.promoted, dtype_sets.floated):
            inputs = [dtype_sets.lift(dtype, scalars) for dtype in inputs]
        return rule(inputs)


_registry: dict[str, Prototype] = {}


def register(prototype: Prototype) -> Prototype:
    """Enter `prototype`; PrototypeError if its name is taken or it has no description."""
    if prototype.name in _registry:
        families = f"{_registry[prototype.name].family} and {prototype.family}"
        raise PrototypeError(f"{prototype.name} is declared twice: in {families}")
    if not prototype.doc:
        raise PrototypeError(f"{prototype.name} has no docstring: its meaning is the standard")
    if prototype.promise not in PROMISES:
        raise PrototypeError(f"{prototype.name}: promise {prototype.promise!r} is not one of {PROMISES}")
    _registry[prototype.name] = prototype
    return prototype


def registered() -> Mapping[str, Prototype]:
    """All prototypes declared so far, by name."""
    return _registry


def prototype(
    *,
    dtypes: DtypeSet = (),
    argument_dtypes: Mapping[str, DtypeSet] | None = None,
    result: ResultRule | Mapping[str, ResultRule] = dtype_sets.same,
    promise: str = "rounded",
    inplace: str | None = None,
    scalar: str | None = None,
    inplace_scalar: str | None = None,
    scalar_arguments: Sequence[str] | None = None,
    backward: str | None = None,
    returns: str = "diopiError_t",
) -> Callable[[Callable[..., Any]], Prototype]:
    """Declare the standard function that the decorated function's name, parameters and docstring describe.

    Args:
        dtypes, argument_dtypes, result, promise, backward, returns: as in `Prototype`.
        inplace: name of the in-place form, in which the first input is overwritten with the result.
        scalar: name of the scalar form, which takes `scalar_arguments` (default: every tensor input but the
            first) as `diopiScalar_t`.
        inplace_scalar: name of the form that is both.
    """

    def declare(function: Callable[..., Any]) -> Prototype:
        hints = get_type_hints(function, include_extras=True)
        hints.pop("return", None)
        plain = Prototype(
            name=function.__name__,
            family=function.__module__.rsplit(".", 1)[-1],
            parameters=tuple(parse(name, annotation) for name, annotation in hints.items()),
            doc=inspect.getdoc(function) or "",
            dtypes=dtypes,
            argument_dtypes=argument_dtypes or {},
            result=result,
            promise=promise,
            base=function.__name__,
            backward=backward,
            returns=returns,
        )
        scalars = scalar_arguments or [p.name for p in plain.parameters if p.role is Role.input][1:]
        register(plain)
        for form, name in (("inplace", inplace), ("scalar", scalar), ("inplace_scalar", inplace_scalar)):
            if name:
                register(_derive(plain, form, name, scalars))
        return plain

    return declare


_FORM_DOCS = {
    "inplace": "In-place form of `{base}`:\n`{first}` is overwritten with the result, converted to its dtype; it must "
    "have the result's shape.",
    "scalar": "Scalar form of `{base}`:\n{scalars} given as `diopiScalar_t`, payload integer or floating.",
    "inplace_scalar": "In-place scalar form of `{base}`:\n`{first}` is overwritten with the result, converted to its "
    "dtype; {scalars} given as `diopiScalar_t`.",
}


def _derive(plain: Prototype, form: str, name: str, scalars: Sequence[str]) -> Prototype:
    parameters = list(plain.parameters)
    if form != "inplace":
        parameters = [replace(p, annotation=Scalar) if p.name in scalars else p for p in parameters]
    if form != "scalar":
        parameters = _in_place(parameters)
    first = next(p.name for p in plain.parameters if p.role is Role.input)
    listed = " and ".join(f"`{scalar}`" for scalar in scalars) + (" is" if len(scalars) == 1 else " are")
    summary = _FORM_DOCS[form].format(base=plain.name, first=first, scalars=listed)
    doc = f"{summary}\n\n{plain.doc}"
    derived = replace(plain, name=name, form=form, parameters=tuple(parameters), doc=doc, backward=None)
    return replace(derived, dtypes=_storable(plain)) if derived.is_inplace else derived


def _storable(plain: Prototype) -> DtypeSet:
    """The types that can hold their own result: no floating one in an integer, no modulus in a complex tensor."""
    rule = plain.result
    if isinstance(rule, Mapping):
        return plain.dtypes
    if rule is dtype_sets.component:
        return tuple(dtype for dtype in plain.dtypes if not is_complex(dtype))
    return tuple(dtype for dtype in plain.dtypes if category(rule([dtype])) <= category(dtype))


def _in_place(parameters: Sequence[Parameter]) -> list[Parameter]:
    """Without the output; the first input, or array of inputs, is read and updated instead."""
    kept = [p for p in parameters if p.annotation not in (Out, Outs)]
    first = next(i for i, p in enumerate(kept) if p.role is Role.input)
    kept[first] = replace(kept[first], annotation=InOuts if kept[first].is_tensor_array else InOut)
    return kept

"""Describe standard functions for people: parameters, element types, results, and the signature of an implementation.

Everything follows from the prototype. The command `diopi-test describe` and the pages of the site show it.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from diopi_proto.aten.table import rows
from diopi_proto.dtypes import DtypeSet, ResultRule
from diopi_proto.facts import Converted, MayAlias
from diopi_proto.interface import prototypes
from diopi_proto.parameters import Parameter, Role
from diopi_proto.prototype import Prototype

GUARANTEE_SENTENCES: Mapping[str, str] = {
    "exact": "Every result is the one representable value, bit for bit.",
    "rounded": "Floating-point results lie within the error budget; integer and bool results are exact.",
    "any_of": "Several results are valid, for example because elements are equal; each of them conforms.",
    "random": "The results are samples of a distribution; statistical tests judge them.",
}
"""What each guarantee means for a vendor, by guarantee (`diopi_proto.prototype.GUARANTEES`)."""

ROLES: Mapping[Role, str] = {
    Role.context: "context",
    Role.input: "input",
    Role.output: "result",
    Role.inout: "updated in place",
    Role.workspace: "workspace",
    Role.attribute: "attribute",
    Role.count: "count",
}
"""The role of a parameter in words."""


@dataclass(frozen=True, kw_only=True)
class ParameterDescription:
    """What a caller must know about a parameter.

    Attributes:
        name: the name in C.
        c_type: the type in C.
        role: the role in the call, one of the values of `ROLES`.
        optional: whether the caller may omit it.
        dtypes: the names of the element types that a tensor may have; for a result, one sentence with the rule.
        notes: sentences about the values of the parameter.
    """

    name: str
    c_type: str
    role: str
    optional: bool
    dtypes: tuple[str, ...]
    notes: tuple[str, ...]


def describe_parameters(prototype: Prototype) -> list[ParameterDescription]:
    """Return a description of each parameter, in the order of C."""
    return [
        ParameterDescription(
            name=parameter.c_name,
            c_type=parameter.c_type,
            role=ROLES[parameter.role],
            optional=parameter.optional,
            dtypes=tuple(_dtypes(prototype, parameter)),
            notes=(_summary(parameter.annotation), *(fact.sentence for fact in parameter.facts)),
        )
        for parameter in prototype.parameters
    ]


def _dtypes(prototype: Prototype, parameter: Parameter) -> Iterator[str]:
    """Yield the names of an input's element types, or the sentence with the rule for the element type of a result."""
    if not (parameter.is_tensor or parameter.is_tensor_array) or parameter.role is Role.workspace:
        return
    if parameter.role is Role.output:
        yield from _describe_rule(prototype, parameter)
    else:
        yield from (dtype.name for dtype in prototype.dtypes_of(parameter.name))


def _describe_rule(prototype: Prototype, result: Parameter) -> Iterator[str]:
    """Yield the rule for the element type of a result; an array from the callee has one rule per entry."""
    if isinstance(prototype.result, Mapping) and result.name not in prototype.result:
        yield from (f"`{name}`: {_rule_text(rule)}" for name, rule in prototype.result.items())
    else:
        yield _rule_text(prototype.rule_of(result.name))
    if prototype.selectable_dtypes and result.role is Role.output:
        yield f"The caller may choose any of {_list_dtypes(prototype.selectable_dtypes)}."


def _list_dtypes(dtypes: DtypeSet) -> str:
    """Return the names of element types with commas between them."""
    return ", ".join(dtype.name for dtype in dtypes)


def _rule_text(rule: ResultRule) -> str:
    """Return the docstring of a rule as a sentence about the result."""
    text = _summary(rule).removeprefix("Return ")
    return text[:1].upper() + text[1:]


def _summary(described: object) -> str:
    """Return the first sentence of a docstring, without the C type that follows it in the docstrings of parameters."""
    return re.split(r"(?<=\.)\s", inspect.getdoc(described) or "", maxsplit=1)[0].replace("\n", " ")


def python_signature(prototype: Prototype) -> str:
    """Return the first line of a functional implementation in Python that declares every parameter it may declare.

    An implementation may omit parameters that it does not use, and choose the order.
    """
    parameters = [parameter.name for parameter in prototype.arguments]
    specs = ["*", "out"] if any(parameter.role is Role.output for parameter in prototype.results) else []
    return f"def {python_name(prototype.name)}({', '.join([*parameters, *specs])}): ..."


def python_name(function: str) -> str:
    """Return the usual name of an implementation: `layer_norm` for `diopiLayerNorm`, with `_` after a keyword."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", function.removeprefix("diopi")).lower()
    return f"{words}_" if keyword.iskeyword(words) else words


def describe_implementation(prototype: Prototype) -> list[str]:
    """Return sentences about what a functional implementation receives and returns."""
    sentences = [f"It returns {_join(parameter.name for parameter in prototype.results)}."] if prototype.results else []
    if any(parameter.role is Role.output for parameter in prototype.results):
        sentences.append(
            "`out` is the shape, element type and name of the caller's result; for several results, it is a tuple."
        )
    absent = [parameter.c_name for parameter in prototype.parameters[1:] if parameter.role is Role.count]
    if absent:
        sentences.append(f"It does not receive {_join(absent)}, because the arrays have lengths.")
    return [*sentences, *_describe_conversions(prototype)]


def _describe_conversions(prototype: Prototype) -> Iterator[str]:
    """Yield sentences about the conversions before an implementation is called."""
    tensors = [p.name for p in prototype.arguments if p.is_tensor and p.role is not Role.workspace]
    if prototype.selectable_dtypes and tensors:
        yield f"It receives {_join(tensors)} converted to the element type of the result."
    elif operands := [p.name for p in prototype.operands]:
        yield f"It receives {_join(operands)} converted to their common type."
    elif numbers := [p.name for p in prototype.arguments if p.fact(Converted)]:
        yield f"It receives {_join(numbers)} converted to the element type of the first tensor."


def _join(names: Sequence[str] | Iterator[str]) -> str:
    """Return names in the form "`a`, `b` and `c`"."""
    quoted = [f"`{name}`" for name in names]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), *quoted[-1:]]))


def describe_results(prototype: Prototype) -> list[str]:
    """Return sentences about what the standard guarantees about the results."""
    sentences = [GUARANTEE_SENTENCES[prototype.guarantee]]
    if prototype.guarantee in ("exact", "rounded"):
        sentences.append(
            "Equal calls return equal bits."
            if prototype.repeats_bits
            else "Equal calls may differ within the budget, because the order of sums is not specified."
        )
    if prototype.moves_numbers:
        sentences.append("Subnormal numbers that the call does not convert stay as they are.")
    if prototype.multiplies_matrices:
        sentences.append("A vendor may declare the precision of its float32 products.")
    may_share = {result: names for result, names in prototype.aliases.items() if not _has_note(prototype, result)}
    sentences += [f"`{result}` may be the tensor of {_join(names)}." for result, names in may_share.items()]
    return sentences


def _has_note(prototype: Prototype, result: str) -> bool:
    """Return whether the notes of a result already name the argument whose tensor it may be."""
    return prototype.parameter(result).fact(MayAlias) is not None


def other_forms(prototype: Prototype) -> list[str]:
    """Return the names of the other forms of the function: in-place and scalar forms, and the plain function."""
    return [p.name for p in prototypes().values() if p.base == prototype.base and p.name != prototype.name]


def aten_operators(prototype: Prototype) -> list[str]:
    """Return the operators of PyTorch, as in `add.Tensor`, that the plain form of the function implements."""
    return list(_operators_by_function().get(prototype.base, ()))


@cache
def _operators_by_function() -> Mapping[str, Sequence[str]]:
    """Return the operators of ATen by the function that implements them."""
    operators: dict[str, list[str]] = {}
    for name, row in rows().items():
        operators.setdefault(row.function, []).append(name)
    return operators

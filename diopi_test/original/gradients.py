"""The gradient of a call: a case of the function that the prototype names for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from diopi_proto.interface import lookup, prototypes
from diopi_proto.parameters import Parameter, Size
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.baseline.evaluate import Evaluation, result_of
from diopi_test.cases.data import materialise, plain_values, with_masks
from diopi_test.cases.domains import normal
from diopi_test.cases.layouts import contiguous
from diopi_test.cases.model import Case, ResultOf, ResultOverride, TensorSpec
from diopi_test.cases.models import SAVED
from diopi_test.fuzz.relations import FAILURES
from diopi_test.oracle.reference import reference_of
from diopi_test.original.attributes import converted, usual
from diopi_test.original.entries import EntryError

DRIVING = ("grad_output", "grad_out", "grad")
"""The names of the gradient of the result."""


def gradient_of(forward: Prototype) -> str | None:
    """The function that computes a function's gradient; that of a pooling takes the positions another form gives."""
    with_indices = prototypes().get(f"{forward.name}WithIndices")
    return forward.backward or (with_indices.backward if with_indices else None)


def gradient_case(forward: Prototype, case: Case) -> tuple[Prototype, Case]:
    """The case of the gradient of a call of `forward`; EntryError if that takes what the call does not say."""
    prototype = lookup(gradient_of(forward) or "")
    drawn: dict[str, Any] = {}
    saved: dict[str, Any] = {}
    for parameter in prototype.arguments:
        rule = SAVED.get(prototype.name, {}).get(parameter.name) or _result_of(forward, prototype, parameter)
        if rule is None:
            drawn[parameter.name] = _argument(prototype, parameter, forward, case)
            continue
        rule = replace(rule, given={**rule.given, **_attributes(forward, case)})
        saved[parameter.name] = _saved(forward, case, rule)
        hidden = {name: rule.renamed.get(name, name) for name in case.arguments}
        drawn |= {h: replace(case.arguments[n], layout=contiguous) for n, h in hidden.items() if h.startswith("_")}
    known = {parameter.name for parameter in prototype.arguments}
    ordered = {name: value for name, value in drawn.items() if name not in known} | {
        name: value for name, value in drawn.items() if name in known
    }
    results = {p.name: ResultOverride() for p in prototype.results}
    return prototype, Case(case.label, case.dtype, {**ordered, **saved}, results)


def _result_of(forward: Prototype, prototype: Prototype, parameter: Parameter) -> ResultOf | None:
    """The forward function's result that a gradient takes as an argument; None if it is none."""
    results = {p.name for p in forward.results} - {p.name for p in forward.arguments}
    name = "out" if parameter.name == "output" and "out" in results else parameter.name
    if not parameter.is_tensor or name not in results or parameter.name in DRIVING:
        return None
    names = {p.name for p in prototype.arguments}
    return ResultOf(
        forward.name, name, {p.name: f"_{p.name}" for p in forward.arguments if p.is_tensor and p.name not in names}
    )


def _argument(prototype: Prototype, parameter: Parameter, forward: Prototype, case: Case) -> Any:
    name, given = parameter.name, case.arguments
    if name in DRIVING:
        return TensorSpec(_results(forward, case)[0].shape, case.dtype, normal())
    if name in given:
        return given[name]
    sized = given.get(name.removesuffix("_sizes")) if name.endswith("_sizes") else None
    if issubclass(parameter.annotation, Size) and (isinstance(sized, TensorSpec) or parameter.optional):
        return sized.shape if isinstance(sized, TensorSpec) else None
    if parameter.optional:
        return None
    if parameter.is_tensor or parameter.is_tensor_array:
        raise EntryError(f"its gradient {prototype.name} takes {name}, which the call does not say")
    return converted(prototype, parameter, usual(prototype.name, name))


def _attributes(forward: Prototype, case: Case) -> Mapping[str, Any]:
    """The arguments of the call that are no tensors."""
    plain = [p.name for p in forward.arguments if not p.is_tensor and not p.is_tensor_array]
    return {name: case.arguments[name] for name in plain}


def _saved(forward: Prototype, case: Case, rule: ResultOf) -> TensorSpec:
    """The tensor that holds a result of the call, or of another function's for the same arguments."""
    names = [p.name for p in forward.results]
    if rule.function == forward.name and rule.result in names:
        array = _results(forward, case)[names.index(rule.result)]
    else:
        plain = _values(forward, case)
        try:
            array = result_of(rule, {rule.renamed.get(name, name): value for name, value in plain.items()})
        except FAILURES as error:
            raise EntryError(f"what its gradient needs of {rule.function} is not known: {error}") from error
    dtype = {"b": Dtype.bool, "i": Dtype.int64}.get(array.dtype.kind, case.dtype)
    return TensorSpec(array.shape, dtype, compute=rule)


def _results(forward: Prototype, case: Case) -> list[NDArray[Any]]:
    """The results of the call."""
    function = reference_of(forward.name)
    assert function is not None
    undecided = replace(case, results={p.name: case.results.get(p.name) or ResultOverride() for p in forward.results})
    return Evaluation(forward, function, undecided).arrays(_values(forward, case))


def _values(forward: Prototype, case: Case) -> Mapping[str, Any]:
    """The arguments of the call as the reference takes them."""
    return plain_values(with_masks(forward, materialise(forward, case, result_of)))

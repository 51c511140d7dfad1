"""Cases of calls that networks make (`diopi_test.traces`): their shapes, types, strides and attributes with new values.

The values come from the domains of the function's own cases: the case that is most similar to the call provides them.
Indices, classes and lengths lie in the range that they had in the network. What a forward function saves for its
gradient is computed by that function for the case's own arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import is_floating
from diopi_proto.families import load_families
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Reduction, RoundMode
from diopi_test.cases.case import Case, CaseClass, ResultOverride, TensorSpec, registered_cases
from diopi_test.cases.domains import Domain, integer_values, normal
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import Layout, contiguous, strides
from diopi_test.cases.tensors import (
    positions,
)
from diopi_test.traces.calls import TracedCall, TracedTensor
from diopi_test.traces.files import model_names, shipped_calls


def model_cases(prototype: Prototype, names: Iterable[str] | None = None) -> Sequence[Case]:
    """Return the cases of a function from these networks (default: all); equal calls are one case."""
    load_families("diopi_test.cases")
    donors = [case for case in registered_cases(prototype) if _can_lend_domains(case)]
    return [_case(prototype, call, donors) for _, call in sorted(_calls(prototype.name, names).items())]


def model_keys(prototype: Prototype, names: Iterable[str] | None = None) -> Sequence[str]:
    """Return what the cases of a function depend on besides sources: the calls as text."""
    return [call.key for call in _calls(prototype.name, names).values()]


def _calls(function: str, names: Iterable[str] | None) -> Mapping[str, TracedCall]:
    """Return the calls of a function that these networks (default: all) make, by label."""
    chosen = model_names() if names is None else names
    return {label: call for name in chosen for label, call in shipped_calls(name).get(function, {}).items()}


def _can_lend_domains(case: Case) -> bool:
    """Return whether the values of a case are ordinary."""
    odd = ("special", "ends", "nan", "infin", "large", "huge", "tiny", "masked", "all-", "ties", "empty")
    usual = (CaseClass.basic, CaseClass.types, CaseClass.layout, CaseClass.optional)
    return (
        not case.exact
        and not case.non_discriminating
        and case.case_class in usual
        and not any(word in case.label for word in odd)
    )


def _case(prototype: Prototype, call: TracedCall, donors: Sequence[Case]) -> Case:
    """Return a case for a call of a network, with values from the most similar of the function's own cases."""
    donor = max(donors, key=lambda case: _similarity(case, call), default=None)
    new_arguments, saved = {}, {}
    for parameter in prototype.arguments:
        value = call.arguments[parameter.name]
        rule = CaseFacts.declared_for(prototype).saved.get(parameter.name)
        if rule is not None and isinstance(value, TracedTensor):
            saved[parameter.name] = TensorSpec(value.shape, value.dtype, layout=_layout(value), compute=rule)
            for hidden in (name for name in rule.argument_names.values() if name.startswith("_")):
                new_arguments[hidden] = TensorSpec(value.shape, value.dtype, normal())
        else:
            new_arguments[parameter.name] = _argument(prototype, parameter, call, donor)
    results = {name: _result(prototype, call, name, value) for name, value in call.results.items()}
    return Case(call.label, call.dtype, {**new_arguments, **saved}, results=results)


def _similarity(case: Case, call: TracedCall) -> tuple[int, ...]:
    """Return a sort key for the similarity of a case and a call: attributes, omissions, element type, smoke cases."""
    names = [name for name in call.arguments if name in case.arguments]
    same = sum(_is_tensor(case.arguments[n]) == _is_tensor(call.arguments[n]) for n in names)
    equal = sum(_name_of(case.arguments[n]) == call.arguments[n] for n in names if not _is_tensor(call.arguments[n]))
    drawn_count = sum(spec.compute is None for n in names for spec in TensorSpec.all_in(case.arguments[n]))
    return same, equal, drawn_count, case.dtype is call.dtype, case.smoke


def _name_of(value: Any) -> Any:
    """Return the name of an enumeration member, or any other value itself."""
    return value.name if isinstance(value, Reduction | RoundMode) else value


def _is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor or a list of tensors."""
    return isinstance(value, TracedTensor | TensorSpec | list)


def _argument(prototype: Prototype, parameter: Parameter, call: TracedCall, donor: Case | None) -> Any:
    """Return an argument of the case of a call; a tensor gets the donor's domain."""
    value = call.arguments[parameter.name]
    donor_specs = [] if donor is None else TensorSpec.all_in(donor.arguments.get(parameter.name))
    domain = next((spec.domain for spec in donor_specs if spec.compute is None), None)
    if isinstance(value, list):
        return [None if entry is None else _spec(prototype, parameter, entry, call, domain) for entry in value]
    if issubclass(parameter.annotation, Reduction | RoundMode):
        return parameter.annotation[value]
    return _spec(prototype, parameter, value, call, domain) if isinstance(value, TracedTensor) else value


def _spec(
    prototype: Prototype, parameter: Parameter, tensor: TracedTensor, call: TracedCall, domain: Domain | None
) -> TensorSpec:
    """Return the tensor argument with the shape and layout of the network's tensor and values from the domain."""
    layout = _layout(tensor)
    if tensor.dtype is Dtype.bool:
        true_count = _true_elements(prototype, tensor, call) if parameter.name == "indices" else None
        return TensorSpec(
            tensor.shape,
            tensor.dtype,
            integer_values(0, 1) if true_count is None else _true_at_random(true_count),
            layout=layout,
        )
    written = CaseFacts.declared_for(prototype).scattered_tensor
    if parameter.name == "index" and written and tensor.shape:
        axis = call.arguments["dim"]
        below = call.arguments[written].shape[axis]
        return positions(*tensor.shape, below=below, distinct_along=axis, dtype=tensor.dtype, layout=layout)
    if tensor.bounds is not None and _holds_positions(prototype, parameter):
        lower, upper = tensor.bounds
        return TensorSpec(tensor.shape, tensor.dtype, integer_values(max(lower, min(0, upper)), upper), layout=layout)
    return TensorSpec(tensor.shape, tensor.dtype, domain or normal(), layout=layout)


def _true_elements(prototype: Prototype, mask: TracedTensor, call: TracedCall) -> int | None:
    """Return how many elements a mask must select, as the shape of the values tells; None if any number will do."""
    if prototype.base != "diopiIndexPut":
        return None
    target, values = (call.arguments[name].shape for name in ("input", "values"))
    if len(values) != len(target) - len(mask.shape) + 1 or values[0] == 1:
        return None  # the values are broadcast to the selected elements
    return int(values[0])


@cache
def _true_at_random(count: int) -> Domain:
    """Return a domain of `count` true elements at random positions."""

    def draw(rng: Generator, size: int, dtype: Dtype) -> NDArray[Any]:
        return rng.permutation(size) < count

    return draw


def _holds_positions(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether an integer tensor contains positions, classes or lengths instead of numbers to compute with."""
    return (
        parameter.name in prototype.argument_dtypes
        or parameter.is_tensor_array
        or not any(is_floating(dtype) for dtype in prototype.dtypes_of(parameter.name))
    )


def _layout(tensor: TracedTensor) -> Layout:
    """Return the layout of a tensor of a network."""
    return contiguous if tensor.is_dense else strides(*tensor.strides)


def _result(prototype: Prototype, call: TracedCall, name: str, value: Any) -> ResultOverride | None:
    """Return what the caller passes for a result; the results of an array have the same shape and type."""
    if isinstance(value, list):
        return ResultOverride()
    if value is None:
        return None
    usual = prototype.infer(name, call.arguments, otherwise=call.dtype)
    dtype_override = None if usual is value.dtype else value.dtype
    return ResultOverride(dtype_override, _layout(value), value.shape)

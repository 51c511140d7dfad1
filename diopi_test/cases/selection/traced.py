"""Cases that repeat calls of networks (`diopi_test.traces`), with the same shapes, types, strides and attributes.

The values are new. They are drawn from the domains of one of the function's own cases, the *donor*, which is the case
that is most similar to the call. Indices, classes and lengths lie in the range that they had in the network. Arguments
of a gradient that a forward function saves are computed by this function for the other arguments of the case.
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
    """Return the cases of a function that repeat the calls of networks.

    Args:
        prototype: The prototype of the function.
        names: The names of the networks; None for all.

    Returns:
        The cases in the order of their labels, one for all equal calls.
    """
    load_families("diopi_test.cases")
    donors = [case for case in registered_cases(prototype) if _can_lend_domains(case)]
    return [_case(prototype, call, donors) for _, call in sorted(_calls(prototype.name, names).items())]


def model_keys(prototype: Prototype, names: Iterable[str] | None = None) -> Sequence[str]:
    """Return the calls of a function as texts, on which its cases depend besides sources.

    Args:
        prototype: The prototype of the function.
        names: The names of the networks; None for all.

    Returns:
        One text per call.
    """
    return [call.key for call in _calls(prototype.name, names).values()]


def _calls(function: str, names: Iterable[str] | None) -> Mapping[str, TracedCall]:
    """Return the calls of a function that these networks make, by label; None for `names` means all networks."""
    chosen = model_names() if names is None else names
    return {label: call for name in chosen for label, call in shipped_calls(name).get(function, {}).items()}


def _can_lend_domains(case: Case) -> bool:
    """Return whether a case can be a donor: its class and label show that its values are ordinary."""
    odd = ("special", "ends", "nan", "infin", "large", "huge", "tiny", "masked", "all-", "ties", "empty")
    usual = (CaseClass.basic, CaseClass.types, CaseClass.layout, CaseClass.optional)
    return (
        not case.exact
        and not case.non_discriminating
        and case.case_class in usual
        and not any(word in case.label for word in odd)
    )


def _case(prototype: Prototype, call: TracedCall, donors: Sequence[Case]) -> Case:
    """Return the case that repeats a call of a network, with the domains of the most similar of `donors`."""
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
    """Return a sort key that is larger the more similar a case is to a call.

    In order of precedence, it counts the arguments that are tensors in both or in neither, the equal attributes and the
    drawn tensors. Then it prefers cases with the element type of the call, and smoke cases.
    """
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
    """Return an argument of the case for a call. A tensor gets the domain that the argument has in the donor."""
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
    """Return a tensor argument with the shape, type and layout that it had in the network.

    Args:
        prototype: The prototype of the function.
        parameter: The parameter.
        tensor: The tensor in the network.
        call: The call.
        domain: The domain of numbers; None for normally distributed numbers. Masks, and tensors of positions, classes
            or lengths get other domains.

    Returns:
        The tensor.
    """
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
        axis_length = call.arguments[written].shape[axis]
        return positions(*tensor.shape, end=axis_length, distinct_along=axis, dtype=tensor.dtype, layout=layout)
    if tensor.bounds is not None and _holds_positions(prototype, parameter):
        lower, upper = tensor.bounds
        return TensorSpec(tensor.shape, tensor.dtype, integer_values(max(lower, min(0, upper)), upper), layout=layout)
    return TensorSpec(tensor.shape, tensor.dtype, domain or normal(), layout=layout)


def _true_elements(prototype: Prototype, mask: TracedTensor, call: TracedCall) -> int | None:
    """Return the number of elements that a mask must select, which follows from the shape of the argument `values`.

    Return None if any number is valid. Only `diopiIndexPut` prescribes the number.
    """
    if prototype.base != "diopiIndexPut":
        return None
    target, values = (call.arguments[name].shape for name in ("input", "values"))
    if len(values) != len(target) - len(mask.shape) + 1 or values[0] == 1:
        return None  # the values are broadcast to the selected elements
    return int(values[0])


@cache
def _true_at_random(count: int) -> Domain:
    """Return a domain of truth values of which exactly `count` are true, at random positions."""

    def draw(rng: Generator, size: int, dtype: Dtype) -> NDArray[Any]:
        return rng.permutation(size) < count

    return draw


def _holds_positions(prototype: Prototype, parameter: Parameter) -> bool:
    """Return whether a parameter takes positions, classes or lengths rather than numbers with which to compute."""
    return (
        parameter.name in prototype.argument_dtypes
        or parameter.is_tensor_array
        or not any(is_floating(dtype) for dtype in prototype.dtypes_of(parameter.name))
    )


def _layout(tensor: TracedTensor) -> Layout:
    """Return the layout that a tensor had in the network."""
    return contiguous if tensor.is_dense else strides(*tensor.strides)


def _result(prototype: Prototype, call: TracedCall, name: str, value: Any) -> ResultOverride | None:
    """Return the `ResultOverride` for a result of a call; the default override for a list, None if it was omitted."""
    if isinstance(value, list):
        return ResultOverride()
    if value is None:
        return None
    usual = prototype.infer(name, call.arguments, default=call.dtype)
    dtype_override = None if usual is value.dtype else value.dtype
    return ResultOverride(dtype_override, _layout(value), value.shape)

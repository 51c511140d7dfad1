"""Gradients of calls: the gradient of a case's call is a case of the backward function that the prototype names.

The case of the gradient takes the tensors and attributes of the forward call. An argument that is a result of the
forward call is described by `ResultOf`, and computed from these when a run needs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from diopi_proto.facts import HoldsZeros
from diopi_proto.interface import lookup, prototypes
from diopi_proto.parameters import Parameter, Size
from diopi_proto.prototype import Prototype
from diopi_test.baseline.descriptions import PendingTensor
from diopi_test.baseline.named_domains import NamedDomain
from diopi_test.cases.case import Case, ResultOf, ResultOverride, TensorSpec
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import contiguous
from diopi_test.original.attributes import convert_attribute, default_of
from diopi_test.original.entries import EntryError
from diopi_test.original.values import NORMAL

GRADIENT_ARGUMENTS: Mapping[str, str] = {
    "grad_output": "",
    "grad_out": "",
    "grad": "",
    "grad_x": "out",
    "grad_cloned_mat": "cloned_mat",
}
"""The arguments that are gradients of results, each with the name of its result; "" stands for the first result."""

SIZES: Mapping[tuple[str, str], Callable[[Mapping[str, Any]], Any]] = {
    ("diopiEmbeddingBackward", "num_weights"): lambda arguments: arguments["weight"].shape[0],
    ("diopiSortBackward", "sizes"): lambda arguments: arguments["input"].shape,
    **{
        (f"diopiUpsample{kind}Backward", name): size
        for kind in ("Nearest", "Linear")
        for name, size in (
            ("out_size", lambda arguments: arguments["size"]),
            ("in_size", lambda arguments: arguments["input"].shape),
        )
    },
}
"""For attributes of backward functions that are sizes, by function and name: their values, given the arguments of the
forward call.
"""


def gradient_of(forward: Prototype) -> str | None:
    """Return the name of the backward function of a function, or None.

    A pooling function may have the backward function of its form with indices.
    """
    with_indices = prototypes().get(f"{forward.name}WithIndices")
    return forward.backward or (with_indices.backward if with_indices else None)


def gradient_case(forward: Prototype, case: Case) -> tuple[Prototype, Case]:
    """Return the case of the gradient of a call, without computing the results of the call.

    Args:
        forward: The function that is called.
        case: The case of the call.

    Returns:
        The backward function and its case.

    Raises:
        EntryError: The call does not determine an argument of the backward function.
    """
    prototype = lookup(gradient_of(forward) or "")
    plain: dict[str, Any] = {}
    saved: dict[str, Any] = {}
    hidden: dict[str, Any] = {}
    for parameter in prototype.arguments:
        result = CaseFacts.declared_for(prototype).saved.get(parameter.name) or _result_of(
            forward, prototype, parameter
        )
        if parameter.name == "indices" and case.arguments.get("mode") == "max":
            result = _positions(forward, case)
        if parameter.name in GRADIENT_ARGUMENTS:
            result = _forward_result(forward, prototype, GRADIENT_ARGUMENTS[parameter.name] or forward.results[0].name)
        if result is None:
            plain[parameter.name] = _argument(prototype, parameter, case)
            continue
        hidden_names = _forward_result(forward, prototype, result.result).argument_names
        result = replace(
            result,
            argument_names={**hidden_names, **result.argument_names},
            extra_arguments={**result.extra_arguments, **_attributes(case)},
        )
        saved[parameter.name] = _tensor(forward, case, result, is_gradient=parameter.name in GRADIENT_ARGUMENTS)
        named = {name: result.argument_names.get(name, name) for name in case.arguments}
        hidden |= {new: _dense(case.arguments[name]) for name, new in named.items() if new.startswith("_")}
    results = {p.name: ResultOverride() for p in prototype.results}
    return prototype, Case(case.label, case.dtype, {**hidden, **plain, **saved}, results=results)


def _positions(forward: Prototype, case: Case) -> ResultOf | None:
    """Return the indices of the maxima if `forward` is a pooling with a mode; None for other functions."""
    if not forward.base.startswith("diopiPool"):
        return None
    kind = "AdaptiveMax" if case.arguments["adaptive"] else "Max"
    name = forward.base.replace("diopiPool", f"diopi{kind}Pool")
    return ResultOf(f"{name}WithIndices", "indices", {"kernel_size": "ksize"})


def _dense(value: Any) -> Any:
    """Return the argument with the contiguous layout if it is a tensor or an array of tensors, and else unchanged."""
    if isinstance(value, list):
        return [_dense(entry) for entry in value]
    return replace(value, layout=contiguous) if isinstance(value, TensorSpec) else value


def _result_of(forward: Prototype, prototype: Prototype, parameter: Parameter) -> ResultOf | None:
    """Return the result of the forward function that a backward parameter takes; None if there is none."""
    results = {p.name for p in forward.results} - {p.name for p in forward.arguments}
    name = "out" if parameter.name == "output" and "out" in results else parameter.name
    if not parameter.is_tensor or name not in results or parameter.name in GRADIENT_ARGUMENTS:
        return None
    return _forward_result(forward, prototype, name)


def _forward_result(forward: Prototype, prototype: Prototype, result: str) -> ResultOf:
    """Return the description of a result of the forward call, which the gradient's case computes.

    The gradient's case has the tensors of the forward call. Those that the backward function does not take have names
    that begin with `_`.
    """
    names = {p.name for p in prototype.arguments}
    tensors = [p.name for p in forward.arguments if p.is_tensor or p.is_tensor_array]
    return ResultOf(forward.name, result, {name: f"_{name}" for name in tensors if name not in names})


def _argument(prototype: Prototype, parameter: Parameter, case: Case) -> Any:
    """Return an argument of the backward function that is no result of the forward call.

    Args:
        prototype: The backward function.
        parameter: The parameter that takes the argument.
        case: The case of the forward call.

    Returns:
        The argument of the forward case with the same name or meaning, or zeros for a tensor to which the function adds
        the gradient. Other arguments are a size, None if optional, or a default value.

    Raises:
        EntryError: The forward call does not determine the argument.
    """
    name, arguments = parameter.name, case.arguments
    if name in arguments:
        return arguments[name]
    if name == "self" and "input" in arguments:
        return arguments["input"]
    if size := SIZES.get((prototype.name, name)):
        return size(arguments)
    if isinstance(value := arguments.get(f"{name}s"), TensorSpec) and parameter.is_tensor:
        return value
    if isinstance(like := arguments.get(re.sub("^(grad|zeros_like)_", "", name)), TensorSpec) and _holds_zeros(
        name, parameter
    ):
        return TensorSpec(like.shape, like.dtype, NamedDomain("constant", (0,)))
    sized = arguments.get(name.removesuffix("_sizes")) if name.endswith("_sizes") else None
    if issubclass(parameter.annotation, Size) and (isinstance(sized, TensorSpec) or parameter.optional):
        return sized.shape if isinstance(sized, TensorSpec) else None
    if parameter.optional:
        return None
    if parameter.is_tensor or parameter.is_tensor_array:
        raise EntryError(f"the gradient {prototype.name} needs {name}, which the call does not determine")
    return convert_attribute(prototype, parameter, default_of(prototype.name, name))


def _holds_zeros(name: str, parameter: Parameter) -> bool:
    """Return whether the caller fills the tensor with zeros and the function adds the gradient to it."""
    return parameter.is_tensor and (parameter.fact(HoldsZeros) is not None or name.startswith("zeros_like_"))


def _attributes(case: Case) -> Mapping[str, Any]:
    """Return the arguments of the forward call that are neither tensors nor arrays; omitted tensors are among them."""
    return {name: value for name, value in case.arguments.items() if not isinstance(value, TensorSpec | list)}


def _tensor(forward: Prototype, case: Case, result: ResultOf, *, is_gradient: bool) -> Any:
    """Return a tensor argument of the backward function.

    Args:
        forward: The forward function.
        case: The case of the forward call.
        result: The result of the forward call that determines the shape.
        is_gradient: Whether the argument is the gradient of this result, which is drawn at random, and not the result.

    Returns:
        The tensor; a `PendingTensor` if the shape is unknown before the result is computed.
    """
    override = case.results.get(result.result) if result.function == forward.name else None
    if override is None or override.shape is None:
        return PendingTensor(result, NORMAL if is_gradient else None)
    if is_gradient:
        return TensorSpec(override.shape, case.dtype, NORMAL)
    return TensorSpec(override.shape, case.dtype, compute=result)

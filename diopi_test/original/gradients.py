"""The gradient of a call: a case of the function that the prototype names for it."""

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
from diopi_test.cases.layouts import contiguous
from diopi_test.cases.model import Case, ResultOf, ResultOverride, TensorSpec
from diopi_test.cases.models import SAVED
from diopi_test.cases.named_domains import NamedDomain
from diopi_test.original.attributes import converted, usual
from diopi_test.original.entries import EntryError
from diopi_test.original.values import NORMAL

DRIVING: Mapping[str, str] = {
    "grad_output": "",
    "grad_out": "",
    "grad": "",
    "grad_x": "out",
    "grad_cloned_mat": "cloned_mat",
}
"""The arguments that are gradients of a result, by name, and the result; "" for the first one."""

SAVED_ALSO: Mapping[str, Mapping[str, ResultOf]] = {
    **SAVED,
    **{
        f"diopi{kind}Backward": {"indices": ResultOf(f"diopi{kind}WithIndices", "indices")}
        for kind in ("MaxPool1d", "AdaptiveMaxPool1d", "AdaptiveMaxPool3d")
    },
    "diopiCholeskyBackward": {"L": ResultOf("diopiCholesky")},
    "diopiNormBackward": {"norm": ResultOf("diopiNorm", argument_names={"input": "self"})},
    "diopiTriangularSolveBackward": {"x": ResultOf("diopiTriangularSolve")},
}
"""By gradient function, the arguments that are results of the call: of those that networks call, and of others."""

SIZES: Mapping[tuple[str, str], Callable[[Mapping[str, Any]], Any]] = {
    ("diopiEmbeddingBackward", "num_weights"): lambda given: given["weight"].shape[0],
    ("diopiSortBackward", "sizes"): lambda given: given["input"].shape,
    **{
        (f"diopiUpsample{kind}Backward", name): size
        for kind in ("Nearest", "Linear")
        for name, size in (
            ("out_size", lambda given: given["size"]),
            ("in_size", lambda given: given["input"].shape),
        )
    },
}
"""Attributes of gradients that are sizes of the call, by function and name."""


def gradient_of(forward: Prototype) -> str | None:
    """The function that computes a function's gradient; that of a pooling takes the positions another form gives."""
    with_indices = prototypes().get(f"{forward.name}WithIndices")
    return forward.backward or (with_indices.backward if with_indices else None)


def gradient_case(forward: Prototype, case: Case) -> tuple[Prototype, Case]:
    """Return the case of the gradient of a call of `forward`, without computing what the call gives.

    Raises:
        EntryError: The gradient takes an argument that the call does not say.
    """
    prototype = lookup(gradient_of(forward) or "")
    drawn: dict[str, Any] = {}
    saved: dict[str, Any] = {}
    hidden: dict[str, Any] = {}
    for parameter in prototype.arguments:
        rule = SAVED_ALSO.get(prototype.name, {}).get(parameter.name) or _result_of(forward, prototype, parameter)
        if parameter.name == "indices" and case.arguments.get("mode") == "max":
            rule = _positions(forward, case)
        if parameter.name in DRIVING:
            rule = _rule(forward, prototype, DRIVING[parameter.name] or forward.results[0].name)
        if rule is None:
            drawn[parameter.name] = _argument(prototype, parameter, case)
            continue
        hidden_names = _rule(forward, prototype, rule.result).argument_names
        rule = replace(
            rule,
            argument_names={**hidden_names, **rule.argument_names},
            extra_arguments={**rule.extra_arguments, **_attributes(forward, case)},
        )
        saved[parameter.name] = _tensor(forward, case, rule, is_driving=parameter.name in DRIVING)
        named = {name: rule.argument_names.get(name, name) for name in case.arguments}
        hidden |= {new: _dense(case.arguments[name]) for name, new in named.items() if new.startswith("_")}
    results = {p.name: ResultOverride() for p in prototype.results}
    return prototype, Case(case.label, case.dtype, {**hidden, **drawn, **saved}, results)


def _positions(forward: Prototype, case: Case) -> ResultOf | None:
    """Return the positions of the maxima of a pooling that its attributes choose; None if it is no such pooling."""
    if not forward.base.startswith("diopiPool"):
        return None
    kind = "AdaptiveMax" if case.arguments["adaptive"] else "Max"
    name = forward.base.replace("diopiPool", f"diopi{kind}Pool")
    return ResultOf(f"{name}WithIndices", "indices", {"kernel_size": "ksize"})


def _dense(value: Any) -> Any:
    """Return a tensor argument, or an array of them, that lies row by row."""
    if isinstance(value, list):
        return [_dense(entry) for entry in value]
    return replace(value, layout=contiguous) if isinstance(value, TensorSpec) else value


def _result_of(forward: Prototype, prototype: Prototype, parameter: Parameter) -> ResultOf | None:
    """The forward function's result that a gradient takes as an argument; None if it is none."""
    results = {p.name for p in forward.results} - {p.name for p in forward.arguments}
    name = "out" if parameter.name == "output" and "out" in results else parameter.name
    if not parameter.is_tensor or name not in results or parameter.name in DRIVING:
        return None
    return _rule(forward, prototype, name)


def _rule(forward: Prototype, prototype: Prototype, result: str) -> ResultOf:
    """Return a result of the call; tensors that the gradient does not take have names that begin with `_`."""
    names = {p.name for p in prototype.arguments}
    tensors = [p.name for p in forward.arguments if p.is_tensor or p.is_tensor_array]
    return ResultOf(forward.name, result, {name: f"_{name}" for name in tensors if name not in names})


def _argument(prototype: Prototype, parameter: Parameter, case: Case) -> Any:
    name, given = parameter.name, case.arguments
    if name in given:
        return given[name]
    if name == "self" and "input" in given:
        return given["input"]
    if size := SIZES.get((prototype.name, name)):
        return size(given)
    if isinstance(found := given.get(f"{name}s"), TensorSpec) and parameter.is_tensor:
        return found
    if isinstance(like := given.get(re.sub("^(grad|zeros_like)_", "", name)), TensorSpec) and _holds_zeros(
        name, parameter
    ):
        return TensorSpec(like.shape, like.dtype, NamedDomain("constant", (0,)))
    sized = given.get(name.removesuffix("_sizes")) if name.endswith("_sizes") else None
    if issubclass(parameter.annotation, Size) and (isinstance(sized, TensorSpec) or parameter.optional):
        return sized.shape if isinstance(sized, TensorSpec) else None
    if parameter.optional:
        return None
    if parameter.is_tensor or parameter.is_tensor_array:
        raise EntryError(f"its gradient {prototype.name} takes {name}, which the call does not say")
    return converted(prototype, parameter, usual(prototype.name, name))


def _holds_zeros(name: str, parameter: Parameter) -> bool:
    """Whether the caller fills the tensor with zeros, which the gradient is added to."""
    return parameter.is_tensor and (parameter.fact(HoldsZeros) is not None or name.startswith("zeros_like_"))


def _attributes(forward: Prototype, case: Case) -> Mapping[str, Any]:
    """The arguments of the call that are no tensors, and None for the tensors that it leaves out."""
    return {name: value for name, value in case.arguments.items() if not isinstance(value, TensorSpec | list)}


def _tensor(forward: Prototype, case: Case, rule: ResultOf, *, is_driving: bool) -> Any:
    """Return the tensor that holds a result of the call, or a gradient of it; its shape may have to be computed."""
    override = case.results.get(rule.result) if rule.function == forward.name else None
    if override is None or override.shape is None:
        return PendingTensor(rule, NORMAL if is_driving else None)
    if is_driving:
        return TensorSpec(override.shape, case.dtype, NORMAL)
    return TensorSpec(override.shape, case.dtype, compute=rule)

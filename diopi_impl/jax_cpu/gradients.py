"""Gradient functions that follow from their forward functions by automatic differentiation.

A gradient is derived if it is about as good as a hand-written function: its cases pass with at most 1.1 times the
error, and its calls take no longer, at the sizes of the cases and of models. `benchmarks/derived_gradients.py` measures
both.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, final

import jax
import jax.numpy as jnp

from diopi_impl.vendor import Vendor
from diopi_proto.implementations import declared_parameters
from diopi_proto.interface import lookup, prototypes


@final
@dataclass(frozen=True, kw_only=True)
class Derivation:
    """The mapping of the arguments of a gradient function to the arguments of its forward function.

    Attributes:
        inputs: the differentiated arguments of the forward function, one per result of the gradient function.
        gradient: the argument of the gradient function that is the gradient of the forward function's first result.
        shape: the argument that has or is the shape of the only differentiated input. It is set if the gradient
            function does not take this input, because the forward function is linear.
        names: for each argument of the forward function with another name in the gradient function, that name.
        constants: values of the forward function's arguments that the gradient does not depend on.
    """

    inputs: tuple[str, ...] = ("input",)
    gradient: str = "grad_output"
    shape: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)


SIMPLE = Derivation()
"""The derivation of a gradient by `input` that takes the arguments of the forward function under the same names."""

DERIVED: Mapping[str, Derivation] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "diopiAvgPool1dBackward",
                "diopiAvgPool2dBackward",
                "diopiAvgPool3dBackward",
                "diopiBCEWithLogitsBackward",
                "diopiCrossEntropyLossBackward",
                "diopiGeluBackward",
                "diopiMSELossBackward",
                "diopiNLLLossBackward",
                "diopiSiluBackward",
            ),
            SIMPLE,
        ),
        "diopiCorrelationBackwardMmcv": Derivation(inputs=("input1", "input2")),
        "diopiDeformConvBackwardInputMmcv": Derivation(inputs=("input", "offset"), gradient="gradOutput"),
        **dict.fromkeys(
            ("diopiGatherPointsBackwardMmcv", "diopiGroupPointsBackwardMmcv"),
            Derivation(inputs=("points",), gradient="grad_out", shape="grad_points"),
        ),
        "diopiMatmulBackward": Derivation(inputs=("input", "other"), gradient="grad_out"),
        "diopiMsDeformAttnBackwardMmcv": Derivation(inputs=("value", "sampling_loc", "attn_weight")),
        "diopiRotatedFeatureAlignBackwardMmcv": Derivation(
            inputs=("features",), gradient="top_grad", shape="bottom_grad"
        ),
        "diopiUnfoldBackward": Derivation(shape="input_sizes"),
        **dict.fromkeys(
            ("diopiUpsampleLinearBackward", "diopiUpsampleNearestBackward"),
            Derivation(shape="in_size", names={"size": "out_size"}),
        ),
    }
)
"""The derived gradient functions, each with the mapping of its arguments."""


def derive_gradients(vendor: Vendor) -> None:
    """Register the derived gradient functions of a vendor whose forward functions are registered."""
    for name, derivation in DERIVED.items():
        vendor.implements(name)(derive_gradient(name, derivation, vendor))


def derive_gradient(name: str, derivation: Derivation, vendor: Vendor) -> Callable[..., Any]:
    """Return an implementation of a gradient function that differentiates the vendor's forward function.

    Args:
        name: the gradient function.
        derivation: the mapping of its arguments to the arguments of the forward function.
        vendor: the vendor that implements the forward function.

    Returns:
        A function of the arguments that the derivation needs. Its `__module__` is the module of the forward function.
    """
    forward_name = _forward_names()[name]
    forward, prototype = vendor.function(forward_name), lookup(forward_name)
    declared = declared_parameters(forward, forward_name, [p.name for p in prototype.arguments])
    parameters = [parameter for parameter in declared if parameter not in derivation.constants]
    passed = {p: derivation.names.get(p, p) for p in parameters if not (derivation.shape and p in derivation.inputs)}
    names = list(dict.fromkeys([derivation.gradient, *passed.values(), *filter(None, [derivation.shape])]))
    parameter_kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, parameter_kind) for name in names])

    def gradient(*values: Any, **named: Any) -> Any:
        """Return the gradients of the differentiated inputs."""
        arguments = signature.bind(*values, **named).arguments
        grad = arguments[derivation.gradient]
        attributes = {**derivation.constants, **{parameter: arguments[source] for parameter, source in passed.items()}}
        inputs = _take_inputs(derivation, attributes, arguments)

        def first_result(*inputs: Any) -> Any:
            """Return the first result of the forward function for these differentiated inputs."""
            results = forward(**attributes, **dict(zip(derivation.inputs, inputs, strict=True)))
            return results if len(prototype.results) == 1 else results[0]

        result, pull_back = jax.vjp(first_result, *inputs)
        gradients = [_conjugate(slope) for slope in pull_back(_conjugate(grad.astype(result.dtype)))]
        return gradients[0] if len(gradients) == 1 else gradients

    gradient.__module__ = inspect.unwrap(forward).__module__
    gradient.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    return gradient


def _take_inputs(
    derivation: Derivation, attributes: dict[str, Any], arguments: Mapping[str, Any]
) -> Sequence[jax.Array]:
    """Return the differentiated inputs of the forward function, and remove them from its other arguments.

    Args:
        derivation: the mapping of the arguments.
        attributes: the arguments of the forward function by name.
        arguments: the arguments of the gradient function by name.

    Returns:
        The differentiated inputs: zeros if the gradient function has only their shape.
    """
    if derivation.shape:
        size = arguments[derivation.shape]
        return [jnp.zeros(getattr(size, "shape", size), arguments[derivation.gradient].dtype)]
    return [attributes.pop(parameter) for parameter in derivation.inputs]


@cache
def _forward_names() -> Mapping[str, str]:
    """Return the name of the forward function of each gradient function."""
    return {p.backward: p.name for p in prototypes().values() if p.backward and p.form == "plain"}


def _conjugate(array: Any) -> Any:
    """Return the conjugate of complex numbers: JAX's gradients are the conjugates of the standard's gradients."""
    return array if array is None else jnp.conj(array)

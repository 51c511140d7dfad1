"""Translation of a call of a function to a call of an ATen operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch

from diopi_impl.aten_cpu.equivalents import Equivalent
from diopi_impl.base import Box
from diopi_proto import parameters as kinds
from diopi_proto.aten.table import Constant, sourced_arguments
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Reduction, RoundMode, Scalar
from lib_rt import Generator, Tensor

NUMBERS = (bool, int, float)
"""The Python types of numbers that operators take."""


class NoEquivalentError(Exception):
    """No call of the operator is equivalent to the call of the function."""


@dataclass(frozen=True)
class TorchCall:
    """A call of a function, with tensors of PyTorch.

    Attributes:
        prototype: the function.
        values: the values of the parameters by name; tensors share the memory of the caller's tensors; None for boxes.
        generators: the caller's generators, by name.
    """

    prototype: Prototype
    values: Mapping[str, Any]
    generators: Mapping[str, Generator | None]

    @property
    def results(self) -> list[Any]:
        """The tensors, or lists of tensors, that the caller allocated for the results."""
        return [self.values[p.name] for p in self.prototype.results]

    @property
    def first_result(self) -> torch.Tensor:
        """The first tensor that the caller allocated for a result; NoEquivalentError if there is none."""
        for value in self.results:
            for tensor in value if isinstance(value, list) else [value]:
                if isinstance(tensor, torch.Tensor):
                    return tensor
        raise NoEquivalentError("the caller allocated no result")

    def check_mask(self) -> None:
        """Raise NoEquivalentError if the mask of dropout is broadcast, which native_dropout does not support."""
        mask = self.values.get("mask")
        if self.generators and mask is not None and mask.shape != self.values["input"].shape:
            raise NoEquivalentError("native_dropout draws for each element")

    def seed(self) -> None:
        """Seed PyTorch's default generator from the caller's generator, if any, and advance the caller's offset."""
        for source in self.generators.values():
            if source is not None and self.values.get("train", True):
                (seed,) = np.random.SeedSequence([source.seed, source.offset]).generate_state(1)
                torch.manual_seed(int(seed))
                source.offset += max(self.first_result.numel(), 1)


def function_call(prototype: Prototype, values: Sequence[Any]) -> TorchCall:
    """Return the call of a function with these values, as `BaseVendor.call` receives them."""
    named = dict(zip((p.name for p in prototype.parameters[1:]), values, strict=True))
    generators = {name: value for name, value in named.items() if _is_generator(prototype.parameter(name))}
    return TorchCall(prototype, {name: _to_torch(value) for name, value in named.items()}, generators)


def bind(call: TorchCall, equivalent: Equivalent, operator: Any) -> dict[str, Any]:
    """Return the operator's arguments by name; raise NoEquivalentError if it has no equivalent call."""
    schema = operator._schema
    names = [argument.name for argument in schema.arguments]
    values = {**_operator_arguments(call, equivalent, names), **equivalent.constants}
    bound = {}
    for argument in schema.arguments:
        if argument.name in values and not _is_default(argument, values[argument.name]):
            bound[argument.name] = values[argument.name]
        elif argument.alias_info is not None and argument.alias_info.is_write:
            bound[argument.name] = call.first_result
        elif equivalent.is_gradient and argument.name == "self":
            bound[argument.name] = torch.zeros_like(call.first_result)
        elif derive := DERIVED.get(argument.name):
            bound[argument.name] = derive(call)
        elif not argument.has_default_value():
            raise NoEquivalentError(f"{schema.name} needs {argument.name}")
        if str(argument.type) == "Tensor" and isinstance(bound.get(argument.name), NUMBERS):
            bound[argument.name] = torch.tensor(bound[argument.name])  # PyTorch passes numbers as 0-d tensors, too
        if argument.name in bound and not _has_declared_type(str(argument.type), bound[argument.name]):
            raise NoEquivalentError(f"{schema.name} takes no such {argument.name}")
    return bound


def _operator_arguments(call: TorchCall, equivalent: Equivalent, names: Sequence[str]) -> dict[str, Any]:
    """Return the operator's arguments, by name, that follow from the function's arguments.

    Raises:
        NoEquivalentError: The operator can't be called with the values of the function's arguments.
    """
    arguments = {}
    base = lookup(equivalent.row.function)
    for name in sourced_arguments(base):
        value, source = call.values[name], equivalent.row.source(name, names)
        if isinstance(source, Constant):
            if _as_constant(source.value) != _as_constant(value):
                raise NoEquivalentError(f"{name} is not {source.value!r}")
        elif source.as_tensor:
            raise NoEquivalentError(f"{name} is a tensor, and the operator takes a number")
        elif source.name in names:
            arguments[source.name] = value
        elif not equivalent.is_gradient and value is not None:
            raise NoEquivalentError(f"the operator has no {source.name}")
    return arguments


def _is_default(argument: Any, value: Any) -> bool:
    """Return whether an omitted argument must use the operator's default because the operator rejects None."""
    return value is None and argument.has_default_value() and not str(argument.type).startswith("Optional")


def _as_constant(value: Any) -> Any:
    """Return a value in the form in which the table writes constants."""
    if isinstance(value, Reduction):
        return value.name
    return tuple(value) if isinstance(value, list) else value


def _is_generator(parameter: Parameter) -> bool:
    """Return whether a parameter is a generator."""
    return isinstance(parameter.annotation, type) and issubclass(parameter.annotation, kinds.Generator)


def _to_torch(value: Any) -> Any:
    """Return tensors as tensors of PyTorch over the same memory, and attributes as operators take them."""
    if isinstance(value, Tensor):
        return _tensor(value)
    if isinstance(value, list):
        return [_to_torch(entry) for entry in value]
    if isinstance(value, Scalar):
        return value.number
    if isinstance(value, RoundMode):
        return None if value is RoundMode.none else value.name
    return None if isinstance(value, Box | Generator) else value


def _tensor(tensor: Tensor) -> torch.Tensor:
    """Return a tensor of PyTorch over the same memory; raise NoEquivalentError for a sparse tensor."""
    if tensor.is_sparse:
        raise NoEquivalentError("sparse tensors are not supported")
    array = tensor.view()
    if tensor.dtype is Dtype.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _keeps_axes(call: TorchCall) -> bool:
    """Return whether the result has as many axes as the first tensor."""
    tensor = next(value for p in call.prototype.arguments if isinstance(value := call.values[p.name], torch.Tensor))
    return tensor.ndim == call.first_result.ndim > 0


def _output_mask(call: TorchCall) -> list[bool]:
    """Return which results the caller requests."""
    return [value is not None for value in call.results]


def _input_shape(call: TorchCall) -> tuple[int, ...]:
    """Return the shape of the argument `input`; raise NoEquivalentError if it has no channels."""
    shape = tuple(call.values["input"].shape)
    if len(shape) < 2:
        raise NoEquivalentError("input has no channels")
    return shape


DERIVED: Mapping[str, Callable[[TorchCall], Any]] = {
    "dtype": lambda call: call.first_result.dtype,
    "keepdim": _keeps_axes,
    "size": lambda call: tuple(call.first_result.shape),
    "output_size": lambda call: tuple(call.values["grad_output"].shape[2:]),
    "output_mask": _output_mask,
    "return_inverse": lambda call: True,
    "half_to_float": lambda call: False,
    "input_dtype": lambda call: call.first_result.dtype,
    "N": lambda call: _input_shape(call)[0],
    "C": lambda call: _input_shape(call)[1],
    "HxW": lambda call: prod(_input_shape(call)[2:]),
}
"""Arguments of operators that are not arguments of a function, but follow from the call."""


def _has_declared_type(kind: str, value: Any) -> bool:
    """Return whether a value has the type that an operator declares, such as `Optional[int]` or `List[Tensor]`."""
    if kind.startswith("Optional["):
        return value is None or _has_declared_type(kind.removeprefix("Optional[").removesuffix("]"), value)
    if kind.startswith("List["):
        entry = kind.removeprefix("List[").removesuffix("]")
        return isinstance(value, list | tuple) and all(_has_declared_type(entry, element) for element in value)
    if kind not in PYTHON_TYPES:
        return True
    return isinstance(value, PYTHON_TYPES[kind])


PYTHON_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "Tensor": torch.Tensor,
    "number": NUMBERS,
    "float": NUMBERS,
    "int": (int, torch.dtype),
    "bool": bool,
    "str": str,
}
"""The Python types that PyTorch accepts for each declared type."""

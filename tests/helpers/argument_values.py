"""Distinct values for the arguments of every function.

Tests of the marshalling between Python and C (`tests/diopi_impl/test_marshalling.py`) pass these values through a
compiled library. A value that arrives at another parameter than its own is noticed, because no two are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from diopi_impl import Box
from diopi_proto import parameters as kinds
from diopi_proto import types
from diopi_proto.facts import CountsEntries
from diopi_proto.interface import prototypes
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from lib_rt import Context, Generator, Tensor

OPERATORS = [name for name, prototype in prototypes().items() if prototype.returns == "diopiError_t"]
"""All functions that return an error code, which excludes those that only return a text."""

ARRAY_LENGTH = 3
"""The length of every array of tensors and generators; see `ARRAY_LENGTH` in argument_recorder.h."""

SCALARS = (
    types.Scalar(Dtype.int64, -(2**60) - 1),
    types.Scalar(Dtype.float32, 0.25),
    types.Scalar(Dtype.bool, 1),
    types.Scalar(Dtype.uint8, 200),
    types.Scalar(Dtype.float64, -1e300),
)
"""Values for scalar parameters, of several element types."""


class ArgumentValues:
    """Values for the arguments of calls in a context.

    Attributes:
        tensors: a tensor for each position of a parameter, of shape (position + 1, 2) and filled with the position.
        generators: random generators with distinct seeds and offsets.
    """

    def __init__(self, context: Context) -> None:
        self.tensors = [
            Tensor.from_numpy(context, np.full((n + 1, 2), n, np.float32 if n % 2 else np.int32)) for n in range(40)
        ]
        self.generators = [Generator(context, seed=n, offset=2 * n) for n in range(ARRAY_LENGTH)]

    def for_call(self, prototype: Prototype, *, omit_optional: bool) -> list[Any]:
        """Return a value per parameter after the context; None for every optional parameter if `omit_optional`."""
        return [
            None if omit_optional and parameter.optional else self._value(prototype, parameter, number)
            for number, parameter in enumerate(prototype.parameters[1:])
        ]

    def _value(self, prototype: Prototype, parameter: Parameter, number: int) -> Any:
        """Return the value for a parameter; `number` is the position of the parameter after the context."""
        kind = parameter.annotation
        if kind is kinds.NewOuts:
            return [Box() for _ in prototype.result]
        if kind is kinds.InOutSize:
            return Box(-100 - number)
        if kind is kinds.NewOut or kind in kinds.OUT_VALUES:
            return Box()
        if parameter.is_tensor or kind is kinds.SparseIn:  # a sparse tensor is also passed as a single handle
            return self.tensors[number]
        if parameter.is_tensor_array:
            entries = self.tensors[number : number + ARRAY_LENGTH]
            return [entries[0], None, entries[2]] if kind is kinds.OptionalIns else entries
        if parameter.role is kinds.Role.count or parameter.fact(CountsEntries):
            return ARRAY_LENGTH
        return self._attribute(kind, number)

    def _attribute(self, kind: Any, number: int) -> Any:
        """Return the value for a parameter of this kind that is neither a tensor nor a result."""
        if issubclass(kind, kinds.Scalar):
            return SCALARS[number % len(SCALARS)]
        if issubclass(kind, kinds.Size):
            return (number, -(2**40), 7)[: number % 4]
        if issubclass(kind, kinds.boolean):
            return number % 2 == 0
        if issubclass(kind, kinds.f64 | kinds.f32):
            return number + 0.375
        return {
            kinds.Text: f"größe {number}",
            kinds.Generator: self.generators[0],
            kinds.Generators: self.generators,
            kinds.Pointer: 2**40 + number,
            types.MemoryFormat: types.MemoryFormat.ChannelsLast,
            types.Reduction: types.Reduction.sum,
            types.RoundMode: types.RoundMode.floor,
        }.get(kind, -100 - number)

"""Encode the arguments of a call for a runner in C, and derive a key that identifies the call."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import blake2b
from typing import Any, final

import numpy as np

from diopi_impl import Box
from diopi_proto import parameters as kinds
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter
from diopi_proto.types import Scalar
from diopi_test.execution.call_groups import TargetOutcomeError
from diopi_test.target.records import WordWriter
from lib_rt import Context, Generator, Tensor
from lib_rt.dtypes import poison_of

KEY_BYTES = 16
"""The size of the key of a call in bytes."""

OWNS_STORAGE, IS_SPARSE = -1, -2
"""Values for the number of the tensor whose storage a tensor shares: the tensor has its own storage; it is sparse and
consists of three other tensors."""


class ArgumentKind(IntEnum):
    """How a runner builds an argument; the values are those of `enum argument_kind` in the runner."""

    null = 0
    integer = 1
    number = 2
    size = 3
    size_pointer = 4
    integer_pointer = 5
    number_pointer = 6
    boolean_pointer = 7
    scalar = 8
    text = 9
    tensor = 10
    tensors = 11
    generator = 12
    generators = 13
    new_tensors = 14
    integer_result = 15
    number_result = 16
    boolean_result = 17


@final
@dataclass(kw_only=True)
class EncodedTensor:
    """A tensor of a call: its layout, and the part of its storage that is not poison.

    Attributes:
        tensor: the tensor.
        layout: the words that describe the layout.
        start: the position of the content in the storage, in bytes.
        content: the bytes of the storage from the first element to the last one that is not poison. Empty if all are
            poison, or if the tensor shares the storage of an earlier tensor.
    """

    tensor: Tensor
    layout: Sequence[int]
    start: int = 0
    content: bytes = b""


@final
@dataclass(kw_only=True)
class EncodedCall:
    """The arguments of a call.

    Attributes:
        function: the standard function.
        tensors: the tensors; the parts of a sparse tensor precede the sparse tensor.
        generators: the random generators, each once.
        boxes: the boxes for results that the callee creates, in order.
        arguments: the words of the arguments.
    """

    function: str
    tensors: list[EncodedTensor] = field(default_factory=list)
    generators: list[Generator] = field(default_factory=list)
    boxes: list[tuple[ArgumentKind, Box]] = field(default_factory=list)
    arguments: WordWriter = field(default_factory=WordWriter)

    def key(self, group: str) -> bytes:
        """Return the key that identifies the call. It depends on all arguments except for the states of generators.

        Args:
            group: The text that distinguishes the call from equal calls, see `name_of_call`.
        """
        digest = blake2b(f"{group}\0{self.function}\0".encode(), digest_size=KEY_BYTES)
        for encoded in self.tensors:
            digest.update(struct.pack(f"<{len(encoded.layout) + 1}q", *encoded.layout, encoded.start))
            digest.update(encoded.content)
        digest.update(self.arguments.content)
        return digest.digest()


def encode_call(function: str, context: Context, values: Sequence[Any]) -> EncodedCall:
    """Encode the arguments of a call, after all work in the stream of its context is complete.

    Args:
        function: The standard function.
        context: The context of the call.
        values: The arguments, as `BaseVendor.call` receives them.

    Returns:
        The encoded call.

    Raises:
        TargetOutcomeError: The function has a parameter that a runner can't build.
    """
    context.stream.synchronize()
    encoder = _ArgumentEncoder(EncodedCall(function=function))
    for parameter, value in zip(lookup(function).parameters[1:], values, strict=True):
        encoder.encode(parameter, value)
    return encoder.call


@final
class _ArgumentEncoder:
    """An encoder of the arguments of one call."""

    def __init__(self, call: EncodedCall) -> None:
        self.call = call
        self._indices: dict[int, int] = {}
        self._storages: dict[tuple[int, int], int] = {}

    def encode(self, parameter: Parameter, value: Any) -> None:
        """Append an argument."""
        if value is None:
            self._write(ArgumentKind.null)
            return
        kind = next(kind for kind in parameter.annotation.__mro__ if kind in _ENCODERS)
        _ENCODERS[kind](self, parameter, value)

    def _write(self, kind: ArgumentKind, *numbers: int) -> None:
        """Append the kind of an argument, and numbers."""
        self.call.arguments.numbers(kind, *numbers)

    def integer(self, parameter: Parameter, value: Any) -> None:
        """Append an integer, a truth value or a member of an enumeration."""
        by_pointer = ArgumentKind.boolean_pointer if "bool" in parameter.c_type else ArgumentKind.integer_pointer
        self._write(by_pointer if parameter.c_type.endswith("*") else ArgumentKind.integer, int(value))

    def number(self, parameter: Parameter, value: Any) -> None:
        """Append a floating-point number."""
        self._write(ArgumentKind.number_pointer if parameter.c_type.endswith("*") else ArgumentKind.number)
        self.call.arguments.double(float(value))

    def size(self, parameter: Parameter, value: Any) -> None:
        """Append a list of integers."""
        is_pointer = parameter.c_type.endswith("*")
        self._write(ArgumentKind.size_pointer if is_pointer else ArgumentKind.size, len(value), *map(int, value))

    def scalar(self, parameter: Parameter, value: Any) -> None:
        """Append a number with its element type."""
        scalar = value if isinstance(value, Scalar) else Scalar.from_number(value)
        self._write(ArgumentKind.scalar, scalar.dtype)
        if scalar.is_integer:
            self._write_integer(int(scalar.value))
        else:
            self.call.arguments.double(float(scalar.value))

    def _write_integer(self, value: int) -> None:
        """Append an integer of 64 bits."""
        self.call.arguments.numbers(value)

    def text(self, parameter: Parameter, value: Any) -> None:
        """Append a text."""
        self._write(ArgumentKind.text)
        self.call.arguments.text(value)

    def tensor(self, parameter: Parameter, value: Any) -> None:
        """Append a tensor."""
        self._write(ArgumentKind.tensor, self._index(value))

    def tensors(self, parameter: Parameter, value: Any) -> None:
        """Append an array of tensors."""
        indices = [-1 if tensor is None else self._index(tensor) for tensor in value]
        self._write(ArgumentKind.tensors, len(indices), *indices)

    def generator(self, parameter: Parameter, value: Any) -> None:
        """Append a generator."""
        self._write(ArgumentKind.generator, self._generator_index(value))

    def generators(self, parameter: Parameter, value: Any) -> None:
        """Append an array of generators."""
        indices = [self._generator_index(generator) for generator in value]
        self._write(ArgumentKind.generators, len(indices), *indices)

    def _generator_index(self, generator: Generator) -> int:
        """Return the index of a generator in the call; add the generator if it is new."""
        if generator not in self.call.generators:
            self.call.generators.append(generator)
        return self.call.generators.index(generator)

    def new_tensors(self, parameter: Parameter, value: Any) -> None:
        """Append the place for a tensor that the callee allocates, or for several."""
        boxes = value if isinstance(value, list) else [value]
        self._write(ArgumentKind.new_tensors, len(boxes))
        self.call.boxes += [(ArgumentKind.new_tensors, box) for box in boxes]

    def result(self, parameter: Parameter, value: Any) -> None:
        """Append the place for a number that the callee returns, with the number that is there before the call."""
        kind = _RESULT_KINDS[parameter.annotation]
        self._write(kind, int(value.value or 0))
        self.call.boxes.append((kind, value))

    def unsupported(self, parameter: Parameter, value: Any) -> None:
        """Raise TargetOutcomeError, because a bundle has no addresses."""
        raise TargetOutcomeError.not_run(
            f"a bundle can't contain the address {parameter.c_name} of {self.call.function}"
        )

    def _index(self, tensor: Tensor) -> int:
        """Return the index of a tensor in the call; add the tensor if it is new."""
        identity = id(tensor)
        if identity not in self._indices:
            encoded = self._encode_sparse(tensor) if tensor.is_sparse else self._encode_dense(tensor)
            self._indices[identity] = len(self.call.tensors)
            self.call.tensors.append(encoded)
        return self._indices[identity]

    def _encode_sparse(self, tensor: Tensor) -> EncodedTensor:
        """Return a sparse tensor, whose parts precede it."""
        parts = [self._index(part) for part in tensor.parts]
        return EncodedTensor(tensor=tensor, layout=[tensor.dtype, 0, IS_SPARSE, 2, 0, 0, *tensor.shape, *parts])

    def _encode_dense(self, tensor: Tensor) -> EncodedTensor:
        """Return a tensor with a storage, or one that shares the storage of an earlier tensor."""
        nbytes = tensor.storage_nbytes
        place = (tensor.storage_ptr, nbytes)
        base = self._storages.get(place, OWNS_STORAGE)
        self._storages.setdefault(place, len(self.call.tensors))
        layout = [
            *(tensor.dtype, tensor.memory_kind, base, len(tensor.shape), tensor.storage_offset),
            nbytes // tensor.element_size,
            *(*tensor.shape, *tensor.strides),
        ]
        if base != OWNS_STORAGE:
            return EncodedTensor(tensor=tensor, layout=layout)
        start, content = _find_content(tensor, nbytes)
        return EncodedTensor(tensor=tensor, layout=layout, start=start, content=content)


def _find_content(tensor: Tensor, nbytes: int) -> tuple[int, bytes]:
    """Return the position and the bytes of a storage's part from the first to the last element that is not poison."""
    storage = tensor.storage_view()
    poison = poison_of(tensor.dtype)
    size, content = len(poison), storage.tobytes()
    if content == poison * (nbytes // size):
        return 0, b""
    if content[:size] != poison and content[-size:] != poison:
        return 0, content
    elements = storage.reshape(nbytes // size, size)
    written = np.flatnonzero((elements != np.frombuffer(poison, np.uint8)).any(axis=1))
    start, end = int(written[0]) * size, (int(written[-1]) + 1) * size
    return start, content[start:end]


_Encode = Callable[[_ArgumentEncoder, Parameter, Any], None]
"""A function that appends an argument of a parameter to an encoded call."""

_ENCODERS: dict[Any, _Encode] = {
    **dict.fromkeys(kinds.SINGLE_TENSORS, _ArgumentEncoder.tensor),
    **dict.fromkeys(kinds.TENSOR_ARRAYS, _ArgumentEncoder.tensors),
    kinds.SparseIn: _ArgumentEncoder.tensor,
    **dict.fromkeys((kinds.NewOut, kinds.NewOuts), _ArgumentEncoder.new_tensors),
    **dict.fromkeys(kinds.OUT_VALUES, _ArgumentEncoder.result),
    kinds.Size: _ArgumentEncoder.size,
    kinds.Scalar: _ArgumentEncoder.scalar,
    kinds.Text: _ArgumentEncoder.text,
    kinds.Generator: _ArgumentEncoder.generator,
    kinds.Generators: _ArgumentEncoder.generators,
    kinds.Pointer: _ArgumentEncoder.unsupported,
    **dict.fromkeys((kinds.f64, kinds.f32), _ArgumentEncoder.number),
    object: _ArgumentEncoder.integer,
}
"""The methods that encode arguments, by annotation of the parameter. A derived class of annotations uses the method of
its nearest base class."""

_RESULT_KINDS = {
    kinds.OutF64: ArgumentKind.number_result,
    kinds.OutI64: ArgumentKind.integer_result,
    kinds.InOutSize: ArgumentKind.integer_result,
    kinds.OutBool: ArgumentKind.boolean_result,
}
"""The kinds of numbers that a call returns by pointer."""

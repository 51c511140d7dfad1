"""The values that a call passes for its parameters: tensors on the device, boxes, generators and attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_impl import Box
from diopi_proto import parameters as kinds
from diopi_proto import types
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_proto.types import Dtype, MemoryFormat, Reduction, RoundMode, Scalar
from diopi_test.cases.layouts import Placement, different_layout, layout_named
from diopi_test.execution.call_record import Bytes
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected, SharedStorage
from lib_rt import Context, Generator, Tensor
from lib_rt.dtypes import poisoned_array, to_numpy
from lib_rt.layout import storage_image

SHIFT_BYTES = 256
"""Additional offset in bytes of tensors at other addresses; no vendor's kernels require a larger alignment."""


@final
@dataclass(frozen=True)
class CallMode:
    """The way in which a call is executed.

    Attributes:
        shifted: whether the tensors have a larger offset in their storages than their layouts specify.
        queued: whether the copies of the inputs are still in the stream's queue, behind other copies, during the call.
        relaid: whether the elements of the inputs are in another order, or have gaps that the case does not have.
    """

    shifted: bool = False
    queued: bool = False
    relaid: bool = False


PLAIN = CallMode()
"""The mode of a call that is executed as the case describes it."""


@final
@dataclass(kw_only=True)
class PlacedTensor:
    """A tensor of the call.

    Attributes:
        name: the name of the parameter, with `.number` for an entry of an array.
        role: whether the call reads the tensor, writes it, or both.
        tensor: the tensor on the device.
        before: the bytes of its storage before the call; None if the callee allocates it.
        expected: the expected result; None for an input.
    """

    name: str
    role: Role
    tensor: Tensor
    before: Bytes | None
    expected: Expected | None


@final
@dataclass
class OutputBox:
    """A result that the callee returns through a pointer: a number, or a tensor that it allocates.

    Attributes:
        name: the name of the parameter, with `.number` for an entry of an array.
        box: the place that the callee writes the result to.
        expected: the expected result.
    """

    name: str
    box: Box
    expected: Expected


@final
class CallArguments:
    """The values for the parameters of one execution of a call, with the tensors and boxes among them.

    Args:
        context: the context of the call.
        case: the case that describes the call.
        mode: the way in which the call is executed.
        find_generator: returns the random generator of a parameter with a seed; later executions use the same one.

    Attributes:
        placed: the tensors, with their bytes before the call.
        boxes: the results that the callee returns through pointers.
    """

    def __init__(
        self, context: Context, case: BaselineCase, mode: CallMode, find_generator: Callable[[str, int], Generator]
    ) -> None:
        self._context = context
        self._case = case
        self._mode = mode
        self._find_generator = find_generator
        self._prototype = lookup(case.function)
        self._device_of = {parameter.name: parameter.device for parameter in self._prototype.parameters}
        self._shared: dict[str, Tensor] = {}
        self._storage: tuple[Tensor, NDArray[Any]] | None = None
        self.placed: list[PlacedTensor] = []
        self.boxes: list[OutputBox] = []

    def _make_box(self, name: str, expected: Any, value: Any = None) -> Box:
        """Return the place for a number or tensor that is returned by pointer."""
        self.boxes.append(OutputBox(name, Box(value), expected))
        return self.boxes[-1].box

    def value_of(self, parameter: Parameter) -> Any:
        """Return the value that is passed for a parameter, as `BaseVendor.call` takes it.

        Tensors and boxes for results are created and added to `placed` and `boxes`.
        """
        if parameter.role is Role.count:
            return self._case.arguments.get(parameter.name, self._array_length())
        if parameter.role is Role.output:
            source = self._case.aliases.get(parameter.name)
            value = None if source is None else self._case.arguments[source]
            return self._shared_tensor(parameter.name, value) or self._make_result(parameter)
        argument = self._case.arguments[parameter.name]
        if (shared := self._shared_tensor(parameter.name, argument)) is not None:
            return shared
        expected = self._case.expected.get(parameter.name)
        if isinstance(argument, BaselineTensor):
            if parameter.annotation is kinds.Pointer:
                return self._make_argument(parameter.name, Role.input, argument, None).data_ptr
            return self._make_argument(parameter.name, parameter.role, argument, expected)
        if parameter.annotation is kinds.SparseIn and isinstance(argument, list):
            return self._sparse_matrix(parameter, argument)
        if parameter.is_tensor_array and isinstance(argument, list):
            expected_entries = expected if isinstance(expected, list) else [None] * len(argument)
            entries = [(f"{parameter.name}.{number}", entry) for number, entry in enumerate(argument)]
            return [
                self._shared_tensor(name, entry) or self._make_argument(name, parameter.role, entry, expected_entry)
                if entry
                else None
                for (name, entry), expected_entry in zip(entries, expected_entries, strict=True)
            ]
        if parameter.annotation is kinds.Generator and argument is not None:
            return self._find_generator(parameter.name, argument)
        if parameter.annotation is kinds.Generators and argument is not None:
            return [self._find_generator(f"{parameter.name}.{number}", seed) for number, seed in enumerate(argument)]
        if parameter.annotation is kinds.InOutSize and argument is not None:
            return self._make_box(parameter.name, expected, argument)
        return convert_attribute(parameter, argument)

    def _shared_tensor(self, name: str, value: Any) -> Tensor | None:
        """Return the tensor of a parameter or entry that shares memory with another one; None if it shares none.

        Args:
            name: The name of the parameter, with `.number` for an entry of an array.
            value: The value of the argument, from which the tensor is created at the first use.
        """
        overlap = self._case.overlap
        if overlap is not None and name in (overlap.first, overlap.second):
            return self._overlapping_tensor(name, overlap)
        argument = self._case.aliases.get(name, name)
        names = (argument, *(alias for alias, source in self._case.aliases.items() if source == argument))
        if len(names) == 1:
            return None
        if argument not in self._shared:
            result = next((shared for shared in names if shared in self._case.expected), None)
            role, expected = (Role.inout, self._case.expected[result]) if result else (Role.input, None)
            self._shared[argument] = self._make_argument(result or argument, role, value, expected)
        return self._shared[argument]

    def _overlapping_tensor(self, name: str, overlap: SharedStorage) -> Tensor:
        """Return the tensor of one of two arguments that have a common storage."""
        first, second = self._case.arguments[overlap.first], self._case.arguments[overlap.second]
        if name == overlap.first:
            elements = overlap.join(first.values, second.values)
            place = self._placement("contiguous", elements.shape, first.dtype)
            image = storage_image(elements, first.dtype, place.strides, place.offset, place.storage_elements)
            self._storage = self._empty_tensor(name, elements.shape, first.dtype, place), image
            return self._view_storage(name, first, 0)
        return self._view_storage(name, second, overlap.shift)

    def _view_storage(self, name: str, value: BaselineTensor, shift: int) -> Tensor:
        """Return a new tensor for an argument in the common storage, after `shift` elements."""
        assert self._storage is not None, "the first of the arguments comes first in the call"
        storage, image = self._storage
        shape = value.values.shape
        tensor = Tensor.from_memory(
            self._context,
            storage.storage_ptr,
            storage.storage_nbytes,
            shape,
            value.dtype,
            layout_named(value.layout)(shape).strides,
            storage.storage_offset + shift,
        )
        return self._record_initial(name, Role.input, tensor, image, None)

    def _sparse_matrix(self, parameter: Parameter, parts: list[Any]) -> Tensor:
        """Return a sparse matrix with as many columns as the following argument, its right factor, has rows.

        Args:
            parameter: The parameter of the matrix.
            parts: The row pointers, the columns and the values of the matrix.
        """
        crow, col, values = (
            self._make_argument(f"{parameter.name}.{number}", Role.input, part, None)
            for number, part in enumerate(parts)
        )
        following = self._prototype.arguments[self._prototype.arguments.index(parameter) + 1]
        following_tensor = self._case.arguments[following.name]
        columns = following_tensor.values.shape[0] if following_tensor is not None else 0
        return Tensor.sparse_csr(crow, col, values, (crow.shape[0] - 1, columns))

    def _array_length(self) -> int:
        """Return the common length of the call's arrays of tensors."""
        return max(
            len(value)
            for value in (*self._case.arguments.values(), *self._case.expected.values())
            if isinstance(value, list)
        )

    def _make_argument(self, name: str, role: Role, argument: BaselineTensor, expected: Any) -> Tensor:
        """Return a new tensor for an argument, in another layout if the mode is `relaid`, and record its initial bytes.

        Args:
            name: the name of the parameter.
            role: whether the call also writes the tensor.
            argument: the elements and the layout.
            expected: the expected result if the call writes the tensor, else None.

        Returns:
            The tensor.
        """
        shape = argument.values.shape
        is_relaid = self._mode.relaid and role is Role.input
        place = self._placement(
            different_layout(argument.layout, shape) if is_relaid else argument.layout, shape, argument.dtype
        )
        image = storage_image(argument.values, argument.dtype, place.strides, place.offset, place.storage_elements)
        return self._record_initial(name, role, self._empty_tensor(name, shape, argument.dtype, place), image, expected)

    def _make_result(self, parameter: Parameter) -> Any:
        """Return what the caller passes for a result: new poisoned tensors, boxes, or None."""
        expected = self._case.expected[parameter.name]
        if expected is None:
            return None
        if parameter.annotation is kinds.NewOuts and isinstance(expected, list):
            return [self._make_box(f"{parameter.name}.{number}", entry) for number, entry in enumerate(expected)]
        if parameter.is_callee_allocated or parameter.annotation in kinds.OUT_VALUES:
            return self._make_box(parameter.name, expected)
        if isinstance(expected, list):
            return [
                self._poisoned_tensor(f"{parameter.name}.{number}", entry) if entry else None
                for number, entry in enumerate(expected)
            ]
        return self._poisoned_tensor(parameter.name, expected)

    def _poisoned_tensor(self, name: str, expected: Expected) -> Tensor:
        """Return a new tensor for an expected result, filled with poison."""
        place = self._placement(expected.layout, expected.values.shape, expected.dtype)
        image = poisoned_array(place.storage_elements, expected.dtype)
        tensor = self._empty_tensor(name, expected.values.shape, expected.dtype, place)
        return self._record_initial(name, Role.output, tensor, image, expected)

    def _placement(self, layout: str, shape: tuple[int, ...], dtype: Dtype) -> Placement:
        """Return the positions of the elements for `layout`, moved by `SHIFT_BYTES` if the mode is shifted."""
        return _place_elements(layout, shape, SHIFT_BYTES // to_numpy(dtype).itemsize if self._mode.shifted else 0)

    def _empty_tensor(self, name: str, shape: Sequence[int], dtype: Dtype, place: Placement) -> Tensor:
        """Return a new uninitialized tensor with this placement, in the memory that the parameter requires."""
        return Tensor.empty(
            self._context,
            shape,
            dtype,
            strides=place.strides,
            offset=place.offset,
            storage_elements=place.storage_elements,
            memory_kind=self._device_of.get(name, types.Device.device),
        )

    def _record_initial(self, name: str, role: Role, tensor: Tensor, image: NDArray[Any], expected: Any) -> Tensor:
        """Return a tensor, after recording it with the bytes of its storage before the call.

        Args:
            name: The name of the parameter.
            role: The role of the parameter.
            tensor: The tensor.
            image: The contents of the storage before the call.
            expected: The expected result; None if the tensor is not a result.
        """
        self.placed.append(
            PlacedTensor(name=name, role=role, tensor=tensor, before=image.view(np.uint8), expected=expected)
        )
        return tensor


@lru_cache(maxsize=4096)
def _place_elements(layout: str, shape: tuple[int, ...], shift: int) -> Placement:
    """Return strides, offset and size of the elements for `layout`, moved by `shift` elements."""
    place = layout_named(layout)(shape)
    return Placement(place.strides, place.offset + shift, place.storage_elements + shift)


_ENUMS = (Reduction, RoundMode, MemoryFormat)
"""The enumerations that attributes can have as their type."""


def convert_attribute(parameter: Parameter, value: Any) -> Any:
    """Return an attribute as a vendor receives it.

    Scalars become `Scalar`, valid values of an enumeration become its members, and an omitted text becomes empty.
    """
    annotation = parameter.annotation
    if value is None:
        return "" if annotation is kinds.Text else None
    if issubclass(annotation, kinds.Scalar):
        return Scalar.from_number(value)
    if annotation in _ENUMS:
        make: Callable[[int], Any] = annotation
        return make(value) if value in set(annotation) else value
    return value

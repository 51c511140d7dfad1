"""One call of a function: create the tensors, call the function, and read everything back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_impl import BaseVendor, Box
from diopi_proto import parameters as kinds
from diopi_proto import types
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_proto.types import Dtype, Error, MemoryFormat, Reduction, RoundMode, Scalar
from diopi_test.cases.layouts import Placement, different_layout, layout_named
from diopi_test.execution.ballast import Ballast
from diopi_test.execution.call_record import Bytes, CallRecord, GeneratorRecord, TensorRecord, ValueRecord
from diopi_test.execution.case_taker import is_case_taker
from diopi_test.execution.forks import end_copies
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected
from lib_rt import Context, Device, Generator, Tensor
from lib_rt.dtypes import poisoned_array, to_numpy
from lib_rt.errors import GuardError
from lib_rt.layout import storage_image

SHIFT_BYTES = 256
"""Additional offset in bytes of tensors at other addresses; no vendor's kernels require a larger alignment."""

OFFSET_INCREASE = 2**20
"""The distance by which the offset of a generator is increased to get another state."""

SETTLING_SECONDS = 0.005
"""Seconds after which a function that does not wait for its own work has usually finished it."""


@final
@dataclass(frozen=True)
class CallMode:
    """The way in which a call is executed.

    Attributes:
        elsewhere: whether the tensors have a larger offset in their storages than their layouts specify.
        queued: whether the copies of the inputs are still in the stream's queue, behind other copies, during the call.
        relaid: whether the elements of the inputs are in another order, or have gaps that the case does not have.
    """

    elsewhere: bool = False
    queued: bool = False
    relaid: bool = False


PLAIN = CallMode()


class RejectedCallError(Exception):
    """The function returned an error code."""

    def __init__(self, code: Error) -> None:
        super().__init__(code.name)
        self.code = code


@final
@dataclass(kw_only=True)
class _PlacedTensor:
    """A tensor of the call, with the bytes of its storage before the call and the expected result."""

    name: str
    role: Role
    tensor: Tensor
    before: Bytes | None
    expected: Expected | None


@final
@dataclass
class _OutputBox:
    """A result that the callee returns through a pointer: a number, or a tensor that it allocates."""

    name: str
    box: Box
    expected: Expected


@final
class Call:
    """One call on a device: a context, the tensors of arguments and results, and the tensors that the callee allocates.

    A call that draws random numbers is repeated with fresh tensors, to show how its numbers depend on the generator.

    Attributes:
        damage: the first guard zone that was written to, if one was; known once the call is closed.
    """

    def __init__(self, vendor: BaseVendor, device: Device, case: BaselineCase, mode: CallMode = PLAIN) -> None:
        self.vendor = vendor
        self.case = case
        self.mode = mode
        self.prototype = lookup(case.function)
        self.context = Context(device)
        self.damage: list[GuardError] = []
        self._placed: list[_PlacedTensor] = []
        self._earlier: list[_PlacedTensor] = []
        self._boxes: list[_OutputBox] = []
        self._overwritten: dict[str, Tensor] = {}
        self._generators: dict[str, Generator] = {}
        self._seeds: dict[str, int] = {}
        self._read_first: list[Bytes] = []
        self._device_of = {parameter.name: parameter.device for parameter in self.prototype.parameters}
        self._ballast = Ballast(device)

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.context.close()  # compares all guard zones after waiting once
        except GuardError as error:
            self.damage.append(error)
        self._ballast.release()

    def run(self) -> CallRecord:
        """Call the function and return the record of the call; raise RejectedCallError if it returns an error code."""
        run = self._run_once()
        if not self.case.draws:
            return run
        other_draws = self._run_other_draws()
        if not self._generators:
            return replace(run, other_draws=other_draws)
        self._reset_generators(difference=1)
        other_draws["another seed"] = self._run_once()
        self._reset_generators()
        return replace(run, other_draws=other_draws, again=self._run_once())

    def _run_other_draws(self) -> dict[str, CallRecord]:
        """Call the function with another state of its generators and return the record by its description.

        The state is the one after the first call. Gradients do not advance generators, so their offset is increased.

        Returns:
            The record, by what the call is.
        """
        if not self.prototype.is_gradient:
            return {"the next call": self._run_once()}
        for generator in self._generators.values():
            generator.offset += OFFSET_INCREASE
        return {"a later state": self._run_once()}

    def run_rejected(self) -> tuple[Error, str, CallRecord]:
        """Call the function once, expecting an error; return the error code, the last error and the record."""
        code, before = self._perform()
        last_error = "" if code is Error.Success else self.vendor.last_error()
        return code, last_error, self._record_call(before)

    def find_late_results(self) -> list[str]:
        """Return the names of results whose memory changed after it was read, although the stream had finished."""
        time.sleep(SETTLING_SECONDS)
        pairs = zip(self._placed, self._read_first, self._read_storages(), strict=True)
        return [placed.name for placed, first, now in pairs if placed.expected is not None and (first != now).any()]

    def _run_once(self) -> CallRecord:
        """Call the function and return the record; raise RejectedCallError if it returns an error code."""
        code, before = self._perform()
        if code is not Error.Success:
            self.context.stream.synchronize()
            raise RejectedCallError(code)
        return self._record_call(before)

    def prepare(self) -> Callable[[], Error]:
        """Return a function that makes the call with new tensors, whose inputs must be sent before."""
        if is_case_taker(self.vendor):
            self.vendor.take_case(self.case)
        self._earlier += self._placed
        self._placed, self._boxes, self._overwritten = [], [], {}
        values = [self._argument_value(parameter) for parameter in self.prototype.parameters[1:]]
        return partial(self.vendor.call, self.case.function, self.context, *values)

    def _perform(self) -> tuple[Error, dict[str, tuple[int, int]]]:
        """Call the function and return its error code, and the states of the generators before."""
        call = self.prepare()
        before = self._generator_states()
        self.send_inputs()
        code = call()
        end_copies()
        return code, before

    def _record_call(self, before: dict[str, tuple[int, int]]) -> CallRecord:
        """Return the record of the call; the results are copied back as soon as the stream reaches the copies."""
        values, missing = self._collect_boxes()
        self._read_first = self._read_storages()
        tensors = [self._record_tensor(*pair) for pair in zip(self._placed, self._read_first, strict=True)]
        after = self._generator_states()
        generators = [GeneratorRecord(name, before[name], after[name]) for name in before]
        return CallRecord(
            prototype=self.prototype,
            case=self.case,
            tensors=tensors,
            values=values,
            missing=missing,
            damage=self.damage,
            generators=generators,
        )

    def _generator_states(self) -> dict[str, tuple[int, int]]:
        """Return the seed and offset of every generator, by parameter name."""
        return {name: (generator.seed, generator.offset) for name, generator in self._generators.items()}

    def _reset_generators(self, difference: int = 0) -> None:
        """Reset the generators to the seed of the case, or to a seed that differs from it in these bits."""
        for name, generator in self._generators.items():
            generator.seed = self._seeds[name] ^ difference
            generator.offset = 0

    def send_inputs(self) -> None:
        """Copy the inputs to the device; the host does not wait for the copies if the call is queued.

        What lies in host memory is there at once.
        """
        if self.mode.queued:
            self.context.stream.synchronize()
            self._ballast.keep_busy(self.context.stream)
        for placed in self._placed:
            if placed.role is Role.output or placed.before is None:
                continue
            if placed.tensor.memory_kind is types.Device.host:
                np.copyto(placed.tensor.storage_view(), placed.before)
            else:
                self.context.store(placed.tensor, 0, placed.before)
        if not self.mode.queued:
            self.context.stream.synchronize()

    @staticmethod
    def _record_tensor(placed: _PlacedTensor, contents: Bytes) -> TensorRecord:
        """Return the record of a tensor with these bytes after the call."""
        tensor = placed.tensor
        return TensorRecord(
            name=placed.name,
            role=placed.role,
            dtype=tensor.dtype,
            shape=tensor.shape,
            strides=tensor.strides,
            offset=tensor.storage_offset,
            before=placed.before,
            after=contents,
            expected=placed.expected,
        )

    def _read_storages(self) -> list[Bytes]:
        """Return the storages of all tensors after the stream has finished.

        Host memory of the caller is read at once.

        Returns:
            The bytes of each storage, in the order of the tensors.
        """
        tensors = [placed.tensor for placed in self._placed]
        contents = [np.empty(tensor.storage_nbytes, np.uint8) for tensor in tensors]
        for placed, tensor, target in zip(self._placed, tensors, contents, strict=True):
            if tensor.memory_kind is types.Device.host and placed.before is not None:
                np.copyto(target, tensor.storage_view())
            elif tensor.memory_kind is types.Device.host:
                self.context.fetch(tensor, 0, target)
            elif target.nbytes:
                self.context.stream.d2h(target.ctypes.data, tensor.storage_ptr, target.nbytes)
        self.context.stream.synchronize()
        return contents

    def _collect_boxes(self) -> tuple[list[ValueRecord], dict[str, Expected]]:
        """Return the numbers returned by pointer and the missing results; add the callee's tensors to the call."""
        values, missing = [], {}
        for boxed in self._boxes:
            name, value = boxed.name, boxed.box.value
            if isinstance(value, Tensor):
                self._placed.append(
                    _PlacedTensor(name=name, role=Role.output, tensor=value, before=None, expected=boxed.expected)
                )
            elif value is None:
                missing[name] = boxed.expected
            else:
                values.append(
                    ValueRecord(name=name, actual=value, expected=boxed.expected, before=self.case.arguments.get(name))
                )
        return values, missing

    def _make_box(self, name: str, expected: Any, value: Any = None) -> Box:
        """Return the place for a number or tensor that is returned by pointer."""
        self._boxes.append(_OutputBox(name, Box(value), expected))
        return self._boxes[-1].box

    def _argument_value(self, parameter: Parameter) -> Any:
        """Return the value that is passed for `parameter`."""
        for result, argument in self.case.aliases.items():
            if parameter.name in (result, argument):
                return self._overwritten_tensor(result, argument)
        if parameter.role is Role.count:
            return self.case.arguments.get(parameter.name, self._array_length())
        if parameter.role is Role.output:
            return self._make_result(parameter)
        argument = self.case.arguments[parameter.name]
        expected = self.case.expected.get(parameter.name)
        if isinstance(argument, BaselineTensor):
            if parameter.annotation is kinds.Pointer:
                return self._make_argument(parameter.name, Role.input, argument, None).data_ptr
            return self._make_argument(parameter.name, parameter.role, argument, expected)
        if parameter.annotation is kinds.SparseIn and isinstance(argument, list):
            return self._sparse_matrix(parameter, argument)
        if parameter.is_tensor_array and isinstance(argument, list):
            wanted = expected if isinstance(expected, list) else [None] * len(argument)
            return [
                self._make_argument(f"{parameter.name}.{number}", parameter.role, entry, wanted_entry)
                if entry
                else None
                for number, (entry, wanted_entry) in enumerate(zip(argument, wanted, strict=True))
            ]
        if parameter.annotation is kinds.Generator and argument is not None:
            return self._find_generator(parameter.name, argument)
        if parameter.annotation is kinds.Generators and argument is not None:
            return [self._find_generator(f"{parameter.name}.{number}", seed) for number, seed in enumerate(argument)]
        if parameter.annotation is kinds.InOutSize and argument is not None:
            return self._make_box(parameter.name, expected, argument)
        return convert_attribute(parameter, argument)

    def _overwritten_tensor(self, result: str, argument: str) -> Tensor:
        """Return the tensor of an argument that is passed for a result as well."""
        if result not in self._overwritten:
            argument_tensor, expected = self.case.arguments[argument], self.case.expected[result]
            self._overwritten[result] = self._make_argument(result, Role.inout, argument_tensor, expected)
        return self._overwritten[result]

    def _sparse_matrix(self, parameter: Parameter, parts: list[Any]) -> Tensor:
        """Return a sparse matrix of these parts, with a column per row of the matrix that it is multiplied by."""
        crow, col, values = (
            self._make_argument(f"{parameter.name}.{number}", Role.input, part, None)
            for number, part in enumerate(parts)
        )
        following = self.prototype.arguments[self.prototype.arguments.index(parameter) + 1]
        following_tensor = self.case.arguments[following.name]
        columns = following_tensor.values.shape[0] if following_tensor is not None else 0
        return Tensor.sparse_csr(crow, col, values, (crow.shape[0] - 1, columns))

    def _find_generator(self, name: str, seed: int) -> Generator:
        """Return the generator with the case's seed, the same one for all rounds of the call."""
        if name not in self._generators:
            self._generators[name] = Generator(self.context, seed)
            self._seeds[name] = seed
        return self._generators[name]

    def _array_length(self) -> int:
        """Return the common length of the call's arrays of tensors."""
        return max(
            len(value)
            for value in (*self.case.arguments.values(), *self.case.expected.values())
            if isinstance(value, list)
        )

    def _make_argument(self, name: str, role: Role, argument: BaselineTensor, expected: Any) -> Tensor:
        """Create the tensor of an argument in the mode's layout, and record its initial bytes."""
        shape = argument.values.shape
        is_relaid = self.mode.relaid and role is Role.input
        place = self._placement(
            different_layout(argument.layout, shape) if is_relaid else argument.layout, shape, argument.dtype
        )
        image = storage_image(argument.values, argument.dtype, place.strides, place.offset, place.storage_elements)
        return self._record_initial(name, role, self._empty_tensor(name, shape, argument.dtype, place), image, expected)

    def _make_result(self, parameter: Parameter) -> Any:
        """Create what the caller passes for a result: poisoned tensors, boxes, or None."""
        expected = self.case.expected[parameter.name]
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
        """Create a tensor for a result, filled with poison."""
        place = self._placement(expected.layout, expected.values.shape, expected.dtype)
        image = poisoned_array(place.storage_elements, expected.dtype)
        tensor = self._empty_tensor(name, expected.values.shape, expected.dtype, place)
        return self._record_initial(name, Role.output, tensor, image, expected)

    def _placement(self, layout: str, shape: tuple[int, ...], dtype: Dtype) -> Placement:
        """Return the positions of the elements for `layout`, `SHIFT` bytes further on if the mode says so."""
        return _place_elements(layout, shape, SHIFT_BYTES // to_numpy(dtype).itemsize if self.mode.elsewhere else 0)

    def _empty_tensor(self, name: str, shape: Sequence[int], dtype: Dtype, place: Placement) -> Tensor:
        """Create an uninitialized tensor with this placement, in the memory that the parameter requires."""
        return Tensor.empty(
            self.context,
            shape,
            dtype,
            strides=place.strides,
            offset=place.offset,
            storage_elements=place.storage_elements,
            memory_kind=self._device_of.get(name, types.Device.device),
        )

    def _record_initial(self, name: str, role: Role, tensor: Tensor, image: NDArray[Any], expected: Any) -> Tensor:
        """Record a tensor of the call with its initial bytes, and return the tensor."""
        self._placed.append(
            _PlacedTensor(name=name, role=role, tensor=tensor, before=image.view(np.uint8), expected=expected)
        )
        return tensor


@lru_cache(maxsize=4096)
def _place_elements(layout: str, shape: tuple[int, ...], shift: int) -> Placement:
    """Return strides, offset and size of the elements for `layout`, moved by `shift` elements."""
    place = layout_named(layout)(shape)
    return Placement(place.strides, place.offset + shift, place.storage_elements + shift)


_ENUMS = (Reduction, RoundMode, MemoryFormat)


def convert_attribute(parameter: Parameter, value: Any) -> Any:
    """Return an attribute as a vendor receives it: scalars with their dtype, enums as such."""
    annotation = parameter.annotation
    if value is None:
        return "" if annotation is kinds.Text else None
    if issubclass(annotation, kinds.Scalar):
        return Scalar.from_number(value)
    if annotation in _ENUMS:
        make: Callable[[int], Any] = annotation
        return make(value) if value in set(annotation) else value
    return value

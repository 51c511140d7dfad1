"""One call of a function: tensors made, the function called, everything read back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_impl import BaseVendor, Box
from diopi_proto import parameters as kinds
from diopi_proto import types
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_proto.types import Dtype, Error, MemoryFormat, Reduction, RoundMode, Scalar
from diopi_test.baseline import BaselineCase, BaselineTensor, Expected
from diopi_test.layouts import LAYOUTS, Placement, another
from diopi_test.run import Bytes, GeneratorRecord, Run, TensorRecord, ValueRecord
from lib_rt import CallError, Context, Device, Generator, Tensor
from lib_rt.dtypes import poisoned, to_numpy
from lib_rt.errors import GuardError
from lib_rt.tensor import storage_image

SHIFT = 256
"""Bytes by which tensors lie elsewhere in their storages: no vendor's kernels ask for a larger alignment."""

BALLAST, TIMES = 2**20, 8
"""Bytes, and number, of the copies behind which inputs are queued. They take a host about a millisecond, a chip some
hundredths of one: longer than a function takes to look at its inputs if it does not wait for them."""

SETTLING = 0.005
"""Seconds in which a function that did not wait for its own work gets it done."""


@dataclass(frozen=True)
class Manner:
    """How a call is made.

    Attributes:
        elsewhere: whether the tensors lie further on in their storages than their layouts have it.
        queued: whether the copies of the inputs are still in the stream's queue, behind others, when it is made.
        relaid: whether the elements of the inputs lie in another order, or with gaps, where the case has none.
    """

    elsewhere: bool = False
    queued: bool = False
    relaid: bool = False


PLAIN = Manner()


class RefusedError(Exception):
    """The function answered with an error code."""

    def __init__(self, code: Error) -> None:
        super().__init__(code.name)
        self.code = code


@dataclass
class _Placed:
    """A tensor of the call, with its storage as it was before."""

    name: str
    role: Role
    tensor: Tensor
    before: Bytes | None
    expected: Expected | None


class Call:
    """One call on a device: a context of its own, the tensors of arguments and results, and what the callee makes.

    A call that draws random numbers is repeated with fresh tensors, to show how its numbers depend on the generator.

    Attributes:
        damage: the first guard zone that was written to, if one was; known once the call is closed.
    """

    def __init__(self, vendor: BaseVendor, device: Device, case: BaselineCase, manner: Manner = PLAIN) -> None:
        self.vendor = vendor
        self.case = case
        self.manner = manner
        self.prototype = lookup(case.function)
        self.context = Context(device)
        self.damage: list[GuardError] = []
        self._placed: list[_Placed] = []
        self._earlier: list[_Placed] = []
        self._boxes: dict[str, Box] = {}
        self._generators: dict[str, Generator] = {}
        self._read_first: list[Bytes] = []
        self._ballast = 0

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self.context.close()  # all guards are compared with one wait
        except GuardError as error:
            self.damage.append(error)
        if self._ballast:
            self.context.device.free(self._ballast)

    def run(self) -> Run:
        """Call the function and read everything back; RefusedError if it answers with an error code."""
        run = self._once()
        if self.prototype.promise != "random":
            return run
        others = {"the next call": self._once()}
        if not self._generators:
            return replace(run, others=others)
        self._seed_anew(difference=1)
        others["another seed"] = self._once()
        self._seed_anew()
        return replace(run, others=others, again=self._once())

    def refused(self) -> tuple[Error, str, Run]:
        """Call the function, which should fail, once: its error code, its last error, and what it left behind."""
        code, before = self._answer()
        last_error = "" if code is Error.Success else self.vendor.last_error()
        return code, last_error, self._left_behind(before)

    def late(self) -> list[str]:
        """The results whose memory is no longer what was read after the latest call, although the stream was done."""
        time.sleep(SETTLING)
        pairs = zip(self._placed, self._read_first, self._read(), strict=True)
        return [placed.name for placed, first, now in pairs if placed.expected is not None and (first != now).any()]

    def _once(self) -> Run:
        code, before = self._answer()
        if code is not Error.Success:
            self.context.stream.synchronize()
            raise RefusedError(code)
        return self._left_behind(before)

    def _answer(self) -> tuple[Error, dict[str, tuple[int, int]]]:
        """What the function answers, and the generators' states before it."""
        self._earlier += self._placed
        self._placed, self._boxes = [], {}
        values = [self._value(parameter) for parameter in self.prototype.parameters[1:]]
        before = self._states()
        self._send()
        return self.vendor.call(self.case.function, self.context, *values), before

    def _left_behind(self, before: dict[str, tuple[int, int]]) -> Run:
        run = self._collect()
        after = self._states()
        return replace(run, generators=[GeneratorRecord(n, before[n], after[n]) for n in before])

    def _states(self) -> dict[str, tuple[int, int]]:
        return {name: (generator.seed, generator.offset) for name, generator in self._generators.items()}

    def _seed_anew(self, difference: int = 0) -> None:
        """Put the generators back to where the case has them, or to a seed that differs from it in these bits."""
        for name, generator in self._generators.items():
            generator.seed = self.case.arguments[name] ^ difference
            generator.offset = 0

    def _send(self) -> None:
        """Copy the inputs to the device; nobody waits for the copies if the call is queued."""
        if self.manner.queued:
            self.context.stream.synchronize()
            self._occupy()
        for placed in self._placed:
            if placed.role is not Role.output and placed.before is not None:
                self.context.store(placed.tensor, 0, placed.before)
        if not self.manner.queued:
            self.context.stream.synchronize()

    def _occupy(self) -> None:
        """Give the stream something to do, if there is memory for it and a way to copy it."""
        with suppress(CallError):
            self._ballast = self._ballast or self.context.device.malloc(2 * BALLAST)
            for _ in range(TIMES):
                self.context.stream.d2d(self._ballast + BALLAST, self._ballast, BALLAST)

    def _collect(self) -> Run:
        """Copy back what the call left behind, as soon as the stream gets to it."""
        values, missing = self._collect_boxes()
        self._read_first = self._read()
        tensors = [
            TensorRecord(
                placed.name,
                placed.role,
                placed.tensor.dtype,
                placed.tensor.shape,
                placed.tensor.strides,
                placed.tensor.storage_offset,
                placed.before,
                contents,
                placed.expected,
            )
            for placed, contents in zip(self._placed, self._read_first, strict=True)
        ]
        return Run(self.prototype, self.case, tensors, values, missing, self.damage)

    def _read(self) -> list[Bytes]:
        """The storages of all tensors as they are when the stream gets to it; one wait serves them all."""
        tensors = [placed.tensor for placed in self._placed]
        contents = [np.empty(tensor.storage_nbytes, np.uint8) for tensor in tensors]
        for tensor, target in zip(tensors, contents, strict=True):
            if tensor.where is types.Device.host:
                self.context.fetch(tensor, 0, target)
            elif target.nbytes:
                self.context.stream.d2h(target.ctypes.data, tensor.storage_ptr, target.nbytes)
        self.context.stream.synchronize()
        return contents

    def _collect_boxes(self) -> tuple[list[ValueRecord], list[str]]:
        values, missing = [], []
        for name, box in self._boxes.items():
            expected = self.case.expected[name]
            assert isinstance(expected, Expected)
            if isinstance(box.value, Tensor):
                self._placed.append(_Placed(name, Role.output, box.value, None, expected))
            elif box.value is None:
                missing.append(name)
            else:
                values.append(ValueRecord(name, box.value, expected))
        return values, missing

    def _value(self, parameter: Parameter) -> Any:
        """What is passed for `parameter`."""
        if parameter.role is Role.count:
            return self.case.arguments.get(parameter.name, self._count())
        if parameter.role is Role.output:
            return self._result(parameter)
        argument = self.case.arguments[parameter.name]
        expected = self.case.expected.get(parameter.name)
        if isinstance(argument, BaselineTensor):
            if parameter.annotation is kinds.Pointer:
                return self._argument(parameter.name, Role.input, argument, None).data_ptr
            return self._argument(parameter.name, parameter.role, argument, expected)
        if parameter.is_tensor_array and isinstance(argument, list):
            wanted = expected if isinstance(expected, list) else [None] * len(argument)
            return [
                self._argument(f"{parameter.name}.{number}", parameter.role, entry, one) if entry else None
                for number, (entry, one) in enumerate(zip(argument, wanted, strict=True))
            ]
        if parameter.annotation is kinds.Generator and argument is not None:
            return self._generator(parameter.name, argument)
        return as_attribute(parameter, argument)

    def _generator(self, name: str, seed: int) -> Generator:
        """The generator made from the case's seed, one for all rounds of the call."""
        if name not in self._generators:
            self._generators[name] = Generator(self.context, seed)
        return self._generators[name]

    def _count(self) -> int:
        """The common length of the call's arrays of tensors."""
        return max(
            len(value)
            for value in (*self.case.arguments.values(), *self.case.expected.values())
            if isinstance(value, list)
        )

    def _argument(self, name: str, role: Role, argument: BaselineTensor, expected: Any) -> Tensor:
        shape = argument.values.shape
        is_relaid = self.manner.relaid and role is Role.input
        place = self._place(another(argument.layout, shape) if is_relaid else argument.layout, shape, argument.dtype)
        image = storage_image(argument.values, argument.dtype, place.strides, place.offset, place.storage_elements)
        return self._keep(name, role, self._empty(shape, argument.dtype, place), image, expected)

    def _result(self, parameter: Parameter) -> Any:
        expected = self.case.expected[parameter.name]
        if expected is None:
            return None
        if parameter.annotation is kinds.NewOut or parameter.annotation in kinds.OUT_VALUES:
            return self._boxes.setdefault(parameter.name, Box())
        if isinstance(expected, list):
            return [
                self._poisoned(f"{parameter.name}.{number}", entry) if entry else None
                for number, entry in enumerate(expected)
            ]
        return self._poisoned(parameter.name, expected)

    def _poisoned(self, name: str, expected: Expected) -> Tensor:
        place = self._place(expected.layout, expected.values.shape, expected.dtype)
        image = poisoned(place.storage_elements, expected.dtype)
        return self._keep(name, Role.output, self._empty(expected.values.shape, expected.dtype, place), image, expected)

    def _place(self, layout: str, shape: Sequence[int], dtype: Dtype) -> Placement:
        """Where the elements lie: as `layout` says, or `SHIFT` bytes further on."""
        place = LAYOUTS[layout](shape)
        shift = SHIFT // to_numpy(dtype).itemsize if self.manner.elsewhere else 0
        return Placement(place.strides, place.offset + shift, place.storage_elements + shift)

    def _empty(self, shape: Sequence[int], dtype: Dtype, place: Placement) -> Tensor:
        return Tensor.empty(
            self.context,
            shape,
            dtype,
            strides=place.strides,
            offset=place.offset,
            storage_elements=place.storage_elements,
        )

    def _keep(self, name: str, role: Role, tensor: Tensor, image: NDArray[Any], expected: Any) -> Tensor:
        self._placed.append(_Placed(name, role, tensor, image.view(np.uint8), expected))
        return tensor


_ENUMS = (Reduction, RoundMode, MemoryFormat)


def as_attribute(parameter: Parameter, value: Any) -> Any:
    """An attribute as a vendor receives it: scalars with their dtype, enums as such."""
    if value is None:
        return None
    annotation = parameter.annotation
    if issubclass(annotation, kinds.Scalar):
        return Scalar.of(value)
    if annotation in _ENUMS:
        make: Callable[[int], Any] = annotation
        return make(value) if value in set(annotation) else value
    return value

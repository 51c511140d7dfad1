"""One call of a function: create the tensors, call the function, and read everything back."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import final

import numpy as np

from diopi_impl import BaseVendor
from diopi_proto import types
from diopi_proto.interface import lookup
from diopi_proto.parameters import Role
from diopi_proto.types import Error
from diopi_test.execution.ballast import Ballast
from diopi_test.execution.call_arguments import PLAIN, CallArguments, CallMode, PlacedTensor
from diopi_test.execution.call_record import Bytes, CallRecord, GeneratorRecord, TensorRecord, ValueRecord
from diopi_test.execution.case_taker import is_case_taker
from diopi_test.execution.forks import end_copies
from diopi_test.execution.process_memory import release_freed_memory
from diopi_test.oracle.records import BaselineCase, Expected
from lib_rt import Context, Device, Generator, Tensor
from lib_rt.errors import GuardError

OFFSET_INCREASE = 2**20
"""The distance by which the offset of a generator is increased to get another state."""

FURTHER_DRAWS = 7
"""The number of further calls of a random function, from the state that the previous call leaves.

The suite tests the numbers of all of them together, so that smaller deviations from the distribution are significant.
"""

SETTLING_SECONDS = 0.005
"""Seconds after which a function that does not wait for its own work has usually finished it."""


class RejectedCallError(Exception):
    """The function returned an error code."""

    def __init__(self, code: Error) -> None:
        super().__init__(code.name)
        self.code = code


@final
class Call:
    """One call on a device: a context, the tensors of arguments and results, and the tensors that the callee allocates.

    A call that draws random numbers is repeated with fresh tensors, to show how its numbers depend on the generator.

    Args:
        vendor: the vendor that is called.
        device: the vendor's open device.
        case: the case that describes the call.
        mode: the way in which the call is executed.
        context: the context of the call, which the caller closes; by default a new one that the call closes.

    Attributes:
        damage: the guard zone that was found damaged when the call closed its context; empty if none was.
    """

    def __init__(
        self,
        vendor: BaseVendor,
        device: Device,
        case: BaselineCase,
        mode: CallMode = PLAIN,
        context: Context | None = None,
    ) -> None:
        self.vendor = vendor
        self.case = case
        self.mode = mode
        self.prototype = lookup(case.function)
        self._device = device
        self._allocations_before = _count_allocations(device)
        self.context = context or Context(device)
        self.damage: list[GuardError] = []
        self._owns_context = context is None
        self._rounds: list[CallArguments] = []
        self._generators: dict[str, Generator] = {}
        self._seeds: dict[str, int] = {}
        self._read_first: list[Bytes] = []
        self._ballast = Ballast(device)

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._owns_context:
                self.context.close()  # compares all guard zones after waiting once
        except GuardError as error:
            self.damage.append(error)
        self._ballast.release()
        images = [placed.before for arguments in self._rounds for placed in arguments.placed]
        release_freed_memory(sum(image.nbytes for image in images if image is not None))

    def run(self) -> CallRecord:
        """Call the function and return the record of the call.

        A function that draws random numbers is called several times: from later states of its generators, with another
        seed, and again from the same state.

        Returns:
            The record of the first call, which contains the records of the other calls.

        Raises:
            RejectedCallError: The function returned an error code.
        """
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
        """Call the function with other states of its generators and return the records by their descriptions.

        Each call starts from the state that the previous call left. Gradients do not advance generators, so their
        offset is increased. A function that only draws is called more often than a function that also computes
        something.

        Returns:
            The records, by what the calls are.
        """
        if self.prototype.is_gradient:
            for generator in self._generators.values():
                generator.offset += OFFSET_INCREASE
            return {"a later state": self._run_once()}
        count = FURTHER_DRAWS if self.prototype.guarantee == "random" else 1
        names = ["the next call", *(f"call {number}" for number in range(3, count + 2))]
        return {name: self._run_once() for name in names}

    def run_rejected(self) -> tuple[Error, str, CallRecord]:
        """Call the function once, expecting an error; return the error code, the last error and the record."""
        code, before = self._send_inputs_and_call()
        last_error = "" if code is Error.Success else self.vendor.last_error()
        return code, last_error, self.record_call(before)

    def find_late_results(self) -> list[str]:
        """Return the names of results whose memory changed after it was read, although the stream had finished."""
        time.sleep(SETTLING_SECONDS)
        pairs = zip(self._placed, self._read_first, self._read_storages(), strict=True)
        return [placed.name for placed, first, now in pairs if placed.expected is not None and (first != now).any()]

    def count_unreleased(self) -> tuple[int, int]:
        """Return how many more tensors and blocks of device memory exist than when this object was created.

        Call this method last, after the call is closed.
        """
        if _count_allocations(self._device) != self._allocations_before:
            gc.collect()  # unreachable tensors no longer count
        tensors, blocks = _count_allocations(self._device)
        return tensors - self._allocations_before[0], blocks - self._allocations_before[1]

    def _run_once(self) -> CallRecord:
        """Call the function and return the record; raise RejectedCallError if it returns an error code."""
        code, before = self._send_inputs_and_call()
        if code is not Error.Success:
            self.context.stream.synchronize()
            raise RejectedCallError(code)
        return self.record_call(before)

    def prepare(self) -> Callable[[], Error]:
        """Create new tensors, and return a function that makes the call with them; call `send_inputs` before it."""
        arguments = CallArguments(self.context, self.case, self.mode, self._find_generator)
        self._rounds.append(arguments)
        values = [arguments.value_of(parameter) for parameter in self.prototype.parameters[1:]]
        call = partial(self.vendor.call, self.case.function, self.context, *values)
        return partial(self._show_case_and_call, call) if is_case_taker(self.vendor) else call

    def _show_case_and_call(self, call: Callable[[], Error]) -> Error:
        """Pass the case to a vendor that receives cases, then call the function and return its error code."""
        if is_case_taker(self.vendor):
            self.vendor.take_case(self.case)
        return call()

    @property
    def _placed(self) -> list[PlacedTensor]:
        """The tensors of the current round."""
        return self._rounds[-1].placed

    def _find_generator(self, name: str, seed: int) -> Generator:
        """Return the generator with the case's seed, the same one for all rounds of the call."""
        if name not in self._generators:
            self._generators[name] = Generator(self.context, seed)
            self._seeds[name] = seed
        return self._generators[name]

    def _send_inputs_and_call(self) -> tuple[Error, dict[str, tuple[int, int]]]:
        """Create tensors, send the inputs and call the function.

        Returns:
            The error code, and the seed and offset of each generator before the call, by parameter name.
        """
        call = self.prepare()
        before = self.generator_states()
        self.send_inputs()
        code = call()
        end_copies()
        return code, before

    def record_call(self, before: dict[str, tuple[int, int]]) -> CallRecord:
        """Return the record of a call that was made; the copies of its results are queued behind the call.

        Args:
            before: The seed and offset of each generator before the call, by parameter name.
        """
        values, missing = self._collect_boxes()
        self._read_first = self._read_storages()
        tensors = [self._record_tensor(*pair) for pair in zip(self._placed, self._read_first, strict=True)]
        after = self.generator_states()
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

    def generator_states(self) -> dict[str, tuple[int, int]]:
        """Return the seed and offset of every generator, by parameter name."""
        return {name: (generator.seed, generator.offset) for name, generator in self._generators.items()}

    def _reset_generators(self, difference: int = 0) -> None:
        """Reset the generators to offset 0 and the seed of the case; invert the bits of the seed in `difference`."""
        for name, generator in self._generators.items():
            generator.seed = self._seeds[name] ^ difference
            generator.offset = 0

    def send_inputs(self) -> None:
        """Copy the inputs to the device, and wait for the copies.

        If the mode is `queued`, the host does not wait, and the copies are queued behind copies that keep the stream
        busy. Inputs in host memory are written immediately.
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
    def _record_tensor(placed: PlacedTensor, contents: Bytes) -> TensorRecord:
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
        """Read the boxes into which the callee has put its results; add tensors that it allocated to the call.

        Returns:
            The numbers that were returned by pointer; and, by name, the expected results that are missing.
        """
        values, missing = [], {}
        for boxed in self._rounds[-1].boxes:
            name, value = boxed.name, boxed.box.value
            if isinstance(value, Tensor):
                self._placed.append(
                    PlacedTensor(name=name, role=Role.output, tensor=value, before=None, expected=boxed.expected)
                )
            elif value is None:
                missing[name] = boxed.expected
            else:
                values.append(
                    ValueRecord(name=name, actual=value, expected=boxed.expected, before=self.case.arguments.get(name))
                )
        return values, missing


def _count_allocations(device: Device) -> tuple[int, int]:
    """Return the number of live tensors, and of all live allocations of device memory."""
    return device.live_blocks, device.allocations

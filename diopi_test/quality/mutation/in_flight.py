"""Mutants of calls that are in flight at the same time: the defect is memory that several calls share.

They run on a simulated device that only queues its work.
The simulated device executes nothing until the caller synchronizes a stream or copies results back. Each call then has
two steps on its stream. The device takes one step of each stream in turn.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from diopi_impl import Box
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_proto.types import Error
from diopi_test.execution.in_flight import KINDS, Chain, choose_cases
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation.mutant import Array, Effect, SimulatedCall
from diopi_test.quality.mutation.vendor import CaseTakingVendor, dense_tensors, fill_box
from diopi_test.run.run_in_flight import run_in_flight
from lib_rt import Context, Device

# The kinds of mutants, named after the defect
SCRATCH = "scratch buffer shared by all streams"
STAGING = "staging memory reused before it is copied"
PLAN = "plan replaced by that of a later call"

QUEUE_KINDS = (SCRATCH, STAGING, PLAN)
"""The kinds of mutants of calls in flight."""

CHAIN_LENGTH = 4
"""The number of calls of a chain."""

Step = Callable[[], None]
"""A part of a call that the simulated device executes at once."""


@final
class QueueingVendor(CaseTakingVendor):
    """A vendor that queues the expected results of its calls, with the defect of a mutant.

    Args:
        kind: the kind of the mutant, one of `QUEUE_KINDS`.

    Attributes:
        effect: whether the mutant changed a result of a call since the vendor was created.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self._runtime = HostRuntime().functions()
        self._queues: dict[int, deque[Step]] = {}
        self._memory: list[Array] = []

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Queue the expected results; numbers and tensors that the callee allocates are written at once.

        Args:
            name: the name of the called function.
            context: the context, whose stream gets the steps of the call.
            *arguments: the arguments after the context, in the order of the prototype.

        Returns:
            Always `Success`.
        """
        assert self._case is not None, "the case has been received"
        call = SimulatedCall.from_expected(self._case)
        targets: list[tuple[Array, Array]] = []
        for parameter, value in zip(lookup(name).parameters[1:], arguments, strict=True):
            if not parameter.is_result or parameter.name not in call.results:
                continue
            entries = value if isinstance(value, list) else [value]
            boxes = [entry for entry in entries if isinstance(entry, Box)]
            for box, array in zip(boxes, call.results[parameter.name], strict=False):
                fill_box(context, parameter, box, array, call)
            if not boxes:
                pairs = zip(dense_tensors(value), call.results[parameter.name], strict=True)
                targets += [(tensor.view(), array.reshape(tensor.shape)) for tensor, array in pairs]
        self._queues.setdefault(id(context), deque()).extend(self._steps(targets))
        return Error.Success

    def _steps(self, targets: Sequence[tuple[Array, Array]]) -> Iterator[Step]:
        """Yield the two steps of a call: one fills the memory that all calls share, the other writes the results.

        Only the mutant `SCRATCH` fills the memory in its first step. For the others, the host fills the memory when it
        queues the call, and the first step does nothing.

        Args:
            targets: pairs of the caller's memory and the array that belongs there.
        """
        results = [array for _, array in targets]

        def share() -> None:
            """Store the results of the call in the memory that all calls share."""
            self._memory = results

        if self._kind == SCRATCH:
            yield share
        else:
            share()  # the host fills the memory when it makes the call
            yield lambda: None
        yield lambda: self._write(targets)

    def _write(self, targets: Sequence[tuple[Array, Array]]) -> None:
        """Write the results that follow from the shared memory, which a later call may have replaced.

        The mutant `PLAN` writes the correct values, but only as many elements as the result in the memory has.

        Args:
            targets: pairs of the caller's memory and the array that belongs there.
        """
        for number, (view, array) in enumerate(targets):
            shared = self._memory[number % len(self._memory)]
            if self._kind == PLAN:
                written = array.copy()
                written.reshape(-1)[shared.size :] = view.reshape(-1)[shared.size :]
            else:
                written = _fit(shared, array)
            if written.tobytes() != array.tobytes():
                self.effect = Effect.changed
            np.copyto(view, written)

    def _execute(self) -> None:
        """Execute all queued steps, one of each stream in turn."""
        while any(self._queues.values()):
            for queue in self._queues.values():
                if queue:
                    queue.popleft()()

    def _synchronize(self, stream: int) -> int | None:
        """Execute the queued work, then synchronize the stream; return the error code of the runtime."""
        self._execute()
        assert self._runtime.stream_sync is not None
        return self._runtime.stream_sync(stream)

    def _copy_back(self, stream: int, destination: int, source: int, nbytes: int) -> int | None:
        """Execute the queued work, then copy `nbytes` bytes to the host; return the error code of the runtime."""
        self._execute()
        assert self._runtime.d2h is not None
        return self._runtime.d2h(stream, destination, source, nbytes)

    def open_device(self) -> Device:
        """Return the host as a device that executes queued work only when the caller waits for it."""
        functions = replace(self._runtime, stream_sync=self._synchronize, d2h=self._copy_back)
        return Device(functions, host_addressable=True)


def _fit(array: Array, target: Array) -> Array:
    """Return the bytes of an array, repeated or truncated, in the type and shape of `target`."""
    contents = np.frombuffer(array.tobytes(), np.uint8)
    if not contents.size:
        return target
    return np.frombuffer(np.resize(contents, target.nbytes).tobytes(), target.dtype).reshape(target.shape)


def make_chains(cases: Sequence[BaselineCase]) -> list[tuple[str, Chain]]:
    """Return the chains of one function, by label; none if its results are random or it has a single case."""
    chosen = choose_cases([case for case in cases if not case.draws], CHAIN_LENGTH)
    if len(chosen) < 2:
        return []
    return [(label, Chain(kind, chosen)) for label, kind in KINDS.items() if not kind.mixes_functions]


def run_queue_mutant(
    kind: str, chains: Sequence[tuple[str, Chain]]
) -> tuple[Counter[Effect], tuple[str, tuple[str, ...]] | None]:
    """Run the chains against a mutant until one kills it.

    Args:
        kind: the kind of the mutant.
        chains: the chains by label.

    Returns:
        The number of chains by effect, and the label of the chain that killed the mutant with the failed checks; None
        instead of the latter if the mutant survived.
    """
    effects: Counter[Effect] = Counter()
    for label, chain in chains:
        vendor = QueueingVendor(kind)
        with vendor.open_device() as device:
            outcome = run_in_flight(vendor, device, chain)
        effects[vendor.effect] += 1
        failed = tuple(result.check for result in outcome.check_results if not result.passed)
        if failed:
            return effects, (label, failed)
    return effects, None

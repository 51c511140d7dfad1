"""Record the calls of cases: a vendor that computes nothing, and the calls that the evaluation of a case may make."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, final

from diopi_impl import BaseVendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Error
from diopi_test.execution.call import OFFSET_INCREASE
from diopi_test.execution.call_arguments import PLAIN, CallMode
from diopi_test.execution.call_groups import CHAIN_PREFIX, TargetOutcomeError
from diopi_test.execution.in_flight import Chain
from diopi_test.execution.out_of_place import derive_out_of_place_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.lookup import LoadedCase
from diopi_test.run.run_case import QUEUED, RELAID, WAITED, is_in_leading_type
from diopi_test.run.run_in_flight import SINGLE_CALL
from diopi_test.run.target import LocalTarget
from diopi_test.target.encoding import EncodedCall, encode_call
from lib_rt import Context, Device

RECORDED_DRAWS = 977
"""By how much each recorded call advances a generator: a number that no reset of a generator can produce."""


@final
@dataclass(frozen=True, kw_only=True)
class GeneratorState:
    """The state of a generator before a call.

    Attributes:
        is_relative: whether the offset is added to the state that the previous call left.
        seed, offset: the state, or what is added to it.
    """

    is_relative: bool
    seed: int
    offset: int


@final
@dataclass(frozen=True, kw_only=True)
class CallEntry:
    """A recorded call.

    Attributes:
        key: the key of the call.
        call: the arguments.
        context: the number of the context in the group.
        states: the states of the generators before the call.
    """

    key: bytes
    call: EncodedCall
    context: int
    states: tuple[GeneratorState, ...]


@final
@dataclass
class CallGroup:
    """Calls that are made together, in common contexts."""

    kind: str
    calls: list[CallEntry] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list)

    @property
    def is_chain(self) -> bool:
        """Whether all calls are made before any result is read."""
        return self.kind.startswith(CHAIN_PREFIX)

    def name_of_next(self) -> str:
        """Return the text that distinguishes the next call of the group from equal calls."""
        return name_of_call(self.kind, len(self.calls))


def name_of_call(kind: str, number: int) -> str:
    """Return the text that distinguishes a call of a group from equal calls: its number counts unless it is in flight.

    Args:
        kind: The kind of the group.
        number: The number of calls of the group before this call.

    Returns:
        The text.
    """
    return kind if kind.startswith(CHAIN_PREFIX) else f"{kind} {number}"


@final
class RecordingVendor(BaseVendor):
    """A vendor that records each call, and succeeds without computing anything.

    Attributes:
        groups: the recorded groups of calls.
    """

    def __init__(self) -> None:
        super().__init__("recorder", "1")
        self.groups: list[CallGroup] = []
        self._states: dict[int, tuple[int, int]] = {}

    def begin_calls(self, kind: str) -> None:
        """Begin a group of calls."""
        self.groups.append(CallGroup(kind))
        self._states.clear()

    def has(self, name: str) -> bool:
        """Return True: every function can be recorded."""
        return True

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Record a call."""
        group = self.groups[-1]
        encoded = encode_call(name, context, arguments)
        if context not in group.contexts:
            group.contexts.append(context)
        entry = CallEntry(
            key=encoded.key(group.name_of_next()),
            call=encoded,
            context=group.contexts.index(context),
            states=tuple(self._observe_generators(encoded)),
        )
        group.calls.append(entry)
        return Error.Success

    def _observe_generators(self, call: EncodedCall) -> Iterator[GeneratorState]:
        """Yield the states of the generators of a call, and advance each generator."""
        for generator in call.generators:
            seed, offset = generator.seed, generator.offset
            last_seed, last_offset = self._states.get(id(generator), (-1, 0))
            is_relative = seed == last_seed and offset - last_offset in (0, OFFSET_INCREASE)
            yield GeneratorState(
                is_relative=is_relative,
                seed=0 if is_relative else seed,
                offset=offset - last_offset if is_relative else offset,
            )
            generator.offset = offset + RECORDED_DRAWS
            self._states[id(generator)] = seed, offset + RECORDED_DRAWS

    def last_error(self) -> str:
        """Return an empty text: no recorded call fails."""
        return ""

    def open_device(self) -> Device:
        """Open and return the built-in device."""
        return Device(HostRuntime().functions(), host_addressable=True)


@final
class CallRecorder:
    """A recorder of the calls of cases."""

    def __init__(self) -> None:
        self._vendor = RecordingVendor()
        self._target = LocalTarget(self._vendor, self._vendor.open_device())

    def record(self, loaded: LoadedCase) -> list[CallGroup]:
        """Return the groups of calls that the evaluation of a case may make, in the order in which it makes them.

        Args:
            loaded: The case.

        Returns:
            The groups; none if a runner can't make the calls.
        """
        self._vendor.groups = []
        with suppress(TargetOutcomeError):
            if loaded.chain is not None:
                self._make_chain(loaded.chain)
            elif loaded.soak is not None:
                return []
            elif loaded.flaw is not None:
                with self._target.open_call(loaded.case) as call:
                    call.run_rejected()
            else:
                self._make_calls(loaded.case)
        return [group for group in self._vendor.groups if group.calls]

    def _make_calls(self, case: BaselineCase) -> None:
        """Make the calls of a case that must succeed."""
        for mode in _modes(case):
            with self._target.open_call(case, mode) as call:
                call.run()
        if case.smoke and (plain := derive_out_of_place_case(case)) is not None:
            with self._target.open_call(plain) as call:
                call.run()

    def _make_chain(self, chain: Chain) -> None:
        """Make each call of a chain on its own, then all calls in both orders."""
        for case in chain.cases:
            self._target.run_chain(Chain(SINGLE_CALL, [case]))
        for cases in (chain.cases, chain.cases[::-1]):
            self._target.run_chain(Chain(chain.kind, cases))

    def close(self) -> None:
        """Close the device."""
        self._target.close()


def _modes(case: BaselineCase) -> Iterator[CallMode]:
    """Yield the modes in which the evaluation may call a case."""
    yield PLAIN
    if case.smoke:
        yield from (QUEUED, WAITED)
        if is_in_leading_type(case):
            yield RELAID

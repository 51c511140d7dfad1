"""Record the calls of cases: a vendor that computes nothing, and the calls that the evaluation of a case may make."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, final

from diopi_impl import BaseVendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Error
from diopi_test.execution.call import OFFSET_INCREASE
from diopi_test.execution.call_arguments import PLAIN, CallMode
from diopi_test.execution.call_groups import CHAIN_PREFIX, TargetOutcomeError, describe_mode
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
"""The number by which each recorded call advances the offset of a generator. No reset of a generator results in this
difference, so that the recorder can tell whether the generator was reset."""


@final
@dataclass(frozen=True, kw_only=True)
class GeneratorState:
    """The state of a generator before a call.

    Attributes:
        is_relative: whether the generator continues from the state in which the previous call has left it.
        seed: the seed; 0 if the state is relative.
        offset: the offset; if the state is relative, the number that is added to the offset after the previous call.
    """

    is_relative: bool
    seed: int
    offset: int


@final
@dataclass(frozen=True, kw_only=True)
class CallEntry:
    """A recorded call.

    Attributes:
        key: the key that identifies the call.
        call: the encoded arguments.
        context: the index of the context of the call in the group.
        states: the states of the generators before the call.
    """

    key: bytes
    call: EncodedCall
    context: int
    states: tuple[GeneratorState, ...]


@final
@dataclass
class CallGroup:
    """Calls that are made together, in common contexts.

    Attributes:
        kind: the kind of the group, see `execution.call_groups`.
        calls: the calls in order.
        contexts: the contexts of the calls.
    """

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

    def copy_as(self, kind: str) -> CallGroup:
        """Return a group of another kind with the same calls, whose keys then differ."""
        keys = (entry.call.key(name_of_call(kind, number)) for number, entry in enumerate(self.calls))
        calls = [replace(entry, key=key) for entry, key in zip(self.calls, keys, strict=True)]
        return CallGroup(kind, calls, self.contexts)


def name_of_call(kind: str, number: int) -> str:
    """Return the text that distinguishes a call from equal calls: the kind of its group and, in most kinds, its number.

    In a chain, whose calls are made in two orders, the number does not count.

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
        """Record a call, with the states of its generators, and return Success."""
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
    """A recorder of the calls of cases, on the built-in device."""

    def __init__(self) -> None:
        self._vendor = RecordingVendor()
        self._target = LocalTarget(self._vendor, self._vendor.open_device())

    def record(self, loaded: LoadedCase) -> list[CallGroup]:
        """Return the groups of calls that the evaluation of a case may make, in the order in which it makes them.

        Args:
            loaded: The case.

        Returns:
            The groups. They are missing for a soak test, and from the first call on that a runner can't make.
        """
        self._vendor.groups = []
        with suppress(TargetOutcomeError):
            if loaded.chain is not None:
                self._make_chain(loaded.chain)
            elif loaded.soak is not None:
                return []
            elif loaded.flaw is not None:
                self._make_one_call(loaded.case, PLAIN)
            else:
                self._make_calls(loaded.case)
        return [group for group in self._vendor.groups if group.calls]

    def _make_calls(self, case: BaselineCase) -> None:
        """Make the calls that `run_case.evaluate_case` may make for a valid case."""
        self._make_call(case, PLAIN)
        if not case.smoke:
            return
        self._make_call(case, WAITED)
        self._vendor.groups.append(self._vendor.groups[-1].copy_as(describe_mode(QUEUED)))
        if is_in_leading_type(case):
            self._make_call(case, RELAID)
        if (plain := derive_out_of_place_case(case)) is not None:
            self._make_call(plain, PLAIN)

    def _make_call(self, case: BaselineCase, mode: CallMode) -> None:
        """Make the call of a case in one mode; if the case draws random numbers, make the repetitions as well."""
        if case.draws:
            with self._target.open_call(case, mode) as call:
                call.run()
        else:
            self._make_one_call(case, mode)

    def _make_one_call(self, case: BaselineCase, mode: CallMode) -> None:
        """Make a single call without reading its results."""
        with self._target.open_call(case, mode) as call:
            make_call = call.prepare()
            call.send_inputs()
            make_call()

    def _make_chain(self, chain: Chain) -> None:
        """Make each call of a chain on its own, then all calls in both orders."""
        for case in chain.cases:
            self._target.run_chain(Chain(SINGLE_CALL, [case]))
        for cases in (chain.cases, chain.cases[::-1]):
            self._target.run_chain(Chain(chain.kind, cases))

    def close(self) -> None:
        """Close the device."""
        self._target.close()

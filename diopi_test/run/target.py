"""The interface through which the evaluation of cases calls a vendor, and its implementation for this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import Protocol, Self, final

from diopi_impl import BaseVendor, Numerics, OperatorUse
from diopi_proto.types import Error
from diopi_test.execution.call import Call
from diopi_test.execution.call_arguments import PLAIN, CallMode
from diopi_test.execution.call_groups import announce_calls, describe_chain, describe_mode
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.in_flight import Chain, run_chain
from diopi_test.execution.process_memory import measure_memory
from diopi_test.execution.runtime_cases import RUNTIME_CASES
from diopi_test.execution.stopwatch import measure_copy_bandwidth, time_call
from diopi_test.execution.timing import Timing
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.declaration_check import measure_field
from lib_rt import Device
from lib_rt.errors import GuardError


class TargetCall(Protocol):
    """A call on a target, as a context manager that releases the tensors at its end; see `execution.call.Call`.

    Attributes:
        damage: The damaged guard zones that were found when the tensors were released.
    """

    damage: list[GuardError]

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def run(self) -> CallRecord:
        """Call the function and return the record of the call; raise RejectedCallError if it returns an error code."""

    def run_rejected(self) -> tuple[Error, str, CallRecord]:
        """Call the function once, expecting an error; return the error code, the last error and the record."""

    def find_late_results(self) -> list[str]:
        """Return the names of results whose memory changed after it was read, although the stream had finished."""

    def count_unreleased(self) -> tuple[int, int]:
        """Return how many tensors and how many memory blocks exist that did not exist before the call; call it last."""


class Target(Protocol):
    """A vendor on its open device. The evaluation makes all calls of a vendor through this interface."""

    @property
    def name(self) -> str:
        """The vendor's name."""

    @property
    def numerics(self) -> Numerics:
        """The arithmetic that the vendor declares."""

    def has(self, function: str) -> bool:
        """Return whether the vendor implements a function."""

    def last_error(self) -> str:
        """Return the vendor's last error."""

    def open_call(self, case: BaselineCase, mode: CallMode = PLAIN, *, stays_open: bool = False) -> TargetCall:
        """Return a call of a case.

        Args:
            case: The case.
            mode: The way in which the call is executed.
            stays_open: Whether `find_late_results` may be used, for which the target must keep the tensors of the call.
        """

    def run_chain(self, chain: Chain) -> tuple[list[CallRecord | Error], list[GuardError]]:
        """Make the calls of a chain, and return records or error codes, and damage; see `in_flight.run_chain`."""

    def measure_memory(self) -> Mapping[str, int]:
        """Return the memory of the vendor's process and device; see `process_memory.measure_memory`."""

    def time_call(self, case: BaselineCase) -> Timing:
        """Measure the call of a case; raise RejectedCallError if the function returns an error code."""

    def run_runtime_case(self, name: str) -> Outcome:
        """Return the outcome of the case `name` of the runtime functions."""

    def measure_field(self, numerics: Numerics, label: str) -> Outcome:
        """Return the outcome of measuring a field of a declared arithmetic; see `declaration_check.measure_field`."""

    def take_operator_uses(self) -> Sequence[OperatorUse]:
        """Return the operators of the vendor's framework that ran in calls; see `BaseVendor.take_operator_uses`."""

    def close(self) -> None:
        """Close the device."""


@final
class LocalTarget(Target):
    """A vendor in this process, on its open device."""

    def __init__(self, vendor: BaseVendor, device: Device) -> None:
        self._vendor = vendor
        self._device = device

    @property
    def name(self) -> str:
        """Return the name of the vendor."""
        return self._vendor.name

    @property
    def numerics(self) -> Numerics:
        """Return the arithmetic that the vendor declares."""
        return self._vendor.numerics

    def has(self, function: str) -> bool:
        """Return whether the vendor implements a function."""
        return self._vendor.has(function)

    def last_error(self) -> str:
        """Return the vendor's last error."""
        return self._vendor.last_error()

    def open_call(self, case: BaselineCase, mode: CallMode = PLAIN, *, stays_open: bool = False) -> Call:
        """Return a call of a case; the tensors always exist until the call is closed."""
        announce_calls(self._vendor, describe_mode(mode))
        return Call(self._vendor, self._device, case, mode)

    def run_chain(self, chain: Chain) -> tuple[list[CallRecord | Error], list[GuardError]]:
        """Make the calls of a chain, and return records or error codes, and damage; see `in_flight.run_chain`."""
        announce_calls(self._vendor, describe_chain(chain))
        return run_chain(self._vendor, self._device, chain)

    def measure_memory(self) -> Mapping[str, int]:
        """Return the memory of this process and of the device; see `process_memory.measure_memory`."""
        return measure_memory(self._device)

    def time_call(self, case: BaselineCase) -> Timing:
        """Measure the call of a case; raise RejectedCallError if the function returns an error code."""
        announce_calls(self._vendor, "time measurements")
        return time_call(self._vendor, self._device, case, self._bandwidth)

    @cached_property
    def _bandwidth(self) -> float | None:
        """Return the copy bandwidth of the device in bytes per second, which is measured once."""
        return measure_copy_bandwidth(self._device)

    def run_runtime_case(self, name: str) -> Outcome:
        """Return the outcome of the case `name` of the runtime functions."""
        announce_calls(self._vendor, "cases of the runtime functions")
        case = next(case for case in RUNTIME_CASES if case.name == name)
        try:
            case.run(self._vendor)
        except Exception as error:
            return Outcome(verdict=Verdict.failed, message=f"{type(error).__name__}: {error}")
        return Outcome(verdict=Verdict.passed)

    def measure_field(self, numerics: Numerics, label: str) -> Outcome:
        """Return the outcome of measuring a field of a declared arithmetic; see `declaration_check.measure_field`."""
        announce_calls(self._vendor, "measurements of the arithmetic")
        return measure_field(self._vendor, self._device, numerics, label)

    def take_operator_uses(self) -> Sequence[OperatorUse]:
        """Return the operators of the vendor's framework that ran in calls."""
        return self._vendor.take_operator_uses()

    def close(self) -> None:
        """Close the device."""
        self._device.close()

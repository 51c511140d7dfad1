"""Mutants of long series of calls: every n-th call is wrong, or calls leak memory of the host.

A soak test is such a series: it repeats the calls of a function many times.
"""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np

from diopi_impl import Box
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_proto.types import Error
from diopi_test.execution.in_flight import choose_cases
from diopi_test.execution.process_memory import STATUS
from diopi_test.execution.soak import LABEL, MAX_CASES, SoakTest
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation.mutant import Effect, SimulatedCall
from diopi_test.quality.mutation.results import change_last_element
from diopi_test.quality.mutation.vendor import CaseTakingVendor, dense_tensors, fill_box
from diopi_test.run.limits import DEFAULT_SOAK_CALLS
from diopi_test.run.run_soak import run_soak
from lib_rt import Context, Device

PERIOD = 90
"""The number of calls after which a result is wrong; a run of level full makes `DEFAULT_SOAK_CALLS` calls."""

LEAKED_BYTES = 32 * 2**10
"""The number of bytes that a call leaks."""

MAX_SECONDS = 60.0
"""The time in seconds after which no further call is made."""

PERIODIC = f"every {PERIOD}th call wrong"
"""The kind of mutants with a wrong result from time to time."""


def _allocate() -> object:
    """Return memory of the C library's allocator that has been written to."""
    return np.ones(LEAKED_BYTES, np.uint8)


def _map() -> object:
    """Return memory that the operating system maps, without the C library's allocator."""
    pages = mmap.mmap(-1, LEAKED_BYTES)
    pages[:] = bytes([1]) * LEAKED_BYTES
    return pages


LEAKS: Mapping[str, Callable[[], object]] = {
    "allocated memory leaked in every call": _allocate,
    "mapped memory leaked in every call": _map,
}
"""The functions that allocate the leaked memory, by the kind of the mutant."""

SOAK_KINDS = (PERIODIC, *LEAKS)
"""The kinds of mutants of long series of calls."""


@final
class SoakVendor(CaseTakingVendor):
    """A vendor that writes the expected results, except for the defect of a mutant of a kind of `SOAK_KINDS`.

    Attributes:
        effect: whether a result was wrong, or memory was leaked, since the vendor was created.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self._correct_calls = 0
        self._leaked: list[object] = []

    def open_device(self) -> Device:
        """Return the host as the device."""
        return Device(HostRuntime().functions(), host_addressable=True)

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Write the expected results after `_corrupt` has changed them or has leaked memory.

        Args:
            name: the name of the called function.
            context: the context, whose stream is synchronized first.
            *arguments: the arguments after the context, in the order of the prototype.

        Returns:
            Always `Success`.
        """
        context.stream.synchronize()
        assert self._case is not None, "the case has been received"
        call = SimulatedCall.from_expected(self._case)
        self._corrupt(call)
        for parameter, value in zip(lookup(name).parameters[1:], arguments, strict=True):
            if not parameter.is_result or parameter.name not in call.results:
                continue
            arrays = call.results[parameter.name]
            boxes = [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, Box)]
            for box, array in zip(boxes, arrays, strict=False):
                fill_box(context, parameter, box, array, call)
            if not boxes:
                for tensor, array in zip(dense_tensors(value), arrays, strict=True):
                    np.copyto(tensor.view(), array.reshape(tensor.shape))
        return Error.Success

    def _corrupt(self, call: SimulatedCall) -> None:
        """Leak memory, or change the results if at least `PERIOD - 1` calls were correct since the latest wrong one."""
        if (allocate := LEAKS.get(self._kind)) is not None:
            self._leaked.append(allocate())
            self.effect = Effect.changed
        elif self._correct_calls >= PERIOD - 1 and change_last_element(call) is Effect.changed:
            self._correct_calls = 0
            self.effect = Effect.changed
        else:
            self._correct_calls += 1


def run_soak_mutant(
    kind: str, cases: Sequence[BaselineCase]
) -> tuple[Counter[Effect], tuple[str, tuple[str, ...]] | None]:
    """Run the soak test of a function against a mutant.

    Args:
        kind: the kind of the mutant.
        cases: the stored cases of the function.

    Returns:
        The number of soak tests by effect, and the label of the soak test that killed the mutant with the failed
        checks. A function with random results has no soak test here. Leaks are not applicable if the system does not
        report the memory of a process.
    """
    chosen = choose_cases([case for case in cases if not case.draws], MAX_CASES)
    if not chosen or (kind in LEAKS and not STATUS.exists()):
        return Counter(), None
    vendor = SoakVendor(kind)
    with vendor.open_device() as device:
        outcome = run_soak(vendor, device, SoakTest(cases=chosen, count=DEFAULT_SOAK_CALLS, seconds=MAX_SECONDS))
    failed = tuple(result.check for result in outcome.check_results if not result.passed)
    return Counter([vendor.effect]), (LABEL, failed) if failed else None

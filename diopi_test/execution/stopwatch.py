"""Measurement of the duration of calls, and of a device's memory bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod
from statistics import median
from time import perf_counter
from typing import Any

from diopi_impl import BaseVendor
from diopi_proto.interface import lookup
from diopi_proto.types import Error
from diopi_test.execution.call import Call, RejectedCallError
from diopi_test.execution.timing import Timing
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected
from lib_rt import Context, Device
from lib_rt.dtypes import to_numpy
from lib_rt.errors import CallError

WARMUP_CALLS = 2
"""The number of calls before the first timed call, in which a vendor compiles, tunes and fills its caches."""

MAX_REPEATS = 20
"""The maximum number of timed calls."""

MIN_REPEATS = 3
"""The minimum number of timed calls, whatever their duration."""

MAX_SECONDS = 0.5
"""Total duration of the timed calls in seconds after which no further call is timed."""

MAX_CONTEXT_BYTES = 2**28
"""When the tensors that calls have allocated in the context exceed this number of bytes, no further call is timed."""

COPY_BYTES = 64 * 2**20
"""The number of bytes that are copied to measure the bandwidth of a device; it exceeds most caches."""

TIMED_COPIES = 5
"""The number of copies that are timed; the fastest one counts."""


def time_call(vendor: BaseVendor, device: Device, case: BaselineCase, bandwidth: float | None) -> Timing:
    """Measure the call of a case.

    Args:
        vendor: The vendor.
        device: The vendor's open device.
        case: The case.
        bandwidth: The bandwidth of the device's memory in bytes per second; None if unknown.

    Returns:
        The median duration of the call, with the numbers of repeats, bytes and operations.

    Raises:
        RejectedCallError: The function returned an error code.
    """
    seconds: list[float] = []
    with Call(vendor, device, case) as call:
        make = call.prepare()
        for _ in range(WARMUP_CALLS):
            _time_once(call, make)
        full = device.live_bytes + MAX_CONTEXT_BYTES
        while len(seconds) < MIN_REPEATS or (
            len(seconds) < MAX_REPEATS and sum(seconds) < MAX_SECONDS and device.live_bytes < full
        ):
            seconds.append(_time_once(call, make))
    return Timing(
        seconds=round(median(seconds), 9),
        repeats=len(seconds),
        bytes=count_bytes(case),
        operations=count_operations(case),
        bandwidth=bandwidth,
    )


def _time_once(call: Call, make: Callable[[], Error]) -> float:
    """Send the inputs, make the call, and return the seconds from the call until its stream has finished.

    Args:
        call: The call with its tensors.
        make: The function that makes the call.

    Returns:
        The duration in seconds.

    Raises:
        RejectedCallError: The function returned an error code.
    """
    call.send_inputs()
    start = perf_counter()
    code = make()
    call.context.stream.synchronize()
    seconds = perf_counter() - start
    if code is not Error.Success:
        raise RejectedCallError(code)
    return seconds


def count_bytes(case: BaselineCase) -> int:
    """Return the bytes of all tensors of a call; a tensor that is updated counts twice."""
    tensors = [*_iterate_tensors(case.arguments.values()), *_iterate_tensors(case.expected.values())]
    return sum(prod(tensor.values.shape) * to_numpy(tensor.dtype).itemsize for tensor in tensors)


def count_operations(case: BaselineCase) -> int | None:
    """Return one operation per element of the results of an element-wise function; None for other functions."""
    if not lookup(case.function).elementwise:
        return None
    return sum(prod(tensor.values.shape) for tensor in _iterate_tensors(case.expected.values()))


def _iterate_tensors(values: Iterable[Any]) -> Iterator[BaselineTensor | Expected]:
    """Yield the tensors and expected results among arguments or results, also in lists."""
    for value in values:
        if isinstance(value, list):
            yield from _iterate_tensors(value)
        elif isinstance(value, BaselineTensor | Expected):
            yield value


def measure_copy_bandwidth(device: Device, nbytes: int = COPY_BYTES) -> float | None:
    """Measure how fast a device copies its own memory.

    Args:
        device: The open device.
        nbytes: The number of bytes of a copy.

    Returns:
        The bytes per second that the device reads and writes, twice the copied bytes; None if the device can't copy or
        lacks memory.
    """
    blocks: list[int] = []
    try:
        with Context(device) as context:
            for _ in range(2):
                blocks.append(device.malloc(nbytes))
            source, destination = blocks
            seconds = [_copy_seconds(context, destination, source, nbytes) for _ in range(TIMED_COPIES + 1)]
    except CallError:
        return None
    finally:
        for block in blocks:
            device.free(block)
    return float(round(2 * nbytes / min(seconds[1:])))


def _copy_seconds(context: Context, destination: int, source: int, nbytes: int) -> float:
    """Return the seconds that a copy of `nbytes` bytes within the device takes, between two addresses."""
    start = perf_counter()
    context.stream.d2d(destination, source, nbytes)
    context.stream.synchronize()
    return perf_counter() - start

"""The check that memory does not grow with the number of calls.

The first half of the calls is the warm-up, in which a vendor may fill its caches. The second half is divided into eight
windows, and the memory is measured at their ends. A quantity grows if the low median of its eight increases, which is
the fourth smallest one, is larger than `TOLERATED_BYTES`. So at least five windows must contain a larger increase, and
up to four windows may contain an increase of any size: an allocator that reserves a large block, or a cache that
reaches its final size late, is not a leak. A leak of a constant size per call increases the memory in every window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low
from typing import final

from diopi_proto.messages import pluralize
from diopi_test.execution.process_memory import DEVICE_BLOCKS
from diopi_test.execution.soak import WINDOWS, MemorySample, SoakRecord
from diopi_test.execution.verdict import CheckResult

TOLERATED_BYTES = 64 * 2**10
"""The largest accepted low median of the windows' increases in bytes; allocators reserve and return pages."""

TOLERATED_BLOCKS = 0
"""The largest accepted low median of the windows' increases in blocks of device memory."""


@final
@dataclass(frozen=True, kw_only=True)
class Growth:
    """A quantity of memory that grows with the number of calls.

    Attributes:
        quantity: the name of the quantity, see `process_memory`.
        rate: the low median of the growth per call in the windows, in bytes or blocks.
        before, after: the amount after the warm-up and at the end.
    """

    quantity: str
    rate: float
    before: int
    after: int

    @property
    def rate_text(self) -> str:
        """Return the rate with its unit."""
        return describe_rate(self.quantity, self.rate)


def describe_rate(quantity: str, rate: float) -> str:
    """Return a rate with its unit, such as `1,040 bytes per call`."""
    unit = "blocks" if quantity == DEVICE_BLOCKS else "bytes"
    return f"{rate:,.3g} {unit} per call" if rate < 10 else f"{rate:,.0f} {unit} per call"


def find_growth(samples: Sequence[MemorySample]) -> list[Growth]:
    """Return the quantities that grow with the number of calls.

    Args:
        samples: the memory after the warm-up and after each window; fewer samples show no growth.

    Returns:
        The quantities, sorted by rate, highest first.
    """
    if len(samples) <= WINDOWS:
        return []
    series = []
    for quantity in samples[0].memory:
        amounts = [sample.memory[quantity] for sample in samples]
        increases = [later - earlier for earlier, later in pairwise(amounts)]
        calls = [later.calls - earlier.calls for earlier, later in pairwise(samples)]
        tolerance = TOLERATED_BLOCKS if quantity == DEVICE_BLOCKS else TOLERATED_BYTES
        if median_low(increases) > tolerance:
            rate = median_low([increase / count for increase, count in zip(increases, calls, strict=True)])
            series.append(Growth(quantity=quantity, rate=rate, before=amounts[0], after=amounts[-1]))
    return sorted(series, key=lambda growth: -growth.rate)


def check(record: SoakRecord) -> CheckResult:
    """Check that the memory of the process and of the device does not grow with the number of calls.

    Args:
        record: the observations of the soak test.

    Returns:
        The result of the check. The message names each growing quantity with its rate, and the call that causes most
        of the growth.
    """
    if len(record.samples) <= WINDOWS:
        message = f"not checked: {pluralize(record.calls, 'call')} are too few"
        return CheckResult(check="growth", passed=True, message=message)
    growths = find_growth(record.samples)
    first, last = record.samples[0], record.samples[-1]
    span = f"between call {first.calls:,} and call {last.calls:,} of {record.planned:,}"
    problems = [
        f"{growth.quantity} grows by {growth.rate_text}, from {growth.before:,} to {growth.after:,} {span}"
        for growth in growths
    ]
    if growths and record.growth_by_case:
        quantity = growths[0].quantity
        case, rates = max(record.growth_by_case.items(), key=lambda item: item[1][quantity])
        problems.append(f"calls of {case} cause the most: {describe_rate(quantity, rates[quantity])}")
    return CheckResult(check="growth", passed=not growths, message="; ".join(problems))

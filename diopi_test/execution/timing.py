"""`Timing`: the duration of a call, and the bytes of memory that it has to touch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

OPTIONAL = {"omit_default": True}
"""Metadata of fields that JSON omits if they have their default."""


@final
@dataclass(frozen=True, kw_only=True)
class Timing:
    """The duration of a call, measured by `execution.stopwatch`.

    Attributes:
        seconds: the median of the repeats; each lasts until the device has finished.
        repeats: the number of timed calls after the warm-up.
        bytes: the number of bytes that the call reads or writes; updated tensors count twice.
        operations: the number of result elements of functions that compute each result element from the elements at the
            same index; None for other functions, whose prototypes don't state the number.
        bandwidth: bytes that the device reads and writes per second when it copies its own memory; None if it can't.
    """

    seconds: float
    repeats: int
    bytes: int
    operations: int | None = field(default=None, metadata=OPTIONAL)
    bandwidth: float | None = field(default=None, metadata=OPTIONAL)

    @property
    def relative_to_copy(self) -> float | None:
        """The duration relative to a copy that moves as many bytes; None if the bandwidth is unknown."""
        return self.seconds * self.bandwidth / self.bytes if self.bandwidth and self.bytes else None

"""`Timing`: the duration of a call, and the bytes of memory that it has to touch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

OPTIONAL = {"omit_default": True}


@final
@dataclass(frozen=True)
class Timing:
    """The duration of a call, measured by `execution.stopwatch`.

    Attributes:
        seconds: the median of the repeats, each until the device was done.
        repeats: how often the call was timed, once it was warm.
        bytes: of the elements of its tensors, which it reads or writes; what is updated counts twice.
        operations: one an element of the results, of functions that compute each from the elements at its place; None
            of others, whose prototypes do not tell.
        bandwidth: bytes that the device reads and writes in a second when it copies its own memory; None if it can't.
    """

    seconds: float
    repeats: int
    bytes: int
    operations: int | None = field(default=None, metadata=OPTIONAL)
    bandwidth: float | None = field(default=None, metadata=OPTIONAL)

    @property
    def distance(self) -> float | None:
        """Return the duration relative to a copy that moves as many bytes; None if the bandwidth is unknown."""
        return self.seconds * self.bandwidth / self.bytes if self.bandwidth and self.bytes else None

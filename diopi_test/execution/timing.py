"""`Timing`: how long a call takes on a vendor's device, beside the memory it has to touch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

OPTIONAL = {"omit_default": True}


@final
@dataclass(frozen=True)
class Timing:
    """How long a call takes, as `execution.stopwatch` measures it.

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
        """How many times as long it takes as a copy that moves as many bytes; None where that is not known."""
        return self.seconds * self.bandwidth / self.bytes if self.bandwidth and self.bytes else None

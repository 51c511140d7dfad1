"""The memory of the process that runs the cases, in which the library under test allocates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from diopi_engine.conformance.bench import NotApplicableError, NotConformingError

_STATUS = Path("/proc/self/status")
"""The file in which Linux states the memory of this process."""

CYCLES = 6
"""How often an action is repeated while the growth is measured. Half as many repetitions precede the measurement."""

MAX_GROWTH = 16 << 20
"""Maximum growth of the memory per repetition in bytes."""


def resident_memory() -> int:
    """Return the bytes of this process in memory and swap space; raise NotApplicableError if they are unknown."""
    if not _STATUS.exists():
        raise NotApplicableError("the system does not state the memory of a process in /proc/self/status")
    fields = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
    return sum(int(fields[name].split()[0]) << 10 for name in ("VmRSS", "VmSwap") if name in fields)


def check_memory_is_freed(subject: str, action: Callable[[], None]) -> None:
    """Repeat an action, and check that it frees the memory that it allocates.

    The first CYCLES // 2 repetitions are not measured, because a library may keep memory for later calls.

    Args:
        subject: what the action creates and destroys, for the message.
        action: what is repeated.

    Raises:
        NotConformingError: if the memory grows by more than `MAX_GROWTH` per repetition.
    """
    for _ in range(CYCLES // 2):
        action()
    bytes_before = resident_memory()
    for _ in range(CYCLES):
        action()
    growth = (resident_memory() - bytes_before) // CYCLES
    if growth > MAX_GROWTH:
        raise NotConformingError(f"{subject} leaves {growth} bytes of memory, expected at most {MAX_GROWTH}")

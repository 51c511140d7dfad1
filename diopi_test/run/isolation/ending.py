"""The end of a worker: what its exit status means, and the outcome of the case that was running."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path

from diopi_test.execution.verdict import Outcome, Verdict

MEMORY_STATISTICS = Path("/proc/self/statm")
"""The file in which Linux reports the memory of a process. On other systems, memory can't be limited."""


def describe_exit(status: int) -> str:
    """Return the description of an exit status as a predicate, such as "was ended by SIGSEGV (segmentation fault)".

    Args:
        status: The exit status, as `os.wait` returns it.
    """
    if not os.WIFSIGNALED(status):
        return f"left its process with exit code {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    described = signal.strsignal(number)
    text = f"was ended by {name}" + (f" ({described.lower()})" if described else "")
    return f"{text}, as the system ends processes when memory runs out" if number == signal.SIGKILL else text


def append_output(text: str, output: str) -> str:
    """Return the text followed by the last output of the process, if there is any."""
    return f"{text}; its output: {output}" if output else text


def outcome_of_end(status: int, end_reason: tuple[Verdict, str] | None, output: str) -> Outcome:
    """Return the outcome of the case that was running when its process ended.

    Args:
        status: The exit status, as `os.wait` returns it.
        end_reason: The verdict and the reason if the parent ended the process; None if it ended on its own.
        output: The output of the process during the case.

    Returns:
        The outcome of the case.
    """
    verdict, text = end_reason or (Verdict.crashed, f"the vendor {describe_exit(status)}")
    return Outcome(verdict=verdict, message=append_output(text, output))


def cpu_seconds(process: int) -> float:
    """Return the CPU seconds a process has used: infinity if the system does not report them, 0 if it has ended."""
    if not MEMORY_STATISTICS.exists():
        return math.inf
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy_seconds(process: int) -> float:
    """Return the seconds for which a process has used a CPU or waited for a CPU that other programs used.

    Args:
        process: The process ID.

    Returns:
        The seconds; infinity if the system does not report CPU times. Waiting counts only if the system reports it.
    """
    try:
        waiting = int(Path(f"/proc/{process}/schedstat").read_text("utf-8").split()[1]) / 1e9
    except (OSError, IndexError):
        waiting = 0.0
    return cpu_seconds(process) + waiting


def resident_bytes(process: int) -> int:
    """Return the bytes of physical memory a process uses; 0 if it has ended."""
    try:
        statistics = Path(f"/proc/{process}/statm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(statistics.split()[1]) * os.sysconf("SC_PAGE_SIZE")

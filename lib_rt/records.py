"""Timing records that operators make with `diopiRecordStart` and `diopiRecordEnd`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

from lib_rt.library import check, ffi, lib, text


@final
@dataclass(frozen=True)
class Record:
    """A named time span that an operator recorded.

    Attributes:
        name: Name that the operator gave the span.
        depth: Number of spans of the same thread that enclose it.
        seconds: Duration.
    """

    name: str
    depth: int
    seconds: float


@contextmanager
def recording() -> Iterator[list[Record]]:
    """Collect the time spans that end within the `with` block, in all threads. Blocks can't be nested.

    Yields:
        A list that is filled at the end of the block.
    """
    records: list[Record] = []
    lib.diopirt_record_log(True)
    try:
        yield records
    finally:
        records.extend(_read_log())
        lib.diopirt_record_log(False)


def _read_log() -> Iterator[Record]:
    """Iterate over the time spans that the runtime logged."""
    name, depth, nanoseconds = ffi.new("char const**"), ffi.new("int32_t*"), ffi.new("int64_t*")
    for index in range(lib.diopirt_record_count()):
        check(lib.diopirt_record_logged(index, name, depth, nanoseconds))
        yield Record(text(name[0]), depth[0], nanoseconds[0] / 1e9)

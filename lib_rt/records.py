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
    """A span of time an operator named.

    Attributes:
        name: what the operator called it.
        depth: number of records of the same thread it lies in.
        seconds: its duration.
    """

    name: str
    depth: int
    seconds: float


@contextmanager
def recording() -> Iterator[list[Record]]:
    """Collect the records that end while it lasts; the list is filled when it ends. Process-wide, not nestable."""
    records: list[Record] = []
    lib.diopirt_record_log(True)
    try:
        yield records
    finally:
        records.extend(_logged())
        lib.diopirt_record_log(False)


def _logged() -> Iterator[Record]:
    name, depth, nanoseconds = ffi.new("char const**"), ffi.new("int32_t*"), ffi.new("int64_t*")
    for index in range(lib.diopirt_record_count()):
        check(lib.diopirt_record_logged(index, name, depth, nanoseconds))
        yield Record(text(name[0]), depth[0], nanoseconds[0] / 1e9)

"""Read the results of a target: the vendor's description, and the effects of each call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import final

from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.run.isolation.ending import outcome_of_end
from diopi_test.target.encoding import KEY_BYTES
from diopi_test.target.records import (
    WORD_BYTES,
    FileKind,
    TargetFile,
    TargetFileError,
    TargetRecord,
    WordReader,
    read_records,
)

VENDOR, CALL, RESULT, GUARDS, LOSS = b"VEND", b"CALL", b"RSLT", b"GARD", b"LOST"
"""The tags of the records: the vendor's description; the beginning of a call; its results; the damaged guard zones of a
group of calls, which complete the group; and the end of the process that made the calls."""

DAMAGE_BYTES = KEY_BYTES + 2 * WORD_BYTES
"""The size in bytes of the description of a damaged guard zone."""


class LossKind(IntEnum):
    """How the process ended that made the calls."""

    by_signal = 0
    by_exit = 1
    by_timeout = 2
    by_interruption = 3


@final
@dataclass(kw_only=True)
class TargetCallResult:
    """The effects of a call on the target.

    Attributes:
        result: the payload of the result record after the key; None if the call has not returned.
        damage: the damaged guard zones: the index of the tensor, and the offset of the first damaged byte in bytes from
            the beginning of the storage.
        loss: the outcome of the case if the process ended before the group of the call was complete; else None.
        is_settled: whether the records of the group are complete.
    """

    result: memoryview | None = None
    damage: list[tuple[int, int]] = field(default_factory=list)
    loss: Outcome | None = None
    is_settled: bool = False


@final
class TargetResults:
    """The results of a target.

    Attributes:
        identity: the identity of the bundle that was run.
        name, version: the name and the version of the vendor.
        functions: the standard functions that the vendor's library has.
        calls: the effects of the calls, by key; equal calls are in the order in which they were made.
        is_complete: whether the runner has reached the end of the bundle.

    Args:
        path: The path of the file. Records may still be appended to it.

    Raises:
        TargetFileError: The file is missing, damaged, not of this kind, or does not describe the vendor.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        file = read_records(path, FileKind.results)
        self.identity = file.identity
        self.is_complete = file.is_complete
        self.name, self.version, self.functions = _read_vendor(path, file)
        self.calls: dict[bytes, list[TargetCallResult]] = defaultdict(list)
        self._group: list[tuple[bytes, TargetCallResult]] = []
        self._end = file.end
        self._add(file.records)

    def read_further(self) -> bool:
        """Read the records that were appended to the file; return whether there are any."""
        if self.is_complete:
            return False
        file = read_records(self._path, FileKind.results, self._end)
        self.is_complete, self._end = file.is_complete, file.end
        self._add(file.records)
        return bool(file.records)

    def _add(self, records: Sequence[TargetRecord]) -> None:
        """Add the effects of calls from these records."""
        for record in records:
            key = bytes(record.payload[:KEY_BYTES])
            if record.tag == CALL:
                self._group.append((key, TargetCallResult()))
                self.calls[key].append(self._group[-1][1])
            elif record.tag == RESULT:
                _first_without_result(self._path, self._group, key).result = record.payload[KEY_BYTES:]
            elif record.tag == GUARDS:
                _add_damage(record, self._group)
                self._settle_group()
            elif record.tag == LOSS:
                _add_loss(record.reader(), self._group)
                self._settle_group()

    def _settle_group(self) -> None:
        """Mark the calls of the current group as settled, and begin a new group."""
        for _, call in self._group:
            call.is_settled = True
        self._group = []


def _read_vendor(path: Path, file: TargetFile) -> tuple[str, str, frozenset[str]]:
    """Return the name, the version and the functions of the vendor; raise TargetFileError if they are missing."""
    description = next((record.reader() for record in file.records if record.tag == VENDOR), None)
    if description is None:
        raise TargetFileError(f"{path} does not describe a vendor: the vendor did not start on the target")
    name, version = description.text(), description.text()
    return name, version, frozenset(description.text() for _ in range(description.number()))


def _first_without_result(path: Path, group: Sequence[tuple[bytes, TargetCallResult]], key: bytes) -> TargetCallResult:
    """Return the first call of a group that has this key and no result; raise TargetFileError if there is none."""
    for call_key, call in group:
        if call_key == key and call.result is None:
            return call
    raise TargetFileError(f"{path} is damaged: it has the result of a call that did not begin")


def _add_damage(record: TargetRecord, group: Sequence[tuple[bytes, TargetCallResult]]) -> None:
    """Add the damaged guard zones of a group to its calls."""
    reader = record.reader()
    for _ in range(len(record.payload) // DAMAGE_BYTES):
        key, damage = bytes(reader.data(KEY_BYTES)), (reader.number(), reader.number())
        for call_key, call in group:
            if call_key == key:
                call.damage.append(damage)


def _add_loss(reader: WordReader, group: Sequence[tuple[bytes, TargetCallResult]]) -> None:
    """Add the end of the process to the calls without results, or to the last call if all calls have results."""
    outcome = describe_loss(LossKind(reader.number()), reader.number())
    for _, call in [(key, call) for key, call in group if call.result is None] or group[-1:]:
        call.loss = outcome


def describe_loss(kind: LossKind, value: int) -> Outcome:
    """Return the outcome of a case during which the process on the target ended, as a run on this machine reports it.

    Args:
        kind: How the process ended.
        value: The number of the signal, or the exit status.
    """
    if kind is LossKind.by_timeout:
        return Outcome(verdict=Verdict.timed_out, message="not done within the time limit of the target")
    if kind is LossKind.by_interruption:
        return Outcome(verdict=Verdict.crashed, message="the runner on the target ended during the call")
    wait_statuses = {LossKind.by_signal: value, LossKind.by_exit: value << 8}  # as `os.waitpid` returns them
    return outcome_of_end(wait_statuses[kind], None, "")

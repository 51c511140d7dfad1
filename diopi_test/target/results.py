"""Read the results of a target: the vendor's description, and what each call left behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
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
"""The size of the description of a damaged guard zone."""


class LossKind(IntEnum):
    """How the process ended that made the calls."""

    by_signal = 0
    by_exit = 1
    by_timeout = 2
    by_interruption = 3


@final
@dataclass
class TargetCallResult:
    """What a call on the target left behind.

    Attributes:
        result: the payload of its result after the key; None if the process ended during the call.
        damage: the damaged guard zones: the number of the tensor, and the offset of the first damaged byte.
        loss: the outcome if the process ended during the call, or before the calls of its group were complete.
    """

    result: memoryview | None = None
    damage: list[tuple[int, int]] = field(default_factory=list)
    loss: Outcome | None = None


@final
class TargetResults:
    """The results of a target.

    Attributes:
        identity: the identity of the bundle that was run.
        name, version: the name and the version of the vendor.
        functions: the standard functions that the vendor's library has.
        calls: what the calls left behind, by key; equal calls in the order in which they were made.
        is_complete: whether the runner has reached the end of the bundle.

    Args:
        path: The path of the file.

    Raises:
        TargetFileError: The file is missing, foreign or damaged, or does not describe the vendor.
    """

    def __init__(self, path: Path) -> None:
        file = read_records(path, FileKind.results)
        self.identity = file.identity
        self.is_complete = file.is_complete
        self.name, self.version, self.functions = _read_vendor(path, file)
        self.calls = _read_calls(path, file.records)


def _read_vendor(path: Path, file: TargetFile) -> tuple[str, str, frozenset[str]]:
    """Return the name, the version and the functions of the vendor."""
    description = next((record.reader() for record in file.records if record.tag == VENDOR), None)
    if description is None:
        raise TargetFileError(f"{path} does not describe a vendor: the vendor did not start on the target")
    name, version = description.text(), description.text()
    return name, version, frozenset(description.text() for _ in range(description.number()))


def _read_calls(path: Path, records: Sequence[TargetRecord]) -> Mapping[bytes, Sequence[TargetCallResult]]:
    """Return what the calls left behind, by key."""
    calls: dict[bytes, list[TargetCallResult]] = defaultdict(list)
    group: list[tuple[bytes, TargetCallResult]] = []
    for record in records:
        key = bytes(record.payload[:KEY_BYTES])
        if record.tag == CALL:
            group.append((key, TargetCallResult()))
            calls[key].append(group[-1][1])
        elif record.tag == RESULT:
            _first_without_result(path, group, key).result = record.payload[KEY_BYTES:]
        elif record.tag == GUARDS:
            _add_damage(record, group)
            group = []
        elif record.tag == LOSS:
            _add_loss(record.reader(), group)
            group = []
    return calls


def _first_without_result(path: Path, group: Sequence[tuple[bytes, TargetCallResult]], key: bytes) -> TargetCallResult:
    """Return the first call of a group that has this key and no result yet."""
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

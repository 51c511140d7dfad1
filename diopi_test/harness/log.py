"""The log of a run: what happened, line by line as it happened. Every report is made from it.

A line is a JSON object with the keys `kind`, `content` and, last, `crc32` of the line as it would be without that key.
Lines are only appended. A line that is not whole, because a process was killed, a disk was full or a bit flipped, is
passed over; `damaged_lines` finds those that no killed process can have left.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

import platformdirs

SUFFIX = ".log.jsonl"

MAX_LOGS = 50
"""Logs in the user's folder; the oldest beyond that go when a new one comes."""

_SEAL = len(',"crc32":"01234567"}')

_SEALED = re.compile(rb',"crc32":"[0-9a-f]{8}"}\n$')
"""The end of a line that was written whole."""


class LogError(Exception):
    """A log that can't be used; the message names it and what is wrong."""


class LogExistsError(LogError):
    """A new run was to be written to the log of another."""


@final
@dataclass(frozen=True)
class LogRecord:
    """One line: what it tells, and the JSON of that."""

    kind: str
    content: Any


@final
class LogWriter:
    """Writes the log at `path`: a new one, or the one of a run that is resumed.

    Raises LogError if it can't be written, LogExistsError if a new log would be appended to an existing one.

    Lines that can't be written (on a full disk), or not be read again (from a device), are kept in memory, so that
    `entries` has all. `failure` says why lines could not be written.
    """

    def __init__(self, path: Path, *, resumed: bool = False) -> None:
        self.path = path
        self.failure = ""
        self._unwritten: list[bytes] = []
        try:
            if not resumed and path.is_file() and path.stat().st_size:
                raise LogExistsError(
                    f"the log {path} exists; name a new file, or continue its run with --resume {path}"
                )
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._can_be_read = path.is_file()
            if self._can_be_read and path.stat().st_size and not path.read_bytes().endswith(b"\n"):
                os.write(self._file, b"\n")  # ends the line that a killed process began
        except OSError as error:
            raise LogError(f"{path} can't be written: {error}") from error

    def write(self, kind: str, content: Any) -> None:
        """Append a line."""
        line = seal(LogRecord(kind, content))
        if not self.failure:
            try:
                written = os.write(self._file, line)
                if written == len(line) and self._can_be_read:
                    return
                if written < len(line):
                    self.failure = f"{self.path} took {written} of {len(line)} bytes"
            except OSError as error:
                self.failure = f"{self.path} can't be written: {error}"
        self._unwritten.append(line)

    def lines(self) -> Sequence[bytes]:
        """Everything written, in order."""
        return [*(read_lines(self.path) if self._can_be_read else ()), *self._unwritten]

    def entries(self) -> Iterator[LogRecord]:
        """Everything written that is whole, in order."""
        return whole_entries(self.lines())

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def discard(self) -> None:
        """Delete the log of a run that could not begin, so that the next run can have its name."""
        if self._can_be_read:
            self.path.unlink(missing_ok=True)


def seal(entry: LogRecord) -> bytes:
    """The line of an entry."""
    text = json.dumps({"kind": entry.kind, "content": entry.content}, separators=(",", ":"))
    return f'{text[:-1]},"crc32":"{zlib.crc32(text.encode()):08x}"}}\n'.encode()


def read_lines(path: Path) -> Sequence[bytes]:
    """The lines of the file at `path`, whole or not; LogError if it can't be read."""
    try:
        return path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise LogError(f"{path} can't be read: {error}") from error


def read_log(path: Path) -> Iterator[LogRecord]:
    """The entries of the log at `path`; LogError if it can't be read or is no log."""
    return iter(list(whole_entries(checked_lines(path))))


def checked_lines(path: Path) -> Sequence[bytes]:
    """The lines of the log at `path`; LogError if it can't be read, or no line is whole."""
    lines = read_lines(path)
    if not any(map(is_whole, lines)):
        raise LogError(f"{path} is no log of a run: not a line of it is whole")
    return lines


def whole_entries(lines: Iterable[bytes]) -> Iterator[LogRecord]:
    """The entries of those lines that are as they were written; LogError if one of them is no entry all the same."""
    return (_entry(line) for line in lines if is_whole(line))


def is_whole(line: bytes) -> bool:
    """Whether a line is as it was written."""
    return line.endswith(f',"crc32":"{zlib.crc32(_content(line)):08x}"}}\n'.encode())


def damaged_lines(lines: Sequence[bytes]) -> Sequence[int]:
    """The numbers, from 1, of the lines that were changed after they were written.

    What a killed process leaves is the beginning of a line, after which the run was resumed.
    """
    broken = [number for number, line in enumerate(lines) if not is_whole(line)]
    return [number + 1 for number in broken if _SEALED.search(lines[number]) or not _ends_a_part(lines, number)]


def _ends_a_part(lines: Sequence[bytes], number: int) -> bool:
    """Whether the run was resumed after a line."""
    after = next((line for line in lines[number + 1 :] if is_whole(line)), b"")
    return after.startswith(b'{"kind":"resumed"')


def _entry(line: bytes) -> LogRecord:
    """The entry of a whole line; LogError if it is none."""
    try:
        found = json.loads(_content(line))
    except (ValueError, RecursionError) as error:
        raise LogError(f"a line of the log is no JSON, though its checksum is right: {error}") from error
    if not isinstance(found, dict) or found.keys() != {"kind", "content"} or not isinstance(found["kind"], str):
        raise LogError("a line of the log has not the keys kind and content, though its checksum is right")
    return LogRecord(**found)


def _content(line: bytes) -> bytes:
    """A line without its checksum."""
    return line[: -_SEAL - 1] + b"}"


def state_folder() -> Path:
    """The folder for logs that have no other name."""
    return platformdirs.user_state_path("diopi", appauthor=False) / "runs"


def new_log() -> Path:
    """The path of a new log in the user's folder for state, whose oldest logs are deleted.

    LogError if that folder can't be used.
    """
    folder = state_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in sorted(folder.glob(f"*{SUFFIX}"))[: -MAX_LOGS + 1]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise LogError(f"{folder} can't be used for logs: {error}; name a log with --log") from error
    return folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}{SUFFIX}"

"""The log of a run: one line for each event, in order. Every report is derived from it.

A line is a JSON object with the keys `kind`, `content` and, last, `crc32`: the checksum of the line without this key.
Lines are only appended. Readers ignore lines whose checksum does not match. A process that was killed, or a full disk,
leaves an incomplete last line. `damaged_lines` finds lines that were damaged in another way.
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
"""The end of the names of log files."""

MAX_LOGS = 50
"""The maximum number of logs in the user's folder. A new log replaces the oldest."""

_SEAL = len(',"crc32":"01234567"}')
"""The number of bytes that the checksum takes at the end of a line."""

_SEALED = re.compile(rb',"crc32":"[0-9a-f]{8}"}\n$')
"""A pattern that matches the end of a line that was written completely."""


class LogError(Exception):
    """A log that can't be used; the message names the file and the reason."""


class LogExistsError(LogError):
    """A new run would have been written to the log of another run."""


@final
@dataclass(frozen=True)
class LogRecord:
    """One line of a log: its kind and its JSON content."""

    kind: str
    content: Any


@final
class LogWriter:
    """A writer of the log at `path`, either of a new run or of a run that is resumed.

    Raises LogError if the log can't be written, and LogExistsError if a new run would append to an existing log.

    Some lines can't be written (on a full disk) or read again (from a device). They stay in memory, so that `lines` and
    `entries` still return them.

    Args:
        path: The path of the log.
        resumed: Whether the log of an existing run is continued.

    Attributes:
        path: the path of the log.
        failure: the reason why lines could not be written; empty if all were.
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
        """Append a line. If this fails, keep this line and all later lines in memory, and set `failure`."""
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
        """Return all lines in order, including those that could not be written."""
        return [*(read_lines(self.path) if self._can_be_read else ()), *self._unwritten]

    def entries(self) -> Iterator[LogRecord]:
        """Yield the records of all lines whose checksum matches, in order."""
        return intact_records(self.lines())

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def discard(self) -> None:
        """Delete the log of a run that could not begin, so that the next run can use its path."""
        if self._can_be_read:
            self.path.unlink(missing_ok=True)


def seal(entry: LogRecord) -> bytes:
    """Return the line of a record as bytes, with its checksum and a line feed."""
    text = json.dumps({"kind": entry.kind, "content": entry.content}, separators=(",", ":"))
    return f'{text[:-1]},"crc32":"{zlib.crc32(text.encode()):08x}"}}\n'.encode()


def read_lines(path: Path) -> Sequence[bytes]:
    """Return the lines of the file at `path`, complete or not; raise LogError if it can't be read."""
    try:
        return path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise LogError(f"{path} can't be read: {error}") from error


def read_log(path: Path) -> Iterator[LogRecord]:
    """Return the records of the log at `path`; raise LogError if it can't be read or is not a log."""
    return iter(list(intact_records(checked_lines(path))))


def checked_lines(path: Path) -> Sequence[bytes]:
    """Return the lines of the log at `path`; raise LogError if it can't be read, or no line is complete."""
    lines = read_lines(path)
    if not any(map(is_intact, lines)):
        raise LogError(f"{path} is not a log of a run: it contains no complete line")
    return lines


def intact_records(lines: Iterable[bytes]) -> Iterator[LogRecord]:
    """Yield the records of the lines whose checksum matches; raise LogError if such a line is not a record."""
    return (_entry(line) for line in lines if is_intact(line))


def is_intact(line: bytes) -> bool:
    """Return whether the checksum of a line matches."""
    return line.endswith(f',"crc32":"{zlib.crc32(_content(line)):08x}"}}\n'.encode())


def damaged_lines(lines: Sequence[bytes]) -> Sequence[int]:
    """Return the numbers, counted from 1, of lines that were changed after they were written.

    A process that is killed leaves the beginning of a line. The run is resumed after it, so such a line is not damaged.

    Args:
        lines: All lines of the log.

    Returns:
        The numbers of the damaged lines, in order.
    """
    broken = [number for number, line in enumerate(lines) if not is_intact(line)]
    return [number + 1 for number in broken if _SEALED.search(lines[number]) or not _ends_a_part(lines, number)]


def _ends_a_part(lines: Sequence[bytes], number: int) -> bool:
    """Return whether the next intact line after line `number` (counted from 0) states that the run was resumed."""
    next_line = next((line for line in lines[number + 1 :] if is_intact(line)), b"")
    return next_line.startswith(b'{"kind":"resumed"')


def _entry(line: bytes) -> LogRecord:
    """Return the record of a complete line; raise LogError if it is not a record."""
    try:
        record = json.loads(_content(line))
    except (ValueError, RecursionError) as error:
        raise LogError(f"a line of the log is not JSON although its checksum matches: {error}") from error
    if not isinstance(record, dict) or record.keys() != {"kind", "content"} or not isinstance(record["kind"], str):
        raise LogError(
            "a line of the log does not have exactly the keys kind and content although its checksum matches"
        )
    return LogRecord(**record)


def _content(line: bytes) -> bytes:
    """Return the JSON of a line without its checksum."""
    return line[: -_SEAL - 1] + b"}"


def state_folder() -> Path:
    """Return the folder for logs whose path the user does not specify."""
    return platformdirs.user_state_path("diopi", appauthor=False) / "runs"


def new_log() -> Path:
    """Return the path of a new log in the user's state folder, and delete the oldest logs there.

    Returns:
        A path that no other log has.

    Raises:
        LogError: The folder can't be used.
    """
    folder = state_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in sorted(folder.glob(f"*{SUFFIX}"))[: -MAX_LOGS + 1]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise LogError(f"{folder} can't be used for logs: {error}; name a log with --log") from error
    return folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}{SUFFIX}"

"""The log of a run: what happened, line by line as it happened. Every report is made from it.

A line is a JSON object with the keys `kind`, `content` and, last, `crc32` of the line as it would be without that key.
Lines are only appended. What is no whole line, since a process was killed or a disk was full, is passed over.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

import platformdirs

SUFFIX = ".log.jsonl"

KEPT = 50
"""Logs in the user's folder; the oldest beyond that go when a new one comes."""

_SEAL = len(',"crc32":"01234567"}')


class LogError(Exception):
    """A log that can't be used; the message names it and what is wrong."""


@final
@dataclass(frozen=True)
class Entry:
    """One line: what it tells, and the JSON of that."""

    kind: str
    content: Any


@final
class LogWriter:
    """Appends to the log at `path`, which is made if it is not there.

    Lines that can't be written (on a full disk), or not be read again (from a device), are kept in memory, so that
    `entries` has all. `failure` says why lines could not be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure = ""
        self._unwritten: list[bytes] = []
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._can_be_read = path.is_file()
            if self._can_be_read and path.stat().st_size and not path.read_bytes().endswith(b"\n"):
                os.write(self._file, b"\n")  # ends the line that a killed process began
        except OSError as error:
            raise LogError(f"{path} can't be written: {error}") from error

    def write(self, kind: str, content: Any) -> None:
        """Append a line."""
        line = sealed(Entry(kind, content))
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

    def entries(self) -> Iterator[Entry]:
        """Everything written, in order."""
        if self._can_be_read:
            with open(self.path, "rb") as file:
                yield from whole_entries(file)
        yield from whole_entries(self._unwritten)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def sealed(entry: Entry) -> bytes:
    """The line of an entry."""
    text = json.dumps({"kind": entry.kind, "content": entry.content}, separators=(",", ":"))
    return f'{text[:-1]},"crc32":"{zlib.crc32(text.encode()):08x}"}}\n'.encode()


def read_log(path: Path) -> Iterator[Entry]:
    """The entries of the log at `path`; LogError if it can't be read or is no log."""
    try:
        with open(path, "rb") as file:
            if not (entries := list(whole_entries(file))):
                raise LogError(f"{path} is no log of a run: not a line of it is whole")
    except OSError as error:
        raise LogError(f"{path} can't be read: {error}") from error
    return iter(entries)


def whole_entries(lines: Iterable[bytes]) -> Iterator[Entry]:
    """The entries of those lines that are as they were written."""
    return (Entry(**json.loads(_content(line))) for line in lines if is_whole(line))


def is_whole(line: bytes) -> bool:
    """Whether a line is as it was written."""
    return line.endswith(f',"crc32":"{zlib.crc32(_content(line)):08x}"}}\n'.encode())


def _content(line: bytes) -> bytes:
    """A line without its checksum."""
    return line[: -_SEAL - 1] + b"}"


def new_log() -> Path:
    """The path of a new log in the user's folder for state; the oldest ones there are deleted."""
    folder = platformdirs.user_state_path("diopi", appauthor=False) / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    for old in sorted(folder.glob(f"*{SUFFIX}"))[: -KEPT + 1]:
        old.unlink(missing_ok=True)
    return folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}{SUFFIX}"

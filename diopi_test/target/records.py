"""The files of targets: records with checksums, which consist of 64-bit words.

`docs/targets.md` describes the format. Both kinds of files, bundles and results, have the same header and records.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO, final

MAGIC = b"\xd1DIOPI\r\n"
"""The bytes with which every file begins."""

VERSION = 2
"""The version of the format."""

FILE_HEADER = struct.Struct("<8sIIQQ")
"""Magic, version, kind of file, identity of the bundle, and the size of the largest payload, also after
decompression (0 if it is unknown)."""

RECORD_HEADER = struct.Struct("<4sIQ")
"""Tag, CRC-32 of the payload, and size of the payload in bytes, which is a multiple of 8."""

END = b"END "
"""The tag of the last record; its payload is the number of the other records."""

WORD_BYTES = 8
"""The size of a word in bytes."""


class FileKind(IntEnum):
    """The kind of a file: a bundle of cases, or results."""

    cases = 1
    results = 2


class TargetFileError(ValueError):
    """A file is not of the expected kind, or is damaged; the message says what was found."""


@final
class WordWriter:
    """A writer of a payload.

    Attributes:
        content: the bytes.
    """

    def __init__(self) -> None:
        self.content = bytearray()

    def numbers(self, *values: int) -> None:
        """Append integers, one word each."""
        self.content += struct.pack(f"<{len(values)}q", *values)

    def unsigned(self, value: int) -> None:
        """Append an unsigned integer."""
        self.content += struct.pack("<Q", value)

    def double(self, value: float) -> None:
        """Append a floating-point number."""
        self.content += struct.pack("<d", value)

    def data(self, content: bytes | memoryview) -> None:
        """Append bytes, padded with zeros to whole words."""
        self.content += content
        self.content += bytes(-len(content) % WORD_BYTES)

    def text(self, text: str) -> None:
        """Append the number of bytes of a text, and the text."""
        encoded = text.encode("utf-8", "replace")
        self.numbers(len(encoded))
        self.data(encoded)


@final
class WordReader:
    """A reader of a payload, from the beginning to the end. Reading beyond the end raises TargetFileError.

    Args:
        content: The payload.
    """

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._position = 0

    def data(self, size: int) -> memoryview:
        """Return the next `size` bytes, and skip their padding to a whole word.

        Raises:
            TargetFileError: The record ends before.
        """
        if size < 0 or size > len(self._content) - self._position:
            raise TargetFileError(f"a record has {len(self._content)} bytes, fewer than its content needs")
        content = self._content[self._position : self._position + size]
        self._position += size + -size % WORD_BYTES
        return content

    def number(self) -> int:
        """Return the next word as an integer."""
        return int.from_bytes(self.data(WORD_BYTES), "little", signed=True)

    def unsigned(self) -> int:
        """Return the next word as an unsigned integer."""
        return int.from_bytes(self.data(WORD_BYTES), "little")

    def double(self) -> float:
        """Return the next word as a floating-point number."""
        value: float = struct.unpack("<d", self.data(WORD_BYTES))[0]
        return value

    def numbers(self, count: int) -> tuple[int, ...]:
        """Return the next words as integers."""
        return struct.unpack(f"<{count}q", self.data(WORD_BYTES * count)) if count > 0 else ()

    def text(self) -> str:
        """Return the next text."""
        return bytes(self.data(self.number())).decode("utf-8", "replace")


@final
class RecordWriter:
    """A writer of a bundle or of results; `finish` completes the file.

    Args:
        file: The file, opened for writing at the beginning.
        kind: The kind of the file.
    """

    def __init__(self, file: BinaryIO, kind: FileKind) -> None:
        self._file = file
        self._kind = kind
        self._count = self._identity = self._largest = 0
        file.write(FILE_HEADER.pack(MAGIC, VERSION, kind, 0, 0))

    def write(self, tag: bytes, payload: bytes | bytearray, decompressed: int = 0) -> None:
        """Append a record.

        Args:
            tag: The tag.
            payload: The payload, whose size is a multiple of 8 bytes.
            decompressed: The size of the payload in bytes after decompression; 0 if it is not compressed.
        """
        checksum = zlib.crc32(payload)
        self._file.write(RECORD_HEADER.pack(tag, checksum, len(payload)))
        self._file.write(payload)
        self._count += 1
        self._largest = max(self._largest, len(payload), decompressed)
        self._identity = (self._identity * 0x100000001B3 + checksum + 1) % 2**64

    def finish(self) -> None:
        """Append the last record, and write the identity and the size of the largest payload into the header."""
        identity, largest = self._identity, self._largest
        self.write(END, struct.pack("<Q", self._count))
        self._file.seek(0)
        self._file.write(FILE_HEADER.pack(MAGIC, VERSION, self._kind, identity, largest))


@final
@dataclass(frozen=True)
class TargetRecord:
    """A record of a file: its tag, its payload, and its position in the file in bytes."""

    tag: bytes
    payload: memoryview
    position: int

    def reader(self) -> WordReader:
        """Return a reader of the payload."""
        return WordReader(self.payload)


@final
@dataclass(frozen=True, kw_only=True)
class TargetFile:
    """The records of a file.

    Attributes:
        identity: the number that identifies the bundle; files with results contain the same number.
        records: the records without the last one, which marks the end.
        is_complete: whether the record that marks the end is there.
        end: the position in the file after the last complete record.
    """

    identity: int
    records: Sequence[TargetRecord]
    is_complete: bool
    end: int


def read_records(path: Path, kind: FileKind, start: int = FILE_HEADER.size) -> TargetFile:
    """Read the records of a bundle or of results, from a position on.

    Args:
        path: The path of the file.
        kind: The expected kind.
        start: The position of the first record to read.

    Returns:
        The records. The end of results may be missing, because the runner was interrupted or still runs.

    Raises:
        TargetFileError: The file is missing, is not of this kind or version, or is damaged.
    """
    try:
        with path.open("rb") as file:
            header = file.read(FILE_HEADER.size)
            file.seek(start)
            content = memoryview(file.read())
    except OSError as error:
        raise TargetFileError(f"{path} can't be read: {error.strerror}") from error
    if len(header) < FILE_HEADER.size or header[: len(MAGIC)] != MAGIC:
        raise TargetFileError(f"{path} is no file of `diopi-test bundle` or `diopi-runner`: it begins otherwise")
    _, version, found_kind, identity, _ = FILE_HEADER.unpack(header)
    if version != VERSION:
        raise TargetFileError(f"{path} has version {version} of the format, expected {VERSION}")
    if found_kind != kind:
        found_name = FileKind(found_kind).name if found_kind in set(FileKind) else f"content of kind {found_kind}"
        raise TargetFileError(f"{path} contains {found_name}, expected {kind.name}")
    records: list[TargetRecord] = []
    is_complete, end = False, start
    for record in _iterate_records(path, content, start, may_be_cut=kind is FileKind.results):
        end = record.position + RECORD_HEADER.size + len(record.payload)
        if record.tag == END:
            is_complete = True
            _check_count(path, record, len(records))
        else:
            records.append(record)
    if kind is FileKind.cases and not is_complete:
        raise TargetFileError(f"{path} is incomplete: it has {len(records)} records and no end")
    return TargetFile(identity=identity, records=records, is_complete=is_complete, end=end)


def _iterate_records(path: Path, content: memoryview, first: int, *, may_be_cut: bool) -> Iterator[TargetRecord]:
    """Yield the records of a file.

    Args:
        path: The path of the file.
        content: The bytes of the records.
        first: The position of the first record in the file.
        may_be_cut: Whether the last record may be incomplete.

    Yields:
        The records.

    Raises:
        TargetFileError: A record is damaged, or is incomplete although it must not be.
    """
    place = 0
    while place < len(content):
        start, position = place + RECORD_HEADER.size, first + place
        tag, checksum, size = RECORD_HEADER.unpack_from(content, place) if start <= len(content) else (b"", 0, 0)
        if not tag or size > len(content) - start:
            if may_be_cut:
                return
            raise TargetFileError(f"{path} is cut off: the record at byte {position} is incomplete")
        payload = content[start : start + size]
        if zlib.crc32(payload) != checksum or size % WORD_BYTES:
            raise TargetFileError(f"{path} is damaged: the record at byte {position} has another checksum")
        yield TargetRecord(bytes(tag), payload, position)
        place = start + size


def _check_count(path: Path, record: TargetRecord, count: int) -> None:
    """Raise TargetFileError unless the last record states that `count` records precede it, or states 0 for unknown."""
    if (expected := record.reader().number()) not in (0, count):
        raise TargetFileError(f"{path} is damaged: it has {count} records, expected {expected}")

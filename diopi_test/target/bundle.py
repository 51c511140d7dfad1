"""Write bundles: the calls of cases, without expected results, for a runner on a target."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, final

from diopi_proto.dtypes import COMPONENT
from diopi_proto.types import Dtype
from diopi_test.target.recording import CallEntry, CallGroup
from diopi_test.target.records import (
    WORD_BYTES,
    FileKind,
    RecordWriter,
    TargetFileError,
    TargetRecord,
    WordReader,
    WordWriter,
    read_records,
)
from lib_rt.dtypes import poison_of

SELECTION, CASE = b"SLCT", b"CASE"
"""The tags of the records of a bundle: how the cases were selected, and one case each."""

RAW_DEFLATE = -zlib.MAX_WBITS
"""The value with which `zlib` reads and writes the format DEFLATE without a header."""

MAX_ID_BYTES = 1 << 16
"""The number of bytes at the beginning of a case that contain its ID."""

IS_QUEUED, IS_CHAIN = 1, 2
"""Flags of a group: the inputs are still being copied during the calls; all calls are made before results are read."""


@final
class BundleWriter:
    """A writer of a bundle, as a context manager. If an exception leaves the context, the file is deleted.

    Args:
        path: The path of the file.
        selection: How the cases were selected, as a JSON object.
    """

    def __init__(self, path: Path, selection: Mapping[str, Any]) -> None:
        self._path = path
        self._file = path.open("wb")
        self._records = RecordWriter(self._file, FileKind.cases)
        writer = WordWriter()
        writer.text(json.dumps(selection))
        self._records.write(SELECTION, writer.content)

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._records.finish()
        self._file.close()
        if kind is not None:
            self._path.unlink()

    def write(self, payload: bytes) -> None:
        """Append a case, as `encode_case` returns it."""
        self._records.write(CASE, payload, int.from_bytes(payload[:WORD_BYTES], "little"))


def encode_case(case: str, groups: Sequence[CallGroup]) -> bytes:
    """Return the payload of the record of a case: its groups of calls, then the contents of storages.

    Args:
        case: The ID of the case.
        groups: The groups.

    Returns:
        The payload: the number of bytes of the content, and the compressed content. Equal contents of storages are
        stored once.
    """
    writer, contents = WordWriter(), _Contents()
    writer.text(case)
    writer.numbers(0, len(groups))  # the position of the contents, which is known at the end
    place_of_position = len(writer.content) - 2 * WORD_BYTES
    for group in groups:
        flags = IS_QUEUED * ("queued" in group.kind) | IS_CHAIN * group.is_chain
        generators = max((len(entry.states) for entry in group.calls), default=0)
        writer.numbers(flags, len(group.contexts), generators, len(group.calls))
        for entry in group.calls:
            _encode_entry(writer, entry, contents)
    position = len(writer.content)
    writer.content[place_of_position : place_of_position + WORD_BYTES] = position.to_bytes(WORD_BYTES, "little")
    return _compress(writer.content + contents.writer.content)


def _compress(content: bytes | bytearray) -> bytes:
    """Return the size of a content as a word, then the content in the format DEFLATE, padded to whole words."""
    compressor = zlib.compressobj(wbits=RAW_DEFLATE)
    compressed = compressor.compress(content) + compressor.flush()
    return len(content).to_bytes(WORD_BYTES, "little") + compressed + bytes(-len(compressed) % WORD_BYTES)


def decompress_case(record: TargetRecord, size: int = 0) -> WordReader:
    """Return a reader of the content of a case.

    Args:
        record: The record of the case.
        size: The number of bytes that are decompressed, from the beginning; 0 for all bytes.

    Raises:
        TargetFileError: The record can't be decompressed.
    """
    try:
        content = zlib.decompressobj(RAW_DEFLATE).decompress(record.payload[WORD_BYTES:], size)
    except zlib.error as error:
        raise TargetFileError(f"the case at byte {record.position} can't be decompressed: {error}") from error
    return WordReader(memoryview(content))


def _encode_entry(writer: WordWriter, entry: CallEntry, contents: _Contents) -> None:
    """Append a call to `writer`, and the contents of its storages to `contents`."""
    writer.text(entry.call.function)
    writer.data(entry.key)
    writer.numbers(entry.context, len(entry.states), len(entry.call.tensors))
    for state in entry.states:
        writer.numbers(state.is_relative)
        writer.unsigned(state.seed)
        writer.unsigned(state.offset)
    for encoded in entry.call.tensors:
        dtype, memory_kind, base, rank, *numbers = encoded.layout
        writer.numbers(dtype, memory_kind, base, rank)
        writer.data(_poison_word(dtype))
        writer.numbers(encoded.start, len(encoded.content), contents.position_of(encoded.content), *numbers)
    writer.numbers(len(entry.call.arguments.content))
    writer.data(bytes(entry.call.arguments.content))


@cache
def _poison_word(number: int) -> bytes:
    """Return 8 bytes of poison, the pattern that fills storages of an element type where nothing was written.

    Args:
        number: The number of the element type.
    """
    dtype = Dtype(number)
    poison = poison_of(COMPONENT.get(dtype, dtype))
    return poison * (WORD_BYTES // len(poison))


@final
class _Contents:
    """The contents of the storages of a case; equal contents are stored once."""

    def __init__(self) -> None:
        self.writer = WordWriter()
        self._positions: dict[bytes, int] = {}

    def position_of(self, content: bytes) -> int:
        """Return the position of a content in bytes; append the content if it is new."""
        if content not in self._positions:
            self._positions[content] = len(self.writer.content)
            self.writer.data(content)
        return self._positions[content]


@final
class BundleHeader:
    """The part of a bundle that the evaluation of results needs.

    Args:
        path: The path of the bundle.

    Attributes:
        identity: the number that identifies the bundle; files with results contain the same number.
        selection: how the cases were selected: the level, the digest of the baseline and the options.
        cases: the IDs of the cases, by the positions of their records in the file.

    Raises:
        TargetFileError: The file is missing, damaged, or not a bundle.
    """

    def __init__(self, path: Path) -> None:
        file = read_records(path, FileKind.cases)
        self.identity = file.identity
        cases = (record for record in file.records if record.tag == CASE)
        self.cases = {case.position: decompress_case(case, MAX_ID_BYTES).text() for case in cases}
        selections = [record.reader() for record in file.records if record.tag == SELECTION]
        if len(selections) != 1:
            raise TargetFileError(f"{path} has {len(selections)} records that describe the selection, expected one")
        self.selection = _parse_selection(path, selections[0])

    def case_at(self, place: tuple[int, int]) -> str:
        """Return the ID of the case at a place, which is the position of its record and the number of a group."""
        return self.cases.get(place[0], f"the case at byte {place[0]}")


def _parse_selection(path: Path, reader: WordReader) -> Mapping[str, Any]:
    """Return the selection; raise TargetFileError if it is not a JSON object."""
    try:
        selection = json.loads(reader.text())
    except ValueError as error:
        raise TargetFileError(f"the selection in {path} can't be read: {error}") from error
    if not isinstance(selection, dict):
        raise TargetFileError(f"the selection in {path} is {selection!r}, expected an object")
    return selection

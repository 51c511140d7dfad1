"""Write bundles: the calls of cases, without expected results, for a runner on a target."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    WordReader,
    WordWriter,
    read_records,
)
from lib_rt.dtypes import poison_of

SELECTION, CASE = b"SLCT", b"CASE"
"""The tags of the records of a bundle: how the cases were selected, and one case each."""

IS_QUEUED, IS_CHAIN = 1, 2
"""Flags of a group: the inputs are still being copied during the calls; all calls precede all reading."""


@final
class BundleWriter:
    """A writer of a bundle. Use it as a context manager; the file is complete only if the block succeeds.

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
        self._records.write(CASE, payload)


def encode_case(case: str, groups: Sequence[CallGroup]) -> bytes:
    """Return the payload of the record of a case: its groups of calls, then the contents of storages.

    Args:
        case: The ID of the case.
        groups: The groups.

    Returns:
        The payload. Equal contents are stored once.
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
    return bytes(writer.content + contents.writer.content)


def _encode_entry(writer: WordWriter, entry: CallEntry, contents: _Contents) -> None:
    """Append a call."""
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
        writer.data(_poison_word(Dtype(dtype)))
        writer.numbers(encoded.start, len(encoded.content), contents.position_of(encoded.content), *numbers)
    writer.numbers(len(entry.call.arguments.content))
    writer.data(bytes(entry.call.arguments.content))


def _poison_word(dtype: Dtype) -> bytes:
    """Return a word of poison, which fills unwritten storages of an element type."""
    poison = poison_of(COMPONENT.get(dtype, dtype))
    return poison * (WORD_BYTES // len(poison))


@final
class _Contents:
    """The contents of storages of a case, each of them once."""

    def __init__(self) -> None:
        self.writer = WordWriter()
        self._positions: dict[bytes, int] = {}

    def position_of(self, content: bytes) -> int:
        """Return the position of a content; append the content if it is new."""
        if content not in self._positions:
            self._positions[content] = len(self.writer.content)
            self.writer.data(content)
        return self._positions[content]


@final
class BundleHeader:
    """What the evaluation needs to know of a bundle.

    Attributes:
        identity: the identity, which results repeat.
        selection: how the cases were selected.
        cases: the IDs of the cases.
    """

    def __init__(self, path: Path) -> None:
        file = read_records(path, FileKind.cases)
        self.identity = file.identity
        self.cases = [record.reader().text() for record in file.records if record.tag == CASE]
        selections = [record.reader() for record in file.records if record.tag == SELECTION]
        if len(selections) != 1:
            raise TargetFileError(f"{path} has {len(selections)} records that describe the selection, expected one")
        self.selection = _parse_selection(path, selections[0])


def _parse_selection(path: Path, reader: WordReader) -> Mapping[str, Any]:
    """Return the selection; raise TargetFileError if it is no JSON object."""
    try:
        selection = json.loads(reader.text())
    except ValueError as error:
        raise TargetFileError(f"the selection in {path} can't be read: {error}") from error
    if not isinstance(selection, dict):
        raise TargetFileError(f"the selection in {path} is {selection!r}, expected an object")
    return selection

"""Files of targets can be read back, and damaged or foreign files are rejected with a message."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from diopi_test.target.records import (
    FILE_HEADER,
    FileKind,
    RecordWriter,
    TargetFileError,
    WordReader,
    WordWriter,
    read_records,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a file with two records."""
    content = io.BytesIO()
    writer = RecordWriter(content, FileKind.cases)
    writer.write(b"CASE", b"12345678")
    writer.write(b"CASE", bytes(24))
    writer.finish()
    path = tmp_path / "cases.diopi"
    path.write_bytes(content.getvalue())
    return path


def change(path: Path, edit: Callable[[bytearray], bytes | bytearray]) -> Path:
    """Change the contents of a file with `edit`, and return its path."""
    content = bytearray(path.read_bytes())
    path.write_bytes(edit(content))
    return path


def flip(position: int) -> Callable[[bytearray], bytearray]:
    """Return a function that flips a bit of the byte at a position."""

    def edit(content: bytearray) -> bytearray:
        content[position] ^= 1
        return content

    return edit


def test_records_are_read_as_they_were_written(path: Path) -> None:
    file = read_records(path, FileKind.cases)
    assert [(record.tag, bytes(record.payload)) for record in file.records] == [
        (b"CASE", b"12345678"),
        (b"CASE", bytes(24)),
    ]
    assert file.is_complete
    assert file.identity != 0
    assert FILE_HEADER.unpack_from(path.read_bytes())[-1] == 24


def test_words_are_read_as_they_were_written() -> None:
    writer = WordWriter()
    writer.numbers(-1, 2**62)
    writer.unsigned(2**64 - 1)
    writer.double(0.1)
    writer.text("größer")
    reader = WordReader(memoryview(bytes(writer.content)))
    assert (reader.numbers(2), reader.unsigned(), reader.double()) == ((-1, 2**62), 2**64 - 1, 0.1)
    assert reader.text() == "größer"
    with pytest.raises(TargetFileError, match="fewer than its content needs"):
        reader.number()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda content: b"", "it begins otherwise"),
        (flip(0), "it begins otherwise"),
        (flip(8), "has version 3 of the format, expected 2"),
        (lambda content: content[:12] + b"\2" + content[13:], "contains results, expected cases"),
        (lambda content: content[:12] + b"\7" + content[13:], "contains content of kind 7, expected cases"),
        (flip(FILE_HEADER.size + 20), "the record at byte 32 has another checksum"),
        (lambda content: content[:-4], "is cut off"),
        (lambda content: content[:-24], "it has 2 records and no end"),
        (lambda content: content[:32] + content[56:], "it has 1 records, expected 2"),
    ],
)
def test_a_damaged_or_foreign_file_is_rejected(edit: Callable[[bytearray], bytes], message: str, path: Path) -> None:
    with pytest.raises(TargetFileError, match=message):
        read_records(change(path, edit), FileKind.cases)


def test_a_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(TargetFileError, match="can't be read: No such file"):
        read_records(tmp_path / "missing.diopi", FileKind.cases)


def test_results_may_lack_their_end(path: Path) -> None:
    change(path, lambda content: content[:12] + b"\2" + content[13:-30])
    file = read_records(path, FileKind.results)
    assert (len(file.records), file.is_complete) == (1, False)

"""The log: only intact lines are read, lines are only appended, and none is lost if the disk is full."""

import json
from pathlib import Path

import pytest

from diopi_test.results.log import (
    MAX_LOGS,
    SUFFIX,
    LogError,
    LogExistsError,
    LogRecord,
    LogWriter,
    damaged_lines,
    intact_records,
    new_log,
    read_log,
    seal,
)

ENTRIES = [LogRecord("run", {"a": 1}), LogRecord("case", {"text": "\udc80 …"}), LogRecord("end", 1.5)]


def write(path: Path, *entries: LogRecord, resumed: bool = False) -> LogWriter:
    """Write records to a log."""
    writer = LogWriter(path, resumed=resumed)
    for entry in entries:
        writer.write(entry.kind, entry.content)
    return writer


def test_written_records_are_read_back(tmp_path: Path) -> None:
    writer = write(tmp_path / "log", *ENTRIES)
    assert list(writer.entries()) == list(read_log(tmp_path / "log")) == ENTRIES
    assert all(json.loads(line)["crc32"] for line in (tmp_path / "log").read_text().splitlines())


def test_truncation_preserves_the_lines_before_it(tmp_path: Path) -> None:
    content = b"".join(map(seal, ENTRIES))
    first = len(seal(ENTRIES[0]))
    for length in range(len(content)):
        found = list(intact_records(content[:length].splitlines(keepends=True)))
        assert found == ENTRIES[: len(found)]
        assert bool(found) is (length >= first)


def test_a_changed_line_is_skipped() -> None:
    line = seal(ENTRIES[0])
    for position in range(len(line) - 1):
        changed = bytearray(line)
        changed[position] ^= 1
        assert list(intact_records(bytes(changed).splitlines(keepends=True))) == []


def test_a_log_continues_after_a_partial_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(seal(ENTRIES[0]) + seal(ENTRIES[1])[:20])
    assert list(write(path, ENTRIES[2], resumed=True).entries()) == [ENTRIES[0], ENTRIES[2]]


def test_a_new_log_is_not_appended_to_an_existing_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()  # an empty file is no log
    write(path, ENTRIES[0])
    with pytest.raises(LogExistsError, match=f"{path}.*--resume {path}"):
        LogWriter(path)
    assert list(read_log(path)) == [ENTRIES[0]]


def test_a_changed_line_is_damage_but_a_partial_one_before_a_resumption_is_not() -> None:
    whole, torn = seal(ENTRIES[1]), seal(ENTRIES[1])[:20] + b"\n"
    changed, resumed = whole.replace(b"text", b"tent"), seal(LogRecord("resumed", {}))
    assert damaged_lines([whole, torn, resumed, whole]) == []
    assert damaged_lines([whole, changed, resumed, torn]) == [2, 4]


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full"])
def test_lines_that_can_not_be_written_stay_in_memory(device: str) -> None:
    writer = write(Path(device), *ENTRIES)
    assert list(writer.entries()) == ENTRIES
    assert bool(writer.failure) is (device == "/dev/full")


def test_a_file_that_is_not_a_log_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no log\n")
    with pytest.raises(LogError, match="log"):
        read_log(tmp_path / "text")
    with pytest.raises(LogError, match="read"):
        read_log(tmp_path / "nothing")
    with pytest.raises(LogError, match="written"):
        LogWriter(tmp_path / "no" / "folder")


def test_a_folder_that_can_not_store_logs_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").touch()
    with pytest.raises(LogError, match="--log"):
        new_log()


def test_new_logs_replace_the_oldest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = new_log().parent
    for number in range(MAX_LOGS + 5):
        (folder / f"{number:03}{SUFFIX}").touch()
    (folder / "mine.txt").touch()
    assert new_log().parent == folder
    assert sorted(path.name for path in folder.iterdir())[0] == f"006{SUFFIX}"
    assert (folder / "mine.txt").exists()

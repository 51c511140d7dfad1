"""Reading a file either returns its content or fails soon, whatever is at the path."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from baselines import create_huge_file

from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.files import read_regular_file, read_verified_file, write_atomically

LIMIT = 1000


def create_socket(path: Path) -> None:
    """Create a socket at this path."""
    before = Path.cwd()
    os.chdir(path.parent)  # addresses of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(before)


OTHER_KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "can't be read: No such file"),
    "folder": (Path.mkdir, "is a folder, expected a regular file"),
    "FIFO": (os.mkfifo, "is a FIFO, expected a regular file"),
    "socket": (create_socket, "is a socket, expected a regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "is a character device, expected a regular file"),
    "endless": (lambda path: path.symlink_to("/proc/self/maps"), r"it has \d+ bytes or more, expected at most 1000"),
    "create_huge_file": (create_huge_file, r"is too large: it has \d{10,} bytes or more, expected at most 1000"),
    "loop": (lambda path: path.symlink_to(path), "can't be read: Too many levels"),
    "one byte too many": (
        lambda path: path.write_bytes(b"x" * 1001),
        "it has 1001 bytes or more, expected at most 1000",
    ),
}


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_read_rejects_irregular_and_large_files(tmp_path: Path, name: str) -> None:
    make, message = OTHER_KINDS[name]
    path = tmp_path / "diopiSqrt.h5"
    make(path)
    with pytest.raises(BaselineError, match=f"^{path} .*{message}"):
        read_regular_file(path, LIMIT)


def test_a_file_of_the_maximum_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * LIMIT)
    assert read_regular_file(path, LIMIT) == b"x" * LIMIT


def test_read_does_not_block_on_a_fifo_that_replaced_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind of the file is examined before and after it is opened."""
    regular, path = tmp_path / "regular", tmp_path / "fifo"
    regular.touch()
    os.mkfifo(path)
    before = os.stat(regular)
    monkeypatch.setattr(os, "stat", lambda path: before)
    with pytest.raises(BaselineError, match="FIFO"):
        read_regular_file(path, LIMIT)


def test_a_wrong_digest_raises_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert read_verified_file(path, LIMIT, empty) == b""
    with pytest.raises(BaselineError, match=f"its sha256 is {empty}, expected 00"):
        read_verified_file(path, LIMIT, "00")


def test_files_are_written_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "file"
    write_atomically(path, b"before")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BaselineError, match=f"^{path} .*No space left"):
        write_atomically(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(path.parent.iterdir()) == [path]

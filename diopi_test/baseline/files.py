"""Read and write complete files safely, even if there is a FIFO or a device at their path, or the disk is full."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

from diopi_test.baseline.errors import BaselineError

PART_SUFFIX = ".part"
"""The suffix of a file that is being written: `.NAME-PID.part`."""

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}
"""The names of kinds of files that are not regular, by the type in the mode of the file."""


def read_regular_file(path: Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes.

    FIFOs and devices are not opened. Of a file that grows, at most `limit` + 1 bytes are read.

    Args:
        path: The file.
        limit: The maximum number of bytes.

    Returns:
        The content.

    Raises:
        BaselineError: The file is missing, not a regular file, or too large.
    """
    try:
        _check_kind(path, os.stat(path).st_mode)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # does not block if a FIFO has replaced the file
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            _check_kind(path, status.st_mode)
            content = file.read(limit + 1) if status.st_size <= limit else b""
    except OSError as error:
        raise BaselineError(f"{path} can't be read: {error.strerror or error}") from error
    if (size := max(status.st_size, len(content))) > limit:
        raise BaselineError(f"{path} is too large: it has {size} bytes or more, expected at most {limit}")
    return content


def read_verified_file(path: Path, limit: int, sha256: str) -> bytes:
    """Read a regular file as `read_regular_file` does; raise BaselineError if its SHA-256 differs from `sha256`."""
    content = read_regular_file(path, limit)
    if (digest := hashlib.sha256(content).hexdigest()) != sha256:
        raise BaselineError(f"{path} differs from the manifest of its level: its sha256 is {digest}, expected {sha256}")
    return content


def _check_kind(path: Path, mode: int) -> None:
    """Raise BaselineError unless the mode is that of a regular file."""
    if not stat.S_ISREG(mode):
        raise BaselineError(f"{path} is {_KINDS.get(stat.S_IFMT(mode), 'of an unknown kind')}, expected a regular file")


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write a file under a temporary name and rename it, so that a partial file never exists.

    Args:
        path: The file.
        content: The bytes to write.

    Raises:
        BaselineError: The file can't be written (for example because the disk is full); an existing file is unchanged.
    """
    temporary = path.with_name(f".{path.name}-{os.getpid()}{PART_SUFFIX}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError as error:
        raise BaselineError(f"{path} can't be written: {error}") from error
    finally:
        with suppress(OSError):  # the file is missing after its renaming, or its folder is not a folder
            temporary.unlink()


def remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files of `write_atomically` in a folder whose processes have ended."""
    for leftover in folder.glob(f".*{PART_SUFFIX}"):
        _, _, process = leftover.stem.rpartition("-")
        if not (process.isdecimal() and _is_running(int(process))):
            leftover.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    """Return whether a process with this number exists."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # the process belongs to another user
    return True

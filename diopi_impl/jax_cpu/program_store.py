"""A folder with compiled programs: the next process loads them instead of compiling them again.

The folder contains machine code, which the process executes. Whoever may write to the folder may run any code in the
name of the user. The store therefore uses only a folder that belongs to the user and that nobody else may write to.

The name of a file is the digest of the key of its program. The file begins with a digest of its payload. The store
ignores and replaces a damaged file.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import final

MAX_BYTES = 2**29
"""The maximum size of a store in bytes. Programs are deleted when a process finds more than three quarters in use."""

_MAGIC = b"DIOPI program 1\n"
"""The first bytes of a file with a program, which include the version of the format."""

_DIGEST_BYTES = 32
"""The size of a SHA-256 digest: those of the payload and of the key follow `_MAGIC`, in this order."""

_SUFFIX = ".program"
"""The end of the names of these files."""


@final
class ProgramStore:
    """A store of programs. Processes may share its folder.

    Args:
        folder: the folder; it is created if it is missing.
        environment: a digest of what programs depend on besides their keys (`environment.digest_environment`).
        max_bytes: the maximum size of the folder. A process measures the folder only before its first program, so that
            processes that add programs at the same time may exceed the size.
    """

    def __init__(self, folder: Path, environment: str, max_bytes: int = MAX_BYTES) -> None:
        self._root = folder
        self._folder = folder / environment
        self._max_bytes = max_bytes
        self._free: int | None = None
        self._is_usable = _create_private_folder(folder) and _create_private_folder(self._folder)

    def read(self, key: str) -> bytes | None:
        """Return the program that was stored for `key`; None if there is none, or if its file is damaged."""
        if not self._is_usable:
            return None
        path = self._path(key)
        try:
            content = path.read_bytes()
            program = _verified(content, key)
            if program is not None:
                os.utime(path)
        except OSError:
            return None
        return program

    def write(self, key: str, program: bytes) -> None:
        """Store a program under a key, if there is room for it; do nothing if the folder can't be written."""
        if not self._is_usable:
            return
        payload = _digest(key) + zlib.compress(program, 1)
        content = _MAGIC + hashlib.sha256(payload).digest() + payload
        try:
            if self._free is None:
                self._free = self._make_room()
            if len(content) <= self._free:
                self._free -= len(content)
                _write_atomically(self._path(key), content)
        except OSError:
            self._is_usable = False

    def _path(self, key: str) -> Path:
        """Return the path of the file for a key."""
        return self._folder / f"{_digest(key).hex()}{_SUFFIX}"

    def _make_room(self) -> int:
        """Delete programs until half of the store is free, if more than three quarters of it are in use.

        The programs that were not used for the longest time are deleted first.

        Returns:
            The number of free bytes.
        """
        files = sorted(_files(self._root), key=lambda file: file[1].st_mtime)
        used = sum(status.st_size for _, status in files)
        if used > self._max_bytes * 3 // 4:
            for path, status in files:
                if used <= self._max_bytes // 2:
                    break
                with suppress(FileNotFoundError):  # another process deleted it
                    path.unlink()
                used -= status.st_size
        return self._max_bytes - used


def _verified(content: bytes, key: str) -> bytes | None:
    """Return the program in the content of a file; None if the file is damaged or belongs to another key."""
    start = len(_MAGIC) + _DIGEST_BYTES
    payload = content[start:]
    if content[:start] != _MAGIC + hashlib.sha256(payload).digest() or payload[:_DIGEST_BYTES] != _digest(key):
        return None
    try:
        return zlib.decompress(payload[_DIGEST_BYTES:])
    except zlib.error:
        return None


def _digest(key: str) -> bytes:
    """Return the digest of a key."""
    return hashlib.sha256(key.encode()).digest()


def _create_private_folder(folder: Path) -> bool:
    """Create a folder if it is missing; return whether it belongs to the user and only the user may write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):  # on Windows, the rights of a folder are inherited from the user's folder
        return True
    is_shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not is_shared


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files below a folder with their status."""
    paths: Iterable[Path] = folder.glob("*/*")
    for path in paths:
        with suppress(FileNotFoundError):
            yield path, path.stat()


def _write_atomically(path: Path, content: bytes) -> None:
    """Write a file under a temporary name and rename it, so that no process reads a part of it."""
    number, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise

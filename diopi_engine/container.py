"""The container of an engine file: an uncompressed zip archive with a digest of each member.

A set of members corresponds to exactly one file: `unpack` accepts only the bytes that `pack` creates from the members
that it finds. Therefore nothing can be added, omitted, repeated, renamed or hidden between members, and every changed
bit is detected.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from collections.abc import Callable, Mapping

from diopi_engine.errors import EngineFileError

_DATE = (1980, 1, 1, 0, 0, 0)
_SEAL = b"diopi engine, sha256 of the first member: "
_MALFORMED = (zipfile.BadZipFile, struct.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)
"""The exceptions that zipfile raises for bytes that are not a valid archive."""

_RECORDS = {b"PK\3\4": "<18xI4xHH", b"PK\1\2": "<28xHHH12x", b"PK\5\6": "<20xH"}
"""The format of the beginning of each kind of record, by its signature: member, directory entry, end of the directory.
The numbers are the lengths of the variable parts that follow.
"""

LARGEST = (1 << 32) - 1
"""Maximum size of a file in bytes, because the archive stores sizes in 32 bits."""


def sha256(data: bytes) -> str:
    """Return the SHA-256 digest of bytes in hexadecimal notation."""
    return hashlib.sha256(data).hexdigest()


def pack(members: Mapping[str, bytes]) -> bytes:
    """Return the bytes of an engine file with these members in this order, without compression."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), data)
        archive.comment = _SEAL + sha256(next(iter(members.values()), b"")).encode()
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the members of a file by name, in order; raise EngineFileError if `pack` would not create this file."""
    try:
        members = _read_members(data)
    except _MALFORMED as error:
        raise EngineFileError(f"{len(data)} bytes are no engine: {error}") from None
    if pack(members) != data:
        raise EngineFileError(f"the file of {len(data)} bytes is not as it was written: its headers were changed")
    return members


def find_archive_size(read: Callable[[int, int], bytes]) -> int:
    """Return the size of an archive whose length is unknown, computed from the sizes in its records.

    The result may still not be a file that `pack` creates.

    Args:
        read: returns a number of bytes (second argument) at an offset (first argument); raises EngineFileError if there
            are fewer.

    Returns:
        The size in bytes.

    Raises:
        EngineFileError: if there is no archive.
    """
    offset, signature = 0, b""
    while signature != b"PK\5\6":
        signature = read(offset, 4)
        if signature not in _RECORDS or offset > LARGEST:
            raise EngineFileError(f"there is no archive: {signature!r} stands at {offset}, where a record should begin")
        record = _RECORDS[signature]
        size = struct.calcsize(record)
        offset += size + sum(struct.unpack(record, read(offset, size)))
    return offset


def _read_members(data: bytes) -> dict[str, bytes]:
    """Return the contents of an archive's members by name; raise EngineFileError if a member is invalid."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        for entry in entries:
            _check_entry(entry, len(data))
        names = [entry.filename for entry in entries]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise EngineFileError(f"members occur twice: {', '.join(repeated)}")
        return {entry.filename: archive.read(entry) for entry in entries}


def _check_entry(entry: zipfile.ZipInfo, size: int) -> None:
    """Raise EngineFileError if an archive entry has an unsafe name, is compressed or exceeds the file's size."""
    name = entry.filename
    if name.startswith("/") or "\\" in name or ".." in name.split("/") or not name.isascii():
        raise EngineFileError(f"a member is called {name!r}, which is not a valid name for a member of an engine file")
    if entry.compress_type != zipfile.ZIP_STORED:
        raise EngineFileError(f"member {name} is compressed, expected all members to be stored without compression")
    if entry.file_size > size or entry.file_size != entry.compress_size:
        raise EngineFileError(f"member {name} says that it has {entry.file_size} bytes, in a file of {size}")

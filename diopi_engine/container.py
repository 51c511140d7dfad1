"""The container of an engine file: a zip archive of stored members, with a digest of each.

A set of members is one file and no other: `unpack` takes only the very bytes that `pack` makes of what it finds there.
So nothing can be added, left out, repeated, renamed or hidden between members, and a changed bit shows.
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
"""What zipfile raises for bytes that are no archive it can read."""

_RECORDS = {b"PK\3\4": "<18xI4xHH", b"PK\1\2": "<28xHHH12x", b"PK\5\6": "<20xH"}
"""By its signature, how each record of an archive begins: a member, an entry of the directory, its end. The numbers are
how many bytes of each kind come behind that."""

LARGEST = (1 << 32) - 1
"""Bytes that a file has at most: its sizes are numbers of 32 bits."""


def sha256(data: bytes) -> str:
    """The digest of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def pack(members: Mapping[str, bytes]) -> bytes:
    """The file that has these members, by name and in this order, none of them compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), data)
        archive.comment = _SEAL + sha256(next(iter(members.values()), b"")).encode()
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """The members of a file, by name and in order; EngineFileError if it is not one that `pack` makes."""
    try:
        members = _members(data)
    except _MALFORMED as error:
        raise EngineFileError(f"{len(data)} bytes are no engine: {error}") from None
    if pack(members) != data:
        raise EngineFileError(f"the file of {len(data)} bytes is not as it was written: its headers were changed")
    return members


def extent(read: Callable[[int, int], bytes]) -> int:
    """How many bytes a file has whose end is not known, by what it says itself.

    Args:
        read: so many bytes from an offset on; EngineFileError if there are not so many.

    EngineFileError if there is no archive. It may still be none that `pack` makes.
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


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        for entry in entries:
            _check(entry, len(data))
        names = [entry.filename for entry in entries]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise EngineFileError(f"members occur twice: {', '.join(repeated)}")
        return {entry.filename: archive.read(entry) for entry in entries}


def _check(entry: zipfile.ZipInfo, size: int) -> None:
    name = entry.filename
    if name.startswith("/") or "\\" in name or ".." in name.split("/") or not name.isascii():
        raise EngineFileError(f"a member is called {name!r}, which is no name of a member of an engine")
    if entry.compress_type != zipfile.ZIP_STORED:
        raise EngineFileError(f"member {name} is compressed, all members of an engine are stored")
    if entry.file_size > size or entry.file_size != entry.compress_size:
        raise EngineFileError(f"member {name} says that it has {entry.file_size} bytes, in a file of {size}")

"""The container of an engine file: an uncompressed zip archive with a digest of each member.

A set of members corresponds to exactly one file: `unpack` accepts only the bytes that `pack` creates from the members
that it finds. Therefore nothing can be added, omitted, repeated, renamed or hidden between members, and every changed
bit is detected. The time to read an archive is proportional to its size, and `read_members` copies nothing.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Mapping
from itertools import accumulate

from diopi_engine.errors import EngineFileError

_SEAL = b"diopi engine, sha256 of the first member: "
"""The beginning of the archive's comment; the digest of the first member follows."""

_MEMBER, _ENTRY, _END = b"PK\3\4", b"PK\1\2", b"PK\5\6"
"""The signatures of the three kinds of records: member, directory entry, end of the directory."""

_COMMON = struct.Struct("<5H3I2H")
"""The fields that a member and its entry share: version, flags, method, time, date, checksum, sizes, lengths."""

_ENTRY_END = struct.Struct("<3H2I")
"""The fields at the end of an entry: length of the comment, disk, attributes, offset of the member."""

_DIRECTORY_END = struct.Struct("<4s4H2IH")
"""The end of the directory: disks, numbers of entries, size, offset, length of the comment."""

_VERSION, _UNIX, _DATE, _ATTRIBUTES = 20, 3 << 8, 33, 0o600 << 16
"""The properties of all members: the version of the format, their system, 1980-01-01, and permissions."""

_RECORDS = {_MEMBER: "<18xI4xHH", _ENTRY: "<28xHHH12x", _END: "<20xH"}
"""The format of the beginning of each kind of record, by its signature. The numbers are the lengths of the variable
parts that follow.
"""

LARGEST = (1 << 32) - 1
"""Maximum size of a file in bytes, because the archive stores sizes in 32 bits."""

MAX_MEMBERS = (1 << 16) - 1
"""Maximum number of members, because the archive stores the number in 16 bits."""


def sha256(data: bytes | memoryview) -> str:
    """Return the SHA-256 digest of bytes in hexadecimal notation."""
    return hashlib.sha256(data).hexdigest()


def pack(members: Mapping[str, bytes]) -> bytes:
    """Return the bytes of an engine file with these members in this order, without compression.

    Args:
        members: the contents of the members by name.

    Returns:
        The bytes.

    Raises:
        EngineFileError: if there are too many members, or the file would be too large.
    """
    records = [_member_header(name, data) for name, data in members.items()]
    parts = [part for record, data in zip(records, members.values(), strict=True) for part in (record, data)]
    if sum(map(len, parts)) > LARGEST or len(members) > MAX_MEMBERS:
        raise EngineFileError(
            f"{len(members)} members of together {sum(map(len, parts))} bytes do not fit in an engine file, which has "
            f"at most {MAX_MEMBERS} members and {LARGEST} bytes"
        )
    return b"".join([*parts, _directory(members, records)])


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the members of a file by name, in order; raise EngineFileError if `pack` would not create this file."""
    return {name: bytes(member) for name, member in read_members(data).items()}


def read_members(data: bytes) -> dict[str, memoryview]:
    """Return views of the members of a file by name, in order.

    Args:
        data: the bytes of the file.

    Returns:
        The members.

    Raises:
        EngineFileError: if `pack` would not create this file.
    """
    view, members, headers, offset = memoryview(data), dict[str, memoryview](), list[memoryview](), 0
    while view[offset : offset + len(_MEMBER)] == _MEMBER:
        name, start, end = _locate_member(view, offset)
        if name in members:
            raise EngineFileError(f"member {name} occurs twice")
        members[name] = view[start:end]
        headers.append(view[offset:start])
        offset = end
    if not members:
        raise EngineFileError(f"{len(data)} bytes are not an engine: they do not begin with a member of an archive")
    expected = [_member_header(name, member) for name, member in members.items()]
    for name, header, expected_header in zip(members, headers, expected, strict=True):
        if header != expected_header:
            raise EngineFileError(f"the header or the checksum of member {name} was changed")
    if len(members) > MAX_MEMBERS or view[offset:] != _directory(members, expected):
        raise EngineFileError(f"the file of {len(data)} bytes is not as it was written: its directory was changed")
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
    while signature != _END:
        signature = read(offset, 4)
        if signature not in _RECORDS or offset > LARGEST:
            raise EngineFileError(f"there is no archive: {signature!r} stands at {offset}, where a record should begin")
        record = _RECORDS[signature]
        size = struct.calcsize(record)
        offset += size + sum(struct.unpack(record, read(offset, size)))
    return offset


def _common_fields(name: str, data: bytes | memoryview) -> bytes:
    """Return the fields that a member and its directory entry share."""
    size = len(data)
    return _COMMON.pack(_VERSION, 0, 0, 0, _DATE, zlib.crc32(data), size, size, len(name), 0)


def _member_header(name: str, data: bytes | memoryview) -> bytes:
    """Return the record that precedes the contents of a member; raise EngineFileError if the contents are too long."""
    if len(data) > LARGEST:
        raise EngineFileError(f"member {name} has {len(data)} bytes, expected at most {LARGEST}")
    return _MEMBER + _common_fields(name, data) + name.encode("ascii")


def _directory(members: Mapping[str, bytes | memoryview], records: list[bytes]) -> bytes:
    """Return the directory of the archive and its end.

    Args:
        members: the contents of the members by name.
        records: the record that precedes each member.

    Returns:
        The bytes, which follow the last member.
    """
    sizes = (len(record) + len(data) for record, data in zip(records, members.values(), strict=True))
    offsets = [*accumulate(sizes, initial=0)]
    shared = slice(len(_MEMBER), len(_MEMBER) + _COMMON.size)
    entries = b"".join(
        _ENTRY
        + struct.pack("<H", _UNIX | _VERSION)
        + record[shared]
        + _ENTRY_END.pack(0, 0, 0, _ATTRIBUTES, offset)
        + record[shared.stop :]
        for record, offset in zip(records, offsets, strict=False)
    )
    comment = _SEAL + sha256(next(iter(members.values()), b"")).encode()
    count = len(members)
    return entries + _DIRECTORY_END.pack(_END, 0, 0, count, count, len(entries), offsets[-1], len(comment)) + comment


def _locate_member(view: memoryview, offset: int) -> tuple[str, int, int]:
    """Return the name of a member, and where its contents start and end.

    Args:
        view: the bytes of the file.
        offset: the offset of the record that precedes the member.

    Returns:
        The name, and the offsets of the first byte of the contents and behind the last one.

    Raises:
        EngineFileError: if the name is unsafe, or the member is compressed or exceeds the file.
    """
    fields = view[offset + len(_MEMBER) : offset + len(_MEMBER) + _COMMON.size]
    if len(fields) < _COMMON.size:
        raise EngineFileError(f"the file of {len(view)} bytes ends in the header of a member")
    _, _, method, _, _, _, stored, size, name_length, extra_length = _COMMON.unpack(fields)
    name_start = offset + len(_MEMBER) + _COMMON.size
    start = name_start + name_length + extra_length
    name = bytes(view[name_start : name_start + name_length]).decode("latin-1")
    if not name or name.startswith("/") or "\\" in name or ".." in name.split("/") or not name.isascii():
        raise EngineFileError(
            f"a member is called {name[:60]!r}, which is not a valid name for a member of an engine file"
        )
    if method:
        raise EngineFileError(f"member {name} is compressed, expected all members to be stored without compression")
    if stored != size or size > len(view) - start:
        raise EngineFileError(f"member {name} says that it has {size} bytes, in a file of {len(view)}")
    return name, start, start + size

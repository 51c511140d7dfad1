"""Messages between the processes of a run, in frames that distinguish them from other bytes.

A vendor may write to any file descriptor of its process. Each frame therefore has a magic number, the length and the
CRC-32 of its content; the content is JSON. A reader never blocks until a number of bytes has arrived, because the
number in a damaged frame may be wrong.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any, final

MAGIC = b"\xd1OPI\r\n\x1a\n"
"""The first bytes of a frame. The first one is not ASCII, so that no ASCII text is mistaken for a frame."""

MAX_MESSAGE_BYTES = 64 * 2**20
"""The maximum number of bytes of a message."""

READ_SIZE = 2**16
"""Bytes that are read at a time."""

_HEADER = struct.Struct(f">{len(MAGIC)}sII")
"""The bytes before the content: the magic number, the length and the CRC-32, both as 32-bit integers."""


class MessageError(Exception):
    """Bytes that are not a message, or a message that is too long."""


def frame(message: Any) -> bytes:
    """Return the frame of a message; raise MessageError if the message is too long."""
    content = json.dumps(message).encode()
    if len(content) > MAX_MESSAGE_BYTES:
        raise MessageError(f"a message has {len(content)} bytes, expected at most {MAX_MESSAGE_BYTES}")
    return _HEADER.pack(MAGIC, len(content), zlib.crc32(content)) + content


@final
class MessageReader:
    """A parser of messages that receives bytes piece by piece."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, content: bytes) -> None:
        """Add bytes that have arrived."""
        self._buffer += content

    def messages(self) -> Iterator[Any]:
        """Remove and yield the complete messages; raise MessageError if bytes do not belong to a message."""
        while (content := self._next_content()) is not None:
            try:
                yield json.loads(content)
            except ValueError as error:
                raise MessageError(f"a message is no JSON: {error}") from error

    def _next_content(self) -> bytes | None:
        """Return the content of the first frame and remove the frame; None if the frame is not complete.

        Raises:
            MessageError: The frame is damaged or too long.
        """
        begun = bytes(self._buffer[: len(MAGIC)])
        if not MAGIC.startswith(begun):
            raise MessageError(f"a message begins with {begun!r}, expected {MAGIC!r}")
        if len(self._buffer) < _HEADER.size:
            return None
        _, length, checksum = _HEADER.unpack_from(self._buffer)
        if length > MAX_MESSAGE_BYTES:
            raise MessageError(f"a message has {length} bytes, expected at most {MAX_MESSAGE_BYTES}")
        end = _HEADER.size + length
        if len(self._buffer) < end:
            return None
        content = bytes(self._buffer[_HEADER.size : end])
        if zlib.crc32(content) != checksum:
            raise MessageError(f"a message of {length} bytes has another checksum than its header says")
        del self._buffer[:end]
        return content

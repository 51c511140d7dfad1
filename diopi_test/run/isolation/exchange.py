"""Requests and replies between an evaluator and the vendor's process: JSON documents with blocks of bytes.

The vendor may write to any file descriptor of its process, and its threads may write at any time. Each message
therefore has a magic number, lengths and a checksum, and each reply repeats the secret number of its request.
`docs/isolation.md` describes the format.
"""

from __future__ import annotations

import json
import secrets
import socket
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, final

import numpy as np

from diopi_test.execution.call_format import Blocks
from diopi_test.execution.call_record import Bytes

MAGIC = b"\xd1OPX\r\n\x1a\n"
"""The bytes with which every message begins."""

MAX_DOCUMENT_BYTES, MAX_BLOCKS_BYTES = 2**28, 2**40
"""The maximum number of bytes of a document, and of all blocks of a message."""

ALIGNMENT = 64
"""Every block begins at a multiple of this number of bytes after the beginning of the message. Spaces fill the gap
between the document and the first block."""

MAX_JOINED_BYTES = 2**20
"""If the blocks of a message have at most this many bytes, the message is joined and sent with one system call."""

FIRST_READ_BYTES = 2**16
"""The number of bytes that a receiver requests first, before it knows the length of the message."""

_HEADER = struct.Struct(f"<{len(MAGIC)}sIQI")
"""The magic number, the lengths of the document and of all blocks, and the CRC-32 of both."""


class ExchangeError(Exception):
    """Bytes that are not a message, or not the reply to the latest request."""


class DisconnectedError(Exception):
    """The other process has closed the connection."""


@final
@dataclass(frozen=True)
class Message:
    """A message: a document, and the blocks to which it refers."""

    document: dict[str, Any]
    blocks: Blocks = ()


@final
class Exchange:
    """One end of the connection between an evaluator and the vendor's process.

    Args:
        channel: The connected socket.
    """

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self._buffer = bytearray()

    def send(self, document: Mapping[str, Any], blocks: Sequence[Bytes] = ()) -> None:
        """Send a message.

        Args:
            document: The content, in values that JSON can represent; NumPy numbers are converted.
            blocks: The blocks of bytes to which the document refers.
        """
        sizes = [block.nbytes for block in blocks]
        text = _JSON.encode({**document, "blocks": sizes}).encode()
        text += b" " * (-(_HEADER.size + len(text)) % ALIGNMENT)
        parts: list[Any] = [text]
        for block, size in zip(blocks, sizes, strict=True):
            parts += [block.data, _PADDING[-size % ALIGNMENT]]
        if sum(sizes) <= MAX_JOINED_BYTES:
            parts = [b"".join(parts)]
        checksum = 0
        for part in parts:
            checksum = zlib.crc32(part, checksum)
        header = _HEADER.pack(MAGIC, len(text), _padded_total(sizes), checksum)
        if len(parts) == 1:
            self.channel.sendall(header + parts[0])
        else:
            for part in (header, *parts):
                self.channel.sendall(part)

    def receive(self) -> Message | None:
        """Return the next message; None if the other process has closed the connection.

        Raises:
            ExchangeError: Bytes have arrived that are not a message.
        """
        if not self._fill(_HEADER.size):
            return None
        magic, length, size, checksum = _HEADER.unpack_from(self._buffer)
        if magic != MAGIC or length > MAX_DOCUMENT_BYTES or size > MAX_BLOCKS_BYTES:
            raise ExchangeError(f"a message begins with {bytes(magic)!r}, expected {MAGIC!r} and acceptable lengths")
        end = _HEADER.size + length + size
        if not self._fill(end):
            return None
        content, self._buffer = memoryview(self._buffer)[_HEADER.size : end], self._buffer[end:]
        if zlib.crc32(content) != checksum:
            raise ExchangeError("a message has another checksum than its header says")
        return _parse(content[:length], content[length:])

    def _fill(self, count: int) -> bool:
        """Receive bytes until the buffer has `count` of them; return False if the connection is closed before."""
        while (missing_count := count - len(self._buffer)) > 0:
            try:  # the first read takes more, because most messages are short
                received = self.channel.recv(min(missing_count, MAX_JOINED_BYTES) if self._buffer else FIRST_READ_BYTES)
            except ConnectionResetError:
                received = b""
            if not received:
                return False
            self._buffer += received
        return True


def _to_json(value: Any) -> Any:
    """Return a NumPy number as a number of Python; raise TypeError for other values that JSON lacks."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} {value!r} is no number")


_JSON = json.JSONEncoder(default=_to_json)
"""The encoder of all documents."""

_PADDING = [bytes(count) for count in range(ALIGNMENT)]
"""Padding of each length from 0 to `ALIGNMENT` − 1 bytes."""


def _padded_total(sizes: Sequence[int]) -> int:
    """Return the number of bytes of blocks of these sizes with the padding after each."""
    return sum(size + -size % ALIGNMENT for size in sizes)


def _parse(text: memoryview, content: memoryview) -> Message:
    """Return the message of a document and the bytes of its blocks; raise ExchangeError if they do not match."""
    try:
        document = json.loads(bytes(text))
        sizes = [int(size) for size in document.pop("blocks")]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ExchangeError(f"a message is damaged: {type(error).__name__}: {error}") from error
    if min(sizes, default=0) < 0 or _padded_total(sizes) != len(content):
        raise ExchangeError(f"the blocks of a message have {len(content)} bytes, expected {sizes} with padding")
    starts = accumulate((size + -size % ALIGNMENT for size in sizes[:-1]), initial=0)
    array = np.frombuffer(content, np.uint8)
    return Message(document, [array[start : start + size] for start, size in zip(starts, sizes, strict=False)])


@final
class Requester:
    """The end of a connection that sends requests and waits for the reply to each.

    Args:
        exchange: The connection.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def request(self, name: str, content: Mapping[str, Any] | None = None, blocks: Sequence[Bytes] = ()) -> Message:
        """Send a request and return its reply.

        Args:
            name: The name of the request.
            content: What the request contains besides its name.
            blocks: The blocks to which the content refers.

        Returns:
            The reply.

        Raises:
            DisconnectedError: The other process has closed the connection.
            ExchangeError: The message that arrived is not the reply to this request.
        """
        number = secrets.token_hex(8)
        try:
            self._exchange.send({"request": name, "number": number, **(content or {})}, blocks)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise DisconnectedError("the vendor's process has closed the connection") from error
        reply = self._exchange.receive()
        if reply is None:
            raise DisconnectedError("the vendor's process has closed the connection")
        if reply.document.get("number") != number:
            raise ExchangeError(f"a message is not the reply to the request {name}")
        return reply


Handler = Callable[[Message, BaseException | None], tuple[dict[str, Any], Sequence[Bytes]]]
"""A function that executes a request and returns the content of the reply, with its blocks.

Its second argument is an exception that a signal handler of the vendor has raised since the last request, or None."""


def serve_requests(exchange: Exchange, handle: Handler) -> None:
    """Reply to requests until the other process closes the connection.

    An exception that the vendor raises while this function waits, for example in a signal handler, is passed to
    `handle` with the next request.

    Args:
        exchange: The connection.
        handle: Executes a request.

    Raises:
        ExchangeError: Bytes have arrived that are not a message.
        OSError: The connection failed.
    """
    interruption: BaseException | None = None
    while True:
        try:
            message = exchange.receive()
        except (ExchangeError, OSError):
            raise
        except BaseException as error:
            interruption = error
            continue
        if message is None:
            return
        document, blocks = handle(message, interruption)
        interruption = None
        exchange.send({**document, "number": message.document["number"]}, blocks)

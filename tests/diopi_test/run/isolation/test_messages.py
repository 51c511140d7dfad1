"""Only complete messages between processes are read, and foreign bytes are detected without waiting."""

import os
from collections.abc import Iterator
from contextlib import suppress
from socket import socket, socketpair

import pytest

from diopi_test.run.isolation import messages
from diopi_test.run.isolation.fork_server import WorkerProcess
from diopi_test.run.isolation.messages import MAGIC, MessageError, MessageReader, frame

MESSAGES = [{"ready": True}, ["a", 1, None], "é" * 1000]


def read(content: bytes) -> list[object]:
    """Return the messages in these bytes."""
    reader = MessageReader()
    reader.feed(content)
    return list(reader.messages())


@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_messages_are_read_in_pieces_of_any_size(size: int) -> None:
    reader, found = MessageReader(), []
    content = b"".join(map(frame, MESSAGES))
    for start in range(0, len(content), size):
        reader.feed(content[start : start + size])
        found += reader.messages()
    assert found == MESSAGES


def test_a_truncated_message_is_not_read() -> None:
    content = frame(MESSAGES[1])
    assert [read(content[:length]) for length in range(len(content))] == [[]] * len(content)


@pytest.mark.parametrize("position", range(len(frame(MESSAGES[1]))))
def test_a_message_with_a_changed_byte_is_not_read(position: int) -> None:
    content = bytearray(frame(MESSAGES[1]))
    content[position] ^= 0x80
    with suppress(MessageError):
        assert read(bytes(content)) == []  # the length is larger now: the rest of the message is awaited


@pytest.mark.parametrize("foreign", [b"\n", b"{}", b"\x00\x10\x00\x00", MAGIC[:5] + b"x"])
def test_foreign_bytes_are_detected_immediately(foreign: bytes) -> None:
    with pytest.raises(MessageError, match="expected"):
        read(foreign)


def test_a_message_that_is_too_long_is_neither_written_nor_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    content = frame("a" * 100)
    monkeypatch.setattr(messages, "MAX_MESSAGE_BYTES", 50)
    with pytest.raises(MessageError, match=r"102 bytes.*50"):
        frame("a" * 100)
    with pytest.raises(MessageError, match=r"102 bytes.*50"):
        read(content[:20])


@pytest.fixture
def pair() -> Iterator[tuple[socket, WorkerProcess]]:
    """Return the worker's end of the channel, and the worker as its parent sees it."""
    reader, writer = socketpair()
    process = WorkerProcess(1, reader, os.memfd_create("output"))
    with writer:
        yield writer, process
    process.close()


def test_the_messages_before_foreign_bytes_are_read(pair: tuple[socket, WorkerProcess]) -> None:
    writer, process = pair
    writer.sendall(frame("first") + b"foreign")
    assert list(process.received()) == ["first"]
    assert (process.is_open, process.is_damaged) == (False, True)
    writer.sendall(frame("second"))
    assert list(process.received()) == []


def test_reading_does_not_wait_for_an_incomplete_message(pair: tuple[socket, WorkerProcess]) -> None:
    writer, process = pair
    writer.sendall(frame("first")[:-1])
    assert list(process.received()) == []
    assert process.is_open


def test_sending_to_a_process_that_reads_nothing_times_out(
    pair: tuple[socket, WorkerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diopi_test.run.isolation.fork_server.SEND_SECONDS", 0.01)
    _, process = pair
    process.send(["x" * 2**22])
    assert process.is_open

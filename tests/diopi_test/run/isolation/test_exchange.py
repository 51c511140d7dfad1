"""Messages between the evaluation and the vendor's process arrive complete, and other bytes are reported."""

import socket
from collections.abc import Iterator
from threading import Thread

import numpy as np
import pytest

from diopi_test.run.isolation.exchange import (
    DisconnectedError,
    Exchange,
    ExchangeError,
    Message,
    Requester,
    serve_requests,
)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield the two ends of a connected pair of sockets."""
    first, second = socket.socketpair()
    with first, second:
        yield first, second


Ends = tuple[socket.socket, socket.socket]


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 3_000_001])
def test_blocks_of_any_size_arrive(ends: Ends, size: int) -> None:
    blocks = [np.arange(size, dtype=np.uint8), np.full(5, 7, np.uint8)]
    sender = Thread(target=Exchange(ends[0]).send, args=({"text": "ü"}, blocks))
    sender.start()
    message = Exchange(ends[1]).receive()
    sender.join()
    assert message is not None
    assert message.document == {"text": "ü"}
    assert [block.tobytes() for block in message.blocks] == [block.tobytes() for block in blocks]


def test_two_messages_that_arrive_together_are_read_one_after_the_other(ends: Ends) -> None:
    sender, receiver = map(Exchange, ends)
    for number in range(2):
        sender.send({"number": number}, [np.full(number, 1, np.uint8)])
    for number in range(2):
        message = receiver.receive()
        assert message is not None
        assert message.document == {"number": number}


@pytest.mark.parametrize("content", [b"x" * 100, b"\xd1OPX\r\n\x1a\n" * 4])
def test_other_bytes_are_reported(ends: Ends, content: bytes) -> None:
    ends[0].sendall(content)
    with pytest.raises(ExchangeError, match="begins with"):
        Exchange(ends[1]).receive()


def test_a_changed_byte_is_reported(ends: Ends) -> None:
    first, second = socket.socketpair()
    with first, second:
        Exchange(first).send({"text": "unchanged"})
        content = second.recv(1000).replace(b"unchanged", b"exchanged")
    ends[0].sendall(content)
    with pytest.raises(ExchangeError, match="checksum"):
        Exchange(ends[1]).receive()


def test_a_reply_belongs_to_its_request(ends: Ends) -> None:
    def handle(message: Message, interruption: BaseException | None) -> tuple[dict[str, int], tuple[()]]:
        return {"doubled": 2 * message.document["value"]}, ()

    server = Thread(target=serve_requests, args=(Exchange(ends[1]), handle))
    server.start()
    requester = Requester(Exchange(ends[0]))
    assert requester.request("double", {"value": 4}).document["doubled"] == 8
    Exchange(ends[1]).send({"doubled": 1, "number": "0" * 16})  # nobody requested this message
    with pytest.raises(ExchangeError, match="not the reply"):
        requester.request("double", {"value": 4})
    ends[0].shutdown(socket.SHUT_WR)
    server.join()


def test_a_closed_connection_is_reported(ends: Ends) -> None:
    ends[1].close()
    with pytest.raises(DisconnectedError):
        Requester(Exchange(ends[0])).request("has")

"""The parent's side of the nursery, and of the device processes it forks."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, final

from diopi_test.baseline.codec import to_json
from diopi_test.harness.options import CaseOptions
from diopi_test.harness.output import printable

_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    "from diopi_test.harness.isolation.nursery_main import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)

FAREWELL = 1.0
"""Seconds the nursery has to end by itself."""


_STACK = b"Fatal Python error: "
"""How faulthandler begins; what the vendor itself wrote stands before it."""

_LONGEST_STACK = 2**16


class NurseryError(Exception):
    """The nursery has ended, though it should not have."""


@final
@dataclass(frozen=True)
class Ended:
    """The end of a device process: its number, its status as `os.wait` has it, and the seconds of CPU it took."""

    process: int
    status: int
    seconds: float


@final
class DeviceProcess:
    """A device process as its parent knows it: its number, the channel to it, and what it writes to its output.

    `is_open` tells whether there may be more messages.
    """

    def __init__(self, number: int, channel: Connection, output: int) -> None:
        self.number = number
        self.channel = channel
        self.is_open = True
        self._output = output

    def send(self, tasks: Sequence[Any]) -> None:
        """Hand over tasks; nothing happens if the process has ended, which the nursery tells."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.channel.send_bytes(json.dumps(tasks).encode())

    def received(self) -> Iterator[Any]:
        """The messages that have come by now."""
        try:
            while self.is_open and self.channel.poll():
                yield json.loads(self.channel.recv_bytes())
        except (EOFError, ConnectionResetError):
            self.is_open = False

    def hang_up(self) -> None:
        """Tell it that there are no more tasks: it closes its device and ends."""
        with suppress(OSError), socket.socket(fileno=os.dup(self.channel.fileno())) as channel:
            channel.shutdown(socket.SHUT_WR)

    def output_since(self, start: int, longest: int = 4000) -> str:
        """What it has written from that byte on, and its stack if Python told it in the end.

        Of either the beginning and the end are kept if it is longer than `longest` bytes.
        """
        size = os.fstat(self._output).st_size
        told = self._start_of_stack(start, size)
        return "\n".join(filter(None, [self._shortened(start, told, longest), self._shortened(told, size, longest)]))

    def _start_of_stack(self, start: int, stop: int) -> int:
        start = max(start, stop - _LONGEST_STACK)
        found = os.pread(self._output, max(stop - start, 0), start).rfind(_STACK)
        return stop if found < 0 else start + found

    def _shortened(self, start: int, stop: int, longest: int) -> str:
        if stop - start <= longest:
            return self._read(start, stop)
        half = longest // 2
        return f"{self._read(start, start + half)} … {stop - start - longest} bytes … {self._read(stop - half, stop)}"

    def _read(self, start: int, stop: int) -> str:
        text = os.pread(self._output, max(stop - start, 0), start).decode("utf-8", "backslashreplace")
        return printable(text).strip()

    def close(self) -> None:
        """Let go of channel and output; the process ends when it notices."""
        self.channel.close()
        os.close(self._output)


@final
class Nursery:
    """A process that has imported everything and forks device processes; all of them end with this process."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            words = [json.dumps(sys.path), str(theirs.fileno()), str(os.getpid())]
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOTSTRAP, *words], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
        self._control = ours
        self._buffer = b""
        self._messages: deque[dict[str, Any]] = deque()

    def fileno(self) -> int:
        """What can be waited for: it is readable when a process has ended."""
        return self._control.fileno()

    def start(self, vendor: str, options: CaseOptions) -> DeviceProcess:
        """A new device process for a vendor. NurseryError if the nursery itself has ended."""
        ours, theirs = socket.socketpair()
        output = _new_output()
        try:
            with theirs:
                command = json.dumps({"start": [vendor, to_json(options)]}).encode() + b"\n"
                number = self._started(command, [theirs.fileno(), output])
        except BaseException:
            ours.close()
            os.close(output)
            raise
        return DeviceProcess(number, Connection(ours.detach()), output)

    def _started(self, command: bytes, files: Sequence[int]) -> int:
        """Give the command to start a process, and wait for its number."""
        try:
            socket.send_fds(self._control, [command], files)
        except OSError as error:
            raise NurseryError(f"the process that starts device processes has ended: {error}") from error
        others: list[dict[str, Any]] = []
        while "started" not in (message := self._next()):
            others.append(message)
        self._messages.extendleft(reversed(others))
        return int(message["started"])

    def signal(self, process: DeviceProcess, number: int) -> None:
        """Send a signal to a device process and all it has started."""
        self._control.sendall(json.dumps({"signal": [process.number, int(number)]}).encode() + b"\n")

    def ended(self) -> Iterator[Ended]:
        """The processes that have ended by now, each told once. NurseryError if the nursery itself has."""
        self._receive(wait=False)
        while self._messages:
            yield Ended(*self._messages.popleft()["ended"])

    def close(self) -> None:
        """End the nursery and all its device processes at once."""
        self._control.close()
        try:
            self._process.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)  # with which its processes end, too
            self._process.wait()

    def _next(self) -> dict[str, Any]:
        while not self._messages:
            self._receive(wait=True)
        return self._messages.popleft()

    def _receive(self, *, wait: bool) -> None:
        try:
            content = self._control.recv(2**16, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError as error:
            raise NurseryError(f"the process that starts device processes has ended: {error}") from error
        if not content:
            raise NurseryError("the process that starts device processes has ended")
        *complete, self._buffer = (self._buffer + content).split(b"\n")
        self._messages += map(json.loads, complete)


def _new_output() -> int:
    """A file of no name for the output of a process, to which all that write to it append."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("output")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())

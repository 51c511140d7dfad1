"""The parent's view of the fork server and of the workers that it forks."""

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
from typing import Any, final

from diopi_test.baseline.codec import to_json
from diopi_test.run.isolation.messages import READ_SIZE, MessageError, MessageReader, frame
from diopi_test.run.limits import CaseOptions
from diopi_test.run.output import printable

_BOOTSTRAP = (
    "import json, sys, time; since = time.time(); sys.path[:] = json.loads(sys.argv[1]);"
    "from diopi_test.run.isolation.fork_server_main import main; main(int(sys.argv[2]), int(sys.argv[3]), since)"
)
"""The program of the fork server. Its arguments are the import path as JSON and the two numbers that `main`
receives."""

EXIT_SECONDS = 1.0
"""Seconds that the fork server has to exit before it is killed."""

ANSWER_SECONDS, SEND_SECONDS = 300.0, 30.0
"""Seconds in which the fork server must reply, and seconds in which a process must accept a message.

The first reply of the fork server includes its imports.
"""

_STACK = b"Fatal Python error: "
"""The first words of a stack that Python's faulthandler prints. The vendor wrote the output before them."""

_LONGEST_STACK = 2**16
"""Maximum number of bytes of a stack that are kept; a vendor may write without end after the first words."""

_HAS_ENDED = "the fork server has ended"
"""The message of the error that is raised if the fork server cannot be reached."""


class ForkServerError(Exception):
    """The fork server has ended unexpectedly."""


@final
@dataclass(frozen=True)
class Ended:
    """The end of a worker process.

    Attributes:
        process: the process ID.
        status: the exit status, as `os.wait` returns it.
        seconds: the CPU seconds that the process used.
    """

    process: int
    status: int
    seconds: float


@final
class WorkerProcess:
    """A worker, as its parent sees it.

    Args:
        number: The process ID of the worker.
        channel: The connection to the evaluator of the worker.
        output: The file descriptor of the file with the output of both processes.

    Attributes:
        number: the process ID of the worker.
        channel: the connection.
        is_open: whether further messages may arrive.
        is_damaged: whether bytes arrived that are not a message.
    """

    def __init__(self, number: int, channel: socket.socket, output: int) -> None:
        self.number = number
        self.channel = channel
        self.is_open = True
        self.is_damaged = False
        self._messages = MessageReader()
        self._output = output

    def send(self, tasks: Sequence[Any]) -> None:
        """Send tasks to the worker.

        It is no error if the worker has ended or does not read the tasks. The executor notices the end of the worker,
        or its deadline.
        """
        self.channel.settimeout(SEND_SECONDS)
        with suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
            self.channel.sendall(frame(tasks))

    def received(self) -> Iterator[Any]:
        """Yield the messages that have arrived, without waiting."""
        try:
            while self.is_open and (content := self._available()) is not None:
                self._messages.feed(content)
                yield from self._messages.messages()
                if not content:
                    self.is_open = False
        except MessageError:
            self.is_open, self.is_damaged = False, True

    @property
    def misuse(self) -> str:
        """What the vendor did to the channel, as the predicate of a sentence.

        It applies if the channel is closed although the process still runs.
        """
        return f"{'wrote to' if self.is_damaged else 'closed'} a file descriptor that was not its own"

    def _available(self) -> bytes | None:
        """Return the bytes that have arrived; empty if the channel was closed, None if none have arrived yet."""
        self.channel.settimeout(0.0)
        try:
            return self.channel.recv(READ_SIZE)
        except BlockingIOError:
            return None
        except ConnectionResetError:
            return b""

    def hang_up(self) -> None:
        """Tell the worker that there are no more tasks, so that it closes its device and ends."""
        with suppress(OSError):
            self.channel.shutdown(socket.SHUT_WR)

    def output_since(self, start: int, longest: int = 4000) -> str:
        """Return the output from the byte `start` on: first the vendor's output, then a stack that Python has printed.

        Args:
            start: The position of the first byte.
            longest: The maximum number of bytes of each of these two parts. A longer part is shortened in the middle.

        Returns:
            The output, with unprintable characters escaped.
        """
        size = os.fstat(self._output).st_size
        start_of_stack = self._start_of_stack(start, size)
        return "\n".join(
            filter(
                None, [self._shortened(start, start_of_stack, longest), self._shortened(start_of_stack, size, longest)]
            )
        )

    def _start_of_stack(self, start: int, stop: int) -> int:
        """Return the position in the output file at which the last printed stack begins, or `stop` if there is none."""
        start = max(start, stop - _LONGEST_STACK)
        position = os.pread(self._output, max(stop - start, 0), start).rfind(_STACK)
        return stop if position < 0 else start + position

    def _shortened(self, start: int, stop: int, longest: int) -> str:
        """Return the output from byte `start` to byte `stop` as text; omit the middle of more than `longest` bytes."""
        if stop - start <= longest:
            return self._read(start, stop)
        half = longest // 2
        return f"{self._read(start, start + half)} … {stop - start - longest} bytes … {self._read(stop - half, stop)}"

    def _read(self, start: int, stop: int) -> str:
        """Return the output from byte `start` to byte `stop` as printable text."""
        text = os.pread(self._output, max(stop - start, 0), start).decode("utf-8", "backslashreplace")
        return printable(text).strip()

    def close(self) -> None:
        """Close the channel and the output file. The process ends when it finds its channel closed."""
        self.channel.close()
        os.close(self._output)


@final
class ForkServer:
    """A process that has imported every module and forks workers. All of them end with the parent."""

    def __init__(self) -> None:
        parent_socket, child_socket = socket.socketpair()
        with child_socket:
            words = [json.dumps(sys.path), str(child_socket.fileno()), str(os.getpid())]
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOTSTRAP, *words], pass_fds=[child_socket.fileno()], stdin=subprocess.DEVNULL
            )
        self._control = parent_socket
        self._reader = MessageReader()
        self._messages: deque[dict[str, Any]] = deque()

    def fileno(self) -> int:
        """Return the file descriptor that is readable when a worker has ended."""
        return self._control.fileno()

    def start(self, vendor: str, options: CaseOptions) -> WorkerProcess:
        """Return a new worker for a vendor; raise ForkServerError if the fork server has ended.

        Args:
            vendor: the name of the vendor.
            options: the options of the cases that the worker runs.

        Returns:
            The worker, which is loading the vendor.

        Raises:
            ForkServerError: The fork server has ended.
        """
        parent_socket, child_socket = socket.socketpair()
        output = _new_output()
        try:
            with child_socket:
                command = frame({"start": [vendor, to_json(options)]})
                number = self._started(command, [child_socket.fileno(), output])
        except BaseException:
            parent_socket.close()
            os.close(output)
            raise
        return WorkerProcess(number, parent_socket, output)

    def _started(self, command: bytes, files: Sequence[int]) -> int:
        """Return the number of the process that the fork server starts for a command.

        Raises:
            ForkServerError: The fork server has ended.
        """
        self._control.settimeout(SEND_SECONDS)
        try:
            socket.send_fds(self._control, [command], files)
        except OSError as error:
            raise ForkServerError(f"{_HAS_ENDED}: {error}") from error
        earlier: list[dict[str, Any]] = []
        while "started" not in (message := self._next()):
            earlier.append(message)
        self._messages.extendleft(reversed(earlier))
        return int(message["started"])

    def signal(self, process: WorkerProcess, number: int) -> None:
        """Send a signal to a worker and its children; raise ForkServerError if the fork server has ended."""
        self._control.settimeout(SEND_SECONDS)
        try:
            self._control.sendall(frame({"signal": [process.number, int(number)]}))
        except OSError as error:
            raise ForkServerError(f"{_HAS_ENDED}: {error}") from error

    def ended(self) -> Iterator[Ended]:
        """Yield the workers that have ended since the last call, without waiting.

        Yields:
            The end of each worker, once.

        Raises:
            ForkServerError: The fork server has ended.
        """
        self._receive(0.0)
        while self._messages:
            yield Ended(*self._messages.popleft()["ended"])

    def close(self) -> None:
        """End the fork server and all its workers at once."""
        self._control.close()
        try:
            self._process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)  # its workers end with it
            self._process.wait()

    def _next(self) -> dict[str, Any]:
        """Return the next message of the fork server; wait for it if necessary."""
        while not self._messages:
            self._receive(ANSWER_SECONDS)
        return self._messages.popleft()

    def _receive(self, seconds: float) -> None:
        """Receive messages of the fork server.

        Args:
            seconds: How long to wait for a message. If it is 0, nothing needs to arrive.

        Raises:
            ForkServerError: The fork server has ended, or did not send a message in this time.
        """
        self._control.settimeout(seconds)
        try:
            content = self._control.recv(READ_SIZE)
            self._reader.feed(content)
            self._messages += self._reader.messages()
        except BlockingIOError:
            return
        except TimeoutError as error:
            raise ForkServerError(f"the fork server gave no answer in {seconds:g} s") from error
        except (OSError, MessageError) as error:
            raise ForkServerError(f"{_HAS_ENDED}: {error}") from error
        if not content:
            raise ForkServerError(_HAS_ENDED)


def _new_output() -> int:
    """Return the descriptor of an unnamed file for the output of a process; every writer appends."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("output")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())

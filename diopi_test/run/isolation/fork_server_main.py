"""The main program of the fork server. It has imported all modules, has loaded no vendor, and forks workers.

It receives the messages `start` (with two files, for messages and for output) and `signal`. For each worker, it sends
`started`, and `ended` with the exit status. With each worker, it forks an evaluator, which is connected to the worker
and to the parent and ends when one of the connections is closed. The fork server, its workers and their evaluators end
when their parent process ends.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from select import select
from typing import Any, NoReturn, final

from diopi_impl.native.library import prepare
from diopi_test.baseline.codec import from_json
from diopi_test.run.isolation.evaluator_main import evaluate
from diopi_test.run.isolation.imports import import_references, import_validators
from diopi_test.run.isolation.lifeline import end_with
from diopi_test.run.isolation.messages import READ_SIZE, MessageReader, frame
from diopi_test.run.isolation.vendor_main import serve
from diopi_test.run.limits import CaseOptions


@final
class ForkServerLoop:
    """The fork server: it receives commands, forks processes and reports their end.

    Args:
        control: The connection to the parent.
        since: A time before this process imported its first module of this project, as `time.time` returns it.
    """

    def __init__(self, control: socket.socket, since: float) -> None:
        self._control = control
        self._since = since
        self._reader = MessageReader()
        self._files: list[int] = []
        self._alive: set[int] = set()
        self._evaluators: set[int] = set()
        self._wakeup, written = os.pipe()
        os.set_blocking(self._wakeup, False)
        os.set_blocking(written, False)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C

    def run(self) -> None:
        """Serve until the parent has ended, then end all workers."""
        commands: dict[str, Callable[..., None]] = {"start": self._start, "signal": self._signal}
        try:
            for message in self._commands():
                for command, arguments in message.items():
                    commands[command](*arguments)
        except (BrokenPipeError, ConnectionResetError):  # the parent ended while it received a message
            pass
        finally:
            for process in self._alive | self._evaluators:
                _end_group(process)
            for process in self._evaluators:
                os.waitpid(process, 0)

    def _commands(self) -> Iterator[dict[str, Any]]:
        """Yield the commands as they arrive, until the parent has ended; meanwhile, report workers that have ended."""
        while True:
            sources: list[Any] = [self._control, self._wakeup]
            ready, _, _ = select(sources, [], [])
            if self._wakeup in ready:
                with suppress(BlockingIOError):
                    os.read(self._wakeup, READ_SIZE)
                self._report_ended()
            if self._control in ready:
                content, files, _, _ = socket.recv_fds(self._control, READ_SIZE, 16)
                if not content:
                    return
                self._files += files
                self._reader.feed(content)
                yield from self._reader.messages()

    def _start(self, vendor: str, options: Any) -> None:
        """Fork a worker and its evaluator, which take over the first two file descriptors that were received.

        The evaluator is forked first, and has only the connections. The worker can't reach the parent's messages.
        """
        channel, output = self._files[:2]
        del self._files[:2]
        case_options = from_json(CaseOptions, options)
        if case_options.draws_inputs:
            import_references()
        parent_end, (evaluator_end, worker_end) = socket.socket(fileno=channel), socket.socketpair()
        with parent_end, evaluator_end, worker_end:
            evaluator = self._fork(output, partial(evaluate, parent_end, evaluator_end, case_options), [worker_end])
            serving = partial(serve, worker_end, vendor, case_options.numerics, self._since)
            process = self._fork(output, serving, [parent_end, evaluator_end])
        os.close(output)
        self._evaluators.add(evaluator)
        self._alive.add(process)
        self._send({"started": process})

    def _fork(self, output: int, main: Callable[[], None], closed: Sequence[socket.socket]) -> int:
        """Fork a process that executes `main`, and return its process ID.

        Args:
            output: The file for the output of the process.
            main: What the process executes before it ends.
            closed: The connections that the process must not have.

        Returns:
            The process ID.
        """
        fork_server = os.getpid()
        process = os.fork()
        if not process:
            self._become_process(fork_server, output, main, closed)
        os.setpgid(process, process)
        return process

    def _become_process(
        self, fork_server: int, output: int, main: Callable[[], None], closed: Sequence[socket.socket]
    ) -> NoReturn:
        """Execute `main` in the forked process, and end the process.

        Args:
            fork_server: The process ID of the fork server, with which the process ends.
            output: The file for standard output and standard error.
            main: What the process executes.
            closed: The connections that the process must not have.
        """
        status = 1
        try:
            os.setpgid(0, 0)  # the parent does the same, because either may come first
            end_with(fork_server)
            os.close(signal.set_wakeup_fd(-1))
            for number in (signal.SIGCHLD, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            self._control.close()
            os.close(self._wakeup)
            for connection in closed:
                connection.close()
            for standard in (1, 2):
                os.dup2(output, standard)
            os.close(output)
            main()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(Exception):
                sys.stderr.flush()
            os._exit(status)

    def _signal(self, process: int, number: int) -> None:
        """Send a signal to a worker and its children; do nothing if the worker has ended."""
        if process in self._alive:
            with suppress(ProcessLookupError):
                os.killpg(process, number)

    def _report_ended(self) -> None:
        """Report workers that have ended, with their status and CPU time. End the processes that they started."""
        self._evaluators = {process for process in self._evaluators if not os.waitpid(process, os.WNOHANG)[0]}
        for process in list(self._alive):
            ended = os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                continue
            _end_group(process)  # ends the processes it started, before the system can reuse its number
            _, status, usage = os.wait4(process, 0)
            self._alive.remove(process)
            self._send({"ended": [process, status, usage.ru_utime + usage.ru_stime]})

    def _send(self, message: Any) -> None:
        """Send a message to the parent process."""
        self._control.sendall(frame(message))


def _end_group(process: int) -> None:
    """Kill all processes of the process group, if it still exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)


def main(control: int, parent: int, since: float) -> None:
    """Run the fork server until its parent process ends.

    Args:
        control: The file descriptor of the socket that connects this process with its parent.
        parent: The process ID of the parent.
        since: A time before this process imported its first module of this project, as `time.time` returns it.
    """
    end_with(parent)
    prepare()
    import_validators()
    gc.freeze()  # the collector does not visit imported objects, so the forked processes share their memory
    ForkServerLoop(socket.socket(fileno=control), since).run()

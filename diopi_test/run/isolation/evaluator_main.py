"""The main program of an evaluator: evaluates the cases that it receives, on a vendor in another process.

The evaluator never loads a vendor. Its process is forked before the vendor's process is.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from select import select
from typing import Any, final

from diopi_impl.errors import exception_text
from diopi_test.baseline.codec import from_json, to_json
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import CheckResult, Outcome, Verdict
from diopi_test.run.collection import Collected
from diopi_test.run.isolation.description import Description
from diopi_test.run.isolation.exchange import DisconnectedError, Exchange, ExchangeError, Requester
from diopi_test.run.isolation.messages import READ_SIZE, MessageReader, frame
from diopi_test.run.isolation.remote_target import RaisedInVendorError, RemoteTarget
from diopi_test.run.limits import CaseOptions
from diopi_test.run.output import shorten
from diopi_test.run.run_case import add_check_results
from diopi_test.run.session import Session

CONNECTION_DAMAGED = b"\0"
"""The bytes, not a valid message, with which an evaluator reports that the vendor has written to the connection."""


def evaluate(channel: socket.socket, vendor_channel: socket.socket, options: CaseOptions) -> None:
    """Receive cases, evaluate them, and send the outcome of each, until a connection is closed.

    Before the outcomes, the evaluator passes on the first messages of the worker, see `vendor_main.serve`.

    Args:
        channel: The connection to the executor.
        vendor_channel: The connection to the worker.
        options: How to run and check the cases.
    """
    try:
        Evaluator(channel, Exchange(vendor_channel), options).run()
    except ExchangeError:
        channel.sendall(CONNECTION_DAMAGED)
    except DisconnectedError:  # the fork server reports how the vendor's process has ended
        pass


@final
class Evaluator:
    """An evaluator of cases.

    Args:
        channel: The connection to the executor, which sends cases and receives outcomes.
        vendor: The connection to the vendor's process.
        options: How to run and check the cases.
    """

    def __init__(self, channel: socket.socket, vendor: Exchange, options: CaseOptions) -> None:
        self._channel = channel
        self._vendor = vendor
        self._options = options

    def run(self) -> None:
        """Evaluate cases until the executor closes its connection.

        Raises:
            ExchangeError: The vendor has written to the connection.
            DisconnectedError: The vendor's process has closed the connection, which it does when it ends.
        """
        loaded = self._pass_on()
        if "loaded" not in loaded:
            return
        target = RemoteTarget(Requester(self._vendor), from_json(Description, loaded["loaded"]))
        session = Session(target, self._options)
        if "ready" not in self._pass_on():
            return
        for tasks in self._receive_tasks():
            for task in tasks:
                self._send(_evaluate_task(session, target, *task))
        self._vendor.channel.shutdown(socket.SHUT_WR)  # the vendor's process closes its device
        self._vendor.receive()

    def _pass_on(self) -> dict[str, Any]:
        """Return the next message of the vendor's process, after sending it to the executor.

        Raises:
            DisconnectedError: The vendor's process has ended.
        """
        message = self._vendor.receive()
        if message is None:
            raise DisconnectedError("the vendor's process has ended")
        self._send(message.document)
        return message.document

    def _send(self, message: Any) -> None:
        """Send a message to the executor."""
        self._channel.sendall(frame(message))

    def _receive_tasks(self) -> Iterator[Any]:
        """Yield the lists of tasks that the executor sends, until it closes the connection.

        Raises:
            DisconnectedError: The vendor's process has ended.
        """
        reader = MessageReader()
        while True:
            ready, _, _ = select([self._channel, self._vendor.channel], [], [])
            if self._vendor.channel in ready:  # nothing was requested
                self._vendor.receive()
                raise DisconnectedError("the vendor's process has ended")
            content = self._channel.recv(READ_SIZE)
            if not content:
                return
            reader.feed(content)
            yield from reader.messages()


def _evaluate_task(
    session: Session, target: RemoteTarget, path: str, sha256: str | None, case: Sequence[str]
) -> dict[str, Any]:
    """Evaluate a case and return the message for the executor.

    Args:
        session: The session, whose target is `target`.
        target: The vendor in the other process.
        path: The baseline file of the case.
        sha256: The digest that the file must have; None if any digest will do.
        case: The fields of `Collected`: function, label, element type, class and base.

    Returns:
        The outcome, the duration in seconds, and the number of bytes that the vendor's process has output so far.
    """
    function, label, dtype, case_class, base = case
    collected = Collected(function=function, label=label, dtype=dtype, case_class=CaseClass(case_class), base=base)
    start = time.perf_counter()
    outcome = evaluate_and_catch(session, Path(path), sha256, collected)
    seconds = time.perf_counter() - start
    changes, output = target.finish_case()
    if changes:
        result = CheckResult(check="process_state", passed=False, message="; ".join(changes))
        outcome = add_check_results(outcome, [result])
    outcome = replace(outcome, message=shorten(outcome.message), operators=target.take_operator_uses())
    return {"outcome": to_json(outcome), "seconds": seconds, "output": output}


def evaluate_and_catch(session: Session, path: Path, sha256: str | None, case: Collected) -> Outcome:
    """Evaluate a case and return its outcome; an exception of the vendor or of the evaluation becomes a verdict.

    The verdict is `out_of_memory` for MemoryError and otherwise `failed`. The outcome of a target that raises
    RaisedInVendorError is passed on.

    Args:
        session: The session.
        path: The baseline file of the case.
        sha256: The digest that the file must have; None if any digest will do.
        case: The case.

    Returns:
        The outcome.

    Raises:
        ExchangeError: The vendor has written to the connection.
        DisconnectedError: The vendor's process has ended.
    """
    try:
        return session.run(path, case, sha256)
    except (ExchangeError, DisconnectedError):
        raise
    except RaisedInVendorError as raised:
        return raised.outcome
    except MemoryError as error:
        verdict = Verdict.out_of_memory
        text = f"MemoryError was raised: {exception_text(error)}"
    except Exception as error:
        verdict = Verdict.failed
        text = f"{type(error).__name__} was raised: {exception_text(error)}"
    return Outcome(verdict=verdict, message=text.removesuffix(": "))

"""The main program of a worker: loads the vendor, checks that it works, then runs the cases that it receives."""

from __future__ import annotations

import faulthandler
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from diopi_impl import BaseVendor, VendorError, VendorNotFoundError, find_vendor
from diopi_impl.errors import describe_exception, exception_text
from diopi_test.baseline.codec import to_json
from diopi_test.cases.case import CaseClass
from diopi_test.execution.forks import ForkWatch, watch_forks
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.run.collection import Collected
from diopi_test.run.isolation.description import Description, open_working_device
from diopi_test.run.isolation.messages import CHUNK, MessageReader, frame
from diopi_test.run.isolation.process_state import ProcessState, check_process_state
from diopi_test.run.limits import CaseOptions
from diopi_test.run.output import printable
from diopi_test.run.program_folder import store_programs
from diopi_test.run.run_case import add_check_results
from diopi_test.run.session import Session

MAX_MESSAGE = 10_000
"""Maximum number of characters of a message; longer messages are shortened in the middle."""

MAX_OUTPUT = 2**20
"""Maximum number of bytes of output that remain stored between cases."""


def serve(channel: socket.socket, vendor_name: str, options: CaseOptions, since: float) -> None:
    """Receive cases over `channel`, run them on a vendor, and send the outcome of each, until the channel is closed.

    The first messages are {"loaded": description} and {"ready": true}. If the vendor does not start, the only message
    is {"refused": reason, "found": whether the vendor exists}.

    Args:
        channel: The connection to the executor.
        vendor_name: The vendor.
        options: The options of the cases.
        since: A time before the process imported its first module of this project, as `time.time` returns it.
    """
    faulthandler.enable(file=sys.__stderr__ or 2)
    forks = watch_forks()
    try:
        vendor = _load_vendor(vendor_name)
        store_programs(vendor, vendor_name, since)
        forks.end_copies()
        _send(channel, {"loaded": to_json(Description.from_vendor(vendor, options.numerics))})
        session = Session(vendor, open_working_device(vendor), options)
    except VendorError as error:
        forks.end_copies()
        _send(channel, {"refused": shorten(str(error)), "found": not isinstance(error, VendorNotFoundError)})
        return
    process_state = ProcessState()  # created once; the state is restored after each case
    _send(channel, {"ready": True})
    for tasks in _receive(channel):
        for task in tasks:
            outcome, seconds = _run_timed(session, process_state, forks, *task)
            _send(channel, {"outcome": to_json(outcome), "seconds": seconds, "output": _output_size()})
    session.close()


def _load_vendor(name: str) -> BaseVendor:
    """Load the vendor; raise `VendorError` for any exception, because the vendor's code may raise anything."""
    try:
        return find_vendor(name)
    except VendorError:
        raise
    except BaseException as error:
        raise VendorError(f"vendor {name} can't be loaded: {describe_exception(error)}") from error


def _run_timed(
    session: Session, process_state: ProcessState, forks: ForkWatch, path: str, sha256: str | None, case: Sequence[str]
) -> tuple[Outcome, float]:
    """Run a case; return its outcome, including the checks of the process state, and its duration in seconds."""
    function, label, dtype, case_class, base = case
    collected = Collected(function=function, label=label, dtype=dtype, case_class=CaseClass(case_class), base=base)
    start = time.perf_counter()
    outcome = run_and_catch(session, Path(path), sha256, collected)
    seconds = time.perf_counter() - start
    forks.end_copies()
    outcome = add_check_results(outcome, list(check_process_state(process_state, forks)))
    return replace(outcome, message=shorten(outcome.message)), seconds


def run_and_catch(session: Session, path: Path, sha256: str | None, case: Collected) -> Outcome:
    """Run a case and return its outcome, which is failed if the vendor raises anything."""
    try:
        return session.run(path, case, sha256)
    except MemoryError as error:
        return Outcome(
            verdict=Verdict.out_of_memory, message=f"MemoryError was raised: {exception_text(error)}".removesuffix(": ")
        )
    except BaseException as error:  # no user interrupts this process: all of them are the vendor's
        return Outcome(
            verdict=Verdict.failed,
            message=f"{type(error).__name__} was raised: {exception_text(error)}".removesuffix(": "),
        )


def shorten(text: str) -> str:
    """Return the text in printable form, with the middle left out if it is too long."""
    if len(text) <= MAX_MESSAGE:
        return printable(text)
    half = MAX_MESSAGE // 2
    return printable(f"{text[:half]} … {len(text) - 2 * half} characters left out … {text[-half:]}")


def _output_size() -> int:
    """Return the bytes written to standard output and error; truncate the file if it is too large."""
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        size = os.fstat(2).st_size
        if size > MAX_OUTPUT:
            os.ftruncate(2, 0)
            size = os.lseek(2, 0, os.SEEK_SET)
        return size
    except (OSError, ValueError, AttributeError):  # the vendor closed it
        return 0


def _send(channel: socket.socket, message: Any) -> None:
    """Send a message to the executor."""
    channel.sendall(frame(message))


def _receive(channel: socket.socket) -> Iterator[Any]:
    """Yield the messages as they arrive, until the channel is closed."""
    reader = MessageReader()
    while content := channel.recv(CHUNK):
        reader.feed(content)
        yield from reader.messages()

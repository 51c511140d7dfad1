"""The main program of a worker: loads the vendor, checks that it works, then makes the calls that are requested.

It evaluates nothing, and it receives no expected results, unless the vendor is a test vendor that returns them.

Each method of `VendorServer` that serves a request receives the JSON document of the request, the decoder of its
blocks of bytes, and the encoder for the blocks of the reply. It returns the JSON document of the reply.
"""

from __future__ import annotations

import faulthandler
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, final

from diopi_impl import BaseVendor, Numerics, VendorError, VendorNotFoundError, find_vendor
from diopi_impl.errors import describe_exception, exception_text
from diopi_impl.program_folder import store_programs
from diopi_proto.types import Error
from diopi_test.baseline.codec import from_json, to_json
from diopi_test.execution.call import Call, RejectedCallError
from diopi_test.execution.call_arguments import CallMode
from diopi_test.execution.call_format import CallDecoder, CallEncoder, encode_damage
from diopi_test.execution.call_groups import TargetOutcomeError
from diopi_test.execution.call_record import Bytes
from diopi_test.execution.forks import ForkWatch, watch_forks
from diopi_test.execution.in_flight import Chain, ChainKind
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.isolation.description import Description, open_working_device
from diopi_test.run.isolation.exchange import Exchange, Message, serve_requests
from diopi_test.run.isolation.process_state import ProcessState
from diopi_test.run.output import shorten
from diopi_test.run.target import LocalTarget

MAX_OUTPUT = 2**20
"""If the vendor's process has output more than this many bytes after a request, the output file is truncated."""

QUERIES = frozenset({"has", "last_error", "late", "release", "forks", "memory"})
"""Requests that are part of the evaluation of another request: the worker does not compare its state after them."""

Reply = dict[str, Any]
"""What is sent to the evaluator about a request; its keys depend on the request."""


def serve(channel: socket.socket, vendor_name: str, numerics: Numerics | None, since: float) -> None:
    """Load a vendor and reply to requests over `channel` until it is closed.

    The first messages are {"loaded": description} and {"ready": true}. If the vendor does not start, the only message
    is {"refused": reason, "found": whether the vendor exists}.

    Args:
        channel: The connection to the evaluator.
        vendor_name: The vendor.
        numerics: The arithmetic for which results are evaluated; None for the arithmetic that the vendor declares.
        since: A time before the process imported its first module of this project, as `time.time` returns it.
    """
    faulthandler.enable(file=sys.__stderr__ or 2)
    exchange = Exchange(channel)
    forks = watch_forks()
    try:
        vendor = _load_vendor(vendor_name)
        store_programs(vendor, vendor_name, since)
        forks.end_copies()
        exchange.send({"loaded": to_json(Description.from_vendor(vendor, numerics))})
        target = LocalTarget(vendor, open_working_device(vendor))
    except VendorError as error:
        forks.end_copies()
        exchange.send({"refused": shorten(str(error)), "found": not isinstance(error, VendorNotFoundError)})
        exchange.receive()  # the evaluator closes the connection as soon as it has passed the message on
        return
    server = VendorServer(target, ProcessState(), forks)  # the state is restored after each case
    exchange.send({"ready": True})
    serve_requests(exchange, server.handle)
    target.close()


def _load_vendor(name: str) -> BaseVendor:
    """Return the loaded vendor; raise VendorError if the vendor's code raises any exception."""
    try:
        return find_vendor(name)
    except VendorError:
        raise
    except BaseException as error:
        raise VendorError(f"vendor {name} can't be loaded: {describe_exception(error)}") from error


@final
class VendorServer:
    """The handlers of the requests that a worker receives.

    Args:
        target: The vendor on its open device.
        state: The state of the process, which is restored after each request.
        forks: The detector of forks of the process.
    """

    def __init__(self, target: LocalTarget, state: ProcessState, forks: ForkWatch) -> None:
        self._target = target
        self._state = state
        self._forks = forks
        self._open: tuple[Call, ExitStack] | None = None
        self._last_case: BaselineCase | None = None
        self._handlers: Mapping[str, Callable[[Reply, CallDecoder, CallEncoder], Reply]] = {
            "has": self._has,
            "last_error": self._last_error,
            "call": self._call,
            "rejected_call": self._rejected_call,
            "late": self._late,
            "release": self._release,
            "chain": self._chain,
            "memory": self._memory,
            "time": self._time,
            "runtime": self._runtime,
            "numerics": self._numerics,
            "forks": self._find_forks,
        }

    def handle(self, message: Message, interruption: BaseException | None) -> tuple[Reply, Sequence[Bytes]]:
        """Execute a request, then restore the state of the process unless the request belongs to `QUERIES`.

        Args:
            message: The request.
            interruption: An exception that a signal handler of the vendor has raised since the last request, or None.

        Returns:
            The content of the reply, and its blocks. An exception of the vendor becomes a reply with the key `raised`.
        """
        encoder, decoder = CallEncoder(), CallDecoder(message.blocks)
        try:
            if interruption is not None:
                raise interruption
            reply = self._handlers[message.document["request"]](message.document, decoder, encoder)
        except TargetOutcomeError as error:
            reply = {"raised": to_json(error.outcome)}
        except MemoryError as error:
            reply = _raised(Verdict.out_of_memory, "MemoryError", error)
        except BaseException as error:  # no user interrupts this process: all of them are the vendor's
            reply = _raised(Verdict.failed, type(error).__name__, error)
        self._forks.end_copies()
        if message.document["request"] not in QUERIES:
            changes, has_forked = self._state.restore(), self._forks.has_new_children()
            reply |= {"changes": list(changes), "has_forked": has_forked, "output": _output_size()}
            if uses := self._target.take_operator_uses():
                reply["operators"] = [to_json(use) for use in uses]
        return reply, encoder.blocks

    def _has(self, request: Reply, decoder: CallDecoder, encoder: CallEncoder) -> Reply:
        """Reply whether the vendor implements a function."""
        return {"has": bool(self._target.has(request["function"]))}

    def _last_error(self, request: Reply, decoder: CallDecoder, encoder: CallEncoder) -> Reply:
        """Reply with the vendor's last error."""
        return {"text": self._target.last_error()}

    def _call(self, request: Reply, decoder: CallDecoder, encoder: CallEncoder) -> Reply:
        """Make a valid call; reply with its record, or with the error code if the vendor rejects the call."""
        call = self._target.open_call(*self._decode_call(request, decoder))
        try:
            with ExitStack() as stack:
                stack.enter_context(call)
                reply: Reply = {"record": encoder.record(call.run())}
                if request["stays_open"]:
                    self._open = call, stack.pop_all()
                    return reply
        except RejectedCallError as rejection:
            reply = {"code": rejection.code.name}
        return {**reply, **_describe_release(call)}

    def _rejected_call(self, request: Reply, decoder: CallDecoder, encoder: CallEncoder) -> Reply:
        """Make a call that the vendor must reject; reply with the returned code, the last error and the record."""
        with self._target.open_call(*self._decode_call(request, decoder)) as call:
            code, last_error, run = call.run_rejected()
            reply = {"code": code.name, "last_error": last_error, "record": encoder.record(run)}
        return {**reply, **_describe_release(call)}

    def _decode_call(self, request: Reply, decoder: CallDecoder) -> tuple[BaselineCase, CallMode]:
        """Return the case and the mode of a requested call; the case is the latest one if the request has none."""
        if request["call"] is not None:
            self._last_case = decoder.call(request["call"])
        assert self._last_case is not None
        return self._last_case, CallMode(**dict.fromkeys(request["mode"], True))

    def _late(self, request: Reply, decoder: CallDecoder, encoder: CallEncoder) -> Reply:
        """Reply with the results of the open call that changed after they were read."""
        assert self._open is not None
        return {"late": self._open[0].find_late_results()}

    def _release(self, request: Reply, decoder: CallDecoder, encoder: CallEncoder) -> Reply:
        """Release the open call, and reply with what was damaged or not released."""
        assert self._open is not None
        (call, stack), self._open = self._open, None
        stack.close()
        return _describe_release(call)

    def _chain(self, request: Reply, decoder: CallDecoder, encoder: CallEncoder) -> Reply:
        """Make the calls of a chain, and reply with their records or error codes."""
        cases = [decoder.call(call) for call in request["calls"]]
        records, damage = self._target.run_chain(Chain(ChainKind(request["stream_count"]), cases))
        results = [
            {"code": record.name} if isinstance(record, Error) else {"record": encoder.record(record)}
            for record in records
        ]
        return {"results": results, "damage": encode_damage(damage)}

    def _memory(self, request: Reply, decoder: CallDecoder, encoder: CallEncoder) -> Reply:
        """Reply with the memory of this process and of the device."""
        return {"memory": dict(self._target.measure_memory())}

    def _time(self, request: Reply, decoder: CallDecoder, encoder: CallEncoder) -> Reply:
        """Measure the duration of a call; reply with it, or with the error code if the vendor rejects the call."""
        try:
            return {"timing": to_json(self._target.time_call(decoder.call(request["call"])))}
        except RejectedCallError as rejection:
            return {"code": rejection.code.name}

    def _runtime(self, request: Reply, decoder: CallDecoder, encoder: CallEncoder) -> Reply:
        """Run a case of the runtime functions, and reply with its outcome."""
        return {"outcome": to_json(self._target.run_runtime_case(request["case"]))}

    def _numerics(self, request: Reply, decoder: CallDecoder, encoder: CallEncoder) -> Reply:
        """Measure a field of a declared arithmetic, and reply with the outcome."""
        numerics = from_json(Numerics, request["declaration"])
        return {"outcome": to_json(self._target.measure_field(numerics, request["case"]))}

    def _find_forks(self, request: Reply, decoder: CallDecoder, encoder: CallEncoder) -> Reply:
        """Reply whether a process that the vendor forked during a call has returned from the call, like its parent."""
        return {"has_returned": self._forks.has_returned()}


def _describe_release(call: Call) -> Reply:
    """Return the damage of guard zones and the unreleased memory of a call, for the reply after its release."""
    return {"damage": encode_damage(call.damage), "unreleased": call.count_unreleased()}


def _raised(verdict: Verdict, kind: str, error: BaseException) -> Reply:
    """Return the reply for an exception: the outcome of the case.

    Args:
        verdict: The verdict of the outcome.
        kind: The name of the kind of exception, for the message.
        error: The exception.
    """
    message = f"{kind} was raised: {exception_text(error)}".removesuffix(": ")
    return {"raised": to_json(Outcome(verdict=verdict, message=shorten(message)))}


def _output_size() -> int:
    """Return the number of bytes in the file with standard output and error; truncate the file if it is too large."""
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

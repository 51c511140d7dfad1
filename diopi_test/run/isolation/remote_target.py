"""`RemoteTarget`: a vendor in another process; calls are requested, and their records are decoded from the replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, final

from diopi_impl import Numerics, OperatorUse
from diopi_proto.types import Error
from diopi_test.baseline.codec import from_json, to_json
from diopi_test.execution.call import RejectedCallError
from diopi_test.execution.call_arguments import PLAIN, CallMode
from diopi_test.execution.call_format import CallDecoder, CallEncoder, decode_damage
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.in_flight import Chain
from diopi_test.execution.timing import Timing
from diopi_test.execution.verdict import Outcome
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.isolation.description import Description
from diopi_test.run.isolation.exchange import Message, Requester
from diopi_test.run.target import Target, TargetCall
from lib_rt.errors import GuardError


class RaisedInVendorError(Exception):
    """The vendor raised an exception during a request.

    Attributes:
        outcome: the outcome of the case.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


@final
class RemoteTarget(Target):
    """A vendor on its open device in another process.

    Args:
        requester: The connection to the vendor's process.
        description: The vendor's description of itself.
    """

    def __init__(self, requester: Requester, description: Description) -> None:
        self._requester = requester
        self._description = description
        self._implemented: dict[str, bool] = {}
        self._changes: dict[str, None] = {}
        self._has_forked = False
        self._output = 0
        self._operator_uses: list[OperatorUse] = []
        self._last_case: BaselineCase | None = None

    @property
    def name(self) -> str:
        """Return the name of the vendor."""
        return self._description.name

    @property
    def numerics(self) -> Numerics:
        """Return the arithmetic that the vendor declares."""
        return self._description.numerics

    def request(self, name: str, encoder: CallEncoder | None = None, **content: Any) -> Message:
        """Send a request and return its reply.

        Changes of the process state, forks, output and operators that the reply contains are stored in this object.

        Args:
            name: The name of the request.
            encoder: The encoder with the blocks of the request; None if it has no blocks.
            **content: The content of the request.

        Returns:
            The reply.

        Raises:
            RaisedInVendorError: The vendor has raised an exception.
        """
        reply = self._requester.request(name, content, encoder.blocks if encoder else ())
        self._changes |= dict.fromkeys(map(str, reply.document.get("changes", ())))
        self._has_forked |= bool(reply.document.get("has_forked", False))
        self._output = int(reply.document.get("output", self._output))
        self._operator_uses += [from_json(OperatorUse, use) for use in reply.document.get("operators", ())]
        if (raised := reply.document.get("raised")) is not None:
            raise RaisedInVendorError(from_json(Outcome, raised))
        return reply

    def make_encoder(self) -> CallEncoder:
        """Return an encoder of calls for this vendor."""
        return CallEncoder(has_expected_values=self._description.receives_cases)

    def request_call(self, name: str, case: BaselineCase, **content: Any) -> Message:
        """Return the reply to a request that contains a call.

        If the previous request of this kind had the same case, the case is not sent again.

        Args:
            name: The name of the request.
            case: The case.
            **content: The other content of the request.
        """
        if case is self._last_case:
            return self.request(name, call=None, **content)
        encoder = self.make_encoder()
        self._last_case = None
        reply = self.request(name, encoder, call=encoder.call(case), **content)
        self._last_case = case
        return reply

    def has(self, function: str) -> bool:
        """Return whether the vendor implements a function."""
        if function not in self._implemented:
            self._implemented[function] = self.request("has", function=function).document["has"] is True
        return self._implemented[function]

    def last_error(self) -> str:
        """Return the vendor's last error."""
        return str(self.request("last_error").document["text"])

    def open_call(self, case: BaselineCase, mode: CallMode = PLAIN, *, stays_open: bool = False) -> RemoteCall:
        """Return a call of a case, which the vendor's process makes later; see `Target.open_call` for the arguments."""
        return RemoteCall(self, case, mode, stays_open=stays_open)

    def measure_memory(self) -> Mapping[str, int]:
        """Return the memory of the vendor's process and device, in bytes by name."""
        return {str(name): int(amount) for name, amount in self.request("memory").document["memory"].items()}

    def run_chain(self, chain: Chain) -> tuple[list[CallRecord | Error], list[GuardError]]:
        """Make the calls of a chain.

        Args:
            chain: the calls and the number of streams.

        Returns:
            The record or the error code of each call, and the damage to guard zones.
        """
        encoder = self.make_encoder()
        calls = [encoder.call(case) for case in chain.cases]
        reply = self.request("chain", encoder, stream_count=chain.kind.stream_count, calls=calls)
        decoder = CallDecoder(reply.blocks)
        records: list[CallRecord | Error] = [
            Error[result["code"]] if "code" in result else decoder.record(result["record"], case)
            for case, result in zip(chain.cases, reply.document["results"], strict=True)
        ]
        return records, decode_damage(reply.document["damage"])

    def time_call(self, case: BaselineCase) -> Timing:
        """Measure the call of a case; raise RejectedCallError if the function returns an error code."""
        encoder = self.make_encoder()
        reply = self.request("time", encoder, call=encoder.call(case)).document
        if "code" in reply:
            raise RejectedCallError(Error[reply["code"]])
        return from_json(Timing, reply["timing"])

    def run_runtime_case(self, name: str) -> Outcome:
        """Return the outcome of a case of the runtime functions."""
        return from_json(Outcome, self.request("runtime", case=name).document["outcome"])

    def measure_field(self, numerics: Numerics, label: str) -> Outcome:
        """Return the outcome of measuring a field of a declared arithmetic; `label` names the field."""
        reply = self.request("numerics", declaration=to_json(numerics), case=label)
        return from_json(Outcome, reply.document["outcome"])

    def take_operator_uses(self) -> Sequence[OperatorUse]:
        """Return the operators of the vendor's framework that ran in calls and were not returned before."""
        uses, self._operator_uses = self._operator_uses, []
        return uses

    def finish_case(self) -> tuple[list[str], int]:
        """End a case.

        Returns:
            A description of each change of the state of the vendor's process since the last case; and the number of
            bytes that the process has output so far.
        """
        changes, self._changes = list(self._changes), {}
        if self._has_forked and self.request("forks").document["has_returned"]:
            changes.append("the process was forked, and the copy returned from the call as well")
        self._has_forked = False
        return changes, self._output

    def close(self) -> None:
        """Do nothing: the vendor's process closes its device when the connection is closed."""


@final
class RemoteCall(TargetCall):
    """A call of a vendor in another process; see `run.target.TargetCall`.

    Args:
        target: The vendor.
        case: The case.
        mode: The properties of the call.
        stays_open: Whether the tensors stay allocated until the context ends, for `find_late_results` to read them.

    Attributes:
        damage: the guard zones that were written to, known once the call is closed.
    """

    def __init__(self, target: RemoteTarget, case: BaselineCase, mode: CallMode, *, stays_open: bool) -> None:
        self.damage: list[GuardError] = []
        self._target = target
        self._case = case
        self._mode = mode
        self._stays_open = stays_open
        self._is_open = False
        self._unreleased = (0, 0)

    def __enter__(self) -> RemoteCall:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_open:
            self._is_open = False
            self._note_release(self._target.request("release").document)

    def run(self) -> CallRecord:
        """Call the function and return the record; raise RejectedCallError if it returns an error code."""
        reply = self._request("call")
        if "code" in reply.document:
            raise RejectedCallError(Error[reply.document["code"]])
        return self._decode(reply)

    def run_rejected(self) -> tuple[Error, str, CallRecord]:
        """Call the function, expecting an error; return the error code, the last error and the record."""
        reply = self._request("rejected_call")
        return Error[reply.document["code"]], str(reply.document["last_error"]), self._decode(reply)

    def find_late_results(self) -> list[str]:
        """Return the names of results whose memory changed after it was read."""
        return [str(name) for name in self._target.request("late").document["late"]]

    def count_unreleased(self) -> tuple[int, int]:
        """Return the tensors and blocks of device memory that the released call has left allocated."""
        return self._unreleased

    def _request(self, name: str) -> Message:
        """Send the request `name` for the call, and return the reply.

        If the vendor's process has released the call already, store what was damaged or not released.

        Args:
            name: the name of the request.

        Returns:
            The reply.
        """
        flags = [name for name in ("shifted", "queued", "relaid") if getattr(self._mode, name)]
        reply = self._target.request_call(name, self._case, mode=flags, stays_open=self._stays_open)
        self._is_open = "unreleased" not in reply.document
        if not self._is_open:
            self._note_release(reply.document)
        return reply

    def _note_release(self, document: dict[str, Any]) -> None:
        """Store the damaged guard zones and the unreleased memory that were found when the call was released."""
        tensors, blocks = document["unreleased"]
        self.damage += decode_damage(document["damage"])
        self._unreleased = int(tensors), int(blocks)

    def _decode(self, reply: Message) -> CallRecord:
        """Return the record of a reply, with the damage of the call."""
        return replace(CallDecoder(reply.blocks).record(reply.document["record"], self._case), damage=self.damage)

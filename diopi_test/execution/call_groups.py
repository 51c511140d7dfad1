"""Tell a vendor that records calls, or returns recorded results, how the next group of calls is made."""

from __future__ import annotations

from typing import Protocol, TypeGuard, runtime_checkable

from diopi_impl import BaseVendor
from diopi_test.execution.call_arguments import CallMode
from diopi_test.execution.in_flight import Chain
from diopi_test.execution.verdict import Outcome, Verdict


class TargetOutcomeError(Exception):
    """A case has an outcome without results: the target did not make a call, or the target ended during the call.

    Attributes:
        outcome: the outcome.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome

    @classmethod
    def not_run(cls, reason: str) -> TargetOutcomeError:
        """Return the error for a call or a measurement that the target did not make."""
        return cls(Outcome(verdict=Verdict.not_run, message=f"not run on the target: {reason}"))


@runtime_checkable
class CallGroupObserver(Protocol):
    """A vendor that receives the kind of each group of calls before the calls."""

    def begin_calls(self, kind: str) -> None:
        """Begin a group of calls of this kind; raise TargetOutcomeError if targets do not make such calls."""


def observes_call_groups(vendor: BaseVendor) -> TypeGuard[CallGroupObserver]:
    """Return whether a vendor receives the kind of each group of calls."""
    return isinstance(vendor, CallGroupObserver)


def announce_calls(vendor: BaseVendor, kind: str) -> None:
    """Tell the vendor that a group of calls of this kind begins, if the vendor records or replays calls."""
    if observes_call_groups(vendor):
        vendor.begin_calls(kind)


CHAIN_PREFIX = "chain"
"""The first word of the kind of a group whose calls are in flight at the same time."""


def describe_mode(mode: CallMode) -> str:
    """Return the kind of the calls of a single case: the word `call` and the properties of the mode that are true."""
    return " ".join(["call", *(name for name in ("shifted", "queued", "relaid") if getattr(mode, name))])


def describe_chain(chain: Chain) -> str:
    """Return the kind of a chain: the number of streams, `one` or `several` calls, the `same` or `mixed` functions."""
    call_count = "several" if len(chain.cases) > 1 else "one"
    functions = "mixed" if len({case.function for case in chain.cases}) > 1 else "same"
    return f"{CHAIN_PREFIX} {chain.kind.stream_count} {call_count} {functions}"

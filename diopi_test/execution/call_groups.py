"""The protocol of vendors that record calls, or return recorded results: they learn how the next calls are made."""

from __future__ import annotations

from typing import Protocol, TypeGuard, runtime_checkable

from diopi_impl import BaseVendor
from diopi_test.execution.call_arguments import CallMode
from diopi_test.execution.in_flight import Chain
from diopi_test.execution.verdict import Outcome, Verdict


class TargetOutcomeError(Exception):
    """A target has decided the outcome of a case: it did not make a call, or it ended during the call.

    Attributes:
        outcome: the outcome.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome

    @classmethod
    def not_run(cls, reason: str) -> TargetOutcomeError:
        """Return the error for a call or an examination that the target did not make."""
        return cls(Outcome(verdict=Verdict.not_run, message=f"not run on the target: {reason}"))


@runtime_checkable
class CallGroupTaker(Protocol):
    """A vendor that is told before each group of calls how the group is made."""

    def begin_calls(self, kind: str) -> None:
        """Begin a group of calls; raise TargetOutcomeError if a target does not make such calls."""


def takes_call_groups(vendor: BaseVendor) -> TypeGuard[CallGroupTaker]:
    """Return whether `vendor` is told how each group of calls is made."""
    return isinstance(vendor, CallGroupTaker)


def announce_calls(vendor: BaseVendor, kind: str) -> None:
    """Tell a vendor that records or replays calls that a group of this kind begins."""
    if takes_call_groups(vendor):
        vendor.begin_calls(kind)


CHAIN_PREFIX = "chain"
"""The beginning of the kinds of groups whose calls are in flight at the same time."""


def describe_mode(mode: CallMode) -> str:
    """Return the kind of the calls of one case: `call`, or `call` with the names of the mode's properties."""
    return " ".join(["call", *(name for name in ("shifted", "queued", "relaid") if getattr(mode, name))])


def describe_chain(chain: Chain) -> str:
    """Return the kind of a chain: the number of streams, and whether it has several calls and functions."""
    several = "several" if len(chain.cases) > 1 else "one"
    functions = "mixed" if len({case.function for case in chain.cases}) > 1 else "same"
    return f"{CHAIN_PREFIX} {chain.kind.stream_count} {several} {functions}"

"""The protocol of test vendors that receive each case before the call, to derive results from it."""

from __future__ import annotations

from functools import cache
from typing import Protocol, TypeGuard, runtime_checkable

from diopi_impl import BaseVendor
from diopi_test.oracle.records import BaselineCase


@runtime_checkable
class CaseTaker(Protocol):
    """A vendor that receives the case before each call."""

    def take_case(self, case: BaselineCase) -> None:
        """Receive the case of the next call; the case of a negative test has the class `negative`."""


def is_case_taker(vendor: BaseVendor) -> TypeGuard[CaseTaker]:
    """Return whether `vendor` receives the case before each call."""
    return _implements_case_taker(type(vendor))


@cache
def _implements_case_taker(kind: type[BaseVendor]) -> bool:
    """Return whether a class of vendors has the methods of the protocol; cached, because the check is slow."""
    return issubclass(kind, CaseTaker)

"""Vendors made for tests, whose answers follow from the case."""

from __future__ import annotations

from functools import cache
from typing import Protocol, TypeGuard, runtime_checkable

from diopi_impl import BaseVendor
from diopi_test.baseline.records import BaselineCase


@runtime_checkable
class CaseTaker(Protocol):
    """A vendor that is told before each call which case the call is of."""

    def take_case(self, case: BaselineCase) -> None:
        """Receive the case of the next call; the case of a negative test has the class `negative`."""


def takes_cases(vendor: BaseVendor) -> TypeGuard[CaseTaker]:
    """Whether `vendor` is such a vendor."""
    return _is_case_taker(type(vendor))


@cache
def _is_case_taker(kind: type[BaseVendor]) -> bool:
    return issubclass(kind, CaseTaker)  # cached, since protocols are slow to ask

"""A vendor that is right in the first case of a process alone."""

from __future__ import annotations

from typing import Any

from faulty import FaultyVendor, fails

_cases: list[Any] = []


class MoodyVendor(FaultyVendor):
    """Fails whenever it has been told of another case before."""

    def __init__(self) -> None:
        super().__init__("moody", lambda arguments: fails(arguments) if len(_cases) > 1 else None)

    def take_case(self, case: Any) -> None:
        """Note the case, however often it is called."""
        if case.id not in _cases:
            _cases.append(case.id)
        super().take_case(case)


vendor = MoodyVendor()

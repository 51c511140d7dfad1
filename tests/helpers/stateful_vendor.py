"""A vendor that is correct only in the first case of a process.

Each later case fails in a run and passes alone; tests assert that its verdict is `flaky` and names the first case.
"""

from __future__ import annotations

from typing import Any

from faulty import FaultyVendor, return_error

_cases: list[Any] = []
"""The IDs of the cases that have run in this process."""


class StatefulVendor(FaultyVendor):
    """A vendor that fails after another case has run in the same process."""

    def __init__(self) -> None:
        super().__init__("stateful", lambda arguments: return_error(arguments) if len(_cases) > 1 else None)

    def take_case(self, case: Any) -> None:
        """Count the case once, however often it is called."""
        if case.id not in _cases:
            _cases.append(case.id)
        super().take_case(case)


vendor = StatefulVendor()

"""Cases of the nine runtime functions, run for every vendor beside the operator cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from diopi_impl.vendor import Vendor


@dataclass(frozen=True)
class RuntimeCase:
    """A case of the runtime: `run` raises when the vendor's functions don't do what they promise."""

    name: str
    run: Callable[[Vendor], None]


RUNTIME_CASES: list[RuntimeCase] = []

"""A call of the interface that fails."""

from __future__ import annotations

from diopi_engine.proto.hgrt import Result


class CallError(Exception):
    """A call fails with `result`; the message says why."""

    def __init__(self, result: Result, reason: str) -> None:
        super().__init__(reason)
        self.result = result

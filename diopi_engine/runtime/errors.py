"""A call of an interface that fails, and how it is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from diopi_engine.proto.declarations import Enumeration


class CallError(Exception):
    """A call fails with `result`, of the interface that it belongs to; the message says why."""

    def __init__(self, result: Enumeration, reason: str) -> None:
        super().__init__(reason)
        self.result = result


@final
@dataclass(frozen=True)
class ResultCodes:
    """The results by which calls of an interface say that it is done, that there is no memory, that they are broken."""

    success: Enumeration
    no_memory: Enumeration
    internal: Enumeration

    def to(self, name: str, function: Callable[..., None], fail: Callable[[str], Any]) -> Callable[..., int]:
        """A function that answers how `function`, the call of a name, ended; `fail` is told why it failed."""

        def call(*values: Any) -> int:
            try:
                function(*values)
            except CallError as error:
                fail(f"{name}: {error}")
                return error.result
            except MemoryError:
                fail(f"{name}: there is not so much memory")
                return self.no_memory
            except Exception as error:
                fail(f"{name}: {type(error).__name__}: {error}")
                return self.internal
            return self.success

        return call

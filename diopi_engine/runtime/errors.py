"""Errors of calls, and their conversion to results of the interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from diopi_engine.proto.declarations import Enumeration


class InterfaceError(Exception):
    """A call failed with `result`, a result code of its interface; the message states the reason."""

    def __init__(self, result: Enumeration, reason: str) -> None:
        super().__init__(reason)
        self.result = result


@final
@dataclass(frozen=True)
class ResultCodes:
    """The results of an interface for three outcomes.

    Attributes:
        success: the result of a successful call.
        no_memory: the result if memory is insufficient.
        internal: the result of an internal error.
    """

    success: Enumeration
    no_memory: Enumeration
    internal: Enumeration

    def returning_code(
        self, name: str, function: Callable[..., None], fail: Callable[[str], Any]
    ) -> Callable[..., int]:
        """Return a function that calls `function` and returns its result code; `fail` receives the reason."""

        def call(*values: Any) -> int:
            """Call `function`, report an exception to `fail`, and return the corresponding result code."""
            try:
                function(*values)
            except InterfaceError as error:
                fail(f"{name}: {error}")
                return error.result
            except Exception as error:
                if _is_out_of_memory(error):
                    fail(f"{name}: there is not enough memory: {error}")
                    return self.no_memory
                fail(f"{name}: {type(error).__name__}: {error}")
                return self.internal
            return self.success

        return call


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether an exception of Python or of JAX states that memory could not be allocated."""
    return isinstance(error, MemoryError) or str(error).startswith("RESOURCE_EXHAUSTED")

"""The C functions of `libnvdla_runtime.so` that Python implements: the portability layer, and one per method."""

from __future__ import annotations

from dataclasses import replace

from diopi_engine.proto.declarations import Function
from diopi_engine.proto.nvdla import METHODS, PORTABILITY


def _inner(method: Function) -> Function:
    """Return the C function for a method: its runtime becomes a parameter, and other results than NvError outputs."""
    output = f"{method.returns}* answer" if method.returns != "NvError" else ""
    declared = ", ".join(text for text in ("void* runtime", method.declared, output) if text)
    return replace(method, declared=declared, returns="NvError")


LAYER = [function for function in PORTABILITY if function.name != "NvDlaDebugPrintf"]
"""The portability layer without functions that need no Python."""

INNER = [
    Function("create", "void* object", "Make the runtime of an object.", returns="NvError"),
    Function("destroy", "void* object", "Destroy the runtime of an object.", returns="NvError"),
    *map(_inner, METHODS),
]
"""The C functions that the class calls; their names start with `runtime_`."""

SERVED = [*LAYER, *INNER]
"""All functions, in the order of the table that Python fills in."""

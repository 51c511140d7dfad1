"""The C functions of `libnvdla_runtime.so` that Python serves: the portability layer, and one a method of the class."""

from __future__ import annotations

from dataclasses import replace

from diopi_engine.proto.declarations import Function
from diopi_engine.proto.nvdla import METHODS, PORTABILITY


def _inner(method: Function) -> Function:
    """What a method calls: its runtime is a parameter, and what is no NvError an output."""
    output = f"{method.returns}* answer" if method.returns != "NvError" else ""
    declared = ", ".join(text for text in ("void* runtime", method.declared, output) if text)
    return replace(method, declared=declared, returns="NvError")


LAYER = [function for function in PORTABILITY if function.name != "NvDlaDebugPrintf"]
"""The portability layer, but for what needs no Python."""

INNER = [
    Function("create", "void* object", "Make the runtime of an object.", returns="NvError"),
    Function("destroy", "void* object", "Destroy the runtime of an object.", returns="NvError"),
    *map(_inner, METHODS),
]
"""What the class calls, in C: `runtime_` and these names."""

SERVED = [*LAYER, *INNER]
"""All of them, in the order of the table that Python fills in."""

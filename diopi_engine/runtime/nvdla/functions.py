"""The C functions of `libnvdla_runtime.so` that Python implements: the portability layer, and one per method."""

from __future__ import annotations

from dataclasses import replace

from diopi_engine.proto.declarations import FunctionDeclaration
from diopi_engine.proto.nvdla import METHODS, PORTABILITY


def _function_for_method(method: FunctionDeclaration) -> FunctionDeclaration:
    """Return the C function for a method: the runtime is a parameter, and a result that is no NvError an output."""
    output = f"{method.returns}* result" if method.returns != "NvError" else ""
    declared = ", ".join(text for text in ("void* runtime", method.declared, output) if text)
    return replace(method, declared=declared, returns="NvError")


LAYER_FUNCTIONS = [function for function in PORTABILITY if function.name != "NvDlaDebugPrintf"]
"""The portability layer without functions that need no Python."""

METHOD_FUNCTIONS = [
    FunctionDeclaration("create", "void* object", "Create the runtime of an object.", returns="NvError"),
    FunctionDeclaration("destroy", "void* object", "Destroy the runtime of an object.", returns="NvError"),
    *map(_function_for_method, METHODS),
]
"""The C functions that the class calls; their names start with `runtime_`."""

IMPLEMENTED = [*LAYER_FUNCTIONS, *METHOD_FUNCTIONS]
"""All functions, in the order of the table that Python fills in."""

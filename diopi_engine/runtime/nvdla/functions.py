"""The C functions of `libnvdla_runtime.so` that Python implements: the portability layer, and one per method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from diopi_engine.proto.declarations import FunctionDeclaration
from diopi_engine.proto.nvdla import METHODS, PORTABILITY


def function_for_method(method: FunctionDeclaration, error_type: str) -> FunctionDeclaration:
    """Return the C function for a method: it returns an error, and its first parameter is the runtime.

    Args:
        method: the method.
        error_type: the type of errors.

    Returns:
        The function. If the method returns another type than an error, `bool` (for success) or `void`, the last
        parameter is a pointer for this result.
    """
    output = f"{method.returns}* result" if method.returns not in (error_type, "bool", "void") else ""
    declared = ", ".join(text for text in ("void* runtime", method.declared, output) if text)
    return replace(method, declared=declared, returns=error_type)


def method_functions(methods: Sequence[FunctionDeclaration], error_type: str) -> list[FunctionDeclaration]:
    """Return the C functions that the class calls; the library calls them `runtime_` and their name."""
    return [
        FunctionDeclaration("create", "void* object", "Create the runtime of an object.", returns=error_type),
        FunctionDeclaration("destroy", "void* object", "Destroy the runtime of an object.", returns=error_type),
        *(function_for_method(method, error_type) for method in methods),
    ]


def layer_functions(portability: Sequence[FunctionDeclaration]) -> list[FunctionDeclaration]:
    """Return the functions of a portability layer without those that need no Python."""
    return [function for function in portability if function.name != "NvDlaDebugPrintf"]


IMPLEMENTED = [*layer_functions(PORTABILITY), *method_functions(METHODS, "NvError")]
"""All functions, in the order of the table that Python fills in."""

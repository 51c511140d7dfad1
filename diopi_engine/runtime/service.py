"""The Python side of `libhgrt.so`: creates the C functions in the process that loaded the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from diopi_engine.proto.declarations import CParameter, FunctionDeclaration
from diopi_engine.proto.hgrt import ENUMS, FUNCTIONS, Result
from diopi_engine.runtime.calls import CALLS, HANDLES, current_device
from diopi_engine.runtime.errors import InterfaceError, ResultCodes
from diopi_engine.runtime.ffi import ffi
from diopi_engine.runtime.objects import ExecutionContext, LoadedEngine, RuntimeTensor, SchemeHandle
from diopi_impl.export.once import fill_once

_KINDS: Mapping[str, Any] = {
    "hgEngine": LoadedEngine,
    "hgExecutionScheme": SchemeHandle,
    "hgExecutionContext": ExecutionContext,
    "hgTensor": RuntimeTensor,
}
"""The classes of the objects behind handles, by the type of the handle."""

_ENUMS = {enum.name: enum.members for enum in ENUMS}
"""The enumerations, by their names in C."""

_RESULT_CODES = ResultCodes(Result.SUCCESS, Result.ERROR_OUT_OF_MEMORY, Result.ERROR_INTERNAL)
"""The result codes of HanGuangRT for success, insufficient memory and internal errors."""


def serve(address: int) -> None:
    """Fill the function table of the library whose `struct hgrt_exported` is at `address`, once per process."""
    fill_once(address, _fill_table)


def _fill_table(address: int) -> list[Any]:
    """Write a C callback for each function to the library's table, and return the callbacks to keep them alive."""
    exported: Any = ffi.cast("struct hgrt_exported*", address)
    functions = [_c_callback(function, exported.fail) for function in FUNCTIONS if function.name in CALLS]
    for number, function in enumerate(functions):
        exported.functions[number] = ffi.cast("function_t", function)
    return functions


def _c_callback(function: FunctionDeclaration, fail: Any) -> Any:
    """Return a C callback that calls the Python implementation of a function."""
    types = ", ".join(parameter.type for parameter in function.parameters)
    return ffi.callback(f"hgResult({types})", _wrap_implementation(function, fail), error=Result.ERROR_INTERNAL)


def is_output(parameter: CParameter) -> bool:
    """Return whether a parameter is a pointer through which the call writes a result."""
    points = parameter.type.endswith("**") or (parameter.type.endswith("*") and "const" not in parameter.type)
    return points and parameter.name != "bindings"


def _wrap_implementation(function: FunctionDeclaration, fail: Any) -> Callable[..., int]:
    """Return a function that takes C arguments, writes the outputs through pointers and returns a result code."""
    parameters = function.parameters
    outputs = [n for n, parameter in enumerate(parameters) if is_output(parameter)]

    def receive(*values: Any) -> None:
        """Convert the arguments, call the implementation and write its result; reject NULL outputs.

        Raises:
            InterfaceError: The address of an output is NULL.
        """
        for n in outputs:
            if not values[n]:
                raise InterfaceError(Result.ERROR_INVALID_ARGUMENT, f"{parameters[n].name} is NULL")
        arguments = [
            _convert_argument(parameter, values[n]) for n, parameter in enumerate(parameters) if n not in outputs
        ]
        _write([(parameters[n], values[n]) for n in outputs], CALLS[function.name](*arguments))

    return _RESULT_CODES.returning_code(function.name, receive, lambda reason: _store_reason(fail, reason))


def _store_reason(fail: Any, reason: str) -> None:
    """Store why a call failed as the last error of this thread; `fail` is a function of the library."""
    fail(reason.encode(errors="replace"))


def _convert_argument(parameter: CParameter, value: Any) -> Any:
    """Return the object, enumerator or value that the implementation expects for an argument from C.

    Raises:
        InterfaceError: The handle belongs to another device than the current one, or the enumerator does not exist.
    """
    if kind := _KINDS.get(parameter.type):
        object_ = HANDLES.find(kind, int(ffi.cast("uintptr_t", value)))
        if object_.device is not current_device():
            reason = (
                f"{parameter.name} is of device {object_.device.number}, the current one is {current_device().number}"
            )
            raise InterfaceError(Result.ERROR_WRONG_DEVICE, reason)
        return object_
    if members := _ENUMS.get(parameter.type):
        if (member := members.find(value)) is None:
            raise InterfaceError(Result.ERROR_INVALID_ARGUMENT, f"{parameter.name} is {value}, no {parameter.type}")
        return member
    return value


def _write(outputs: Sequence[tuple[CParameter, Any]], result: Any) -> None:
    """Write the result of a call, which has at most one output, through its pointer."""
    for parameter, pointer in outputs:
        kind = parameter.type.removesuffix("*").strip()
        pointer[0] = ffi.cast(kind, result) if kind in _KINDS else result

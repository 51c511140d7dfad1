"""The Python side of `libnvdla_runtime.so`: creates the C functions in the process that loaded the library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from diopi_engine.proto.declarations import CParameter, FunctionDeclaration
from diopi_engine.proto.nvdla import PORTABILITY, Error, Heap
from diopi_engine.runtime.errors import ResultCodes
from diopi_engine.runtime.nvdla.driver import find_runtime
from diopi_engine.runtime.nvdla.ffi import CALLS, bad_parameter, ffi, to_integer
from diopi_engine.runtime.nvdla.functions import IMPLEMENTED
from diopi_engine.runtime.nvdla.kernel import HANDLES, DeviceMemory, KernelSession, OpenDevice
from diopi_engine.runtime.nvdla.portability import PortabilityLayer
from diopi_impl.export.once import fill_once

_KINDS: dict[str, type[Any]] = {
    "session_handle": KernelSession,
    "device_handle": OpenDevice,
    "mem_handle": DeviceMemory,
}
"""The classes of the objects behind handles, by the name of the parameter."""

_OUTPUTS = ("void**", "int*", "NvU16*", "NvDlaTensor*")
"""Types of pointers through which a call writes its results."""

_RESULT_CODES = ResultCodes(Error.Success, Error.Error_InsufficientMemory, Error.Error_Internal)


def serve(address: int) -> None:
    """Fill the function table of the library whose `struct nvdla_exported` is at `address`, once per process."""
    fill_once(address, _fill_table)


def _fill_table(address: int) -> list[Any]:
    """Write a C callback for each function to the library's table, and return the callbacks to keep them alive."""
    exported: Any = ffi.cast("struct nvdla_exported*", address)
    layer = PortabilityLayer(exported.layer[0 : len(PORTABILITY)])
    functions = [_c_callback(function, layer) for function in IMPLEMENTED]
    for number, function in enumerate(functions):
        exported.functions[number] = ffi.cast("function_t", function)
    return functions


def _c_callback(function: FunctionDeclaration, layer: PortabilityLayer) -> Any:
    """Return a C callback that calls the Python implementation of a function and reports errors to the layer."""
    types = ", ".join(parameter.type for parameter in function.parameters)
    callback = _RESULT_CODES.returning_code(function.name, _wrap_implementation(function, layer), layer.print)
    if function.returns == "void":
        return ffi.callback(f"void({types})", lambda *values: (callback(*values), None)[1])
    return ffi.callback(f"NvError({types})", callback, error=Error.Error_Internal)


def _wrap_implementation(function: FunctionDeclaration, layer: PortabilityLayer) -> Callable[..., None]:
    """Return a function that takes C arguments and writes the outputs of the implementation through pointers."""
    call, parameters = CALLS[function.name], function.parameters
    if function.name == "create":
        call = partial(call, layer=layer)
    outputs = [n for n, parameter in enumerate(parameters) if parameter.type in _OUTPUTS]

    def receive(*values: Any) -> None:
        """Convert the arguments, call the implementation and write its results; reject NULL outputs."""
        for n in outputs:
            if not values[n]:
                raise bad_parameter(f"{parameters[n].name} is NULL")
        arguments = [
            _convert_argument(parameter, values[n]) for n, parameter in enumerate(parameters) if n not in outputs
        ]
        _write([values[n] for n in outputs], call(*arguments))

    return receive


def _convert_argument(parameter: CParameter, value: Any) -> Any:
    """Convert an argument from C to the object, enumerator or value that the implementation expects."""
    if kind := _KINDS.get(parameter.name):
        return HANDLES.find(kind, to_integer(value))
    if parameter.name == "runtime":
        return find_runtime(to_integer(value))
    if parameter.name == "object":
        return to_integer(value)
    if parameter.type == "NvDlaHeap":
        if (heap := Heap.find(value)) is None:
            raise bad_parameter(f"{parameter.name} is {value}, no NvDlaHeap")
        return heap
    return value


def _write(outputs: Sequence[Any], result: Any) -> None:
    """Write the results of a call; several results are a tuple."""
    results = result if isinstance(result, tuple) else [result][: len(outputs)]
    for pointer, value in zip(outputs, results, strict=True):
        pointer[0] = ffi.cast("void*", value) if ffi.typeof(pointer) is ffi.typeof("void**") else value

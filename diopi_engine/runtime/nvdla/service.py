"""The Python side of `libnvdla_runtime.so`: creates the C functions in the process that loaded the library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from diopi_engine.proto.declarations import CParameter, Function
from diopi_engine.proto.nvdla import PORTABILITY, Error, Heap
from diopi_engine.runtime.errors import ResultCodes
from diopi_engine.runtime.nvdla.driver import find_runtime
from diopi_engine.runtime.nvdla.ffi import CALLS, bad_parameter, ffi, number_of
from diopi_engine.runtime.nvdla.functions import SERVED
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
    """Fill the table of the library whose `struct nvdla_exported` is at `address`; a second call does nothing."""
    fill_once(address, _fill)


def _fill(address: int) -> list[Any]:
    exported: Any = ffi.cast("struct nvdla_exported*", address)
    layer = PortabilityLayer(exported.layer[0 : len(PORTABILITY)])
    functions = [_callback(function, layer) for function in SERVED]
    for number, function in enumerate(functions):
        exported.functions[number] = ffi.cast("function_t", function)
    return functions


def _callback(function: Function, layer: PortabilityLayer) -> Any:
    types = ", ".join(parameter.type for parameter in function.parameters)
    callback = _RESULT_CODES.to(function.name, _receiver(function, layer), layer.print)
    if function.returns == "void":
        return ffi.callback(f"void({types})", lambda *values: (callback(*values), None)[1])
    return ffi.callback(f"NvError({types})", callback, error=Error.Error_Internal)


def _receiver(function: Function, layer: PortabilityLayer) -> Callable[..., None]:
    """Return a function for C that writes the results of a call through the pointers."""
    call, parameters = CALLS[function.name], function.parameters
    if function.name == "create":
        call = partial(call, layer=layer)
    outputs = [n for n, parameter in enumerate(parameters) if parameter.type in _OUTPUTS]

    def receive(*values: Any) -> None:
        for n in outputs:
            if not values[n]:
                raise bad_parameter(f"{parameters[n].name} is NULL")
        arguments = [
            _convert_argument(parameter, values[n]) for n, parameter in enumerate(parameters) if n not in outputs
        ]
        _write([values[n] for n in outputs], call(*arguments))

    return receive


def _convert_argument(parameter: CParameter, value: Any) -> Any:
    """Convert an argument of C to the form that the call takes."""
    if kind := _KINDS.get(parameter.name):
        return HANDLES.find(kind, number_of(value))
    if parameter.name == "runtime":
        return find_runtime(number_of(value))
    if parameter.name == "object":
        return number_of(value)
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

"""The Python side of `libnvdla_runtime.so`: creates the C functions in the process that loaded the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from diopi_engine.proto.declarations import CParameter, Enumeration, FunctionDeclaration
from diopi_engine.proto.nvdla import PORTABILITY, Error, Heap
from diopi_engine.runtime.errors import InterfaceError, ResultCodes
from diopi_engine.runtime.nvdla.driver import find_runtime
from diopi_engine.runtime.nvdla.ffi import CALLS, bad_parameter, ffi, to_integer
from diopi_engine.runtime.nvdla.functions import IMPLEMENTED
from diopi_engine.runtime.nvdla.kernel import HANDLES, DeviceMemory, KernelSession, OpenDevice
from diopi_engine.runtime.nvdla.portability import DeviceLayer, PortabilityLayer
from diopi_impl.export.once import fill_once

_KINDS: dict[str, type[Any]] = {
    "session_handle": KernelSession,
    "device_handle": OpenDevice,
    "mem_handle": DeviceMemory,
}
"""The classes of the objects behind handles, by the name of the parameter."""

_OUTPUTS = ("void**", "int*", "NvU16*", "uint8_t*", "NvDlaTensor*")
"""Types of pointers through which a call writes its results."""


@final
@dataclass(frozen=True, kw_only=True)
class DriverInterface:
    """What distinguishes the published interface and the released one.

    Attributes:
        ffi: the declarations.
        functions: the functions of the library that Python implements, in the order of the library's table.
        calls: the implementations of these functions by name.
        layer: creates the object that calls the portability layer, from the addresses of the layer's functions.
        layer_size: the number of functions of the portability layer.
        error_type: the type of results in C.
        codes: the results for success, for insufficient memory and for internal errors.
        errors: the result in C for each error code that an implementation raises.
    """

    ffi: Any
    functions: Sequence[FunctionDeclaration]
    calls: Mapping[str, Callable[..., Any]]
    layer: Callable[[Any], DeviceLayer]
    layer_size: int
    error_type: str
    codes: ResultCodes
    errors: Mapping[Enumeration, Enumeration]


_INTERFACE = DriverInterface(
    ffi=ffi,
    functions=IMPLEMENTED,
    calls=CALLS,
    layer=PortabilityLayer,
    layer_size=len(PORTABILITY),
    error_type="NvError",
    codes=ResultCodes(Error.Success, Error.Error_InsufficientMemory, Error.Error_Internal),
    errors={error: error for error in Error},
)
"""The functions, implementations and types of the published interface."""


def serve(address: int) -> None:
    """Fill the function table of the library whose `struct nvdla_exported` is at `address`, once per process."""
    serve_interface(_INTERFACE, address)


def serve_interface(interface: DriverInterface, address: int) -> None:
    """Fill the function table of a library with an interface, once per process."""
    fill_once(address, partial(_fill_table, interface))


def _fill_table(interface: DriverInterface, address: int) -> list[Any]:
    """Write a C callback for each function to the library's table, and return the callbacks to keep them alive."""
    exported: Any = interface.ffi.cast("struct nvdla_exported*", address)
    layer = interface.layer(exported.layer[0 : interface.layer_size])
    functions = [_c_callback(interface, function, layer) for function in interface.functions]
    for number, function in enumerate(functions):
        exported.functions[number] = interface.ffi.cast("function_t", function)
    return functions


def _c_callback(interface: DriverInterface, function: FunctionDeclaration, layer: DeviceLayer) -> Any:
    """Return a C callback that calls the Python implementation of a function.

    The callback returns the code of an error, and prints its text through the portability layer.
    """
    types = ", ".join(parameter.type for parameter in function.parameters)
    receive = _wrap_implementation(interface, function, layer)
    callback = interface.codes.returning_code(function.name, receive, layer.print)
    if function.returns == "void":
        return interface.ffi.callback(f"void({types})", lambda *values: (callback(*values), None)[1])
    return interface.ffi.callback(f"{interface.error_type}({types})", callback, error=interface.codes.internal)


def _wrap_implementation(
    interface: DriverInterface, function: FunctionDeclaration, layer: DeviceLayer
) -> Callable[..., None]:
    """Return a function that takes C arguments and writes the outputs of the implementation through pointers."""
    call, parameters = interface.calls[function.name], function.parameters
    if function.name == "create":
        call = partial(call, layer=layer)
    outputs = [n for n, parameter in enumerate(parameters) if parameter.type in _OUTPUTS]

    def convert_and_call(*values: Any) -> None:
        """Convert the arguments, call the implementation and write its results; reject NULL outputs."""
        for n in outputs:
            if not values[n]:
                raise bad_parameter(f"{parameters[n].name} is NULL")
        arguments = [
            _convert_argument(parameter, values[n]) for n, parameter in enumerate(parameters) if n not in outputs
        ]
        _write([values[n] for n in outputs], call(*arguments))

    def receive(*values: Any) -> None:
        """Call the implementation; raise InterfaceError with a result of the interface if it fails."""
        try:
            convert_and_call(*values)
        except InterfaceError as error:
            raise InterfaceError(interface.errors[error.result], str(error)) from error

    return receive


def _convert_argument(parameter: CParameter, value: Any) -> Any:
    """Return an argument from C as the object, enumerator or value that the implementation expects."""
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
    """Write the results of a call through the pointers `outputs`: a tuple for several, None or a value otherwise."""
    results = result if isinstance(result, tuple) else [result][: len(outputs)]
    for pointer, value in zip(outputs, results, strict=True):
        pointer[0] = ffi.cast("void*", value) if ffi.typeof(pointer) is ffi.typeof("void**") else value

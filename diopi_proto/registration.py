"""The nine functions a vendor gives the runtime: how each is registered, and its well-known name."""

from __future__ import annotations

from dataclasses import dataclass

from diopi_proto.types import Error


@dataclass(frozen=True)
class Service:
    """One function the vendor provides.

    Attributes:
        name: the name used for it in Python.
        register: the runtime's function that takes it.
        pointer: name of its function pointer type in C.
        returns: what it returns when registered.
        parameters: C parameters.
        missing: what a call of the runtime answers that needs it when it was not registered.
        well_known: its exported name in a vendor library that does not register.
        exported_returns: what it returns under that name.
        meaning: what it does.
    """

    name: str
    register: str
    pointer: str
    returns: str
    parameters: str
    missing: Error
    well_known: str | None
    exported_returns: str
    meaning: str


_COPY = "diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes"
_ERROR = ("int32_t", "diopiError_t")


def _service(
    name: str, stem: str, signature: str, missing: Error, exported: str | None, meaning: str, returns: tuple[str, str]
) -> Service:
    return Service(
        name=name,
        register=f"diopiRegister{stem}Func",
        pointer=f"diopi{stem}Func_t",
        returns=returns[0],
        parameters=signature,
        missing=missing,
        well_known=exported,
        exported_returns=returns[1],
        meaning=meaning,
    )


SERVICES: tuple[Service, ...] = (
    _service(
        "stream_create",
        "StreamCreate",
        "diopiStreamHandle_t* stream",
        Error.NoRegisteredStreamCreateFunction,
        "device_make_stream",
        "Make a stream.",
        _ERROR,
    ),
    _service(
        "stream_destroy",
        "StreamDestroy",
        "diopiStreamHandle_t stream",
        Error.NoRegisteredStreamDestoryFunction,
        "device_destroy_stream",
        "Destroy a stream whose work is done.",
        _ERROR,
    ),
    _service(
        "stream_sync",
        "SynchronizeStream",
        "diopiStreamHandle_t stream",
        Error.NoRegisteredStreamSyncFunction,
        "device_synchronize_stream",
        "Wait until everything enqueued on the stream is done.",
        _ERROR,
    ),
    _service(
        "malloc",
        "DeviceMalloc",
        "uint64_t bytes",
        Error.NoRegisteredDeviceMemoryMallocFunction,
        "device_malloc",
        "Allocate device memory; NULL when there is not enough.",
        ("void*", "void*"),
    ),
    _service(
        "free",
        "DevMemFree",
        "void* ptr",
        Error.NoRegisteredDeviceMemoryFreeFunction,
        "device_free",
        "Free device memory.",
        ("void", "void"),
    ),
    _service(
        "h2d",
        "MemcpyH2DAsync",
        _COPY,
        Error.NoRegisteredHost2DeviceMemoryCopyFunction,
        "device_memcpy_h2d_async",
        "Enqueue a copy from host to device memory.",
        _ERROR,
    ),
    _service(
        "d2h",
        "MemcpyD2HAsync",
        _COPY,
        Error.NoRegisteredDevice2HostMemoryCopyFunction,
        "device_memcpy_d2h_async",
        "Enqueue a copy from device to host memory.",
        _ERROR,
    ),
    _service(
        "d2d",
        "MemcpyD2DAsync",
        _COPY,
        Error.NoRegisteredDevice2DdeviceMemoryCopyFunction,
        "device_memcpy_d2d_async",
        "Enqueue a copy within device memory.",
        _ERROR,
    ),
    _service(
        "last_error",
        "GetLastError",
        "void",
        Error.NoRegisteredGetLastErrorFunction,
        None,
        "Text of the last error the vendor met in this thread.",
        ("const char*", "const char*"),
    ),
)
"""The services in the order the runtime numbers them."""

LIFETIME: tuple[tuple[str, str, str], ...] = (
    ("initLibrary", "int32_t initLibrary(void)", "Start the vendor library: register its functions. 0 on success."),
    ("finalizeLibrary", "int32_t finalizeLibrary(void)", "End the vendor library. 0 on success."),
)
"""What every vendor library exports to be started and ended: name, declaration, meaning."""

GENERATOR_STATE = (
    "buildGeneratorState",
    "diopiError_t buildGeneratorState(diopiContextHandle_t ctx, diopiTensorHandle_t out)",
    "Write a fresh generator state into `out`.",
)
"""The well-known function that prepares the state of a vendor's own generators: name, declaration, meaning."""

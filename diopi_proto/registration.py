"""The table of the services: the functions that a vendor provides to the runtime.

The table states the signature, the registration function, the exported name and the error of a missing service. The
headers, the tables of the C runtime and the callbacks for vendors written in Python are derived from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from diopi_proto.types import Error


@dataclass(frozen=True, kw_only=True)
class Service:
    """One function that the vendor provides to the runtime.

    Attributes:
        name: the name of the service in Python, a field of `RuntimeFunctions`.
        stem: the part of the C names that is specific to the service.
        returns: the C return type of the registered function.
        parameters: the C parameters.
        missing: the error that a runtime function returns if it needs the service and the service is not registered.
        well_known: the name under which a vendor library exports the function if the library does not register it; None
            if there is no such name.
        title: the name of the service in messages of the runtime.
        meaning: what the function does, as a sentence.
    """

    name: str
    stem: str
    returns: str
    parameters: str
    missing: Error
    well_known: str | None
    title: str
    meaning: str

    @property
    def register(self) -> str:
        """The name of the runtime function that registers the service."""
        return f"diopiRegister{self.stem}Func"

    @property
    def pointer(self) -> str:
        """The name of the C type of a pointer to the function."""
        return f"diopi{self.stem}Func_t"

    @property
    def exported_returns(self) -> str:
        """The C return type of the function if it is exported under its well-known name."""
        return "diopiError_t" if self.returns == "int32_t" else self.returns

    @property
    def arguments(self) -> tuple[tuple[str, str], ...]:
        """The type and name of each C parameter."""
        if self.parameters == "void":
            return ()
        pairs = (parameter.rsplit(" ", 1) for parameter in self.parameters.split(", "))
        return tuple((kind, name) for kind, name in pairs)

    @property
    def returns_by_pointer(self) -> bool:
        """Whether the function writes a stream handle through a pointer and returns an error code."""
        return any(kind == "diopiStreamHandle_t*" for kind, _ in self.arguments)


_COPY_PARAMETERS = "diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes"
"""The C parameters of the functions that copy memory."""


def _in_c(
    stem: str, returns: str, parameters: str, missing: Error, well_known: str | None, title: str, meaning: str
) -> dict[str, Any]:
    """Return the metadata of a field of `RuntimeFunctions`: the attributes of its `Service` except `name`."""
    return locals()


@dataclass(frozen=True, kw_only=True)
class RuntimeFunctions:
    """The runtime functions of a vendor written in Python; None for functions that it does not provide.

    Addresses and stream handles are integers. A function succeeds if it returns None or 0; another number or an
    exception is a failure. The runtime calls compiled functions (`lib_rt.device.compiled`) without Python.
    """

    stream_create: Callable[[], int] | None = field(
        default=None,
        metadata=_in_c(
            "StreamCreate",
            "int32_t",
            "diopiStreamHandle_t* stream",
            Error.NoRegisteredStreamCreateFunction,
            "device_make_stream",
            "stream create",
            "Create a stream.",
        ),
    )
    stream_destroy: Callable[[int], int | None] | None = field(
        default=None,
        metadata=_in_c(
            "StreamDestroy",
            "int32_t",
            "diopiStreamHandle_t stream",
            Error.NoRegisteredStreamDestoryFunction,
            "device_destroy_stream",
            "stream destroy",
            "Destroy a stream whose work is done.",
        ),
    )
    stream_sync: Callable[[int], int | None] | None = field(
        default=None,
        metadata=_in_c(
            "SynchronizeStream",
            "int32_t",
            "diopiStreamHandle_t stream",
            Error.NoRegisteredStreamSyncFunction,
            "device_synchronize_stream",
            "stream synchronize",
            "Wait until everything enqueued on the stream is done.",
        ),
    )
    malloc: Callable[[int], int] | None = field(
        default=None,
        metadata=_in_c(
            "DeviceMalloc",
            "void*",
            "uint64_t bytes",
            Error.NoRegisteredDeviceMemoryMallocFunction,
            "device_malloc",
            "memory malloc",
            "Allocate device memory; return NULL if there is not enough.",
        ),
    )
    """Takes a size in bytes and returns an address, or 0 if there is not enough memory."""
    free: Callable[[int], None] | None = field(
        default=None,
        metadata=_in_c(
            "DevMemFree",
            "void",
            "void* ptr",
            Error.NoRegisteredDeviceMemoryFreeFunction,
            "device_free",
            "memory free",
            "Free device memory.",
        ),
    )
    h2d: Callable[[int, int, int, int], int | None] | None = field(
        default=None,
        metadata=_in_c(
            "MemcpyH2DAsync",
            "int32_t",
            _COPY_PARAMETERS,
            Error.NoRegisteredHost2DeviceMemoryCopyFunction,
            "device_memcpy_h2d_async",
            "host-to-device copy",
            "Enqueue a copy from host to device memory.",
        ),
    )
    """Takes stream, destination, source and size in bytes; may return before the copy is complete."""
    d2h: Callable[[int, int, int, int], int | None] | None = field(
        default=None,
        metadata=_in_c(
            "MemcpyD2HAsync",
            "int32_t",
            _COPY_PARAMETERS,
            Error.NoRegisteredDevice2HostMemoryCopyFunction,
            "device_memcpy_d2h_async",
            "device-to-host copy",
            "Enqueue a copy from device to host memory.",
        ),
    )
    d2d: Callable[[int, int, int, int], int | None] | None = field(
        default=None,
        metadata=_in_c(
            "MemcpyD2DAsync",
            "int32_t",
            _COPY_PARAMETERS,
            Error.NoRegisteredDevice2DdeviceMemoryCopyFunction,
            "device_memcpy_d2d_async",
            "device-to-device copy",
            "Enqueue a copy within device memory.",
        ),
    )
    last_error: Callable[[], str] | None = field(
        default=None,
        metadata=_in_c(
            "GetLastError",
            "const char*",
            "void",
            Error.NoRegisteredGetLastErrorFunction,
            None,
            "last error",
            "Return the text of the last error in this thread.",
        ),
    )


SERVICES: tuple[Service, ...] = tuple(Service(name=entry.name, **entry.metadata) for entry in fields(RuntimeFunctions))
"""The services. The index of a service is its number in the runtime."""

LIFETIME: tuple[tuple[str, str, str], ...] = (
    ("initLibrary", "int32_t initLibrary(void)", "Start the vendor library: register its functions. 0 on success."),
    ("finalizeLibrary", "int32_t finalizeLibrary(void)", "End the vendor library. 0 on success."),
)
"""The functions that start and end a vendor library, which every library exports: name, declaration, meaning."""

GENERATOR_STATE = (
    "buildGeneratorState",
    "diopiError_t buildGeneratorState(diopiContextHandle_t ctx, diopiTensorHandle_t out)",
    "Write a fresh generator state into `out`.",
)
"""The exported function that initializes the state of a vendor's generators: name, declaration, meaning."""

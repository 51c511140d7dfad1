"""The functions a vendor gives the runtime: one table of how each is called, registered, exported and missed.

Everything that goes service by service follows from it: the headers, the tables of the C runtime, the callbacks that
call a vendor written in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from diopi_proto.types import Error


@dataclass(frozen=True)
class Service:
    """One function the vendor provides.

    Attributes:
        name: the name used for it in Python, a field of `RuntimeFunctions`.
        stem: the part of the C names that is its own.
        returns: what it returns when registered.
        parameters: C parameters.
        missing: what a call of the runtime answers that needs it when it was not registered.
        well_known: its exported name in a vendor library that does not register.
        title: what messages of the runtime call it.
        meaning: what it does.
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
        """The runtime's function that takes it."""
        return f"diopiRegister{self.stem}Func"

    @property
    def pointer(self) -> str:
        """Name of its function pointer type in C."""
        return f"diopi{self.stem}Func_t"

    @property
    def exported_returns(self) -> str:
        """What it returns under its well-known name."""
        return "diopiError_t" if self.returns == "int32_t" else self.returns

    @property
    def arguments(self) -> tuple[tuple[str, str], ...]:
        """Type and name of each C parameter."""
        if self.parameters == "void":
            return ()
        pairs = (parameter.rsplit(" ", 1) for parameter in self.parameters.split(", "))
        return tuple((kind, name) for kind, name in pairs)

    @property
    def gives_by_pointer(self) -> bool:
        """Whether its result goes through a pointer, and what it returns is a code."""
        return any(kind == "diopiStreamHandle_t*" for kind, _ in self.arguments)


_COPY = "diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes"


def _in_c(
    stem: str, returns: str, parameters: str, missing: Error, well_known: str | None, title: str, meaning: str
) -> dict[str, Any]:
    """What goes with a field of the table, whose name and type are the service's in Python."""
    return locals()


@dataclass(frozen=True)
class RuntimeFunctions:
    """What a vendor written in Python provides; None for what it lacks. Addresses and stream handles are numbers.

    Functions that return None succeed; any number but 0 they return, and any exception they raise, is a failure.
    Compiled ones, as `lib_rt.device.compiled` makes them, are called by the runtime without Python.
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
            "Make a stream.",
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
            "Allocate device memory; NULL when there is not enough.",
        ),
    )
    """Bytes → address, 0 when there is not enough memory."""
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
            _COPY,
            Error.NoRegisteredHost2DeviceMemoryCopyFunction,
            "device_memcpy_h2d_async",
            "host-to-device copy",
            "Enqueue a copy from host to device memory.",
        ),
    )
    """Stream, destination, source, bytes; returns before the copy is done if it likes."""
    d2h: Callable[[int, int, int, int], int | None] | None = field(
        default=None,
        metadata=_in_c(
            "MemcpyD2HAsync",
            "int32_t",
            _COPY,
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
            _COPY,
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
            "Text of the last error the vendor met in this thread.",
        ),
    )


SERVICES: tuple[Service, ...] = tuple(Service(name=entry.name, **entry.metadata) for entry in fields(RuntimeFunctions))
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

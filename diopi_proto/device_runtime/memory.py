"""The prototypes of memory: allocation, fills and copies."""

from __future__ import annotations

from diopi_proto.vendor_interface import VendorFunction, parse_parameters

_ANY_SIZE = "Sizes and addresses need no alignment, and a size of 0 changes nothing."
_HOST_ORDER = "Ordered after earlier work on the stream. Does not wait for the device if the host memory is pinned."
_PAGEABLE_SOURCE = (
    "If `from` is pageable, the call returns after it has read the bytes. Then the program may change them."
)
_PAGEABLE_TARGET = "If `to` is pageable, the call returns after it has written the bytes."
_SYNCHRONOUS = "The copy is complete when the call returns. The call waits for no stream except the default stream."

MEMORY_FUNCTIONS = (
    VendorFunction(
        name="mallocHost",
        parameters=parse_parameters("void** address, size_t bytes"),
        doc="Allocate pinned host memory, which the device can access directly.",
        errors="There is too little memory.",
        project_defined="All devices can use the memory. The address is a multiple of 64. For 0 bytes it may be NULL.",
    ),
    VendorFunction(
        name="freeHost",
        parameters=parse_parameters("void* address"),
        doc="Free pinned host memory.",
        errors="The address is not the beginning of memory from mallocHost, or was freed already.",
        stream_order="The program first waits for work that uses the memory.",
        project_defined="NULL is allowed and does nothing.",
    ),
    VendorFunction(
        name="isPinnedPtr",
        parameters=parse_parameters("const void* address"),
        returns="bool",
        doc="Return whether an address lies in pinned host memory.",
        project_defined=(
            "The result is true for every byte of an allocation, and false for freed memory, device memory, other host "
            "memory and NULL."
        ),
    ),
    VendorFunction(
        name="mallocDevice",
        parameters=parse_parameters("void** address, size_t bytes, bool throws = true"),
        returns="OpStatus",
        doc="Allocate memory on the current device.",
        errors="There is too little memory: an exception if `throws`, otherwise ERR_NOMEM.",
        project_defined=(
            "The address is a multiple of 64. Addresses of all devices and of the host differ. For 0 bytes, the status "
            "is SUCCESS and the address may be NULL. After an error, the address is unchanged or NULL."
        ),
    ),
    VendorFunction(
        name="freeDevice",
        parameters=parse_parameters("void* address"),
        doc="Free device memory, whichever device is current.",
        errors="The address is not the beginning of memory from mallocDevice, or was freed already.",
        stream_order="The program first waits for work that uses the memory, or the call waits for it.",
        project_defined="NULL is allowed and does nothing.",
    ),
    VendorFunction(
        name="memSetAsync",
        parameters=parse_parameters("deviceStream_t stream, void* address, int value, size_t bytes"),
        doc="Set every byte of device memory to the low eight bits of `value`.",
        stream_order="Ordered after earlier work on the stream. Does not wait for the device.",
        project_defined=_ANY_SIZE,
    ),
    VendorFunction(
        name="memCopyD2D",
        parameters=parse_parameters(
            "size_t bytes, deviceId_t to_device, void* to, deviceId_t from_device, const void* from"
        ),
        doc="Copy bytes from the memory of a device to the memory of the same or another device.",
        errors="There is no device with one of the indices.",
        stream_order=_SYNCHRONOUS,
        project_defined=f"{_ANY_SIZE} Any device may be current. Peer copies work between all devices of the process.",
    ),
    VendorFunction(
        name="memCopyH2D",
        parameters=parse_parameters("size_t bytes, void* to, const void* from"),
        doc="Copy bytes from host memory to device memory.",
        stream_order=_SYNCHRONOUS,
        project_defined=_ANY_SIZE,
    ),
    VendorFunction(
        name="memCopyD2H",
        parameters=parse_parameters("size_t bytes, void* to, const void* from"),
        doc="Copy bytes from device memory to host memory.",
        stream_order=_SYNCHRONOUS,
        project_defined=_ANY_SIZE,
    ),
    VendorFunction(
        name="memCopyD2DAsync",
        parameters=parse_parameters(
            "deviceStream_t stream, size_t bytes, deviceId_t to_device, void* to, deviceId_t from_device, "
            "const void* from"
        ),
        doc="Copy as memCopyD2D does, but on a stream.",
        errors="There is no device with one of the indices.",
        stream_order="Ordered after earlier work on the stream. Does not wait for the device.",
        project_defined=f"{_ANY_SIZE} The stream belongs to one of the two devices.",
    ),
    VendorFunction(
        name="memCopyH2DAsync",
        parameters=parse_parameters("deviceStream_t stream, size_t bytes, void* to, const void* from"),
        doc="Copy as memCopyH2D does, but on a stream.",
        stream_order=_HOST_ORDER,
        project_defined=f"{_PAGEABLE_SOURCE} {_ANY_SIZE}",
    ),
    VendorFunction(
        name="memCopyD2HAsync",
        parameters=parse_parameters("deviceStream_t stream, size_t bytes, void* to, const void* from"),
        doc="Copy as memCopyD2H does, but on a stream.",
        stream_order=_HOST_ORDER,
        project_defined=f"{_PAGEABLE_TARGET} {_ANY_SIZE}",
    ),
)
"""The prototypes of memory."""

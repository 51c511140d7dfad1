"""The enumerations and structures of the device runtime."""

from __future__ import annotations

from diopi_proto.vendor_interface import VendorEnum, VendorStruct, parse_parameters

ENUMS = (
    VendorEnum(
        name="VendorDeviceType",
        doc="The kind of a vendor's device.",
        members=[(name, "") for name in ("MLU", "NPU", "CUDA", "GCU", "SUPA", "DROPLET", "KLX")],
    ),
    VendorEnum(
        name="EventStatus",
        doc="The state of an event.",
        members=[
            ("PENDING", "The device has not started the work before the event."),
            ("RUNNING", "The device runs the work before the event."),
            ("DEFERRED", "The device has postponed the work before the event."),
            ("READY", "The work before the event is complete, or the event was never recorded."),
        ],
    ),
    VendorEnum(
        name="OpStatus",
        doc="The status of an allocation.",
        members=[
            ("SUCCESS", "The memory is allocated."),
            ("ERR_UNKNOWN", "The allocation failed for another reason than a lack of memory."),
            ("ERR_NOMEM", "The device has too little free memory."),
        ],
    ),
    VendorEnum(
        name="MemCPKind",
        doc="The direction of a copy.",
        members=[
            ("D2H", "from the device to the host"),
            ("H2D", "from the host to the device"),
            ("D2D", "from a device to the same or another device"),
        ],
    ),
)
"""The enumerations, with their members in the order of their values."""

STRUCTS = (
    VendorStruct(
        name="DIPUDeviceStatus",
        doc="The memory of a device in bytes.",
        fields=parse_parameters("size_t freeGlobalMem = 0, size_t totalGlobalMem = 0"),
    ),
    VendorStruct(
        name="DIPUDeviceProperties",
        doc="The name of a device, its memory in bytes, its version (major and minor) and its number of processors.",
        fields=parse_parameters(
            "std::string name, size_t totalGlobalMem = 0, int32_t major = 0, int32_t minor = 0, "
            "int32_t multiProcessorCount = 0"
        ),
    ),
)
"""The structures."""

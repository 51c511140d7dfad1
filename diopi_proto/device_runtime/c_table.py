"""The C form of the device runtime: a table of functions, and how each C++ type is passed through it."""

from __future__ import annotations

from collections.abc import Iterator

from diopi_proto.c_text import wrap_parameters
from diopi_proto.device_runtime import FUNCTIONS
from diopi_proto.device_runtime.types import STRUCTS
from diopi_proto.vendor_interface import VendorFunction, VendorParameter

TABLE_VERSION = 1
"""The version of the table. A later version may only add entries at the end."""

STATUSES = (
    ("DIPU_SUCCESS", "The call succeeded."),
    ("DIPU_ERR_UNKNOWN", "An allocation failed for another reason than a lack of memory."),
    ("DIPU_ERR_NOMEM", "The device has too little free memory."),
    ("DIPU_EXCEPTION", "The C++ function throws an exception; lastErrorText returns its text."),
)
"""The name and meaning of each status that a function of the table returns; the first three equal `OpStatus`."""

HANDLES = ("deviceStream_t", "deviceEvent_t")
"""The types that the vendor defines, which are `void*` in C."""

_C_TYPES = {
    **{handle: "void*" for handle in HANDLES},
    **{f"{handle}*": "void**" for handle in HANDLES},
    "deviceId_t": "int32_t",
    "int": "int32_t",
    "int*": "int32_t*",
    "const std::string&": "const char*",
    "EventStatus": "int32_t",
    "std::string": "char",
}
"""The type in C by the type in C++, for the types that differ."""

TEXT_BYTES = 256
"""The size in bytes of a text in a structure, including the zero at its end."""


def c_type(cpp_type: str) -> str:
    """Return the type in C for a type in C++."""
    return _C_TYPES.get(cpp_type, cpp_type).replace("DIPUDevice", "dipuDevice")


def c_parameters(function: VendorFunction) -> list[VendorParameter]:
    """Return the parameters of a function in C: the parameters in C++, then a pointer to the result if there is one."""
    parameters = [VendorParameter(c_type(p.type), p.name) for p in function.parameters]
    if has_result(function):
        parameters.append(VendorParameter(f"{c_type(function.returns)}*", "result"))
    return parameters


def has_result(function: VendorFunction) -> bool:
    """Return whether a function has a result besides the status."""
    return function.returns not in ("void", "OpStatus")


def table_field(function: VendorFunction) -> str:
    """Return the declaration of the table's entry for a function."""
    parameters = ", ".join(f"{p.type} {p.name}" for p in c_parameters(function))
    return wrap_parameters(f"    int32_t (*{function.table_entry})(", f"{parameters or 'void'});\n").rstrip() + "\n"


def table_types() -> str:
    """Return the C declarations of the statuses, the structures and the table, without comments."""
    statuses = ", ".join(f"{name} = {value}" for value, (name, _) in enumerate(STATUSES))
    entries = "".join(map(table_field, FUNCTIONS))
    return (
        f"enum {{ {statuses} }};\n{''.join(_struct_lines())}"
        "typedef struct dipuDeviceRuntime {\n    size_t size;\n    int32_t version;\n"
        f"    const char* (*lastErrorText)(void);\n{entries}}} dipuDeviceRuntime;\n"
        "const dipuDeviceRuntime* dipuGetDeviceRuntime(void);\n"
    )


def _struct_lines() -> Iterator[str]:
    """Yield the lines of the structures in C."""
    for struct in STRUCTS:
        yield f"typedef struct {c_type(struct.name)} {{\n"
        for field in struct.fields:
            size = f"[{TEXT_BYTES}]" if field.type == "std::string" else ""
            yield f"    {c_type(field.type)} {field.name}{size};\n"
        yield f"}} {c_type(struct.name)};\n"

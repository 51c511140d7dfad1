"""The C form of the collectives: a table of functions, and how each C++ type is passed through it."""

from __future__ import annotations

from diopi_proto.c_text import wrap_parameters
from diopi_proto.collectives import FUNCTIONS, RESULTS
from diopi_proto.vendor_interface import VendorFunction, VendorParameter

TABLE_VERSION = 1
"""The version of the table. A later version may only add entries at the end."""

STATUSES = (
    *RESULTS,
    ("DICL_EXCEPTION", 0x1001, "The C++ function throws an exception; lastErrorText returns its text."),
)
"""The name, value and meaning of each status that a function of the table returns; all but the last are `RESULTS`."""

HANDLES = ("diclComm_t", "deviceStream_t")
"""The types that the vendor defines, which are `void*` in C."""

_C_TYPES = {
    **{handle: "void*" for handle in HANDLES},
    "diclComm_t*": "void**",
    "commUniqueId*": "void*",
    "commUniqueId": "const void*",
    "int": "int32_t",
    "at::ScalarType": "int32_t",
    "const ReduceOp&": "int32_t",
}
"""The type in C by the type in C++, for the types that differ."""


def c_parameters(function: VendorFunction) -> list[VendorParameter]:
    """Return the parameters of a function in C; a text becomes two parameters: the address and the size of memory."""
    parameters = []
    for parameter in function.parameters:
        if parameter.type == "std::string&":
            parameters.append(VendorParameter("char*", parameter.name))
            parameters.append(VendorParameter("size_t", f"{parameter.name}_bytes"))
        else:
            parameters.append(VendorParameter(_C_TYPES.get(parameter.type, parameter.type), parameter.name))
    return parameters


def table_types() -> str:
    """Return the C declarations of the statuses and the table, without comments."""
    statuses = ", ".join(f"{name} = {value:#x}" for name, value, _ in STATUSES)
    entries = "".join(map(_table_field, FUNCTIONS))
    return (
        f"enum {{ {statuses} }};\ntypedef struct dipuCollectives {{\n    size_t size;\n    int32_t version;\n"
        f"    const char* (*lastErrorText)(void);\n    size_t uniqueIdBytes;\n{entries}}} dipuCollectives;\n"
        "const dipuCollectives* dipuGetCollectives(void);\n"
    )


def _table_field(function: VendorFunction) -> str:
    """Return the declaration of the table's entry for a function."""
    parameters = ", ".join(f"{p.type} {p.name}" for p in c_parameters(function))
    return wrap_parameters(f"    int32_t (*{function.table_entry})(", f"{parameters});\n").rstrip() + "\n"

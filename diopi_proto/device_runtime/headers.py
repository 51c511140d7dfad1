"""Generate the C++ and C headers of the device runtime, and the C++ source that connects them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from diopi_proto.c_text import wrap_parameters
from diopi_proto.device_runtime import ENUMS, FUNCTIONS, STRUCTS
from diopi_proto.device_runtime import __doc__ as rules
from diopi_proto.device_runtime.c_table import (
    HANDLES,
    STATUSES,
    TABLE_VERSION,
    TEXT_BYTES,
    c_parameters,
    c_type,
    has_result,
    table_types,
)
from diopi_proto.vendor_cpp import (
    GENERATED,
    call_support,
    render_call,
    render_comment,
    render_enum,
    render_function,
    render_statuses,
    render_struct,
)
from diopi_proto.vendor_interface import VendorFunction, VendorParameter, VendorStruct
from diopi_proto.vendor_table import VendorTable

HEADER, C_HEADER, C_SOURCE = "dipu/device_runtime.h", "dipu/device_runtime_c.h", "dipu/device_runtime_c.cpp"
"""The paths below the include folder: of the C++ interface, of the C table, and of the source of the table."""

_CPP_HEADER = """\
{comment}#ifndef DIPU_DEVICE_RUNTIME_H_
#define DIPU_DEVICE_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <string>

/* A vendor's header defines deviceStream_t and deviceEvent_t in namespace dipu. Its name is the macro
 * DIPU_VENDOR_HEADER, or <vendorapi.h> if there is a header of this name. Without one, both types are void*. */
#if defined(DIPU_VENDOR_HEADER)
#include DIPU_VENDOR_HEADER
#elif __has_include(<vendorapi.h>)
#include <vendorapi.h>
#else
namespace dipu {{
using deviceStream_t = void*;
using deviceEvent_t = void*;
}} // namespace dipu
#endif

/* DIPU_WEAK: a library may leave the function out. DIPU_API: visible outside the library. */
#if defined(__GNUC__) || defined(__clang__)
#define DIPU_WEAK __attribute__((weak, visibility("default")))
#ifdef DIPU_ALL_WEAK
#define DIPU_API DIPU_WEAK
#else
#define DIPU_API __attribute__((visibility("default")))
#endif
#else
#define DIPU_WEAK
#define DIPU_API
#endif

/* As in PyTorch, whose headers may be included as well. */
namespace c10 {{
using DeviceIndex = std::int8_t;
}} // namespace c10

namespace dipu {{
namespace devapis {{

using deviceId_t = c10::DeviceIndex;

{types}
{functions}
}} // namespace devapis

{aliases}
}} // namespace dipu

#endif /* DIPU_DEVICE_RUNTIME_H_ */
"""

_TABLE = VendorTable(
    title="device runtime",
    name="device_runtime",
    type="dipuDeviceRuntime",
    getter="dipuGetDeviceRuntime",
    variable="runtime",
    version=TABLE_VERSION,
)
"""The names of the table."""

_C_RULES = """\
A function of the table does what the C++ function of its name does, see device_runtime.h. It returns a status. The
 * C++ function's result is written to the last parameter. A function that the vendor leaves out is NULL."""
"""The lines of the C header's comment that state how C calls differ from C++ calls."""

_C_INCLUDES = """\
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>"""
"""The lines of the C header that include other headers."""

_C_DEFINITIONS = """\
#if defined(__GNUC__) || defined(__clang__)
#define DIPU_EXPORT __attribute__((visibility("default")))
#else
#define DIPU_EXPORT
#endif

"""
"""The macros of the C header. The C header of the collectives uses them too."""

_SOURCE_INCLUDES = """\
#include <cstring>
#include <exception>"""
"""The lines of the source that include headers of the C++ library."""

_SOURCE_BODY = """\
using namespace dipu::devapis;

{support}
template <typename Result, typename Value>
void store(Result* result, Value value) {{
    *result = static_cast<Result>(value);
}}

/* An index that deviceId_t can't represent becomes -1, which is no device. */
deviceId_t device_index(std::int32_t device) {{
    auto index = static_cast<deviceId_t>(device);
    return index == device ? index : -1;
}}

{structs}
{functions}"""
"""The functions of the source to which the table refers."""


def render_headers() -> Mapping[str, str]:
    """Return the text of each generated file, by its path below the include folder."""
    return {path: render() for path, render in _FILES.items()}


def _render_cpp_header() -> str:
    """Return the text of the header of the C++ interface."""
    types = "\n".join((*map(render_enum, ENUMS), *map(render_struct, STRUCTS)))
    functions = "\n".join(map(render_function, FUNCTIONS))
    names = ["deviceId_t", *(enum.name for enum in ENUMS), *(struct.name for struct in STRUCTS)]
    aliases = "".join(f"using devapis::{name};\n" for name in names)
    comment = render_comment(f"{rules}\n{GENERATED}".replace("**", ""), opening="/*")
    return _CPP_HEADER.format(comment=comment, types=types, functions=functions, aliases=aliases)


def _render_c_header() -> str:
    """Return the text of the header of the table."""
    return _TABLE.render_header(
        rules=_C_RULES,
        includes=_C_INCLUDES,
        definitions=_C_DEFINITIONS,
        statuses=render_statuses(dict(STATUSES)),
        types=table_types(),
    )


def _render_c_source() -> str:
    """Return the text of the source that fills the table with calls of the C++ functions."""
    structs = "\n".join(map(_render_struct_copy, STRUCTS))
    functions = "\n".join(render_call(f, c_parameters(f), _call_lines(f)) for f in FUNCTIONS)
    return _TABLE.render_source(
        includes=_SOURCE_INCLUDES,
        body=_SOURCE_BODY.format(support=call_support("DIPU_EXCEPTION"), structs=structs, functions=functions),
        entries="\n".join(map(_render_entry, FUNCTIONS)),
    )


_FILES: Mapping[str, Callable[[], str]] = {
    HEADER: _render_cpp_header,
    C_HEADER: _render_c_header,
    C_SOURCE: _render_c_source,
}
"""The functions that generate the files, by path."""


def _render_struct_copy(struct: VendorStruct) -> str:
    """Return the function that copies a structure of C++ to the structure of C."""
    lines = []
    for field in struct.fields:
        if field.type == "std::string":
            lines.append(f"    to->{field.name}[from.{field.name}.copy(to->{field.name}, {TEXT_BYTES} - 1)] = '\\0';\n")
        else:
            lines.append(f"    to->{field.name} = from.{field.name};\n")
    return f"void copy(const {struct.name}& from, {c_type(struct.name)}* to) {{\n{''.join(lines)}}}\n"


def _render_entry(function: VendorFunction) -> str:
    """Return the initializer of a function's entry of the table."""
    types = ", ".join(parameter.type for parameter in function.parameters)
    return (
        f"        is_present<{function.returns}({types})>(devapis::{function.name})\n"
        f"            ? call_{function.table_entry}\n            : nullptr,"
    )


def _call_lines(function: VendorFunction) -> Iterator[str]:
    """Yield the statements that call a function of C++ and return the status."""
    outputs = [p for p in function.parameters if p.type.rstrip("*") in HANDLES and p.type.endswith("*")]
    for parameter in outputs:
        yield f"{parameter.type.rstrip('*')} {parameter.name}_value{{}};"
    call = f"devapis::{function.name}({', '.join(map(_argument, function.parameters))})"
    if function.returns == "OpStatus":
        yield f"return {call};"
        return
    if not has_result(function):
        yield wrap_parameters(f"{call.partition('(')[0]}(", f"{call.partition('(')[2]};").replace("\n", "\n        ")
    elif any(struct.name == function.returns for struct in STRUCTS):
        yield f"copy({call}, result);"
    else:
        yield f"store(result, {call});"
    for parameter in outputs:
        yield f"*{parameter.name} = to_pointer({parameter.name}_value);"
    yield "return DIPU_SUCCESS;"


def _argument(parameter: VendorParameter) -> str:
    """Return the expression that passes a parameter of C to C++."""
    if parameter.type in HANDLES:
        return f"from_pointer<{parameter.type}>({parameter.name})"
    if parameter.type.rstrip("*") in HANDLES:
        return f"&{parameter.name}_value"
    if parameter.type == "deviceId_t":
        return f"device_index({parameter.name})"
    return parameter.name

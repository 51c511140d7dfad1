"""Generate the C++ and C headers of the collectives, and the C++ source that connects them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diopi_proto.c_text import wrap_parameters
from diopi_proto.collectives import ELEMENT_TYPES, FUNCTIONS, OPERATIONS, RESULTS
from diopi_proto.collectives import __doc__ as rules
from diopi_proto.collectives.c_table import HANDLES, STATUSES, TABLE_VERSION, c_parameters, table_types
from diopi_proto.collectives.types import UNIQUE_ID_BYTES
from diopi_proto.vendor_cpp import (
    GENERATED,
    call_support,
    render_call,
    render_comment,
    render_function,
    render_statuses,
)
from diopi_proto.vendor_interface import VendorFunction, VendorParameter
from diopi_proto.vendor_table import VendorTable

HEADER, C_HEADER, C_SOURCE = "dipu/collectives.h", "dipu/collectives_c.h", "dipu/collectives_c.cpp"
"""The paths below the include folder: of the C++ interface, of the C table, and of the source of the table."""

_CPP_HEADER = """\
{comment}#ifndef DIPU_COLLECTIVES_H_
#define DIPU_COLLECTIVES_H_

#include <dipu/device_runtime.h>

/* A vendor's header, see device_runtime.h, also defines diclComm_t, commUniqueId and DICL_UNIQUE_ID_BYTES_SIZE. */
#if !defined(DIPU_VENDOR_HEADER) && !__has_include(<vendorapi.h>)
#define DICL_UNIQUE_ID_BYTES_SIZE {unique_id_bytes}
namespace dipu {{
using diclComm_t = void*;
struct commUniqueId {{
    char internal[DICL_UNIQUE_ID_BYTES_SIZE];
}};
}} // namespace dipu
#endif

/* The element types and operations are those of PyTorch if its headers are found, unless DIPU_WITHOUT_PYTORCH is
 * defined. Otherwise, types with the same names and values replace them. */
#if !defined(DIPU_WITHOUT_PYTORCH) && __has_include(<torch/csrc/distributed/c10d/Types.hpp>)
#include <torch/csrc/distributed/c10d/Types.hpp>
#else
namespace c10 {{
enum class ScalarType : std::int8_t {{
{types}}};
{constants}}} // namespace c10

namespace at {{
using namespace c10;
}} // namespace at

namespace c10d {{
struct ReduceOp {{
    enum RedOpType : std::uint8_t {{
{operations}    }};
    ReduceOp() = default;
    ReduceOp(RedOpType operation) : op_(operation) {{}}
    operator RedOpType() const {{ return op_; }}
    RedOpType op_ = SUM;
}};
}} // namespace c10d
#endif

namespace dipu {{

using c10d::ReduceOp;

namespace devapis {{

/** The result of a call. */
enum diclResult_t {{
{results}}};

{functions}
}} // namespace devapis

using devapis::diclResult_t;

}} // namespace dipu

#endif /* DIPU_COLLECTIVES_H_ */
"""

_TABLE = VendorTable(
    title="collectives",
    name="collectives",
    type="dipuCollectives",
    getter="dipuGetCollectives",
    variable="collectives",
    version=TABLE_VERSION,
)
"""The names of the table."""

_C_RULES = """\
A function of the table does what the C++ function of its name does, see collectives.h. A function that the vendor
 * leaves out is NULL. A unique id is an array of uniqueIdBytes bytes. Element types have the values of at::ScalarType,
 * and operations those of c10d::ReduceOp::RedOpType. diclGetCommName truncates the name to the size of the memory."""
"""The lines of the C header's comment that state how C calls differ from C++ calls."""

_SOURCE_INCLUDES = """\
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>"""
"""The lines of the source that include headers of the C++ library."""

_SOURCE_BODY = """\

{support}
static_assert(sizeof(commUniqueId) == DICL_UNIQUE_ID_BYTES_SIZE, "a unique id has the stated size");
static_assert(std::is_trivially_copyable<commUniqueId>::value, "a unique id can be copied as bytes");

commUniqueId unique_id_from(const void* bytes) {{
    commUniqueId id;
    std::memcpy(&id, bytes, sizeof id);
    return id;
}}

void store_text(const std::string& from, char* to, size_t size) {{
    if (size > 0) to[from.copy(to, size - 1)] = '\\0';
}}

{functions}"""
"""The functions of the source to which the table refers."""


def render_headers() -> Mapping[str, str]:
    """Return the text of each generated file, by its path below the include folder."""
    return {HEADER: _render_cpp_header(), C_HEADER: _render_c_header(), C_SOURCE: _render_c_source()}


def _render_cpp_header() -> str:
    """Return the text of the header of the C++ interface."""
    return _CPP_HEADER.format(
        comment=render_comment(f"{rules}\n{GENERATED}".replace("**", ""), opening="/*"),
        unique_id_bytes=UNIQUE_ID_BYTES,
        types="".join(f"    {kind.name} = {kind.value},\n" for kind in ELEMENT_TYPES),
        constants="".join(f"constexpr ScalarType k{k.name} = ScalarType::{k.name};\n" for k in ELEMENT_TYPES),
        operations="".join(f"        {name} = {value},\n" for value, name in enumerate(OPERATIONS)),
        results="".join(f"    {name} = {value:#x}, /**< {meaning} */\n" for name, value, meaning in RESULTS),
        functions="\n".join(map(render_function, FUNCTIONS)),
    )


def _render_c_header() -> str:
    """Return the text of the header of the table."""
    statuses = render_statuses({name: meaning for name, _, meaning in STATUSES})
    return _TABLE.render_header(
        rules=_C_RULES, includes="#include <dipu/device_runtime_c.h>", statuses=statuses, types=table_types()
    )


def _render_c_source() -> str:
    """Return the text of the source that fills the table with calls of the C++ functions."""
    functions = "\n".join(render_call(f, c_parameters(f), _call_lines(f)) for f in FUNCTIONS)
    return _TABLE.render_source(
        includes=_SOURCE_INCLUDES,
        body=_SOURCE_BODY.format(support=call_support("DICL_EXCEPTION"), functions=functions),
        entries="\n".join(("        sizeof(commUniqueId),", *map(_render_entry, FUNCTIONS))),
    )


def _render_entry(function: VendorFunction) -> str:
    """Return the initializer of a function's entry of the table."""
    return f"        is_present(devapis::{function.name}) ? call_{function.table_entry} : nullptr,"


_OUTPUTS = {
    "diclComm_t*": "*{name} = to_pointer({name}_value);",
    "commUniqueId*": "std::memcpy({name}, &{name}_value, sizeof {name}_value);",
    "std::string&": "store_text({name}_value, {name}, {name}_bytes);",
}
"""The statements that pass an output from C++ to C, by its type in C++."""


def _call_lines(function: VendorFunction) -> Iterator[str]:
    """Yield the statements that call a function of C++ and return the status."""
    outputs = [parameter for parameter in function.parameters if parameter.type in _OUTPUTS]
    for parameter in outputs:
        yield f"{parameter.type.rstrip('*&')} {parameter.name}_value{{}};"
    start = "const auto result =" if outputs else "return"
    arguments = ", ".join(map(_argument, function.parameters))
    yield wrap_parameters(f"        {start} devapis::{function.name}(", f"{arguments});").lstrip()
    for parameter in outputs:
        yield f"if (result == devapis::DICL_SUCCESS) {_OUTPUTS[parameter.type].format(name=parameter.name)}"
    if outputs:
        yield "return result;"


def _argument(parameter: VendorParameter) -> str:
    """Return the expression that passes a parameter of C to C++."""
    name = parameter.name
    return {
        **{handle: f"from_pointer<{handle}>({name})" for handle in HANDLES},
        "diclComm_t*": f"&{name}_value",
        "commUniqueId*": f"&{name}_value",
        "std::string&": f"{name}_value",
        "commUniqueId": f"unique_id_from({name})",
        "at::ScalarType": f"static_cast<at::ScalarType>({name})",
        "const ReduceOp&": f"ReduceOp(static_cast<ReduceOp::RedOpType>({name}))",
    }.get(parameter.type, name)

"""Build `libhgrt.so`: one C function per prototype, which starts Python if necessary and calls the runtime in it."""

from __future__ import annotations

from pathlib import Path

from diopi_engine.proto import headers
from diopi_engine.proto.declarations import FunctionDeclaration
from diopi_engine.proto.hgrt import FUNCTIONS
from diopi_engine.runtime.calls import CALLS
from diopi_impl.export.build import build as build_library

LIBRARY = "libhgrt.so"
"""The name of the library's file."""

_TEXT = """\
#include <hgrt.h>
#include "host.h"

/* Python reads this structure. */
struct hgrt_exported {{
    function_t* functions;
    void (*fail)(const char* reason);
}};

static function_t functions[{count}];
static const struct hgrt_exported exported = {{functions, fail}};
const char service_description[] = "the runtime of HanGuangRT";
const char python_service[] = "diopi_engine.runtime.service";
const void* const service_tables = &exported;

hgResult hgGetLastErrorString(const char** text) {{
    if (text == NULL) return HG_ERROR_INVALID_ARGUMENT;
    *text = last_failure();
    return HG_SUCCESS;
}}

{functions}"""
"""The C source of the library; {count} is the number of Python callbacks, {functions} the exported functions."""


def build(folder: Path) -> Path:
    """Build the library in `folder`, which is created, and return its path; raise ExportError if that fails."""
    called = [function for function in FUNCTIONS if function.name in CALLS]
    text = "\n".join(_c_function(number, function) for number, function in enumerate(called))
    roots = [Path(headers.__file__).parents[2]]
    return build_library(
        _TEXT.format(count=len(called), functions=text), folder / LIBRARY, roots, include=headers.INCLUDE_DIR
    )


def _c_function(number: int, function: FunctionDeclaration) -> str:
    """Return the C definition of the exported function with this number in the table of Python callbacks."""
    arguments = ", ".join(parameter.name for parameter in function.parameters)
    return (
        f"hgResult {function.name}({function.declared}) {{\n"
        f"    if (!ready()) return HG_ERROR_INTERNAL;\n"
        f"    USE_DEFAULT_ARITHMETIC;\n"
        f"    return ((__typeof__(&{function.name}))functions[{number}])({arguments});\n"
        f"}}\n"
    )

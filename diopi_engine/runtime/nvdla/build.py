"""Build `libnvdla_runtime.so`: the portability layer in C, and the C++ class, whose methods Python implements."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from diopi_engine.proto import headers
from diopi_engine.proto.declarations import FunctionDeclaration
from diopi_engine.proto.nvdla import METHODS, PORTABILITY
from diopi_engine.runtime.nvdla.ffi import TABLE
from diopi_engine.runtime.nvdla.functions import IMPLEMENTED, LAYER_FUNCTIONS, METHOD_FUNCTIONS
from diopi_impl.export.build import build as build_library

LIBRARY = "libnvdla_runtime.so"

_C = """\
#include <nvdla.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "host.h"

{table}

static function_t functions[{count}];
static const function_t layer[] = {{{layer}}};
static const struct nvdla_exported exported = {{functions, layer}};
const char service_description[] = "the driver of NVDLA";
const char python_service[] = "diopi_engine.runtime.nvdla.service";
const void* const service_tables = &exported;

void NvDlaDebugPrintf(const char* format, ...) {{
    const char* wanted = getenv("DIOPI_ENGINE_DEBUG");
    if (wanted == NULL || *wanted == '\\0') return;
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
}}

static bool can_call(void) {{
    if (ready()) return true;
    NvDlaDebugPrintf("%s\\n", last_failure());
    return false;
}}

{functions}"""

_CPP = """\
#include <new>
#include <nvdla.h>

extern "C" {{
{declarations}}}

namespace {{
class Runtime final : public nvdla::IRuntime {{
public:
{methods}}};
}} // namespace

nvdla::IRuntime* nvdla::createRuntime() {{
    Runtime* runtime = new (std::nothrow) Runtime;
    if (runtime != nullptr && runtime_create(runtime) == NvSuccess) return runtime;
    delete runtime;
    return nullptr;
}}

void nvdla::destroyRuntime(IRuntime* runtime) {{
    Runtime* object = static_cast<Runtime*>(runtime);
    if (runtime != nullptr && runtime_destroy(object) == NvSuccess) delete object;
}}
"""


def build(folder: Path) -> Path:
    """Build the library in `folder`, which is created, and return its path; raise ExportError if that fails."""
    functions = "".join(_c_function(number, method) for number, method in enumerate(IMPLEMENTED))
    layer = _join_with_commas(f"(function_t){function.name}" for function in PORTABILITY)
    text = _C.format(table=TABLE, count=len(IMPLEMENTED), layer=layer, functions=functions)
    declarations = "".join(f"{_c_signature(declaration)};\n" for declaration in METHOD_FUNCTIONS)
    class_ = _CPP.format(declarations=declarations, methods="".join(map(_cpp_method, METHODS)))
    roots = [Path(headers.__file__).parents[2]]
    return build_library(text, folder / LIBRARY, roots, include=headers.INCLUDE_DIR, cpp_source=class_)


def _c_signature(function: FunctionDeclaration) -> str:
    """Return the C signature of a function that Python implements; functions for methods are not exported."""
    if function in LAYER_FUNCTIONS:
        return f"{function.returns} {function.name}({function.declared})"
    return f'__attribute__((visibility("hidden"))) NvError runtime_{function.name}({function.declared})'


def _c_function(number: int, function: FunctionDeclaration) -> str:
    """Return the C definition of the function with this number in the table of Python callbacks."""
    name = function.name if function in LAYER_FUNCTIONS else f"runtime_{function.name}"
    arguments = _join_with_commas(parameter.name for parameter in function.parameters)
    call = f"((__typeof__(&{name}))functions[{number}])({arguments});"
    fails, returns = ("return", "") if function.returns == "void" else ("return NvError_Internal", "return ")
    return (
        f"{_c_signature(function)} {{\n"
        f"    if (!can_call()) {fails};\n"
        f"    USE_DEFAULT_ARITHMETIC;\n"
        f"    {returns}{call}\n"
        f"}}\n\n"
    )


def _cpp_method(method: FunctionDeclaration) -> str:
    """Return the C++ definition of a method that calls the C function with the same name."""
    arguments = _join_with_commas(["this", *(parameter.name for parameter in method.parameters)])
    if method.returns == "NvError":
        body = f"return runtime_{method.name}({arguments});"
    else:
        body = f"{method.returns} result = 0; runtime_{method.name}({arguments}, &result); return result;"
    return f"    {method.returns} {method.name}({method.declared}) override {{ {body} }}\n"


def _join_with_commas(items: Iterable[str]) -> str:
    """Join items with commas."""
    return ", ".join(items)

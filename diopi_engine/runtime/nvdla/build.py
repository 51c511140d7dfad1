"""Build `libnvdla_runtime.so`: the portability layer in C, and the C++ class, whose methods Python implements.

`DOCUMENT` is the interface of the published document. `RELEASED` is the interface of the released headers. They have
the same names and another binary interface. So that no program calls the wrong methods, the symbols of each library
have a version, and the factories of the document have an ABI tag. A program that uses the other interface, and that was
linked without symbol versions, calls a function that explains the mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from diopi_engine.proto import headers, nvdla_released
from diopi_engine.proto.declarations import FunctionDeclaration
from diopi_engine.proto.nvdla import METHODS, PORTABILITY
from diopi_engine.runtime.nvdla.ffi import TABLE
from diopi_engine.runtime.nvdla.functions import layer_functions, method_functions
from diopi_impl.export.build import build as build_library

LIBRARY = "libnvdla_runtime.so"
"""The name of the library's file."""

_C = """\
#include <{header}>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "host.h"

{table}

static function_t functions[{count}];
static const function_t layer[] = {{{layer}}};
static const struct nvdla_exported exported = {{functions, layer}};
const char service_description[] = "the driver of NVDLA";
const char python_service[] = "{service}";
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

#ifdef __linux__
/* The linker does not find these symbols, because their version is not the default one. Programs that were linked
 * with a library without versions do. */
void* unexported_create(void);
void unexported_destroy(void*);
void* unexported_create(void) {{
    fputs("libnvdla_runtime.so: {mismatch}\\n", stderr);
    return NULL;
}}
void unexported_destroy(void* runtime) {{ (void)runtime; }}
__asm__(".symver unexported_create, {other_factories[0]}@{version}");
__asm__(".symver unexported_destroy, {other_factories[1]}@{version}");
#endif

{functions}"""
"""The C source of the library; the fields are the shared structure and the functions that call Python."""

_CPP = """\
#include <new>
#include <{header}>

extern "C" {{
{declarations}}}

namespace {{
class Runtime final : public nvdla::IRuntime {{
public:
{methods}}};
}} // namespace

nvdla::IRuntime* nvdla::createRuntime() {{
    Runtime* runtime = new (std::nothrow) Runtime;
    if (runtime != nullptr && runtime_create(runtime) == {success}) return runtime;
    delete runtime;
    return nullptr;
}}

void nvdla::destroyRuntime(IRuntime* runtime) {{
    Runtime* object = static_cast<Runtime*>(runtime);
    if (runtime != nullptr && runtime_destroy(object) == {success}) delete object;
}}
"""
"""The C++ source of the class; {declarations} are the C functions that its {methods} call."""


@final
@dataclass(frozen=True, kw_only=True)
class DriverLibrary:
    """A library of the driver.

    Attributes:
        header: the header that declares the interface.
        service: the Python module that implements it.
        portability: the portability layer.
        methods: the methods of the class, in order.
        error_type: the type of results.
        success: the result of a call that succeeded.
        failure: the result of a call if Python can't be started.
        version: the version of the exported symbols.
        other_factories: the symbols of the factories in the library of the other interface.
        mismatch: what to tell the author of a program of the other interface.
    """

    header: str
    service: str
    portability: Sequence[FunctionDeclaration]
    methods: Sequence[FunctionDeclaration]
    error_type: str
    success: str
    failure: str
    version: str
    other_factories: tuple[str, str]
    mismatch: str


DOCUMENT_FACTORIES = (
    "_ZN5nvdla13createRuntimeB8documentEv",
    "_ZN5nvdla14destroyRuntimeB8documentEPNS_8IRuntimeE",
)
"""The symbols of the factories that `nvdla.h` declares, with its ABI tag."""

RELEASED_FACTORIES = ("_ZN5nvdla13createRuntimeEv", "_ZN5nvdla14destroyRuntimeEPNS_8IRuntimeE")
"""The symbols of the factories that the released headers declare."""

DOCUMENT = DriverLibrary(
    header="nvdla.h",
    service="diopi_engine.runtime.nvdla.service",
    portability=PORTABILITY,
    methods=METHODS,
    error_type="NvError",
    success="NvSuccess",
    failure="NvError_Internal",
    version="NVDLA_DOCUMENT_1",
    other_factories=RELEASED_FACTORIES,
    mismatch="the program was built with the released headers, and this library has the interface of the published "
    "document; use the library of `diopi-engine export --interface nvdla-released`",
)
"""The library with the interface of the published document."""

RELEASED = DriverLibrary(
    header="nvdla_released.h",
    service="diopi_engine.runtime.nvdla.released.service",
    portability=nvdla_released.PORTABILITY,
    methods=nvdla_released.METHODS,
    error_type=nvdla_released.ERROR_TYPE,
    success="NvDlaSuccess",
    failure="NvDlaError_InvalidState",
    version="NVDLA_RELEASED_1",
    other_factories=DOCUMENT_FACTORIES,
    mismatch="the program was built with nvdla.h, the interface of the published document, and this library has the "
    "interface of the released headers; use the library of `diopi-engine export --interface nvdla`",
)
"""The library with the interface of the released headers."""


def build(folder: Path, kind: DriverLibrary = DOCUMENT) -> Path:
    """Build a library in `folder`, which is created, and return its path; raise ExportError if that fails."""
    implemented = [*layer_functions(kind.portability), *method_functions(kind.methods, kind.error_type)]
    functions = "".join(_c_function(number, function, kind) for number, function in enumerate(implemented))
    layer = _join_with_commas(f"(function_t){function.name}" for function in kind.portability)
    text = _C.format(
        table=TABLE,
        count=len(implemented),
        layer=layer,
        functions=functions,
        header=kind.header,
        service=kind.service,
        version=kind.version,
        mismatch=kind.mismatch,
        other_factories=kind.other_factories,
    )
    declarations = "".join(
        f"{_c_signature(function, kind)};\n" for function in method_functions(kind.methods, kind.error_type)
    )
    methods = "".join(_cpp_method(method, kind) for method in kind.methods)
    class_ = _CPP.format(declarations=declarations, methods=methods, header=kind.header, success=kind.success)
    roots = [Path(headers.__file__).parents[2]]
    return build_library(
        text, folder / LIBRARY, roots, include=headers.INCLUDE_DIR, cpp_source=class_, version=kind.version
    )


def _c_signature(function: FunctionDeclaration, kind: DriverLibrary) -> str:
    """Return the C signature of a function that Python implements; functions for methods are not exported."""
    if function in kind.portability:
        return f"{function.returns} {function.name}({function.declared})"
    return f'__attribute__((visibility("hidden"))) {kind.error_type} runtime_{function.name}({function.declared})'


def _c_function(number: int, function: FunctionDeclaration, kind: DriverLibrary) -> str:
    """Return the C definition of the function with this number in the table of Python callbacks."""
    name = function.name if function in kind.portability else f"runtime_{function.name}"
    arguments = _join_with_commas(parameter.name for parameter in function.parameters)
    call = f"((__typeof__(&{name}))functions[{number}])({arguments});"
    fails, returns = ("return", "") if function.returns == "void" else (f"return {kind.failure}", "return ")
    return (
        f"{_c_signature(function, kind)} {{\n"
        f"    if (!can_call()) {fails};\n"
        f"    USE_DEFAULT_ARITHMETIC;\n"
        f"    {returns}{call}\n"
        f"}}\n\n"
    )


def _cpp_method(method: FunctionDeclaration, kind: DriverLibrary) -> str:
    """Return the C++ definition of a method that calls the C function with the same name."""
    pointer = "const_cast<Runtime*>(this)" if method.is_constant else "this"
    arguments = _join_with_commas([pointer, *(parameter.name for parameter in method.parameters)])
    call = f"runtime_{method.name}({arguments}"
    bodies = {
        kind.error_type: f"return {call});",
        "bool": f"return {call}) == {kind.success};",
        "void": f"{call});",
    }
    output = f"{method.returns} result = 0; {call}, &result); return result;"
    qualifiers = "const override" if method.is_constant else "override"
    body = bodies.get(method.returns, output)
    return f"    {method.returns} {method.name}({method.declared}) {qualifiers} {{ {body} }}\n"


def _join_with_commas(items: Iterable[str]) -> str:
    """Return items as text, separated by commas."""
    return ", ".join(items)

"""The generated C source of an exported library: a function per operator, the well-known names, and the tables."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from diopi_proto import headers
from diopi_proto import parameters as kinds
from diopi_proto.facts import CountsEntries
from diopi_proto.interface import runtime_prototypes
from diopi_proto.parameters import Role
from diopi_proto.prototype import Prototype
from diopi_proto.registration import SERVICES, Service


@final
@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """The Python interpreter that a library is built for.

    Attributes:
        version: the major and minor version, such as `3.11`.
        library: the path of its shared library; empty if Python was built without one.
        home: the prefix of its standard library, as in PYTHONHOME.
        paths: the folders of its modules.
    """

    version: str
    library: str
    home: str
    paths: Sequence[str]

    @classmethod
    def current(cls, roots: Iterable[Path]) -> Interpreter:
        """Return the running interpreter, with `roots` among the folders of its modules."""
        name = sysconfig.get_config_var("INSTSONAME") or ""
        folders = (Path(sysconfig.get_config_var("LIBDIR") or ""), Path(sys.base_prefix) / "lib")
        libraries = [folder / name for folder in folders if ".so" in name and (folder / name).is_file()]
        paths = dict.fromkeys(os.path.abspath(path) for path in (*sys.path, *map(str, roots)) if path)
        return cls(
            version=sysconfig.get_python_version(),
            library=str(libraries[0]) if libraries else "",
            home=sys.base_prefix,
            paths=list(paths),
        )


def source(vendor: str, name: str, version: str, operators: Sequence[Prototype], services: Sequence[str]) -> str:
    """Return the C source of a library that exports a vendor.

    Args:
        vendor: the vendor as `module:attribute`.
        name: the name that the vendor reports.
        version: the version that the vendor reports.
        operators: the prototypes of the functions that the vendor implements.
        services: the names of the runtime functions that the vendor has.

    Returns:
        The source.
    """
    available_services = [(n, s) for n, s in enumerate(SERVICES) if s.name in services or s.well_known is None]
    return "\n".join(
        (
            *(f"#pragma weak {function}" for function in (*runtime_prototypes(), *(s.register for s in SERVICES))),
            *(f"#include <diopi/{header}>" for header in headers.names()),
            '#include "exported.h"\n',
            f"static function_t implementations[{max(len(operators), 1)}], services[{len(SERVICES)}];\n",
            *(_operator(number, prototype) for number, prototype in enumerate(operators)),
            *(_well_known(number, service) for number, service in available_services if service.well_known),
            _initialize([service for _, service in available_services]),
            _text_query("diopiGetVendorName", name),
            _text_query("diopiGetImplVersion", version),
            f"static const function_t runtime[] = {{{_pointers(runtime_prototypes())}}};\n",
            f"static const char* const operators[] = {{{_string_entries(p.name for p in operators)}NULL}};\n",
            f"static const struct diopi_exported exported = {{{json.dumps(vendor)},",
            "    operators, runtime, implementations, services, fail};\n",
            "const char* diopiGetLastErrorString(void) { return last_failure(); }\n",
            'const char service_description[] = "the vendor";',
            'const char python_service[] = "diopi_impl.export.service";',
            "const void* const service_tables = &exported;\n",
        )
    )


def location(interpreter: Interpreter, landmark: str) -> str:
    """Return the C source with the location of Python; `landmark` is a file of its standard library."""
    return (
        f'#include <stddef.h>\n#include "host.h"\n\n'
        f"const char python_version[] = {json.dumps(interpreter.version)};\n"
        f"const char python_library[] = {json.dumps(interpreter.library)};\n"
        f"const wchar_t python_home[] = L{json.dumps(interpreter.home)};\n"
        f"const char python_landmark[] = {json.dumps(landmark)};\n"
        f"const char* const python_paths[] = {{{_string_entries(interpreter.paths)}NULL}};\n"
    )


def implementation_type(prototype: Prototype) -> str:
    """Return the C type of pointers to implementations, whose last parameter is the call description."""
    return f"{headers.pointer_type(prototype).removesuffix(')')}, const struct diopi_call_description*)"


def count_position(prototype: Prototype) -> int | None:
    """Return the position, after the context, of the argument that counts array entries; None if there is none."""
    parameters = enumerate(prototype.parameters[1:])
    return next((n for n, p in parameters if p.role is Role.count or p.fact(CountsEntries) is not None), None)


def _operator(number: int, prototype: Prototype) -> str:
    """Return the C function that calls the implementation of an operator."""
    return (
        f"{headers.declaration(prototype)} {{\n"
        f"    if (!ready()) return diopiErrorOccurred;\n"
        f"    USE_DEFAULT_ARITHMETIC;\n"
        f"    struct diopi_call_description description;\n"
        f"    describe_context(&description, {prototype.parameters[0].c_name});\n"
        f"{''.join(_describe_tensors(prototype))}"
        f"    return (({implementation_type(prototype)})implementations[{number}])"
        f"({_join(parameter.c_name for parameter in prototype.parameters)}, &description);\n"
        f"}}\n"
    )


def _describe_tensors(prototype: Prototype) -> Iterator[str]:
    """Yield the C statements that describe the tensors of a call."""
    parameters, count = prototype.parameters[1:], count_position(prototype)
    for parameter in parameters:
        if issubclass(parameter.annotation, kinds.BOXED):
            continue
        if parameter.is_tensor or parameter.annotation is kinds.SparseIn:
            yield f"    describe_tensor(&description, {parameter.c_name});\n"
        elif parameter.is_tensor_array and count is not None:
            array = f"(const diopiConstTensorHandle_t*){parameter.c_name}"
            yield f"    describe_tensors(&description, {array}, {parameters[count].c_name});\n"


_FAILURES = {"void*": ("NULL", "== NULL")}
"""The return value of a failed service and the test for it, by return type; others return an error code."""


def _well_known(number: int, service: Service) -> str:
    """Return the C function with the well-known name of a service, which calls the implementation."""
    kind = service.exported_returns
    head = f"{kind} {service.well_known}({service.parameters})"
    call = f"(({service.pointer})services[{number}])({_join(name for _, name in service.arguments)})"
    if kind == "void":
        return f"{head} {{\n    if (ready()) {call};\n}}\n"
    failure, failed = _FAILURES.get(kind, ("diopiErrorOccurred", "!= diopiSuccess"))
    return (
        f"{head} {{\n"
        f"    if (!ready()) return {failure};\n"
        f"    {kind} result = ({kind}){call};\n"
        f'    if (result {failed}) explain("{service.name}", (diopiGetLastErrorFunc_t)services[{_LAST_ERROR}]);\n'
        f"    return result;\n"
        f"}}\n"
    )


_LAST_ERROR = next(number for number, service in enumerate(SERVICES) if service.name == "last_error")
"""The position of the runtime function `last_error` in the table of services."""


def _initialize(services: Sequence[Service]) -> str:
    """Return the C functions `initLibrary`, which registers the services, and `finalizeLibrary`."""
    registrations = "".join(
        f"    if ({s.register} != NULL) {s.register}(({s.pointer}){s.well_known or 'diopiGetLastErrorString'});\n"
        for s in services
    )
    return (
        "int32_t initLibrary(void) {\n    if (!ready()) return diopiErrorOccurred;\n"
        f"{registrations}    return 0;\n}}\n\n"
        "int32_t finalizeLibrary(void) { return 0; } /* Python can't be started twice, so it keeps running */\n"
    )


def _text_query(function: str, text: str) -> str:
    """Return the C function of a text query."""
    return f"const char* {function}(void) {{ return {json.dumps(text)}; }}\n"


def _pointers(functions: Iterable[str]) -> str:
    """Return function names as entries of an array of function pointers."""
    return _join(f"(function_t){function}" for function in functions)


def _join(items: Iterable[str]) -> str:
    """Return items separated by commas."""
    return ", ".join(items)


def _string_entries(texts: Iterable[str]) -> str:
    """Return the entries of an array of strings; the caller appends the terminator."""
    return "".join(f"\n    {json.dumps(text)}," for text in texts) + "\n    "

"""Generate the C headers from the registry of prototypes, and the same declarations for cffi."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from pathlib import Path

from diopi_proto.c_text import wrap_declaration
from diopi_proto.call_table import CALL_TABLE, call_table
from diopi_proto.collectives.headers import render_headers as render_collectives
from diopi_proto.device_runtime.headers import render_headers as render_device_runtime
from diopi_proto.families import family_conventions
from diopi_proto.interface import header_order, prototypes, runtime_prototypes
from diopi_proto.prototype import Prototype
from diopi_proto.registration import GENERATOR_STATE, LIFETIME, SERVICES, Service
from diopi_proto.types import C_ENUMERATORS, VERSION

INCLUDE_DIR = Path(str(files("diopi_proto"))) / "include"
"""The include folder for compilers: headers are included as `<diopi/functions.h>`."""

SERVICE_TABLE = "diopirt/services.h"
"""Path in that folder of the table of services, which runtimes include; it does not belong to the interface."""

_SUBJECTS = {
    "diopirt.h": "The types of the interface, and what the runtime offers to an operator.",
    "functions.h": "The operators every framework needs.",
    "functions_ext.h": "Operators of large language models: normalization, rotary embedding, attention, sampling.",
    "functions_lmdeploy.h": "Fused operators of the LMDeploy inference engine.",
    "functions_mmcv.h": "Operators of the MMCV computer vision library.",
    "functions_sparse.h": "Operators on sparse tensors.",
    "diopi_register.h": "How a vendor library registers its functions with the runtime.",
    "conform_test.h": "The well-known names a vendor library may export instead of registering its functions.",
}
"""The comment at the top of each header, by file name."""

_INCLUDES = '#include "diopirt.h"\n'
"""The include directive of headers that declare functions."""

_STANDARD_INCLUDES = """\
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
"""
"""The include directives of `diopirt.h`."""

_VERSION_MACROS = f"""\
#define DIOPI_VERSION_MAJOR {VERSION[0]}
#define DIOPI_VERSION_MINOR {VERSION[1]}
#define DIOPI_VERSION_PATCH {VERSION[2]}
#define DIOPI_VERSION (DIOPI_VERSION_MAJOR * 1000 + DIOPI_VERSION_MINOR * 100 + DIOPI_VERSION_PATCH)
"""
"""The macros for the version of the interface."""

_LINKAGE_MACROS = """\
/* DIOPI_EXPORT: visible outside its library. DIOPI_WEAK: likewise, and a library may leave it undefined. */
#if defined(__GNUC__) || defined(__clang__)
#define DIOPI_EXPORT __attribute__((visibility("default")))
#define DIOPI_WEAK __attribute__((weak, visibility("default")))
#else
#define DIOPI_EXPORT
#define DIOPI_WEAK
#endif
"""
"""The macros for the visibility of functions."""

_SIZE = """\
typedef struct {
    const int64_t* data;
    int64_t len;
} diopiSize_t;
"""
"""The C type of a list of integers."""

_SCALAR = """\
typedef struct {
    diopiDtype_t stype;
    union {
        double fval;  /* floating dtypes */
        int64_t ival; /* integer dtypes and bool */
    };
} diopiScalar_t;
"""
"""The C type of a number with its element type."""

_CONVENTIONS = """\
/*
 * The comment of each function names its family. The following conventions hold for all functions of a family, unless
 * the comment of a function, its docstring in Python, says otherwise.
 */
"""
"""The comment before the conventions of the families."""

_HANDLES = """\
typedef struct diopiContext* diopiContextHandle_t;
typedef struct diopiTensor* diopiTensorHandle_t;
typedef const struct diopiTensor* diopiConstTensorHandle_t;
typedef struct diopiGenerator* diopiGeneratorHandle_t;
typedef const struct diopiGenerator* diopiConstGeneratorHandle_t;
typedef void* diopiStreamHandle_t;
typedef int8_t diopiDeviceIndex_t;
"""
"""The C types of handles."""


def declaration(prototype: Prototype) -> str:
    """Return the C declaration of `prototype` without attributes and semicolon."""
    parameters = ", ".join(f"{parameter.c_type} {parameter.c_name}" for parameter in prototype.parameters)
    return f"{prototype.returns} {prototype.name}({parameters or 'void'})"


def pointer_type(prototype: Prototype) -> str:
    """Return the C type of a pointer to the function of `prototype`."""
    return f"{prototype.returns}(*)({', '.join(parameter.c_type for parameter in prototype.parameters) or 'void'})"


def types() -> str:
    """Return the C types of the interface: enums, `diopiSize_t`, `diopiScalar_t` and the handles."""
    enums = "\n".join(_enum(f"diopi{kind.__name__}_t", members) for kind, members in C_ENUMERATORS.items())
    return "\n".join((enums, _SIZE, _SCALAR, _HANDLES))


def pointer_types() -> str:
    """Return the function pointer types of the services that a vendor registers."""
    return "".join(f"typedef {s.returns} (*{s.pointer})({s.parameters});\n" for s in SERVICES)


def runtime_cdef() -> str:
    """Return the cffi declarations of the runtime: types, pointers, functions of `diopirt.h` and registration."""
    registration = "".join(f"{_registration_declaration(service)};\n" for service in SERVICES)
    return types() + pointer_types() + _declarations(runtime_prototypes()) + registration


def lifetime_cdef() -> str:
    """Return the cffi declarations to start and end a vendor library; they use the types of `runtime_cdef`."""
    exported = [_exported_declaration(s) for s in SERVICES if s.well_known]
    lifetime = [declared for _, declared, _ in (*LIFETIME, GENERATOR_STATE)]
    return "".join(f"{declared};\n" for declared in (*exported, *lifetime))


def cdef() -> str:
    """Return all declarations of the interface for cffi."""
    return runtime_cdef() + _declarations(prototypes()) + lifetime_cdef()


def _declarations(declared: Mapping[str, Prototype]) -> str:
    """Return the C declarations of the functions."""
    return "".join(f"{declaration(prototype)};\n" for prototype in declared.values())


def render(header: str) -> str:
    """Return the text of the header called `header`, one of `names()`; raise KeyError for any other name."""
    body = _bodies()[header]()
    guard = f"DIOPI_{header.removeprefix('diopi_').removesuffix('.h').upper()}_H_"
    return (
        f"/* {_SUBJECTS[header]}\n * Generated by `python -m diopi_proto --write`; do not edit. */\n"
        f"#ifndef {guard}\n#define {guard}\n\n"
        f"{_STANDARD_INCLUDES if header == 'diopirt.h' else _INCLUDES}\n"
        f'#ifdef __cplusplus\nextern "C" {{\n#endif\n\n{body}\n#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {guard} */\n'
    )


def service_table() -> str:
    """Return the text of the header that lists the services as a macro, from which a runtime derives its tables."""
    rows = (f'    X({s.name}, {s.stem}, "{s.title}", diopi{s.missing.name})' for s in SERVICES)
    macro = " \\\n".join(("#define DIOPIRT_SERVICES(X)", *rows))
    return (
        "/* The functions a vendor registers, in the order the runtime numbers them.\n"
        " * Generated by `python -m diopi_proto --write`; do not edit. */\n"
        "#ifndef DIOPIRT_SERVICES_H_\n#define DIOPIRT_SERVICES_H_\n\n"
        "/* X(name, stem, title, missing): diopiRegister<stem>Func registers a function of type diopi<stem>Func_t.\n"
        " * Messages call it by its title. Functions that need it return `missing` if it is not registered. */\n"
        f"{macro}\n\n#endif /* DIOPIRT_SERVICES_H_ */\n"
    )


def names() -> tuple[str, ...]:
    """Return the names of all headers."""
    return tuple(_SUBJECTS)


def write(folder: Path) -> None:
    """Write every header below `folder`, and create the folder if it does not exist."""
    texts = {f"diopi/{header}": render(header) for header in names()}
    tables = {SERVICE_TABLE: service_table(), CALL_TABLE: call_table()}
    for file, text in {**texts, **tables, **render_device_runtime(), **render_collectives()}.items():
        folder.joinpath(file).parent.mkdir(parents=True, exist_ok=True)
        folder.joinpath(file).write_text(text, "utf-8")


def _bodies() -> Mapping[str, Callable[[], str]]:
    """Return, by header name, a function that generates the header's content."""
    operators = {header: _operators(header) for header in header_order() if header != "diopirt.h"}
    return {"diopirt.h": _runtime, "diopi_register.h": _register, "conform_test.h": _conform_test, **operators}


def _operators(header: str) -> Callable[[], str]:
    """Return a function that generates the conventions and the declarations of the operators in one header."""

    def generate() -> str:
        declared = [prototype for name, prototype in prototypes().items() if name in header_order()[header]]
        conventions = (_conventions(family) for family in sorted({prototype.family for prototype in declared}))
        functions = (
            _with_comment(f"{prototype.doc}\n\nFamily: {prototype.family}.", f"DIOPI_WEAK {declaration(prototype)}")
            for prototype in declared
        )
        return "\n".join((_CONVENTIONS, *conventions, *functions))

    return generate


def _conventions(family: str) -> str:
    """Return a comment with the conventions of a family."""
    lines = f"Family {family}\n\n{family_conventions(family)}".replace("*/", "* /").splitlines()
    return "\n".join(("/*", *(f" * {line}".rstrip() for line in lines), " */\n"))


def _runtime() -> str:
    """Return the content of `diopirt.h`: macros, types and runtime functions."""
    functions = (
        _with_comment(prototype.doc, f"DIOPI_EXPORT {declaration(prototype)}")
        for prototype in runtime_prototypes().values()
    )
    return "\n".join((_VERSION_MACROS, _LINKAGE_MACROS, types(), *functions))


def _register() -> str:
    """Return the content of `diopi_register.h`: the registration of the services that a device provides."""
    services = (_with_comment(s.meaning, f"DIOPI_EXPORT {_registration_declaration(s)}") for s in SERVICES)
    return "\n".join((pointer_types(), *services, *_lifetime()))


def _conform_test() -> str:
    """Return the content of `conform_test.h`: services under the well-known names of the original suite."""
    services = (_with_comment(s.meaning, f"DIOPI_EXPORT {_exported_declaration(s)}") for s in SERVICES if s.well_known)
    _, state, meaning = GENERATOR_STATE
    return "\n".join((*services, *_lifetime(), _with_comment(meaning, f"DIOPI_WEAK {state}")))


def _lifetime() -> Iterable[str]:
    """Yield the declarations of the functions that start and end the library."""
    return (_with_comment(meaning, f"DIOPI_EXPORT {declared}") for _, declared, meaning in LIFETIME)


def _exported_declaration(service: Service) -> str:
    """Return the declaration of a service under its well-known name."""
    return f"{service.exported_returns} {service.well_known}({service.parameters})"


def _registration_declaration(service: Service) -> str:
    """Return the declaration of the function that registers a service."""
    return f"diopiError_t {service.register}({service.pointer} function)"


def _enum(name: str, members: Iterable[tuple[str, int]]) -> str:
    """Return the definition of a C enumeration."""
    listed = ",\n".join(f"    {member} = {value}" for member, value in members)
    return f"typedef enum {{\n{listed}\n}} {name};\n"


def _with_comment(doc: str, declared: str) -> str:
    """Return a C declaration with its documentation as a comment."""
    lines = doc.replace("*/", "* /").splitlines()
    comment = [f"/** {lines[0]} */"] if len(lines) == 1 else ["/**", *(f" * {line}".rstrip() for line in lines), " */"]
    return "\n".join((*comment, wrap_declaration(f"{declared};"), ""))

"""The C headers are up to date and complete, and compilers accept them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import cffi
import pytest

from diopi_proto import headers
from diopi_proto.call_table import CALL_TABLE, call_table
from diopi_proto.collectives.headers import render_headers as render_collectives
from diopi_proto.device_runtime.headers import render_headers
from diopi_proto.families import family_conventions
from diopi_proto.interface import header_order, prototypes, runtime_prototypes
from diopi_proto.types import VERSION_NUMBER

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
LANGUAGES = {"c11": ("cc", ["-x", "c", "-std=c11"]), "c++17": ("c++", ["-x", "c++", "-std=c++17"])}

DEFINITION = """
#include <diopi/{header}>
#ifdef __cplusplus
extern "C"
#endif
{declaration} {{ return {value}; }}
"""


def compile_with(language: str, source: str, *options: str) -> None:
    """Compile `source` as `language`; skip the test without a compiler, and fail with the compiler's message."""
    compiler, flags = LANGUAGES[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    completed = subprocess.run(
        [compiler, *flags, *WARNINGS, *options, "-"], input=source, capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stderr


@pytest.mark.parametrize("header", headers.names())
def test_committed_header_is_the_generated_one(header: str) -> None:
    """If this test fails, run `python -m diopi_proto --write` to regenerate the headers."""
    assert headers.INCLUDE_DIR.joinpath("diopi", header).read_text("utf-8") == headers.render(header)


def test_committed_table_of_services_is_the_generated_one() -> None:
    assert headers.INCLUDE_DIR.joinpath(headers.SERVICE_TABLE).read_text("utf-8") == headers.service_table()


def test_committed_table_of_calls_is_the_generated_one() -> None:
    assert headers.INCLUDE_DIR.joinpath(CALL_TABLE).read_text("utf-8") == call_table()


def test_the_include_folder_contains_only_generated_headers() -> None:
    found = {path.relative_to(headers.INCLUDE_DIR).as_posix() for path in headers.INCLUDE_DIR.glob("*/*")}
    operators = {*(f"diopi/{header}" for header in headers.names()), headers.SERVICE_TABLE, CALL_TABLE}
    assert found == operators | set(render_headers()) | set(render_collectives())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("header", headers.names())
def test_each_header_compiles_without_others(header: str, language: str) -> None:
    compile_with(language, f"#include <diopi/{header}>\n", f"-I{headers.INCLUDE_DIR}", "-fsyntax-only")


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_headers_compile_together_and_twice(language: str) -> None:
    source = "".join(f"#include <diopi/{header}>\n" for header in headers.names() * 2)
    source += f"#if DIOPI_VERSION != {VERSION_NUMBER}\n#error version\n#endif\n"
    compile_with(language, source, f"-I{headers.INCLUDE_DIR}", "-fsyntax-only")


@pytest.mark.parametrize("header", header_order())
def test_header_declares_its_functions_in_order(header: str) -> None:
    declared = re.findall(r"^DIOPI_(?:WEAK|EXPORT) .*?(\w+)\(", headers.render(header), re.MULTILINE)
    known = {**prototypes(), **runtime_prototypes()}
    assert declared == [name for name in header_order()[header] if name in known]


def symbols(language: str, source: str, tmp_path: Path) -> dict[str, str]:
    """Compile `source` with hidden visibility; return the type letter that nm prints for each dynamic symbol."""
    if shutil.which("nm") is None:
        pytest.skip("there is no nm here")
    library = tmp_path / "library.so"
    options = [f"-I{headers.INCLUDE_DIR}", "-shared", "-fPIC", "-fvisibility=hidden", "-o", str(library)]
    compile_with(language, source, *options)
    lines = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[-1]: line.split()[-2] for line in lines}


def test_headers_state_the_conventions_of_the_family_that_each_function_names() -> None:
    for header, functions in header_order().items():
        text = headers.render(header)
        families_of_header = {prototypes()[name].family for name in functions if name in prototypes()}
        for family in families_of_header:
            first_sentence = family_conventions(family).splitlines()[0]
            assert f" * Family {family}\n *\n * {first_sentence}" in text, f"{header} lacks the family {family}"
            assert f" * Family: {family}." in text, f"no function in {header} names the family {family}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_operators_are_weak_and_visible(language: str, tmp_path: Path) -> None:
    declaration = headers.declaration(prototypes()["diopiGetVendorName"])
    found = symbols(
        language, DEFINITION.format(header="functions.h", declaration=declaration, value='"name"'), tmp_path
    )
    assert found["diopiGetVendorName"] == "W"


@pytest.mark.parametrize("language", LANGUAGES)
def test_runtime_functions_are_strong_and_visible(language: str, tmp_path: Path) -> None:
    declaration = headers.declaration(runtime_prototypes()["diopiGetVersion"])
    found = symbols(language, DEFINITION.format(header="diopirt.h", declaration=declaration, value='"text"'), tmp_path)
    assert found["diopiGetVersion"] == "T"


def test_cdef_declares_every_function() -> None:
    ffi = cffi.FFI()
    ffi.cdef(headers.cdef())
    all_prototypes = {**runtime_prototypes(), **prototypes()}
    this_process = ffi.dlopen(None)
    assert set(all_prototypes) <= set(dir(this_process))
    assert ffi.sizeof("diopiScalar_t") == 16
    assert ffi.sizeof("diopiSize_t") == 16
    assert ffi.offsetof("diopiScalar_t", "ival") == ffi.offsetof("diopiScalar_t", "fval") == 8


@pytest.mark.parametrize(
    ("option", "file"), [("--include-dir", "diopi/functions.h"), ("--cmake-dir", "diopi-config.cmake")]
)
def test_the_command_prints_its_folders(option: str, file: str) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "diopi_proto", option], capture_output=True, text=True, check=True
    )
    assert Path(completed.stdout.strip(), file).is_file()


def test_the_command_requires_an_option() -> None:
    completed = subprocess.run([sys.executable, "-m", "diopi_proto"], capture_output=True, text=True)
    assert completed.returncode == 2
    assert "--include-dir" in completed.stderr


def test_write_generates_every_header(tmp_path: Path) -> None:
    headers.write(tmp_path)
    written = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.glob("*/*")}
    committed = headers.INCLUDE_DIR.glob("*/*")
    assert written == {path.relative_to(headers.INCLUDE_DIR): path.read_bytes() for path in committed}

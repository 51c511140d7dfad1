"""The headers of the device runtime are up to date, compilers accept them, and a vendor's source compiles unchanged."""

import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import cffi
import pytest

from diopi_proto.device_runtime import ENUMS, FUNCTIONS, RUNTIME_FUNCTIONS, STRUCTS
from diopi_proto.device_runtime.c_table import STATUSES, table_types
from diopi_proto.device_runtime.headers import C_HEADER, C_SOURCE, HEADER, render_headers
from diopi_proto.headers import INCLUDE_DIR
from diopi_proto.vendor_interface import PROJECT_DEFINED

ROOT = Path(__file__).parents[3]
VENDOR = ROOT / "examples" / "device_runtime" / "device_runtime.cpp"
GOLDEN = ROOT / "tests" / "diopi_proto" / "golden" / "device_runtime.jsonl"
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
LANGUAGES = {"c": ("cc", ["-x", "c", "-std=c11"]), "c++": ("c++", ["-x", "c++", "-std=c++17"])}

OTHER_HANDLES = """
#include <cstdint>
namespace dipu {
enum class deviceStream_t : std::uint32_t {};
using deviceEvent_t = std::uint64_t;
}
"""
"""A vendor's header whose handles are numbers."""


def compile_source(language: str, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Compile a source and return the ended compiler process; skip the test if there is no compiler."""
    compiler, flags = LANGUAGES[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    command = [compiler, *flags, *WARNINGS, f"-I{INCLUDE_DIR}", *options, "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True)


def build_vendor(library: Path, *options: str) -> None:
    """Build the example of a vendor as a library, which exports its functions in a table."""
    sources = [str(VENDOR), str(INCLUDE_DIR / C_SOURCE)]
    done = compile_source("c++", "", f"-I{VENDOR.parent}", "-shared", "-fPIC", *options, "-o", str(library), *sources)
    assert done.returncode == 0, done.stderr


def test_the_prototypes_equal_the_stored_public_interface() -> None:
    facts = [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()]
    enums = [{"enum": enum.name, "members": [name for name, _ in enum.members]} for enum in ENUMS]
    structs = [{"struct": s.name, "fields": [f"{field.type} {field.name}" for field in s.fields]} for s in STRUCTS]
    functions = [
        {
            "function": function.name,
            "returns": function.returns,
            "parameters": [p.type + (f" = {p.default}" if p.default else "") for p in function.parameters],
            "optional": function.is_optional,
        }
        for function in FUNCTIONS
    ]
    assert [*enums, *structs, *functions] == facts
    assert len(RUNTIME_FUNCTIONS) == 38


@pytest.mark.parametrize("path", render_headers())
def test_committed_files_are_the_generated_ones(path: str) -> None:
    """If this test fails, run `python -m diopi_proto --write`."""
    text = render_headers()[path]
    assert INCLUDE_DIR.joinpath(path).read_text("utf-8") == text
    assert [line for line in text.splitlines() if len(line) > 120] == []


@pytest.mark.parametrize(("path", "language"), [(HEADER, "c++"), (C_HEADER, "c"), (C_HEADER, "c++")])
def test_each_header_compiles_if_it_is_the_only_one_and_included_twice(path: str, language: str) -> None:
    done = compile_source(language, f"#include <{path}>\n" * 2, "-fsyntax-only")
    assert done.returncode == 0, done.stderr


def test_a_source_that_uses_pytorch_names_compiles_with_the_header() -> None:
    source = f"#include <{HEADER}>\nnamespace c10 {{ using DeviceIndex = int8_t; }}\n"
    done = compile_source("c++", f"{source}dipu::deviceId_t device = c10::DeviceIndex(1);\n", "-fsyntax-only")
    assert done.returncode == 0, done.stderr


def test_handles_of_a_vendor_may_be_numbers(tmp_path: Path) -> None:
    (tmp_path / "handles.h").write_text(OTHER_HANDLES)
    options = (f"-I{tmp_path}", "-DDIPU_VENDOR_HEADER=<handles.h>", "-fsyntax-only")
    done = compile_source("c++", INCLUDE_DIR.joinpath(C_SOURCE).read_text("utf-8"), *options)
    assert done.returncode == 0, done.stderr


def test_a_vendor_written_to_the_interface_compiles_and_fills_the_table(tmp_path: Path) -> None:
    build_vendor(tmp_path / "vendor.so", "-Wl,--no-undefined")
    ffi = cffi.FFI()
    ffi.cdef(table_types())
    library = ffi.dlopen(str(tmp_path / "vendor.so"))
    table = library.dipuGetDeviceRuntime()
    assert table.size == ffi.sizeof("dipuDeviceRuntime")
    missing = {function.table_entry for function in FUNCTIONS if not getattr(table, function.table_entry)}
    assert missing == {"enableProfiler", "disableProfiler"}
    count, properties = ffi.new("int32_t*"), ffi.new("dipuDeviceProperties*")
    assert (table.getDeviceCount(count), count[0]) == (0, 2)
    assert (table.getDeviceProperties(1, properties), ffi.string(properties.name)) == (0, b"example")
    exception = next(value for value, (name, _) in enumerate(STATUSES) if name == "DIPU_EXCEPTION")
    for device, text in {2: b"there is no device 2 of 2", 256: b"there is no device -1 of 2"}.items():
        assert (table.setDevice(device), ffi.string(table.lastErrorText())) == (exception, text)


def test_the_table_of_an_empty_library_has_no_functions(tmp_path: Path) -> None:
    options = ("-shared", "-fPIC", "-o", str(tmp_path / "empty.so"), str(INCLUDE_DIR / C_SOURCE))
    assert compile_source("c++", "", *options).returncode == 0
    ffi = cffi.FFI()
    ffi.cdef(table_types())
    table = ffi.dlopen(str(tmp_path / "empty.so")).dipuGetDeviceRuntime()
    assert not any(getattr(table, function.table_entry) for function in FUNCTIONS)


def test_the_library_exports_the_functions_for_a_framework_in_cpp(tmp_path: Path) -> None:
    build_vendor(tmp_path / "vendor.so", "-fvisibility=hidden")
    library = ctypes.CDLL(str(tmp_path / "vendor.so"))
    assert library["_ZN4dipu7devapis14getDeviceCountEv"]() == 2


def test_every_prototype_states_its_meaning_in_sentences() -> None:
    for function in FUNCTIONS:
        texts = [function.doc, function.errors, function.stream_order, function.threads, function.project_defined]
        assert function.doc and all(text.endswith(".") for text in texts if text), function.name
    assert sum(PROJECT_DEFINED in function.text for function in FUNCTIONS) > 20


def test_entries_of_the_table_are_distinct() -> None:
    entries = [function.table_entry for function in FUNCTIONS]
    assert len(set(entries)) == len(entries) == len({f.name for f in FUNCTIONS}) + 1

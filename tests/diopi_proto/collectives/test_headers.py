"""The headers of the collectives are up to date, compilers accept them, and a vendor's source compiles unchanged."""

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import cffi
import pytest

from diopi_proto.collectives import ELEMENT_TYPES, FUNCTIONS, OPERATIONS, RESULTS
from diopi_proto.collectives.c_table import STATUSES, table_types
from diopi_proto.collectives.headers import C_HEADER, C_SOURCE, HEADER, render_headers
from diopi_proto.headers import INCLUDE_DIR
from diopi_proto.vendor_interface import PROJECT_DEFINED

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "collectives" / "collectives.cpp"
GOLDEN = ROOT / "tests" / "diopi_proto" / "golden" / "collectives.jsonl"
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
LANGUAGES = {"c": ("cc", ["-x", "c", "-std=c11"]), "c++": ("c++", ["-x", "c++", "-std=c++17"])}

THROWING_VENDOR = """
#include <dipu/collectives.h>
#include <stdexcept>
namespace dipu { namespace devapis {
diclResult_t diclCommDestroy(diclComm_t) { throw std::runtime_error("out of order"); }
diclResult_t diclGetCommAsyncError(diclComm_t) { return DICL_ERR_UNDEF; }
diclResult_t diclGetCommName(std::string& name, diclComm_t) { name = "a long name"; return DICL_SUCCESS; }
diclResult_t diclCommInitRank(diclComm_t* comm, int ranks, commUniqueId id, int rank, int device) {
    *comm = reinterpret_cast<diclComm_t>(1000 * ranks + 100 * rank + 10 * device + id.internal[127]);
    return DICL_SUCCESS;
}
} }
"""
"""A vendor of four functions."""


def compile_source(language: str, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Compile a source, and skip the test if there is no compiler."""
    compiler, flags = LANGUAGES[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    command = [compiler, *flags, *WARNINGS, f"-I{INCLUDE_DIR}", *options, "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True)


def test_the_prototypes_are_those_of_the_public_interface() -> None:
    result, *facts = [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()]
    assert {name: value for name, value, _ in RESULTS} == result["members"]
    functions = [
        {
            "function": function.name,
            "returns": function.returns,
            "parameters": [p.type + (f" = {p.default}" if p.default else "") for p in function.parameters],
            "optional": function.is_optional,
        }
        for function in FUNCTIONS
    ]
    assert functions == facts
    assert len(FUNCTIONS) == 14


def test_operations_have_the_values_of_pytorch() -> None:
    distributed = pytest.importorskip("torch.distributed")
    known = distributed.ReduceOp.RedOpType.__members__
    assert {name: int(known[name]) for name in OPERATIONS if name in known} == {
        name: value for value, name in enumerate(OPERATIONS) if name in known
    }


@pytest.mark.parametrize("path", render_headers())
def test_committed_files_are_the_generated_ones(path: str) -> None:
    """If this test fails, run `python -m diopi_proto --write`."""
    text = render_headers()[path]
    assert INCLUDE_DIR.joinpath(path).read_text("utf-8") == text
    assert [line for line in text.splitlines() if len(line) > 120] == []


@pytest.mark.parametrize(("path", "language"), [(HEADER, "c++"), (C_HEADER, "c"), (C_HEADER, "c++")])
def test_each_header_compiles_without_others_and_twice(path: str, language: str) -> None:
    done = compile_source(language, f"#include <{path}>\n" * 2, "-fsyntax-only")
    assert done.returncode == 0, done.stderr


def test_a_vendor_written_to_the_interface_compiles() -> None:
    done = compile_source("c++", EXAMPLE.read_text("utf-8"), f"-I{EXAMPLE.parent}", "-fsyntax-only")
    assert done.returncode == 0, done.stderr


@pytest.mark.exhaustive
def test_a_vendor_compiles_with_the_headers_of_pytorch() -> None:
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        pytest.skip("PyTorch is not installed")
    include = Path(found.origin).parent / "include"
    check = "static_assert(std::is_same<decltype(c10d::ReduceOp::op_), c10d::ReduceOp::RedOpType>::value);\n"
    check += "".join(
        f"static_assert(static_cast<int>(at::ScalarType::{kind.name}) == {kind.value});\n" for kind in ELEMENT_TYPES
    )
    check += 'static_assert(sizeof(c10d::ReduceOp) > 8, "PyTorch\'s own class");\n'
    source = EXAMPLE.read_text("utf-8") + check
    options = [f"-I{EXAMPLE.parent}", f"-isystem{include}", f"-isystem{include}/torch/csrc/api/include", "-std=c++20"]
    done = compile_source("c++", source, *options, "-fsyntax-only")
    assert done.returncode == 0, done.stderr


def test_the_table_passes_arguments_results_and_exceptions(tmp_path: Path) -> None:
    (tmp_path / "vendor.cpp").write_text(THROWING_VENDOR)
    sources = [str(tmp_path / "vendor.cpp"), str(INCLUDE_DIR / C_SOURCE)]
    options = ["-DDIPU_WITHOUT_PYTORCH", "-shared", "-fPIC", "-o", str(tmp_path / "vendor.so")]
    assert (done := compile_source("c++", "", *options, *sources)).returncode == 0, done.stderr
    ffi = cffi.FFI()
    ffi.cdef(table_types())
    library: Any = ffi.dlopen(str(tmp_path / "vendor.so"))
    table = library.dipuGetCollectives()
    assert (table.size, table.uniqueIdBytes) == (ffi.sizeof("dipuCollectives"), 128)
    present = {function.name for function in FUNCTIONS if getattr(table, function.name)}
    assert present == {"diclCommDestroy", "diclGetCommAsyncError", "diclGetCommName", "diclCommInitRank"}
    statuses = {name: value for name, value, _ in STATUSES}
    assert table.diclCommDestroy(ffi.NULL) == statuses["DICL_EXCEPTION"]
    assert ffi.string(table.lastErrorText()) == b"out of order"
    assert table.diclGetCommAsyncError(ffi.NULL) == statuses["DICL_ERR_UNDEF"]
    name, comm = ffi.new("char[7]"), ffi.new("void**")
    assert (table.diclGetCommName(name, 7, ffi.NULL), ffi.string(name)) == (0, b"a long")
    assert table.diclCommInitRank(comm, 4, bytes(127) + b"\5", 3, 2) == 0
    assert int(ffi.cast("uintptr_t", comm[0])) == 4325


def test_every_prototype_states_its_meaning_in_sentences() -> None:
    for function in FUNCTIONS:
        texts = [function.doc, function.errors, function.stream_order, function.threads, function.project_defined]
        assert function.doc and all(text.endswith(".") for text in texts if text), function.name
        assert PROJECT_DEFINED in function.text

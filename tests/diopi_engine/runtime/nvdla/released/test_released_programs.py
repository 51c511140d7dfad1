"""Programs that are built with the released headers run, and a mix-up with the published document is refused."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shared_folders import fill_once

from diopi_engine import Engine
from diopi_engine.conformance.interfaces import NoInterfaceError, find_cases
from diopi_engine.proto import headers
from diopi_engine.runtime.nvdla.build import LIBRARY, RELEASED, build

EXAMPLES = Path(__file__).parents[5] / "examples" / "engine_nvdla"
STEPS = Path(__file__).with_name("steps.cpp")
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]

UNVERSIONED = """
#include <{header}>
nvdla::IRuntime* nvdla::createRuntime() {{ return nullptr; }}
void nvdla::destroyRuntime(IRuntime*) {{}}
"""
"""A library of another maker, whose symbols have no versions."""


@pytest.fixture(scope="module")
def released_library(tmp_path_factory: pytest.TempPathFactory, locks: Path, nvdla_library: Path) -> Path:
    """Return the path of the library with the released interface."""
    return fill_once(tmp_path_factory, "nvdla_released", lambda folder: build(folder, RELEASED)) / LIBRARY


def compile_cpp(source: Path, output: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Compile C++ to `output` and return the finished compiler process."""
    command = ["c++", "-std=c++17", *WARNINGS, f"-I{headers.INCLUDE_DIR}", str(source), *options, "-o", str(output)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the object files of the examples, which several tests link."""
    folder = tmp_path_factory.mktemp("objects")
    for name in ("released", "walkthrough"):
        done = compile_cpp(EXAMPLES / f"{name}.cpp", folder / f"{name}.o", "-c")
        assert done.returncode == 0, done.stderr
    return folder


def build_program(source: Path, library: Path, program: Path) -> Path:
    """Build a program from a source or an object file, link it with a library, and return its path."""
    done = compile_cpp(source, program, str(library), f"-Wl,-rpath,{library.parent}")
    assert done.returncode == 0, done.stderr
    return program


def run(program: Path, *arguments: object, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a program and return the finished process; `variables` are added to its environment."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **variables}
    return subprocess.run(
        [str(program), *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=300
    )


def test_a_program_built_with_the_released_headers_runs(
    released_library: Path, objects: Path, engine: Engine, tmp_path: Path
) -> None:
    engine.save(tmp_path / "layer.engine")
    program = build_program(objects / "released.o", released_library, tmp_path / "released")
    completed = run(program, tmp_path / "layer.engine", 7)
    assert (completed.returncode, completed.stderr) == (0, "")
    y, _ = engine(np.ones((7, 4), np.float32))
    assert completed.stdout.splitlines() == [
        "2 devices of at most 64",
        "type 1",
        "input x: type 1, format 1, 112 bytes, [7, 4, 1, 1], lines of 4 bytes",
        "output y: type 1, format 1, 84 bytes, [7, 3, 1, 1], lines of 4 bytes",
        "output z: type 0, format 1, 28 bytes, [7, 1, 1, 1], lines of 4 bytes",
        f"y: {y.sum():g}",
    ]


def test_each_method_returns_the_released_results(released_library: Path, engine: Engine, tmp_path: Path) -> None:
    engine.save(tmp_path / "layer.engine")
    completed = run(
        build_program(STEPS, released_library, tmp_path / "steps"), tmp_path / "layer.engine", DIOPI_ENGINE_DEBUG="1"
    )
    assert (completed.returncode, completed.stdout) == (0, "every step succeeded\n"), completed.stderr
    assert "the loadable is a FlatBuffer with the identifier 'NVDA'" in completed.stderr


def test_a_program_does_not_link_with_the_library_of_the_other_interface(
    released_library: Path, nvdla_library: Path, objects: Path, tmp_path: Path
) -> None:
    for name, library, symbol in (
        ("released.o", nvdla_library, "nvdla::createRuntime()"),
        ("walkthrough.o", released_library, "nvdla::createRuntime[abi:document]()"),
    ):
        done = compile_cpp(objects / name, tmp_path / "program", str(library))
        assert done.returncode != 0
        assert f"undefined reference to `{symbol}'" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has versions of symbols")
def test_a_program_does_not_start_with_the_library_of_the_other_interface(
    released_library: Path, nvdla_library: Path, objects: Path, tmp_path: Path
) -> None:
    for name, library, mismatched, version in (
        ("released", released_library, nvdla_library, "NVDLA_RELEASED_1"),
        ("walkthrough", nvdla_library, released_library, "NVDLA_DOCUMENT_1"),
    ):
        program = build_program(objects / f"{name}.o", library, tmp_path / name)
        completed = run(program, "any.engine", 1, LD_LIBRARY_PATH=str(mismatched.parent))
        assert completed.returncode != 0
        assert f"version `{version}' not found" in completed.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has versions of symbols")
def test_a_program_without_versions_is_told_which_library_it_needs(
    released_library: Path, nvdla_library: Path, objects: Path, engine: Engine, tmp_path: Path
) -> None:
    engine.save(tmp_path / "layer.engine")
    for name, header, matching, mismatched, message in (
        ("released.o", "nvdla_released.h", released_library, nvdla_library, "--interface nvdla-released"),
        ("walkthrough.o", "nvdla.h", nvdla_library, released_library, "--interface nvdla`"),
    ):
        folder = tmp_path / header
        folder.mkdir()
        stub = folder / "stub.cpp"
        stub.write_text(UNVERSIONED.format(header=header))
        options = ["-shared", "-fPIC", f"-Wl,-soname,{LIBRARY}"]
        assert compile_cpp(stub, folder / LIBRARY, *options).returncode == 0
        assert compile_cpp(objects / name, folder / "program", str(folder / LIBRARY)).returncode == 0
        refused = run(folder / "program", tmp_path / "layer.engine", 1, LD_LIBRARY_PATH=str(mismatched.parent))
        assert refused.returncode == 1
        assert message in refused.stderr
        accepted = run(folder / "program", tmp_path / "layer.engine", 1, LD_LIBRARY_PATH=str(matching.parent))
        assert (accepted.returncode, accepted.stderr) == (0, "")


def test_check_says_that_its_cases_are_for_the_document(released_library: Path) -> None:
    with pytest.raises(NoInterfaceError, match="has the interface of the released NVDLA headers"):
        find_cases(released_library)

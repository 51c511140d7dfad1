"""Build the shared library of an exported vendor: generate the C source, compile it, and replace the library file."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from diopi_impl.base import TEXT_QUERIES, BaseVendor
from diopi_impl.errors import VendorError
from diopi_impl.export.source import Interpreter, location, source
from diopi_impl.plugins import find_vendor, importable_name
from diopi_impl.vendor import Vendor
from diopi_proto import headers
from diopi_proto.interface import prototypes

LIBRARY_NAME = "libdiopi_impl.so"
"""The file name of the library that exports a vendor. Frameworks load a library of this name."""

_COMPILER_FLAGS = ("-std=gnu11", "-O1", "-fPIC", "-shared", "-pthread")
"""The flags of the C compiler."""

_SHARED_SOURCES = Path(__file__).parent
"""The folder with the C sources that are shared by all exported libraries."""


class ExportError(Exception):
    """The library can't be built; the message contains the reason."""


def export(vendor: str, folder: Path) -> Path:
    """Build `libdiopi_impl.so` for a Python vendor.

    Args:
        vendor: the name of the vendor.
        folder: the folder to write the library to. The function creates it if necessary.

    Returns:
        The path of the library.

    Raises:
        VendorError: No vendor has this name, or the vendor is not written in Python.
        ExportError: The library can't be built.
    """
    name = importable_name(vendor)
    python_vendor = _require_python_vendor(vendor, find_vendor(name))
    operators = [p for p in prototypes().values() if python_vendor.has(p.name) and p.name not in TEXT_QUERIES]
    services = [name for name, function in vars(python_vendor.runtime).items() if function is not None]
    return build(
        source(name, python_vendor.name, python_vendor.version, operators, services),
        folder / LIBRARY_NAME,
        _import_folders(name),
        extra_sources=[_SHARED_SOURCES / "describe.c", _SHARED_SOURCES / "explain.c"],
    )


def build(
    c_source: str,
    target: Path,
    roots: Iterable[Path],
    include: Path = headers.INCLUDE_DIR,
    extra_sources: Sequence[Path] = (),
    cpp_source: str = "",
    version: str = "",
) -> Path:
    """Build a shared library whose C functions call functions in Python.

    Args:
        c_source: the source text of the C functions. It includes `host.h`.
        target: the path of the library. The function creates the folder if necessary, and replaces an existing file.
        roots: the folders that the library adds to Python's import path, to import the modules with these functions.
        include: the folder with the headers that the sources include.
        extra_sources: further C source files.
        cpp_source: the source text of C++ functions; empty if there are none. A C++ compiler is needed only for them.
        version: the version that the exported symbols get on Linux; empty for none. A program that was linked with
            the library does not start with a library of another version.

    Returns:
        The path of the library.

    Raises:
        ExportError: The library can't be built.
    """
    generated = {"functions.c": c_source, "location.c": location(Interpreter.current(roots), os.__file__)}
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        for file, content in generated.items():
            Path(temporary, file).write_text(content, "utf-8")
        library = Path(temporary, target.name)
        sources = [_SHARED_SOURCES / "host.c", *extra_sources, *(Path(temporary, file) for file in generated)]
        if cpp_source:
            Path(temporary, "functions.cpp").write_text(cpp_source, "utf-8")
            sources.append(_compile_cpp(Path(temporary, "functions.cpp"), include))
        options = []
        if version and sys.platform == "linux":
            script = Path(temporary, "symbols.map")
            script.write_text(f"{version} {{ global: *; local: unexported_*; }};\n", "utf-8")
            options.append(f"-Wl,--version-script={script}")
        _compile(sources, library, include, options)
        os.replace(library, target)
    return target


def _require_python_vendor(name: str, vendor: BaseVendor) -> Vendor:
    """Return the vendor; raise VendorError if it is not written in Python."""
    if not isinstance(vendor, Vendor):
        raise VendorError(f"vendor {name} is a {type(vendor).__name__}, only a diopi_impl.Vendor can be exported")
    return vendor


def _import_folders(name: str) -> list[Path]:
    """Return the folders from which Python imports this package and the vendor's package."""
    packages = (__name__.split(".")[0], name.split(":")[0].split(".")[0])
    files = (sys.modules[package].__file__ for package in packages)
    return [Path(file).resolve().parents[Path(file).stem == "__init__"] for file in files if file]


def _compile(sources: list[Path], target: Path, include: Path, options: Sequence[str]) -> None:
    """Compile C files and link them with the object files in `sources` to a shared library."""
    flags = [*_COMPILER_FLAGS, f"-Wl,-soname,{target.name}", f"-I{include}", f"-I{_SHARED_SOURCES}", *options]
    libraries = ["-ldl", "-lm", *["-lstdc++"] * any(source.suffix == ".o" for source in sources)]
    _run_compiler(
        [*_find_compiler("C", "CC", "cc", "gcc", "clang"), *flags, *map(str, sources), *libraries, "-o", str(target)]
    )


def _compile_cpp(source: Path, include: Path) -> Path:
    """Compile a C++ file and return the path of its object file."""
    target = source.with_suffix(".o")
    compiler = _find_compiler("C++", "CXX", "c++", "g++", "clang++")
    _run_compiler([*compiler, "-std=c++17", "-O1", "-fPIC", f"-I{include}", "-c", str(source), "-o", str(target)])
    return target


def _run_compiler(command: list[str]) -> None:
    """Run a compiler; raise ExportError with its messages if it fails."""
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        raise ExportError(f"{shlex.join(command)} failed:\n{process.stderr}")


def _find_compiler(language: str, variable: str, *names: str) -> list[str]:
    """Return the command of an installed compiler.

    Args:
        language: the name of the language, for the message of the error.
        variable: the environment variable that selects a command.
        names: the commands to try in this order if the variable is not set.

    Returns:
        The command as a list of words.

    Raises:
        ExportError: No such compiler is installed.
    """
    configured = shlex.split(os.environ.get(variable, ""))
    candidates = [configured] if configured else [[name] for name in names]
    for command in candidates:
        if shutil.which(command[0]):
            return command
    raise ExportError(
        f"there is no {language} compiler: looked for {', '.join(command[0] for command in candidates)}; set {variable}"
    )

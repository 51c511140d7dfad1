"""Build the library: generate its source, compile it, and move it to its target."""

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

LIBRARY = "libdiopi_impl.so"
"""The file name of an exported vendor, which frameworks load."""

_FLAGS = ("-std=gnu11", "-O1", "-fPIC", "-shared", "-pthread")
"""The flags of the C compiler."""

_HERE = Path(__file__).parent
"""The folder with the C sources that every library contains."""


class ExportError(Exception):
    """The library could not be built; the message contains the reason."""


def export(vendor: str, folder: Path) -> Path:
    """Build `libdiopi_impl.so` for a Python vendor.

    Args:
        vendor: the name of the vendor.
        folder: the folder of the library, which is created if necessary.

    Returns:
        The path of the library.

    Raises:
        VendorError: There is no such vendor in Python.
        ExportError: The library can't be built.
    """
    name = importable_name(vendor)
    found = _require_python_vendor(vendor, find_vendor(name))
    operators = [p for p in prototypes().values() if found.has(p.name) and p.name not in TEXT_QUERIES]
    services = [name for name, function in vars(found.runtime).items() if function is not None]
    text = source(name, found.name, found.version, operators, services)
    return build(
        text, folder / LIBRARY, _import_folders(name), extra_sources=[_HERE / "describe.c", _HERE / "explain.c"]
    )


def build(
    text: str,
    target: Path,
    roots: Iterable[Path],
    include: Path = headers.INCLUDE_DIR,
    extra_sources: Sequence[Path] = (),
    cpp_text: str = "",
) -> Path:
    """Build a library whose functions call Python.

    Args:
        text: the C source of these functions, which includes `host.h`.
        target: the path of the library. Its folder is created if necessary, and an existing file is replaced.
        roots: the folders from which the library's Python imports the modules that serve the calls.
        include: the folder of the headers that the text includes.
        extra_sources: further source files in C.
        cpp_text: further functions in C++, which require a C++ compiler.

    Returns:
        The path of the library.

    Raises:
        ExportError: The library can't be built.
    """
    texts = {"functions.c": text, "location.c": location(Interpreter.current(roots), os.__file__)}
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        for file, content in texts.items():
            Path(temporary, file).write_text(content, "utf-8")
        library = Path(temporary, target.name)
        sources = [_HERE / "host.c", *extra_sources, *(Path(temporary, file) for file in texts)]
        if cpp_text:
            Path(temporary, "functions.cpp").write_text(cpp_text, "utf-8")
            sources.append(_compile_cpp(Path(temporary, "functions.cpp"), include))
        _compile(sources, library, include)
        os.replace(library, target)
    return target


def _require_python_vendor(name: str, vendor: BaseVendor) -> Vendor:
    """Return the vendor; raise VendorError unless it is written in Python."""
    if not isinstance(vendor, Vendor):
        raise VendorError(f"vendor {name} is a {type(vendor).__name__}, only a diopi_impl.Vendor can be exported")
    return vendor


def _import_folders(name: str) -> list[Path]:
    """Return the folders from which Python imports this package and the package of the vendor."""
    packages = (__name__.split(".")[0], name.split(":")[0].split(".")[0])
    files = (sys.modules[package].__file__ for package in packages)
    return [Path(file).resolve().parents[Path(file).stem == "__init__"] for file in files if file]


def _compile(sources: list[Path], target: Path, include: Path) -> None:
    """Compile C files, and link them with C++ objects."""
    flags = [*_FLAGS, f"-Wl,-soname,{target.name}", f"-I{include}", f"-I{_HERE}"]
    libraries = ["-ldl", "-lm", *["-lstdc++"] * any(source.suffix == ".o" for source in sources)]
    _run_compiler(
        [*_compiler("C", "CC", "cc", "gcc", "clang"), *flags, *map(str, sources), *libraries, "-o", str(target)]
    )


def _compile_cpp(source: Path, include: Path) -> Path:
    """Compile a C++ file and return the path of its object file."""
    target = source.with_suffix(".o")
    compiler = _compiler("C++", "CXX", "c++", "g++", "clang++")
    _run_compiler([*compiler, "-std=c++17", "-O1", "-fPIC", f"-I{include}", "-c", str(source), "-o", str(target)])
    return target


def _run_compiler(command: list[str]) -> None:
    """Run a compiler; raise ExportError with its messages if it fails."""
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        raise ExportError(f"{shlex.join(command)} failed:\n{process.stderr}")


def _compiler(language: str, variable: str, *names: str) -> list[str]:
    """Return the command of a compiler: from an environment variable, or the first installed one of `names`."""
    named = shlex.split(os.environ.get(variable, ""))
    known = [named] if named else [[name] for name in names]
    for command in known:
        if shutil.which(command[0]):
            return command
    raise ExportError(
        f"there is no {language} compiler: looked for {', '.join(command[0] for command in known)}; set {variable}"
    )

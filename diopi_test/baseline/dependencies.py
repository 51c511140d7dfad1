"""Find the modules of the project that a module depends on, by the imports in the sources.

A digest of these sources is part of the key of each generated file. A file whose key differs is generated again.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

PROJECT = ("diopi_proto", "lib_rt", "diopi_test")
"""The packages whose sources are part of the digest. Keys contain the versions of NumPy and SciPy in addition."""


def source_digest(roots: Iterable[str]) -> str:
    """Return a digest of the sources of these modules and of all project modules that they import."""
    sources = (f"{name} {_file_digest(name)}" for name in sorted(dependencies(frozenset(roots))))
    return hashlib.sha256("\n".join(sources).encode()).hexdigest()


@cache
def dependencies(roots: frozenset[str]) -> frozenset[str]:
    """Return the modules of the project on which modules depend, directly or indirectly.

    A module depends on the modules that it imports, and on the packages that contain it.

    Args:
        roots: The names of the modules.

    Returns:
        The names of these modules and of their dependencies, without modules that a package loads by name (such as the
        modules of families).
    """
    modules: set[str] = set()
    pending = set(roots)
    while pending:
        name = pending.pop()
        modules.add(name)
        pending |= {imported for imported in _imports(name) if imported not in modules}
    return frozenset(modules)


@cache
def _imports(module: str) -> frozenset[str]:
    """Return the project modules that the source of `module` imports, and the packages that contain it."""
    tree = ast.parse(_source_path(module).read_text("utf-8"))
    named = {name for node in ast.walk(tree) for name in _imported_names(node) if name.split(".")[0] in PROJECT}
    parents = {name.rpartition(".")[0] for name in (*named, module)} - {""}
    return frozenset(name for name in named | parents if find_spec(name) is not None)


def _imported_names(node: ast.AST) -> Iterator[str]:
    """Yield the modules that an import statement names; `from a import b` names a.b if that is a module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (name for alias in node.names if _is_module(name := f"{node.module}.{alias.name}"))


@cache
def _is_module(name: str) -> bool:
    """Return whether a package has a module of this name."""
    package, _, _ = name.rpartition(".")
    spec = find_spec(package)
    return bool(spec and spec.submodule_search_locations) and find_spec(name) is not None


@cache
def _file_digest(module: str) -> str:
    """Return the SHA-256 of a module's source."""
    return hashlib.sha256(_source_path(module).read_bytes()).hexdigest()


def _source_path(module: str) -> Path:
    """Return the path of a module's source; raise ModuleNotFoundError if there is none."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{module} has no source")
    return Path(spec.origin)

"""The Python sources of a vendor: which module implements which function, and what each module depends on."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import final

from diopi_impl import BaseVendor

DIGEST_LENGTH = 16
"""The number of hexadecimal digits of a digest that a log stores."""


@final
@dataclass(frozen=True, kw_only=True)
class SourceFiles:
    """The source files of a vendor; empty if the vendor is not written in Python.

    Attributes:
        files: the path of each module that implements functions, by module.
        functions: the name of the implementing module, by function.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_vendor(cls, vendor: BaseVendor) -> SourceFiles:
        """Return the source files of a vendor that this process has loaded."""
        functions = vendor.source_modules
        files = {name: path for name in sorted({*functions.values()}) if (path := _source_file(name))}
        return cls(files=files, functions={name: module for name, module in functions.items() if module in files})


@final
@dataclass(frozen=True, kw_only=True)
class SourceModule:
    """A module that implements functions.

    Attributes:
        digest: a digest of the source of the module, and of all modules of the same top-level package that the module
            imports, directly or indirectly.
        imports: those of these modules that also implement functions.
    """

    digest: str
    imports: tuple[str, ...]


@final
@dataclass(frozen=True, kw_only=True)
class VendorSources:
    """The modules that implement a vendor's functions; empty if the vendor is not written in Python.

    Attributes:
        modules: the implementing modules, by name.
        functions: the name of the implementing module, by function.
    """

    modules: Mapping[str, SourceModule] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, sources: SourceFiles) -> VendorSources:
        """Return what source files contain, without importing them; files that can't be read are omitted."""
        modules, cached = {}, dict[Path, _Source]()
        for name, path in sources.files.items():
            with suppress(OSError, SyntaxError, ValueError):
                modules[name] = _describe_module(name, Path(path), frozenset(sources.files), cached)
        return cls(modules=modules, functions={f: name for f, name in sources.functions.items() if name in modules})

    def functions_that_depend_on(self, module: str) -> frozenset[str]:
        """Return the functions that this module implements, and those whose modules import it."""
        users = {name for name, source in self.modules.items() if name == module or module in source.imports}
        return frozenset(function for function, name in self.functions.items() if name in users)

    def functions_that_differ(self, earlier: VendorSources) -> frozenset[str]:
        """Return the functions whose implementing module differs between the versions, or exists in only one."""
        functions = {*self.functions, *earlier.functions}
        return frozenset(name for name in functions if self.digest_of(name) != earlier.digest_of(name))

    def digest_of(self, function: str) -> str | None:
        """Return the digest of the module that implements a function; None if the function is not implemented."""
        return self.modules[self.functions[function]].digest if function in self.functions else None


def _source_file(module: str) -> str:
    """Return the path of the source of an imported module; an empty string if there is none."""
    with suppress(ImportError, ValueError):
        spec = find_spec(module)
        if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
            return str(Path(spec.origin).absolute())
    return ""


@final
@dataclass(frozen=True, kw_only=True)
class _Source:
    """A source file: its digest, and the modules of the same package that it imports, with their files."""

    digest: str
    imports: tuple[tuple[str, Path], ...]


def _describe_module(name: str, path: Path, implementing: frozenset[str], cached: dict[Path, _Source]) -> SourceModule:
    """Return the description of a module; `cached` has the files that were read for other modules."""
    package_depth = name.count(".") + (path.name == "__init__.py")
    paths: dict[str, Path] = {}
    pending = [(name, path)]
    while pending:
        module, file = pending.pop()
        if module in paths:
            continue
        paths[module] = file
        if file not in cached:
            cached[file] = _read_source(module, file, path.parents[package_depth])
        pending += cached[file].imports
    lines = (f"{module} {cached[file].digest}" for module, file in sorted(paths.items()))
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:DIGEST_LENGTH]
    return SourceModule(digest=digest, imports=tuple(sorted(set(paths) & implementing - {name})))


def _read_source(module: str, file: Path, root: Path) -> _Source:
    """Return the digest of a source file and the modules that it imports."""
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return _Source(digest=digest, imports=_imported_modules(module, file, root, content))


def _imported_modules(module: str, file: Path, root: Path, content: bytes) -> tuple[tuple[str, Path], ...]:
    """Return the modules below `root`, in the package of `module`, that the source of `module` imports."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    names = {name for node in ast.walk(ast.parse(content)) for name in _imported_names(node, package, root)}
    top = module.partition(".")[0]
    return tuple(
        (name, path) for name in sorted(names) if name.partition(".")[0] == top and (path := _find(name, root))
    )


def _imported_names(node: ast.AST, package: str, root: Path) -> Iterator[str]:
    """Yield the modules that an import statement names; `from a import b` names a.b if that is a module.

    Args:
        node: A node of the syntax tree; nothing is yielded unless it is an import statement.
        package: The package of the module that contains the statement, to which relative imports refer.
        root: The folder that contains the top-level packages.
    """
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*parents, *([node.module] if node.module else [])])
        modules = [name for alias in node.names if _find(name := f"{base}.{alias.name}", root)]
        yield from modules
        if len(modules) < len(node.names):
            yield base


def _find(module: str, root: Path) -> Path | None:
    """Return the source of a module below `root`; None if there is none."""
    path = root.joinpath(*module.split("."))
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)

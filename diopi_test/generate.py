"""Making the baseline: the cases of every function computed and stored, in parallel and resumable."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

from diopi_proto.interface import families, lookup, prototypes
from diopi_proto.types import VERSION_NUMBER
from diopi_test import store
from diopi_test.baseline import make_baseline_case
from diopi_test.cases import select_cases, telling
from diopi_test.parallel import in_processes

_SHARED = ("baseline", "budget", "case", "data", "domains", "formats", "layouts", "store")
"""Modules of diopi_test that every baseline file depends on."""

_BY_FAMILY = ("diopi_test.cases", "diopi_test.reference")
"""Packages of which it depends on its family's module, and on those that are no family's."""


def functions_with_cases(level: str) -> list[str]:
    """The names of all functions that have cases at `level`, in header order."""
    return [name for name in prototypes() if select_cases(name, level)]


def versions() -> dict[str, str]:
    """The software the contents depend on."""
    return {
        "diopi_proto": str(VERSION_NUMBER),
        **{name: importlib.metadata.version(name) for name in ("numpy", "scipy")},
    }


@cache
def _source_digest(module: str) -> str:
    file = importlib.import_module(module).__file__
    return hashlib.sha256(Path(file or "").read_bytes()).hexdigest()


@cache
def _modules_for(family: str, package: str) -> list[str]:
    """The package itself, its module of that family, and what its families share."""
    others = set(families()) - {family}
    names = sorted(module.name for module in pkgutil.iter_modules(importlib.import_module(package).__path__))
    return [package, *(f"{package}.{name}" for name in names if name not in others)]


def key(function: str, level: str) -> str:
    """Digest of everything the baseline file of `function` depends on: sources, level, telling cases and versions."""
    family = lookup(function).family
    modules = [
        *(f"diopi_test.{name}" for name in _SHARED),
        f"diopi_proto.functions.{family}",
        *(module for package in _BY_FAMILY for module in _modules_for(family, package)),
    ]
    parts = [level, *(_source_digest(module) for module in modules), *versions().values(), *telling().get(function, ())]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def generate_function(function: str, level: str, folder: Path) -> int:
    """Make the baseline file of one function, unless the right one is there; the number of cases made."""
    path, wanted = store.file_of(folder, function), key(function, level)
    if store.key_of(path) == wanted:
        return 0
    prototype = lookup(function)
    cases = [make_baseline_case(prototype, case) for case in select_cases(function, level)]
    store.write(path, function, cases, store.Provenance(level, wanted, versions()))
    return len(cases)


Progress = Callable[[str, int], None]


def generate(functions: Sequence[str], level: str, folder: Path, workers: int, progress: Progress) -> int:
    """Make the baseline files of `functions` in `folder` with `workers` processes.

    Calls `progress(function, cases made)` after each. Returns the number of cases made. Files that are there with
    the right key are kept, so a run that was killed goes on where it stopped.

    Raises what the first failing function raised; files already written stay.
    """
    total = 0
    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.glob(f".*{store.PART_SUFFIX}"):
        leftover.unlink()
    for function, made in in_processes(partial(generate_function, level=level, folder=folder), functions, workers):
        total += made
        progress(function, made)
    return total

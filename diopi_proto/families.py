"""Families: the modules of `diopi_proto.functions`; other packages have modules, or packages, of the same names."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import diopi_proto.functions


@cache
def families() -> tuple[str, ...]:
    """The names of all families, alphabetically."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(diopi_proto.functions.__path__)))


@cache
def load_families(package: str) -> None:
    """Import every module of `package` that has the name of a family; each registers what it has."""
    known = set(families())
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if module.name in known:
            importlib.import_module(f"{package}.{module.name}")

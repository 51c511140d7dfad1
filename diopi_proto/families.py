"""Families: the groups of functions, one per module of `diopi_proto.functions`.

Other packages, such as the cases and the reference, have modules or packages with the same names.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

import diopi_proto.functions


@cache
def families() -> tuple[str, ...]:
    """Return the names of all families in alphabetical order."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(diopi_proto.functions.__path__)))


@cache
def load_families(package: str) -> None:
    """Import every module of `package` that has the name of a family, so that the module registers its contents."""
    family_names = set(families())
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if module.name in family_names:
            importlib.import_module(f"{package}.{module.name}")


@cache
def family_conventions(family: str) -> str:
    """Return the docstring of a family's module: its conventions, unless the docstring of a function states others."""
    return inspect.getdoc(importlib.import_module(f"diopi_proto.functions.{family}")) or ""

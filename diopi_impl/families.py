"""Loading a vendor's family modules: the modules of its package that are named as families are."""

from __future__ import annotations

import importlib
import pkgutil

from diopi_proto.interface import families


def load_families(package: str) -> None:
    """Import every module of `package` that has the name of a family; each registers its implementations."""
    known = set(families())
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        if module.name in known:
            importlib.import_module(f"{package}.{module.name}")

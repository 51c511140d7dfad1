"""The cases of every function, one module a family, and how to get at them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from diopi_proto.interface import lookup
from diopi_test.case import Case, cases_of

LEVELS = ("smoke", "full")


@cache
def _load_families() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


def select_cases(function: str, level: str) -> tuple[Case, ...]:
    """The cases of `function` at `level`: full is all of them, smoke those marked for it."""
    _load_families()
    return tuple(case for case in cases_of(lookup(function)) if level == "full" or case.smoke)

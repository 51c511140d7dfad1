"""The cases of every function, one module a family, and how to get at them."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from diopi_proto.interface import lookup
from diopi_test.case import Case, cases_of

LEVELS = ("smoke", "full")

TELLING = Path(__file__).parent / "telling.json"
"""By function, the labels of the cases that the smoke level needs besides the basic ones, to catch what the full level
catches. Written by `diopi-test audit --choose diopi_test/cases/telling.json`."""


@cache
def _load_families() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


@cache
def telling() -> Mapping[str, Sequence[str]]:
    """The contents of `TELLING`."""
    labels: Mapping[str, Sequence[str]] = json.loads(TELLING.read_text("utf-8"))
    return labels


def select_cases(function: str, level: str) -> tuple[Case, ...]:
    """The cases of `function` at `level`: full is all of them, smoke the basic and the telling ones."""
    _load_families()
    cases = cases_of(lookup(function))
    if level == "full":
        return cases
    labels = telling().get(function, ())
    return tuple(case for case in cases if case.smoke or case.label in labels)

"""Select the cases of a function at a level, such as "smoke" or "full".

A function's own cases come from the templates of its family. Further cases are derived from a function's own cases.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from diopi_proto.families import load_families
from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_test.cases import resized, sweep
from diopi_test.cases.case import Case, check_cases, registered_cases
from diopi_test.cases.selection.classes import classify_cases
from diopi_test.cases.selection.nans import nan_cases
from diopi_test.cases.selection.repeated import repeated_cases
from diopi_test.cases.selection.traced import model_cases, model_keys
from diopi_test.traces.files import model_names

SMOKE_SELECTION = Path(__file__).parents[1] / "smoke_selection.json"
"""The file that lists further cases of the smoke level: by function, labels of cases that are not smoke cases.

With these cases, the smoke level kills all mutants that the full level kills. The command
`diopi-test mutation-test --choose diopi_test/cases/smoke_selection.json` writes the file.
"""


@cache
def _smoke_selection() -> Mapping[str, Sequence[str]]:
    """Return the contents of `SMOKE_SELECTION`."""
    labels: Mapping[str, Sequence[str]] = json.loads(SMOKE_SELECTION.read_text("utf-8"))
    return labels


def _full_cases(prototype: Prototype) -> Sequence[Case]:
    """Return a function's own cases of the full level and the cases derived from them."""
    load_families("diopi_test.cases")
    cases = registered_cases(prototype)
    return *cases, *repeated_cases(prototype, cases)


def _large_cases(prototype: Prototype) -> Sequence[Case]:
    """Return a function's own cases of the large level, the case with few NaNs, and the cases of the size sweep."""
    load_families("diopi_test.cases")
    cases = registered_cases(prototype, large=True)
    return *cases, *nan_cases(prototype, cases), *sweep.sweep_cases(prototype, _full_cases(prototype))


def _smoke_cases(prototype: Prototype) -> Sequence[Case]:
    """Return the cases of the full level that are smoke cases or in the smoke selection."""
    labels = _smoke_selection().get(prototype.name, ())
    return [case for case in select_cases(prototype.name, "full") if case.smoke or case.label in labels]


def _no_dependencies(prototype: Prototype) -> Sequence[str]:
    """Return an empty sequence: only sources determine the cases of the level."""
    return ()


@dataclass(frozen=True, kw_only=True)
class Level:
    """A level of the baseline.

    Attributes:
        cases: Returns the cases of a function.
        depends_on: Returns texts that describe what the cases of a function depend on besides sources. When a text
            changes, stored cases are regenerated.
        is_drawn: Whether every run draws the inputs from their domains, instead of reading stored inputs.
        models: The names of the networks whose calls are the cases.
        has_classes: Whether the cases of the functions already have their class. This is true for cases from another
            level, and for calls of networks. Otherwise, `select_cases` derives the classes.
    """

    cases: Callable[[Prototype], Sequence[Case]]
    depends_on: Callable[[Prototype], Sequence[str]] = _no_dependencies
    is_drawn: bool = False
    models: Sequence[str] = ()
    has_classes: bool = False


def _models_level(names: Sequence[str]) -> Level:
    """Return the level whose cases are the calls that these networks make."""
    return Level(
        models=names,
        cases=lambda prototype: model_cases(prototype, names),
        depends_on=lambda prototype: model_keys(prototype, names),
        is_drawn=True,
        has_classes=True,
    )


LEVELS: Mapping[str, Level] = {
    "smoke": Level(
        cases=_smoke_cases,
        depends_on=lambda prototype: (*_smoke_selection().get(prototype.name, ()), *resized.resized_keys(prototype)),
        has_classes=True,
    ),
    "full": Level(cases=_full_cases, depends_on=resized.resized_keys),
    "large": Level(cases=_large_cases, depends_on=sweep.sweep_keys, is_drawn=True),
    "models": _models_level(model_names()),
    **{f"models-{name}": _models_level([name]) for name in model_names()},
}
"""The levels by name.

- "smoke" is a part of "full": the smoke cases, and the cases in `SMOKE_SELECTION`.
- "full" has small cases of all kinds.
- "large" has cases with sizes as in models.
- "models" has the calls that all networks make. Each network also is a level, such as "models-NAME".
"""

INDEPENDENT_LEVELS = ("smoke", "full", "large", "models")
"""The levels that are not part of another level."""


@cache
def select_cases(function: str, level: str, *, int32_indices: bool = False) -> tuple[Case, ...]:
    """Return the cases of `function` at `level` in order.

    Args:
        function: The name of the function.
        level: The name of the level.
        int32_indices: Whether the run requests int32 indices. Cases that would have the class `open` only because of
            int32 indices then have another class, so that a vendor must pass them.

    Returns:
        The cases, each with its class.

    Raises:
        ValueError: Cases have equal labels, or other arguments than the function.
    """
    prototype = lookup(function)
    cases = tuple(LEVELS[level].cases(prototype))
    check_cases(prototype, cases)
    return cases if LEVELS[level].has_classes else classify_cases(prototype, cases, int32_indices=int32_indices)

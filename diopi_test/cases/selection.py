"""Which cases a function has at a level."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from diopi_proto.families import load_families
from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_test.cases.classes import classify_cases
from diopi_test.cases.large import large_cases
from diopi_test.cases.model import Case, CaseClass, check_cases, registered_cases
from diopi_test.cases.models import model_keys, models_cases
from diopi_test.cases.repeated import repeated_cases
from diopi_test.models.files import model_names

SMOKE_SELECTION = Path(__file__).parent / "smoke_selection.json"
"""By function, the labels of the cases that the smoke level needs besides the basic ones, to catch what the full level
catches. Written by `diopi-test audit --choose diopi_test/cases/smoke_selection.json`."""


@cache
def smoke_selection() -> Mapping[str, Sequence[str]]:
    """The contents of `SMOKE_SELECTION`."""
    labels: Mapping[str, Sequence[str]] = json.loads(SMOKE_SELECTION.read_text("utf-8"))
    return labels


def _full(prototype: Prototype) -> Sequence[Case]:
    load_families("diopi_test.cases")
    own = registered_cases(prototype)
    return *own, *repeated_cases(prototype, own)


def _smoke(prototype: Prototype) -> Sequence[Case]:
    labels = smoke_selection().get(prototype.name, ())
    return [case for case in select_cases(prototype.name, "full") if case.smoke or case.label in labels]


def _nothing(prototype: Prototype) -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class Level:
    """A level of the baseline.

    Attributes:
        cases: makes those of a function.
        sources: the packages that have a module of each family, in which they are described.
        depends_on: what they depend on besides sources, for each function, so that what is stored is made again when
            it changes.
        is_drawn: whether their inputs are not stored, but drawn again from what describes them.
        has_classes: whether the cases come with their class: those of another level have theirs, and what networks call
            demands nothing beyond that.
    """

    cases: Callable[[Prototype], Sequence[Case]]
    sources: Sequence[str] = ("diopi_test.cases",)
    depends_on: Callable[[Prototype], Sequence[str]] = _nothing
    is_drawn: bool = False
    has_classes: bool = False


def level_of_model(name: str) -> str:
    """The name of the level that has the cases of one network."""
    return f"{MODELS}-{name}"


def _of_models(names: Sequence[str] | None = None) -> Level:
    """The level of the calls that these networks make, or all."""
    return Level(
        lambda prototype: models_cases(prototype, names),
        depends_on=lambda prototype: model_keys(prototype, names),
        is_drawn=True,
        has_classes=True,
    )


MODELS = "models"
"""The level of calls of real networks."""

LEVELS: Mapping[str, Level] = {
    "smoke": Level(_smoke, depends_on=lambda prototype: smoke_selection().get(prototype.name, ()), has_classes=True),
    "full": Level(_full),
    "large": Level(large_cases, ("diopi_test.cases", "diopi_test.cases.large"), is_drawn=True),
    MODELS: _of_models(),
    **{level_of_model(name): _of_models([name]) for name in model_names()},
}
"""The levels by name. Smoke is part of full: the basic cases and the smoke selection. Large has sizes of models; models
has what real networks call, and each network is a level too, so that one of them can be checked without all others."""

WHOLE_LEVELS = ("smoke", "full", "large", MODELS)
"""The levels that are no part of another."""


@cache
def select_cases(function: str, level: str) -> tuple[Case, ...]:
    """The cases of `function` at `level`, in order."""
    prototype = lookup(function)
    cases = tuple(LEVELS[level].cases(prototype))
    check_cases(prototype, cases)
    return cases if LEVELS[level].has_classes else classify_cases(prototype, cases)


@cache
def classes_with_int32_indices(function: str, level: str) -> Mapping[str, CaseClass]:
    """Return the classes of the cases that are open only because of int32 indices, in a run that asks for these.

    Levels of networks' calls have no such cases, nor has a level that is not built in.
    """
    if level not in WHOLE_LEVELS or level == MODELS:
        return {}
    prototype = lookup(function)
    cases = select_cases(function, "full" if level == "smoke" else level)
    again = classify_cases(
        prototype, [replace(case, case_class=_undecided(case)) for case in cases], int32_indices=True
    )
    return {
        new.label: new.case_class
        for old, new in zip(cases, again, strict=True)
        if old.case_class is CaseClass.open and new.case_class.is_demanded
    }


def _undecided(case: Case) -> CaseClass:
    """Return the class that a case's author gave: of derived ones, the one that is to be derived again."""
    return CaseClass.callers if case.case_class is CaseClass.callers else CaseClass.basic

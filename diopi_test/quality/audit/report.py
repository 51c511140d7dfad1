"""What an audit found, as JSON and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import Any

from rich.console import Console
from rich.table import Table

from diopi_test.quality.audit.matrix import FunctionAudit, Trial, caught, count, first_seen_by

Audits = Sequence[FunctionAudit]


def to_json(audits: Audits) -> list[dict[str, Any]]:
    """A record a function, with every trial."""
    return [
        {"function": one.function, "unshown": one.unshown, "trials": [_trial(trial) for trial in one.trials]}
        for one in audits
    ]


def _trial(trial: Trial) -> dict[str, Any]:
    case, checks = trial.caught_by or (None, ())
    effects = {effect.value: count for effect, count in trial.effects.items()}
    return {
        "fault": trial.fault,
        "kind": trial.kind,
        "effects": effects,
        "case": case,
        "checks": list(checks),
        "earlier": trial.earlier,
    }


ABSENT, SURVIVED = ".", "!"
"""In a row of the kill matrix: no fault of the kind makes a difference; one survived."""


BLOCK = len(ascii_lowercase)
"""How many kinds of faults a block of a row has."""


def signs(audits: Audits) -> dict[str, str]:
    """For each kind of fault the block of the kill matrix's rows that it is in, and its letter there: `1a`, `2c`."""
    kinds = dict.fromkeys(trial.kind for one in audits for trial in one.trials)
    places = {kind: divmod(number, BLOCK) for number, kind in enumerate(kinds)}
    return {kind: f"{block + 1}{ascii_lowercase[place]}" for kind, (block, place) in places.items()}


def matrix_row(audit: FunctionAudit, sign_of: Mapping[str, str]) -> str:
    """A letter for each kind of fault of which all that made a difference were caught, in blocks."""
    applicable = {trial.kind for trial in audit.applicable}
    survived = {trial.kind for trial in audit.survivors}
    row = "".join(
        SURVIVED if kind in survived else sign[-1] if kind in applicable else ABSENT for kind, sign in sign_of.items()
    )
    return " ".join(row[start : start + BLOCK] for start in range(0, len(row), BLOCK))


def show(audits: Audits, console: Console) -> None:
    """Print which checks catch which faults, by kind and by function, what survived, and as the last line the count."""
    sign_of = signs(audits)
    by_kind = {kind: [t for one in audits for t in one.applicable if t.kind == kind] for kind in sign_of}
    table = Table("", "fault", "made a difference", "caught", "first seen by", box=None)
    for kind, trials in by_kind.items():
        table.add_row(sign_of[kind], kind, str(len(trials)), str(caught(trials)), _seen_by(trials))
    console.print(table)
    width = max((len(one.function) for one in audits), default=0)
    for one in audits:
        figures = f"{caught(one.applicable)}/{len(one.applicable)}"
        row = f"{one.function:{width}} {matrix_row(one, sign_of)} {figures:>8}  {_seen_by(one.applicable)}"
        console.print(row, **_PLAIN)
    for one in audits:
        for trial in one.survivors:
            console.print(f"survived {one.function}: {trial.fault}, shown by {trial.shown} cases", **_PLAIN)
    for one in audits:
        for parameter, (refused, tries) in one.unshown.items():
            console.print(
                f"not shown {one.function}: {parameter}, {tries} tries of which {refused} were refused", **_PLAIN
            )
    for one in audits:
        for kept in one.indistinct:
            console.print(f"not told apart {one.function}: {kept.fault}", **_PLAIN)
    console.print(count(audits), **_PLAIN)


_PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}


def _seen_by(trials: Sequence[Trial]) -> str:
    return ", ".join(f"{check} {times}" for check, times in first_seen_by(trials).most_common())

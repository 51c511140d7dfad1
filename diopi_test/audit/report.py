"""What an audit found, as JSON and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from diopi_test.audit.matrix import FunctionAudit, Trial, count

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
    return {"fault": trial.fault, "kind": trial.kind, "effects": effects, "case": case, "checks": list(checks)}


def show(audits: Audits, console: Console) -> None:
    """Print which checks catch which faults, by kind and by function, what survived, and as the last line the count."""
    kinds = _sorted_kinds(audits)
    _show_table(
        "fault", [(kind, [t for one in audits for t in one.applicable if t.kind == kind]) for kind in kinds], console
    )
    _show_table("function", [(one.function, one.applicable) for one in audits], console)
    for one in audits:
        for trial in one.survivors:
            console.print(f"survived {one.function}: {trial.fault}, shown by {trial.shown} cases", **_PLAIN)
    for one in audits:
        for parameter, (refused, tries) in one.unshown.items():
            console.print(
                f"not shown {one.function}: {parameter}, {tries} tries of which {refused} were refused", **_PLAIN
            )
    console.print(count(audits), **_PLAIN)


_PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}


def _show_table(what: str, rows: Sequence[tuple[str, Sequence[Trial]]], console: Console) -> None:
    table = Table(what, "made a difference", "caught", "first seen by", box=None)
    for name, trials in rows:
        caught = [trial.caught_by[1] for trial in trials if trial.caught_by]
        first = Counter(checks[0] if checks else "an error" for checks in caught)
        seen = ", ".join(f"{check} {times}" for check, times in first.most_common())
        table.add_row(name, str(len(trials)), str(len(caught)), seen)
    console.print(table)


def _sorted_kinds(audits: Audits) -> list[str]:
    return list(dict.fromkeys(trial.kind for one in audits for trial in one.trials))

"""What an audit prints: survivors by function, faults by how often they were caught, and the count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from diopi_test.audit.matrix import FunctionAudit


def to_json(audits: Sequence[FunctionAudit]) -> list[dict[str, Any]]:
    """A record a function, with every trial."""
    return [{"function": one.function, "trials": [trial.to_json() for trial in one.trials]} for one in audits]


def show(audits: Sequence[FunctionAudit], console: Console) -> None:
    """Print which checks catch which kind of fault, what survived, and as the last line the count."""
    _show_faults(audits, console)
    for one in audits:
        for trial in one.survivors:
            console.print(
                f"survived {one.function}: {trial.fault}, shown by {trial.shown} cases", markup=False, highlight=False
            )
    applicable = sum(len(one.applicable) for one in audits)
    survivors = sum(len(one.survivors) for one in audits)
    console.print(f"{applicable - survivors} of {applicable} faults in {len(audits)} functions caught", highlight=False)


def _show_faults(audits: Sequence[FunctionAudit], console: Console) -> None:
    """The faults every function can have, with the checks that caught them first."""
    common = Counter(trial.fault for one in audits for trial in one.applicable)
    caught: dict[str, Counter[str]] = {}
    for one in audits:
        for trial in one.applicable:
            if trial.caught_by is not None:
                caught.setdefault(trial.fault, Counter()).update([trial.caught_by[1][0]])
    table = Table("fault", "functions", "caught", "first seen by", box=None)
    for fault, count in common.most_common(40):
        checks = caught.get(fault, Counter())
        first = ", ".join(f"{check} {times}" for check, times in checks.most_common())
        table.add_row(fault, str(count), str(sum(checks.values())), first)
    console.print(table)

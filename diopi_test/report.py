"""The report of a run: records of all cases, their summary, JSON for programs and a summary for people."""

from __future__ import annotations

import json
import os
import platform
import shlex
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from diopi_proto.types import VERSION
from diopi_test.claims import ClaimsReport
from diopi_test.verdict import EXECUTED, UNSUCCESSFUL, Verdict

PACKAGES = ("diopi", "numpy", "scipy", "jax", "h5py", "ml_dtypes", "pytest")


@dataclass
class Report:
    """What a run found.

    Attributes:
        vendor: name and version.
        level, digest: of the baseline.
        command: the words of a command line that repeats the run, without a case filter.
        cases: a record a case, as the items make them.
        errors: what made the baseline unusable.
        claims: how what the vendor declares compares with what works; None if it declares nothing.
    """

    vendor: Mapping[str, str]
    level: str
    digest: str
    command: Sequence[str]
    cases: list[dict[str, Any]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    claims: ClaimsReport | None = None
    seconds: float = 0.0

    def add(self, record: Mapping[str, Any]) -> None:
        """Take in one case, with the command line that repeats it."""
        repeat = shlex.join([*self.command, "-k", record["id"]])
        self.cases.append({**record, "command": repeat})

    def counts(self) -> Counter[str]:
        """Number of cases by verdict."""
        return Counter(case["verdict"] for case in self.cases)

    @property
    def exit_status(self) -> int:
        """0 all executed cases passed, 1 some did not, 3 none was executed or the baseline is unusable."""
        counts = self.counts()
        if self.errors or not any(counts[verdict] for verdict in EXECUTED):
            return 3
        return 1 if any(counts[verdict] for verdict in UNSUCCESSFUL) else 0

    def to_json(self) -> dict[str, Any]:
        """The whole report."""
        counts = self.counts()
        return {
            "vendor": dict(self.vendor),
            "proto_version": ".".join(map(str, VERSION)),
            "baseline": {"level": self.level, "digest": self.digest},
            "environment": environment(),
            "summary": {
                "total": len(self.cases),
                **{verdict.value: counts[verdict] for verdict in Verdict},
                "seconds": round(self.seconds, 3),
            },
            "errors": self.errors,
            "claims": self.claims.to_json() if self.claims else None,
            "cases": sorted(self.cases, key=lambda case: str(case["id"])),
        }

    def write(self, path: Path) -> None:
        """Write the report as JSON, whole or not at all; OSError if the file can't be written."""
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(self.to_json(), file, indent=1)
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)

    def show(self, console: Console) -> None:
        """Print the summary: what went wrong case by case, then the counts and how near the limit the vendor is."""
        for error in self.errors:
            console.print(f"[red]unusable baseline[/]: {escape(error)}", highlight=False)
        self._show_unsuccessful(console)
        self._show_closest(console)
        if self.claims is not None:
            self.claims.show(console)
        counts = self.counts()
        parts = [f"{counts[verdict]} {verdict.value.replace('_', ' ')}" for verdict in Verdict if counts[verdict]]
        name = f"{self.vendor['name']} {self.vendor['version']}"
        colour = "green" if self.exit_status == 0 else "red"
        console.print(f"[{colour}]{name}[/]: {', '.join(parts) or 'no cases'} in {self.seconds:.1f} s")

    def _show_unsuccessful(self, console: Console, limit: int = 20) -> None:
        wrong = [case for case in self.cases if case["verdict"] in UNSUCCESSFUL]
        for case in wrong[:limit]:
            console.print(f"[red]{case['verdict']}[/] {escape(case['id'])}", highlight=False)
            console.print(f"  {case['message']}", highlight=False, markup=False)
            console.print(f"  {case['command']}", highlight=False, markup=False, style="dim", soft_wrap=True)
        if len(wrong) > limit:
            console.print(f"… and {len(wrong) - limit} more; --json FILE lists them all")

    def _show_closest(self, console: Console, rows: int = 5) -> None:
        """The cases that use most of their error budget."""
        measured = [(_largest_ratio(case), case) for case in self.cases if case["verdict"] == Verdict.passed]
        closest = sorted(((r, c) for r, c in measured if r), key=lambda pair: -pair[0])[:rows]
        if not closest:
            return
        table = Table("error / budget", "case", title="closest to the limit", title_justify="left", box=None)
        for ratio, case in closest:
            table.add_row(f"{ratio:.3f}", escape(case["id"]))
        console.print(table)


def _largest_ratio(case: Mapping[str, Any]) -> float:
    return max((check.get("ratio", 0.0) for check in case["checks"]), default=0.0)


def environment() -> dict[str, Any]:
    """What the run ran on."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "packages": {name: version(name) for name in PACKAGES},
    }

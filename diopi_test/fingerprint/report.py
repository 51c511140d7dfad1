"""What a fingerprint looks like: a table a family, types that have the same answers in one row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table

from diopi_proto.types import Dtype
from diopi_test.fingerprint.findings import Finding, Fingerprint
from diopi_test.fingerprint.probe import REFUSED


def show(fingerprint: Fingerprint, console: Console) -> None:
    """Print the fingerprint."""
    console.print(f"{fingerprint.vendor} {fingerprint.version}", markup=False, highlight=False)
    for family, findings in groupby(fingerprint.findings, lambda finding: finding.family):
        console.print()
        console.print(_table(family, list(findings)))


def _table(family: str, findings: Sequence[Finding]) -> Table:
    aspects = list(dict.fromkeys(aspect for one in findings for aspect in one.answers if aspect != REFUSED))
    columns = aspects or [REFUSED]
    table = Table(family, "types", *columns, box=None, title_justify="left", pad_edge=False)
    for name, variants, finding in _rows(findings):
        refusal = finding.answers.get(REFUSED)
        cells = [refusal] if refusal is not None else [finding.answers.get(aspect, "") for aspect in columns]
        table.add_row(name, types(variants), *cells)
    return table


def _rows(findings: Sequence[Finding]) -> Iterable[tuple[str, list[tuple[Dtype, ...]], Finding]]:
    """A row for each function and set of answers: name, variants that gave them, one of the findings."""
    rows: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        name = f"{finding.function} {finding.subject}".strip()
        rows.setdefault((name, *map(": ".join, finding.answers.items())), []).append(finding)
    for key, group in rows.items():
        yield key[0], [finding.dtypes for finding in group], group[0]


def types(variants: Sequence[tuple[Dtype, ...]]) -> str:
    """Variants in words: float16, float32; of conversions float16 → int8, int16; float32 → int8."""
    targets: dict[str, list[str]] = {}
    for source, *rest in variants:
        targets.setdefault(source.name, []).extend(dtype.name for dtype in rest)
    if not any(targets.values()):
        return ", ".join(targets)
    sources: dict[str, list[str]] = {}
    for source_name, names in targets.items():
        sources.setdefault(", ".join(names), []).append(source_name)
    return "; ".join(f"{', '.join(names)} → {target}" for target, names in sources.items())

"""Print a fingerprint, the measured properties of a vendor's arithmetic, as one table per family of probes.

A table has a column per observed aspect. Element types for which a function has the same observations share a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table

from diopi_proto.types import Dtype
from diopi_test.fingerprint.probe import NO_RESULT
from diopi_test.fingerprint.results import Fingerprint, ProbeResult


def print_fingerprint(fingerprint: Fingerprint, console: Console) -> None:
    """Print the name and version of the vendor and a table for each family of probes."""
    console.print(f"{fingerprint.vendor} {fingerprint.version}", markup=False, highlight=False)
    for family, results in groupby(fingerprint.results, lambda result: result.family):
        console.print()
        console.print(_table(family, list(results)))


def _table(family: str, results: Sequence[ProbeResult]) -> Table:
    """Return the table of a family of probes.

    If a probe failed, the first column of observations contains the reason.
    """
    aspects = list(dict.fromkeys(aspect for result in results for aspect in result.observations if aspect != NO_RESULT))
    columns = aspects or [NO_RESULT]
    table = Table(family, "types", *columns, box=None, title_justify="left", pad_edge=False)
    for name, variants, result in _rows(results):
        refusal = result.observations.get(NO_RESULT)
        cells = [refusal] if refusal is not None else [result.observations.get(aspect, "") for aspect in columns]
        table.add_row(name, describe_variants(variants), *cells)
    return table


def _rows(results: Sequence[ProbeResult]) -> Iterable[tuple[str, list[tuple[Dtype, ...]], ProbeResult]]:
    """Yield the rows of a table: function and subject, the variants that share the row, and one of their results."""
    rows: dict[tuple[str, ...], list[ProbeResult]] = {}
    for result in results:
        name = f"{result.function} {result.subject}".strip()
        rows.setdefault((name, *map(": ".join, result.observations.items())), []).append(result)
    for key, group in rows.items():
        yield key[0], [result.dtypes for result in group], group[0]


def describe_variants(variants: Sequence[tuple[Dtype, ...]]) -> str:
    """Return the combinations of element types of a row as text.

    Args:
        variants: the combinations: single types, or the source and the target type of conversions.

    Returns:
        Text such as `float16, float32`, and for conversions such as `float16 → int8, int16; float32 → int8`.
    """
    targets: dict[str, list[str]] = {}
    for source, *targets_of_variant in variants:
        targets.setdefault(source.name, []).extend(dtype.name for dtype in targets_of_variant)
    if not any(targets.values()):
        return ", ".join(targets)
    sources: dict[str, list[str]] = {}
    for source_name, names in targets.items():
        sources.setdefault(", ".join(names), []).append(source_name)
    return "; ".join(f"{', '.join(names)} → {target}" for target, names in sources.items())

"""The comparison of a vendor's claims with the results of a run.

A claim states that a function supports certain element types and layouts. A *use* is a function with one element type
and the layouts of its tensors, as the cases of the run call it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from diopi_impl import Claim
from diopi_proto.types import Dtype
from diopi_test.baseline.index_view import IndexView
from diopi_test.baseline.level import open_level_of_file
from diopi_test.baseline.readability import check_readable
from diopi_test.results.pooling import is_pooled
from diopi_test.results.records import CaseRecord, ClaimsReport, Use


def show(claims: ClaimsReport, console: Console) -> None:
    """Print the claimed uses that do not work, and the working uses that are not claimed."""
    _show("declared, does not work", claims.declared_does_not_work, console)
    _show("works, not declared", claims.works_not_declared, console)


def _show(title: str, uses: Sequence[Use], console: Console, rows: int = 20) -> None:
    """Print uses as a table of at most `rows` rows, and how many more there are."""
    if not uses:
        console.print(f"{title}: nothing")
        return
    table = Table("function", "element type", "layouts", "cases", title=title, title_justify="left", box=None)
    for use in uses[:rows]:
        cases = ", ".join(f"{number} {verdict.replace('_', ' ')}" for verdict, number in sorted(use.verdicts.items()))
        table.add_row(use.function, use.dtype.name, ", ".join(use.layouts), cases)
    console.print(table)
    if len(uses) > rows:
        console.print(f"… and {len(uses) - rows} more; --json FILE lists them all")


def compare_claims(claims: Sequence[Claim], cases: Sequence[CaseRecord], files: Sequence[Path]) -> ClaimsReport | None:
    """Compare a vendor's claims with the records of its cases.

    Cases that are not stored (cases of the runtime and derived cases) are not compared.

    Args:
        claims: The vendor's claims.
        cases: The records of all cases.
        files: The baseline files of the cases.

    Returns:
        The comparison; None without claims.

    Raises:
        BaselineError: A file can't be read, or differs from the manifest of its level.
    """
    if not claims:
        return None
    contradicting = [use for use in _uses(cases, files) if use.works is not _is_declared(use, claims)]
    return ClaimsReport(
        tuple(claims),
        tuple(use for use in contradicting if not use.works),
        tuple(use for use in contradicting if use.works),
    )


def _is_declared(use: Use, claims: Sequence[Claim]) -> bool:
    """Return whether a claim of the vendor covers the use."""
    return any(claim.covers(use.function, use.dtype, use.layouts) for claim in claims)


def _uses(cases: Sequence[CaseRecord], files: Sequence[Path]) -> list[Use]:
    """Return the uses of the stored cases, sorted, with the numbers of their cases by verdict."""
    functions = {case.function for case in cases}
    digests = {path: open_level_of_file(path).sha256(path.stem) for path in files if path.stem in functions}
    check_readable(digests)
    views = {path.stem: IndexView(path, sha256) for path, sha256 in digests.items()}
    verdicts: dict[tuple[str, Dtype, tuple[str, ...]], Counter[str]] = {}
    for case in cases:
        if case.base or is_pooled(case.id) or case.function not in views:
            continue
        key = (case.function, Dtype[case.dtype], tuple(sorted(views[case.function].layouts(case.label))))
        verdicts.setdefault(key, Counter())[case.verdict.value] += 1
    return [
        Use(function=function, dtype=dtype, layouts=layouts, verdicts=dict(sorted(verdicts_of_use.items())))
        for (function, dtype, layouts), verdicts_of_use in sorted(verdicts.items())
    ]

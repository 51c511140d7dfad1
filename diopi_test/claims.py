"""What a vendor declares compared with what works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from diopi_impl import Claim
from diopi_proto.types import Dtype
from diopi_test.outline import Outline
from diopi_test.verdict import Verdict


@dataclass(frozen=True)
class Use:
    """A function with one element type and with tensors in certain layouts, and how its cases ended.

    Attributes:
        verdicts: number of cases by verdict.
    """

    function: str
    dtype: Dtype
    layouts: tuple[str, ...]
    verdicts: Counter[str]

    @property
    def works(self) -> bool:
        """Whether every case passed."""
        return set(self.verdicts) == {Verdict.passed}

    def to_json(self) -> dict[str, Any]:
        """The use as the report shows it."""
        return {
            "function": self.function,
            "dtype": self.dtype.name,
            "layouts": list(self.layouts),
            "verdicts": dict(sorted(self.verdicts.items())),
        }


@dataclass(frozen=True)
class ClaimsReport:
    """How claims and results compare.

    Attributes:
        declared: the claims.
        broken: uses that are declared, of which not every case passed.
        modest: uses that are not declared, of which every case passed.
    """

    declared: Sequence[Claim]
    broken: Sequence[Use]
    modest: Sequence[Use]

    def to_json(self) -> dict[str, Any]:
        """The report's key `claims`."""
        return {
            "declared": [claim.to_json() for claim in self.declared],
            "declared_does_not_work": [use.to_json() for use in self.broken],
            "works_not_declared": [use.to_json() for use in self.modest],
        }

    def show(self, console: Console) -> None:
        """Print both lists."""
        _show("declared, does not work", self.broken, console)
        _show("works, not declared", self.modest, console)


def _show(title: str, uses: Sequence[Use], console: Console, rows: int = 20) -> None:
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


def compare_claims(
    claims: Sequence[Claim], cases: Iterable[Mapping[str, Any]], files: Sequence[Path]
) -> ClaimsReport | None:
    """Compare `claims` with the records of cases of the baseline `files`; None without claims.

    Cases that have no element type, those of the runtime and negative ones, take no part.
    """
    if not claims:
        return None
    wrong = [use for use in _uses(cases, files) if use.works is not _is_declared(use, claims)]
    return ClaimsReport(
        claims,
        [use for use in wrong if not use.works],
        [use for use in wrong if use.works],
    )


def _is_declared(use: Use, claims: Sequence[Claim]) -> bool:
    return any(claim.covers(use.function, use.dtype, use.layouts) for claim in claims)


def _uses(cases: Iterable[Mapping[str, Any]], files: Sequence[Path]) -> list[Use]:
    outlines: dict[str, Outline] = {}
    paths = {path.stem: path for path in files}
    verdicts: dict[tuple[str, Dtype, tuple[str, ...]], Counter[str]] = {}
    for case in cases:
        function = case["function"]
        if not case["dtype"] or function not in paths:
            continue
        if function not in outlines:
            outlines[function] = Outline(paths[function])
        label = case["id"].removeprefix(f"{function}[").removesuffix("]")
        key = (function, Dtype[case["dtype"]], tuple(sorted(outlines[function].layouts(label))))
        verdicts.setdefault(key, Counter())[str(case["verdict"])] += 1
    return [Use(*key, found) for key, found in sorted(verdicts.items())]

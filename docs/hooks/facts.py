"""What other pages and the stored cases state about a function: its cases, its margins, and defects of other software.

The pages of the functions show these facts. Each of them is read from its source when the site is built.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from diopi_proto.interface import prototypes
from diopi_test.baseline.manifest import ListedCase, read_manifest
from diopi_test.cases.case import CaseClass

ROOT = Path(__file__).parents[2]

PREFIX = "negative-"
"""The beginning of the label of a case that must be rejected."""


@cache
def _cases() -> Mapping[str, Sequence[ListedCase]]:
    """Return the cases of level smoke, by function."""
    manifest, _ = read_manifest(ROOT / "baseline_data" / "smoke")
    return {name: entry.cases for name, entry in manifest.files.items()}


def count_cases(function: str) -> Counter[str]:
    """Return the number of a function's cases at level smoke, by class."""
    return Counter(case.class_.value for case in _cases().get(function, ()))


def rejected_calls(function: str) -> Sequence[str]:
    """Return the labels of the invalid calls of a function that a vendor must reject, without their common prefix."""
    cases = (case.label for case in _cases().get(function, ()) if case.class_ is CaseClass.negative)
    return list(dict.fromkeys(label.removeprefix(PREFIX) for label in cases))


@cache
def _margins() -> Mapping[str, Mapping[str, str]]:
    """Return the margins of the built-in vendors that `docs/margins.md` lists, by function and vendor."""
    _, _, section = (ROOT / "docs" / "margins.md").read_text("utf-8").partition("\n## By function\n")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", section, re.M)]
    vendors = rows[0][1:]
    return {row[0].strip("`"): dict(zip(vendors, row[1:], strict=True)) for row in rows[2:]}


def margins(function: str) -> Mapping[str, str]:
    """Return the largest error of each built-in vendor, divided by the budget; empty if no result is rounded."""
    return {vendor: ratio for vendor, ratio in _margins().get(function, {}).items() if ratio != "-"}


@cache
def _defects() -> Mapping[str, Sequence[tuple[str, str, str, str]]]:
    """Return the defects that `docs/found.md` lists, by plain function; each of them has four cells of the tables."""
    operators = tomllib.loads(Path(__file__).with_name("operators.toml").read_text("utf-8"))
    found: dict[str, list[tuple[str, str, str, str]]] = defaultdict(list)
    library = ""
    for line in (ROOT / "docs" / "found.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            library = line.removeprefix("## ")
        elif line.startswith("| ") and not line.startswith(("| call |", "| --- |")):
            call, actual, expected = line.strip("| ").split(" | ")[:3]
            found[operators[call.split(" ", 1)[0]]].append((library, call, actual, expected))
    return found


def defects(function: str) -> Sequence[tuple[str, str, str, str]]:
    """Return the known defects of other software in an operator: library, call, actual and expected result."""
    return _defects().get(prototypes()[function].base, ())

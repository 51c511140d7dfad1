"""Drafts of waiver files from the failed cases of a report, for people to complete."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

from diopi_impl.base import matches
from diopi_test.results.records import CaseRecord, Report
from diopi_test.waivers.rules import BADNESS, least_ratio

HEAD = """\
# Waivers for {vendor}, made of a report at level {level}.
# An entry without a reason is refused: say what is wrong, or delete the entry. `link` and `expires = 2027-01-31` are
# welcome.
"""

_MESSAGE = 150
"""Maximum number of characters of a message in a draft."""


def draft(report: Report) -> str:
    """Return TOML text with an entry for each group of failed cases; empty if none failed."""
    failed = sorted(filter(_is_wrong, report.cases), key=_group)
    if not failed:
        return ""
    of_function = defaultdict(list)
    for case in report.cases:
        of_function[case.function].append(case)
    entries = [
        _entry(pattern, cases)
        for (function, _), group in groupby(failed, key=_group)
        for pattern, cases in _patterns(list(group), of_function[function])
    ]
    return "\n".join((HEAD.format(vendor=_comment(report.vendor.title), level=report.baseline.level), *entries))


def _is_wrong(case: CaseRecord) -> bool:
    return BADNESS.get(case.verdict, 0) > 0


def _group(case: CaseRecord) -> tuple[str, str]:
    return case.function, str(case.verdict)


def _patterns(group: Sequence[CaseRecord], known: Sequence[CaseRecord]) -> Iterator[tuple[str, list[CaseRecord]]]:
    """Yield patterns that match the cases of a group and no other of the function's `known` cases.

    One pattern if these are all cases of the function; else one for each element type of which they are all; else one
    for each case.
    """
    left = {case.id: case for case in group}
    function, dtypes = group[0].function, sorted({case.dtype for case in group if case.dtype})
    for pattern in (f"{function}[*]", *(f"{function}[{dtype}-*]" for dtype in dtypes)):
        matched = [case for case in known if matches(pattern, case.id)]
        if len(matched) > 1 and all(case.id in left for case in matched):
            yield pattern, [left.pop(case.id) for case in matched]
    yield from ((name, [case]) for name, case in left.items())


def _entry(pattern: str, cases: Sequence[CaseRecord]) -> str:
    first = cases[0]
    number = f"{len(cases)} cases, the first is {first.id}: " if len(cases) > 1 else ""
    lines = [f"# {number}{_comment(first.message)}"]
    if first.verdict == "flaky":
        lines += ["[[flaky]]", f"pattern = {_text(pattern)}", "retries = 2"]
    else:
        lines += [*_ratio(cases), "[[waiver]]", f"pattern = {_text(pattern)}", f"verdict = {_text(str(first.verdict))}"]
    return "\n".join((*lines, 'reason = ""', ""))


def _ratio(cases: Sequence[CaseRecord]) -> Iterator[str]:
    """Return the `max_ratio` line if the cases only exceed their error budgets."""
    ratios = [ratio for case in cases if (ratio := least_ratio(case)) is not None]
    if len(ratios) == len(cases) and math.isfinite(max(ratios)):
        yield f"# error / budget up to {max(ratios):.3g}: `max_ratio = {math.ceil(max(ratios))}` in place of verdict"


def _text(value: str) -> str:
    """Return a TOML basic string."""
    return json.dumps(value, ensure_ascii=False)


def _comment(message: str) -> str:
    """Return a message as a one-line comment."""
    line = " ".join(message.split())
    shortened = line if len(line) <= _MESSAGE else f"{line[: _MESSAGE - 1]}…"
    return "".join(character if character.isprintable() else "�" for character in shortened)

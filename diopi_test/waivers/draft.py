"""Drafts of waiver files from the failed cases of a report, for people to complete.

An entry without a reason is written as a comment, so that the file can always be read.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import final

from diopi_impl.base import Waiver, matches
from diopi_test.results.records import CaseRecord, Report
from diopi_test.waivers.rules import BADNESS, least_ratio

HEAD = """\
# Waivers for {vendor}, generated from a report at level {level}.
"""
"""The first lines of a draft."""

ADVICE = """\
# An entry without a reason is a comment and waives nothing. Write what is wrong into `reason`, and remove `# ` from the
# beginning of the lines. `link` and `expires = 2027-01-31` are welcome.
"""
"""The lines that follow if the draft has entries: how to complete them."""

_MESSAGE = 150
"""Maximum number of characters of a message in a draft."""


@final
@dataclass(frozen=True, kw_only=True)
class DraftEntry:
    """An entry of a draft.

    Attributes:
        comments: lines for people, without `# `.
        table: the lines of the table except for `reason`, such as `[[waiver]]` and `pattern = "diopiSoftmax[*]"`.
        reason: why the cases may fail; empty if a person must add it.
    """

    comments: Sequence[str]
    table: Sequence[str]
    reason: str = ""

    @property
    def text(self) -> str:
        """Return the entry as TOML; as a comment if it has no reason."""
        lines = (*(f"# {line}" for line in self.comments), *self.table, f"reason = {_text(self.reason)}")
        return "\n".join((*(lines if self.reason.strip() else [f"# {line}" for line in lines]), ""))


def draft(report: Report) -> str:
    """Return the text of a waiver file with an entry for each group of failed cases, without reasons.

    The entries of a function are grouped by verdict and by pattern, see `_patterns`. The text is empty if no case
    failed.
    """
    failed = sorted(filter(_is_wrong, report.cases), key=_group)
    if not failed:
        return ""
    of_function = defaultdict(list)
    for case in report.cases:
        of_function[case.function].append(case)
    entries = [
        _entry(pattern, cases).text
        for (function, _), group in groupby(failed, key=_group)
        for pattern, cases in _patterns(list(group), of_function[function])
    ]
    return "\n".join((head(report) + ADVICE, *entries))


def head(report: Report) -> str:
    """Return the comment at the beginning of a waiver file, which names the vendor and the level of a report."""
    return HEAD.format(vendor=_comment(report.vendor.title), level=report.baseline.level)


def draft_cause(report: Report, cause: str, reason: str, known: Collection[Waiver] = ()) -> list[str]:
    """Return a TOML entry for each function with failed cases of a cause.

    Args:
        report: the report.
        cause: the ID of the cause.
        reason: what is wrong; if it is empty, the entries are comments.
        known: existing waivers. Functions that have a waiver for this cause are omitted.

    Returns:
        The entries, sorted by function.
    """
    of_function = defaultdict(list)
    for case in report.cases:
        if case.cause == cause and _is_wrong(case):
            of_function[case.function].append(case)
    covered = {waiver.pattern for waiver in known if waiver.cause == cause}
    sentences = [
        _comment(f"cause {cause}: {reported_cause.sentence}")
        for reported_cause in report.causes
        if reported_cause.id == cause
    ]
    examples = {reported_cause.smallest_case for reported_cause in report.causes}
    entries = []
    for function, cases in sorted(of_function.items()):
        pattern, verdict = f"{function}[*]", max((case.verdict for case in cases), key=lambda name: BADNESS[name])
        if pattern in covered:
            continue
        case = min(cases, key=lambda case: (case.id not in examples, len(case.id), case.id))
        table = [
            "[[waiver]]",
            f"pattern = {_text(pattern)}",
            f"cause = {_text(cause)}",
            f"case = {_text(case.id)}",
        ]
        if BADNESS[verdict] > BADNESS["failed"]:
            table.append(f"verdict = {_text(str(verdict))}")
        comments = (*sentences, _describe(cases))
        entries.append(DraftEntry(comments=comments, table=table, reason=reason).text)
    return entries


def _is_wrong(case: CaseRecord) -> bool:
    """Return whether the case has an unsuccessful verdict."""
    return BADNESS.get(case.verdict, 0) > 0


def _group(case: CaseRecord) -> tuple[str, str]:
    """Return the function and the verdict of a case; cases with equal keys are drafted together."""
    return case.function, str(case.verdict)


def _patterns(group: Sequence[CaseRecord], all_cases: Sequence[CaseRecord]) -> Iterator[tuple[str, list[CaseRecord]]]:
    """Yield patterns that match the cases of a group, but no other case of the function.

    If the group has all cases of the function, there is one pattern, `diopiSoftmax[*]`. Otherwise, there is a pattern
    such as `diopiSoftmax[float16-*]` for each element type whose cases are all in the group. Each remaining case is its
    own pattern, and so is a case that is the only one of its function or element type.

    Args:
        group: The cases to match.
        all_cases: All cases of the function in the report.

    Yields:
        A pattern, and the cases of the group that it matches.
    """
    left = {case.id: case for case in group}
    function, dtypes = group[0].function, sorted({case.dtype for case in group if case.dtype})
    for pattern in (f"{function}[*]", *(f"{function}[{dtype}-*]" for dtype in dtypes)):
        matched = [case for case in all_cases if matches(pattern, case.id)]
        if len(matched) > 1 and all(case.id in left for case in matched):
            yield pattern, [left.pop(case.id) for case in matched]
    yield from ((name, [case]) for name, case in left.items())


def _entry(pattern: str, cases: Sequence[CaseRecord]) -> DraftEntry:
    """Return the draft of a table for cases that a pattern matches: `[[flaky]]` for flaky cases, else `[[waiver]]`."""
    first = cases[0]
    if first.verdict == "flaky":
        return DraftEntry(
            comments=[_describe(cases)], table=["[[flaky]]", f"pattern = {_text(pattern)}", "retries = 2"]
        )
    return DraftEntry(
        comments=[_describe(cases), *_ratio(cases)],
        table=["[[waiver]]", f"pattern = {_text(pattern)}", f"verdict = {_text(str(first.verdict))}"],
    )


def _describe(cases: Sequence[CaseRecord]) -> str:
    """Return the number of cases and the message of the first one."""
    number = f"{len(cases)} cases, the first is {cases[0].id}: " if len(cases) > 1 else ""
    return f"{number}{_comment(cases[0].message)}"


def _ratio(cases: Sequence[CaseRecord]) -> Iterator[str]:
    """Yield a line that suggests the key `max_ratio` if all cases only exceed their error budgets by finite factors."""
    ratios = [ratio for case in cases if (ratio := least_ratio(case)) is not None]
    if len(ratios) == len(cases) and math.isfinite(max(ratios)):
        yield f"error / budget up to {max(ratios):.3g}: `max_ratio = {math.ceil(max(ratios))}` in place of verdict"


def _text(value: str) -> str:
    """Return a TOML basic string."""
    encodable = value.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(encodable, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(message: str) -> str:
    """Return a message as a one-line comment."""
    line = " ".join(message.split())
    shortened = line if len(line) <= _MESSAGE else f"{line[: _MESSAGE - 1]}…"
    return "".join(character if character.isprintable() else "�" for character in shortened)

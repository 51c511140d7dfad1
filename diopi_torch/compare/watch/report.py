"""Format the report of a watch: the result, a table of operators with incorrect results, and the number of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import final

from diopi_torch.compare.watch.findings import WrongOperator
from diopi_torch.compare.watch.judge import FLOAT64

HEADINGS = ("", "severity", "operator", "type", "error/budget", "relative error", "wrong", "uses", "reach", "judged by")
"""The headings of the columns of the table; the first column numbers the operators."""


@final
@dataclass(kw_only=True)
class CallCounts:
    """How many calls a watch judged, and the time that judging took.

    Attributes:
        judged: the number of judged calls by reference: a function, or `FLOAT64`.
        sampled: the number of judged calls of which only a sample of elements or rows was judged.
        not_judged: the number of calls that were not judged, by reason.
        overhead_seconds: the time that judging took, in seconds.
    """

    judged: Counter[str] = field(default_factory=Counter)
    sampled: int = 0
    not_judged: Counter[str] = field(default_factory=Counter)
    overhead_seconds: float = 0.0


def format_report(operators: Sequence[WrongOperator], counts: CallCounts, program_seconds: float) -> str:
    """Return the text of the report.

    Args:
        operators: the wrong operators, the most severe first.
        counts: the numbers of calls that were judged and not judged.
        program_seconds: the time that the program itself took, in seconds.

    Returns:
        The report, several lines.
    """
    table = _table(operators) if operators else []
    time = f"time: the program {program_seconds:.1f} s, judging {counts.overhead_seconds:.1f} s"
    return "\n".join([_verdict(operators, counts.judged.total()), *table, *_describe_counts(counts), time]) + "\n"


def _verdict(operators: Sequence[WrongOperator], judged: int) -> str:
    """Return the first line of the report: whether operators computed incorrect results in `judged` judged calls."""
    if not operators:
        return f"no operator is wrong in {judged:,} judged {_plural('call', judged)}"
    names = ", ".join(f"{entry.operator} ({entry.dtype})" for entry in operators)
    are = "1 operator is" if len(operators) == 1 else f"{len(operators)} operators are"
    return f"{are} wrong: {names}"


def _plural(noun: str, count: int) -> str:
    """Return a noun in the singular or plural."""
    return noun if count == 1 else f"{noun}s"


def _table(operators: Sequence[WrongOperator]) -> Iterator[str]:
    """Yield the lines of the table of wrong operators; the lines with the details of an operator follow its row."""
    rows = [HEADINGS, *(_row(number, entry) for number, entry in enumerate(operators, 1))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    yield lines[0]
    for line, entry in zip(lines[1:], operators, strict=True):
        form = entry.worst_form
        yield line
        yield f"     called at {form.origin}"
        yield f"     with {form.description}"
        yield f"     {form.judgment.message.partition('; ')[0]}"
        if form.command:
            yield f"     replay: {form.command}"


def _row(number: int, entry: WrongOperator) -> tuple[str, ...]:
    """Return the cells of the row for an operator, in the order of `HEADINGS`."""
    return (
        str(number),
        str(entry.severity),
        entry.operator,
        entry.dtype,
        f"{entry.ratio:.3g}",
        f"{entry.relative_error:.2g}",
        str(entry.wrong_calls),
        str(entry.uses),
        f"{entry.reach:.2g}",
        ", ".join(entry.worst_form.judgment.references),
    )


def _describe_counts(counts: CallCounts) -> Iterator[str]:
    """Yield the lines with the numbers of calls that were judged and not judged."""
    judged, skipped = counts.judged.total(), counts.not_judged.total()
    in_float64 = sum(count for reference, count in counts.judged.items() if FLOAT64 in reference)
    yield f"calls: {judged + skipped:,}; judged: {judged:,}"
    yield f"  by the references of the standard: {judged - in_float64:,}"
    yield f"  by the same ATen operator in float64 on the CPU, because the standard does not have it: {in_float64:,}"
    yield f"  of these, on a sample of elements or rows: {counts.sampled:,}"
    yield f"not judged: {skipped:,}"
    for reason, count in counts.not_judged.most_common():
        yield f"  {count:,} {reason}"

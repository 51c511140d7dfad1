"""The results of mutation tests as JSON and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import Any

from rich.console import Console
from rich.table import Table

from diopi_test.quality.mutation.matrix import (
    MutantResult,
    MutationReport,
    count_killed,
    count_killing_checks,
    format_score,
)

Reports = Sequence[MutationReport]
"""The reports of several functions."""

SCHEMA_VERSION = 2
"""The version of the JSON report. Version 1 was a list of functions, with `trials` and `fault`."""


def to_json(reports: Reports) -> dict[str, Any]:
    """Return the JSON report with the result of every mutant.

    Args:
        reports: the reports of the functions.

    Returns:
        A dictionary with `schema_version` and `functions`, a list with a record per function.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "functions": [
            {
                "function": report.function,
                "parameters_without_effect": report.parameters_without_effect,
                "mutants": [_result_to_json(result) for result in report.results],
            }
            for report in reports
        ],
    }


def _result_to_json(result: MutantResult) -> dict[str, Any]:
    """Return the result of a mutant as a JSON record."""
    case, checks = result.killed_by or (None, ())
    effects = {effect.value: count for effect, count in result.effects.items()}
    return {
        "mutant": result.mutant,
        "kind": result.kind,
        "effects": effects,
        "killed": result.killed_by is not None,
        "case": case,
        "checks": list(checks),
        "earlier": result.earlier,
    }


NOT_APPLICABLE, SURVIVED = ".", "!"
"""Signs in a row of the kill matrix: `.` if no mutant of the kind changed a result, `!` if a mutant survived."""

BLOCK = len(ascii_lowercase)
"""The number of kinds of mutants in a block of a row."""


def assign_signs(reports: Reports) -> dict[str, str]:
    """Return the sign of each kind of mutant in the kill matrix: the number of a block and a letter, for instance `1a`.

    Args:
        reports: the reports of the functions.

    Returns:
        The signs by kind, in the order in which the kinds occur.
    """
    kinds = dict.fromkeys(result.kind for report in reports for result in report.results)
    places = {kind: divmod(number, BLOCK) for number, kind in enumerate(kinds)}
    return {kind: f"{block + 1}{ascii_lowercase[place]}" for kind, (block, place) in places.items()}


def matrix_row(report: MutationReport, sign_of: Mapping[str, str]) -> str:
    """Return a function's row of the kill matrix: a letter for each kind whose mutants were all killed, in blocks.

    Args:
        report: the report of the function.
        sign_of: the signs of the kinds.

    Returns:
        The blocks, separated by spaces.
    """
    applicable = {result.kind for result in report.applicable}
    survived = {result.kind for result in report.survivors}
    row = "".join(
        SURVIVED if kind in survived else sign[-1] if kind in applicable else NOT_APPLICABLE
        for kind, sign in sign_of.items()
    )
    return " ".join(row[start : start + BLOCK] for start in range(0, len(row), BLOCK))


def print_report(reports: Reports, console: Console) -> None:
    """Print the killed mutants by kind and by function, the survivors, and the score as the last line.

    Args:
        reports: the reports of the functions.
        console: the console to print to.
    """
    sign_of = assign_signs(reports)
    by_kind = {kind: [r for report in reports for r in report.applicable if r.kind == kind] for kind in sign_of}
    table = Table("", "mutant", "changed a result", "killed", "first failed check", box=None)
    for kind, results in by_kind.items():
        table.add_row(sign_of[kind], kind, str(len(results)), str(count_killed(results)), _list_checks(results))
    console.print(table)
    width = max((len(report.function) for report in reports), default=0)
    for report in reports:
        score = f"{count_killed(report.applicable)}/{len(report.applicable)}"
        row = f"{report.function:{width}} {matrix_row(report, sign_of)} {score:>8}  {_list_checks(report.applicable)}"
        console.print(row, **_PLAIN)
    for report in reports:
        for result in report.survivors:
            cases = f"{result.change_count} case{'' if result.change_count == 1 else 's'}"
            console.print(f"survived {report.function}: {result.mutant}, which changed a result in {cases}", **_PLAIN)
    for report in reports:
        for parameter, (undefined, attempts) in report.parameters_without_effect.items():
            console.print(
                f"no effect {report.function}: {parameter}, {attempts} attempts, {undefined} without a defined result",
                **_PLAIN,
            )
    for report in reports:
        for result in report.not_covered:
            console.print(f"not covered {report.function}: {result.mutant}", **_PLAIN)
    console.print(format_score(reports), **_PLAIN)


_PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}
"""Options with which the console prints a line unchanged."""


def _list_checks(results: Sequence[MutantResult]) -> str:
    """Return how many mutants each check killed, as text."""
    return ", ".join(f"{check} {count}" for check, count in count_killing_checks(results).most_common())

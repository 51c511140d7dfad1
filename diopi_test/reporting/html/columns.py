"""The data of an HTML report in columns: one list per property of cases, with one entry per case.

Data in this form is smaller than one object per case, so that browsers load it faster.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, final

from diopi_test.baseline.codec import to_json
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import UNSUCCESSFUL, Verdict
from diopi_test.reporting.html.cause_sentences import translate_diagnosis, translate_sentence
from diopi_test.reporting.html.cause_summary import diagnosis_page
from diopi_test.reporting.html.definitions import describe_functions
from diopi_test.reporting.html.texts import LANGUAGES
from diopi_test.results.causes.cause import Cause
from diopi_test.results.operators import list_operators, summarize_overrides
from diopi_test.results.overview import describe_run
from diopi_test.results.records import CaseRecord, Report
from diopi_test.results.stacks import split_stack

DETAILS = 5 * 2**20
"""The approximate maximum number of characters of the details of all failures, which limits the size of the page.

If a report has more, the functions with the most failures have details of only some of their failures.
"""

SHORT = 160
"""The maximum number of characters of a message in the list of cases; the details have the full text."""

TABLES = ("function", "dtype", "class", "verdict", "checks", "check", "command", "severity", "cause")
"""The columns whose values repeat. Each entry is a number: the position of the value in a table of distinct values."""

LONG = 2000
"""The maximum number of characters of a message in the details."""


def build_columns(report: Report) -> Mapping[str, Any]:
    """Return the data of the page of a report.

    The data has these keys:

    - `report`: the report without its cases
    - `facts`: what identifies the run
    - `declaration`: contradictions of the declared arithmetic, as pairs of a key and a text
    - `cases`: a column for each property that all cases have, with one entry per case
    - `tables`: the values to which the numbers in columns refer
    - `messages`, `bases`, `waived`, `timings`, `details`: properties that only some cases have, by the case's number;
      `details` contains the failed checks as in the report's JSON
    - `unsuccessful`: the verdicts that count against a vendor
    - `uncounted`: the classes that do not affect the exit status
    - `minor`: the numbers of failed cases whose severity is too low to affect the exit status
    - `operators`: which operators of a framework served each function, and how many overrides of a library were used;
      None if the run recorded no operators
    - `causes`: the sentence in each language and the documentation page of each cause
    - `functions`: the definitions of functions with failures

    Returns:
        A mapping that the scripts of the page read.
    """
    cases, tables = report.cases, _Tables()
    listed = _columns(cases, tables)
    minor = {case.id for case in report.minor_failures}
    return {
        "report": _frame(report),
        "facts": [[name, text] for name, text in describe_run(report) if text],
        "declaration": list(map(list, report.declaration_check.findings)) if report.declaration_check else [],
        "unsuccessful": sorted(UNSUCCESSFUL),
        "uncounted": [class_ for class_ in CaseClass if not report.decides(class_)],
        "minor": [number for number, case in enumerate(cases) if case.id in minor],
        "operators": _operators(report),
        "causes": [_cause(cause) for cause in report.causes],
        "cases": listed,
        "tables": tables.content,
        "functions": describe_functions(case.function for case in cases if case.verdict in UNSUCCESSFUL),
        **_optional_columns(cases),
    }


def _optional_columns(cases: Sequence[CaseRecord]) -> Mapping[str, Any]:
    """Return the properties that only some cases have, each by the number of the case."""
    return {
        "messages": _by_number(cases, lambda case: _cut(split_stack(case.message)[0], SHORT)),
        "bases": _by_number(cases, lambda case: case.base),
        "waived": _by_number(cases, lambda case: [case.waived_verdict] if case.waived_verdict else None),
        "timings": _by_number(cases, _timing),
        "details": _details(cases),
    }


def _operators(report: Report) -> Mapping[str, Any] | None:
    """Return how many overrides of a library were used, and the operators of each function; None without a record."""
    summary = summarize_overrides(report)
    if summary is None:
        return None
    return {"summary": asdict(summary), "functions": [asdict(entry) for entry in list_operators(report)]}


def _cause(cause: Cause) -> Mapping[str, Any]:
    """Return the sentences and the diagnosis of a cause in all languages and its documentation page."""
    sentences = [translate_sentence(cause, language) for language in LANGUAGES]
    diagnoses = [translate_diagnosis(cause, language) for language in LANGUAGES]
    return {"sentences": sentences, "diagnoses": diagnoses, "page": diagnosis_page(cause)}


@final
class _Tables:
    """Values that occur often, each stored once, by the name of their column."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[Hashable, int]] = {}

    def number(self, column: str, value: Hashable) -> int:
        """Return the position of a value in the table of a column; append the value if it is new."""
        numbers = self._numbers.setdefault(column, {})
        return numbers.setdefault(value, len(numbers))

    @property
    def content(self) -> Mapping[str, Sequence[Hashable]]:
        """Return the values of each table, in the order of their numbers."""
        return {column: list(self._numbers.get(column, ())) for column in TABLES}


def _columns(cases: Sequence[CaseRecord], tables: _Tables) -> Mapping[str, Any]:
    """Return one list per property, with one entry per case.

    Args:
        cases: The cases.
        tables: The tables of distinct values, to which the values of the columns in `TABLES` are added.
    """
    for class_ in CaseClass:  # in their order
        tables.number("class", class_)
    numbered: dict[str, Any] = {
        "function": lambda case: case.function,
        "dtype": lambda case: case.dtype,
        "class": lambda case: case.class_,
        "verdict": lambda case: case.verdict,
        "severity": lambda case: (case.verdict in UNSUCCESSFUL and case.severity) or "",
        "cause": lambda case: case.cause if case.verdict in UNSUCCESSFUL else "",
        "command": lambda case: case.command.removesuffix(shlex.quote(case.id)),
        "checks": lambda case: tuple((tables.number("check", check.check), int(check.passed)) for check in case.checks),
    }
    return {
        **{name: [tables.number(name, value(case)) for case in cases] for name, value in numbered.items()},
        "label": [case.label for case in cases],
        "ratio": [_ratio(case) for case in cases],
        "microseconds": [round(case.seconds * 1e6) for case in cases],
    }


def _ratio(case: CaseRecord) -> float | str | None:
    """Return the largest error / budget of a case to three digits; "inf" if infinite; None if it was not measured."""
    measured = [check.ratio for check in case.checks if check.ratio is not None]
    if not measured:
        return None
    largest = max(measured)
    return float(f"{largest:.3g}") if math.isfinite(largest) else "inf"


def _timing(case: CaseRecord) -> Sequence[float | None] | None:
    """Return the timing of a case as a list: seconds, repeats, bytes, operations, bandwidth; None without timing."""
    timing = case.timing
    return timing and (timing.seconds, timing.repeats, timing.bytes, timing.operations, timing.bandwidth)


def _by_number(cases: Sequence[CaseRecord], value: Any) -> Mapping[int, Any]:
    """Return the results of `value(case)` that are not empty, by the position of the case among all cases."""
    return {number: content for number, case in enumerate(cases) if (content := value(case))}


def _details(cases: Sequence[CaseRecord]) -> Mapping[int, Any]:
    """Return the details of failed and waived cases, by the position of the case among all cases.

    The details are the message, the failed checks and the stack. When they reach `DETAILS` characters, the remaining
    cases are omitted. The first case of each function comes first, then the second case of each function, and so on.
    """
    chosen: dict[int, Any] = {}
    left = DETAILS
    for number in _order_by_turns(cases):
        case = cases[number]
        message, stack = split_stack(case.message)
        details = {
            "message": _cut(message, LONG),
            "findings": [to_json(check) for check in case.checks if not check.passed],
            **({"stack": list(stack)} if stack else {}),
        }
        left -= len(str(details))
        if left < 0:
            break
        chosen[number] = details
    return chosen


def _order_by_turns(cases: Sequence[CaseRecord]) -> Iterator[int]:
    """Yield the numbers of failed or waived cases: the first of each function, then the second of each, and so on."""
    counts: dict[str, int] = {}
    order = []
    for number, case in enumerate(cases):
        if case.verdict in UNSUCCESSFUL or case.verdict is Verdict.waived:
            counts[case.function] = place = counts.get(case.function, 0) + 1
            order.append((place, number))
    return (number for _, number in sorted(order))


def _frame(report: Report) -> Mapping[str, Any]:
    """Return the report without its cases."""
    content = to_json(replace(report, cases=()))
    del content["cases"]
    models = [{**to_json(model), "trains": model.trains} for model in report.models]
    optional: dict[str, Any] = {"waivers": None, "strict": False, "families": [], "causes": []}
    return {**optional, **content, "models": models, "exit_status": report.exit_status}


def _cut(text: str, length: int) -> str:
    """Return the first `length` characters of a text, followed by an ellipsis if the text is longer."""
    return text if len(text) <= length else f"{text[:length]} …"

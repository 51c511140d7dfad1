"""Render the causes of failures in the static summary of a report, which works without JavaScript.

A cause is a group of failed cases that probably have the same defect. A diagnosis names this defect.

The functions `_render_…` return markup, or None if there is nothing to show. `Texts` maps the keys of texts to the
language of the report; `docs` is the address of the documentation, or empty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from diopi_test.execution.verdict import UNSUCCESSFUL
from diopi_test.reporting.html.cause_sentences import translate_diagnosis, translate_sentence
from diopi_test.reporting.html.markup import Content, Markup, name_list, tag, words
from diopi_test.reporting.html.texts import Texts
from diopi_test.results.causes.cause import Cause
from diopi_test.results.records import Report

MAX_CAUSES = 50
"""The maximum number of causes in the list of causes that affect the exit status, and in the list of other causes."""

MAX_CASES = 200
"""The maximum number of cases that the summary lists per cause."""


def render_causes(report: Report, texts: Texts, docs: str) -> Content:
    """Render the causes that affect the exit status, a line about minor failures, and the other causes.

    Args:
        report: The report.
        texts: The texts in the language of the summary.
        docs: The URL of the documentation's site. If it is empty, the summary contains no links to diagnoses.

    Returns:
        The section; None if the report has no causes.
    """
    if not report.causes:
        return None
    cases: dict[str, list[str]] = defaultdict(list)
    for case in report.cases:
        if case.verdict in UNSUCCESSFUL:
            cases[case.cause].append(case.id)
    entries = [_render_cause(number, cause, cases, texts, docs) for number, cause in enumerate(report.causes, 1)]
    counted = [cause for cause in report.causes if cause.counts]
    number_of_cases = sum(report.counts(case) for case in report.cases)
    title = texts("causes", causes=f"{len(counted):,}", cases=f"{number_of_cases:,}")
    return [
        [tag("h2", title), _limit_entries(entries[: len(counted)], texts)] if counted else None,
        _render_minor_failures(report, texts),
        _render_uncounted(entries[len(counted) :], texts),
    ]


def _limit_entries(entries: Sequence[Content], texts: Texts) -> Content:
    """Return the first `MAX_CAUSES` entries, followed by a line with the number of omitted entries."""
    left_out = len(entries) - MAX_CAUSES
    return [entries[:MAX_CAUSES], tag("p", texts("causes-left-out", number=f"{left_out:,}")) if left_out > 0 else None]


def _render_minor_failures(report: Report, texts: Texts) -> Content:
    """Render a line about the failures whose severity is too low to affect the exit status."""
    minor = report.minor_failures
    if not minor:
        return None
    severities = dict.fromkeys(case.severity for case in minor if case.severity is not None)
    line = texts(
        "minor-failures",
        severities=", ".join(texts(f"severity-{severity}") for severity in severities),
        cases=f"{len(minor):,}",
        functions=f"{len({case.function for case in minor}):,}",
    )
    return tag("p", line, class_="minor")


def _render_uncounted(entries: Sequence[Content], texts: Texts) -> Content:
    """Render a collapsed list of the causes that do not affect the exit status."""
    if not entries:
        return None
    title = texts("causes-not-counted", causes=f"{len(entries):,}")
    return tag("details", tag("summary", title), _limit_entries(entries, texts), class_="not-counted")


def _render_cause(number: int, cause: Cause, cases: Mapping[str, Sequence[str]], texts: Texts, docs: str) -> Markup:
    """Render a cause as an element that expands to the diagnosis, the functions, the command and the cases.

    Args:
        number: The position of the cause in the report, from 1.
        cause: The cause.
        cases: The IDs of the failed cases of each cause, by the ID of the cause.
        texts: The texts in the language of the summary.
        docs: The URL of the documentation's site; empty for no link to the diagnosis.

    Returns:
        The `details` element.
    """
    size = texts("cause-size", cases=f"{cause.cases:,}", functions=f"{len(cause.functions):,}")
    mark = "" if cause.counts else f" {texts('does-not-count')}"
    badge = tag("span", texts(f"severity-{cause.severity}"), class_=f"badge severity-{cause.severity}")
    title = [
        f"{number}. ",
        badge,
        " ",
        tag("span", translate_sentence(cause, texts.language)),
        " ",
        tag("small", size, mark, " ", tag("code", cause.id)),
    ]
    return tag(
        "details",
        tag("summary", title),
        _render_diagnosis(cause, texts, docs),
        tag("p", name_list(f"{name} ({count:,})" for name, count in cause.functions.items())),
        tag("p", tag("code", words(cause.command)), class_="command"),
        _render_case_ids(cases[cause.id], texts),
        class_="cause",
        id=f"cause-{cause.id}",
    )


def _render_diagnosis(cause: Cause, texts: Texts, docs: str) -> Content:
    """Render the probable defect, where to look for it, and a link to the diagnosis in the documentation."""
    if not cause.diagnosis:
        return None
    page = diagnosis_page(cause)
    link = (
        tag("a", texts("diagnosis", id=cause.diagnosis), href=f"{docs.rstrip('/')}/{page}")
        if docs
        else tag("span", texts("definition-page", page=page), class_="hint")
    )
    translated = translate_diagnosis(cause, texts.language)
    likely, look_at = translated or (cause.likely, cause.look_at)
    language = texts.language if translated else "en"
    return [
        tag("p", f"{texts('likely')} ", tag("span", likely, lang=language)),
        tag("p", look_at, lang=language),
        tag("p", link),
    ]


def diagnosis_page(cause: Cause) -> str:
    """Return the address of a cause's diagnosis, relative to the documentation's site; empty without a diagnosis."""
    return f"diagnoses.html#{cause.diagnosis}" if cause.diagnosis else ""


def _render_case_ids(ids: Sequence[str], texts: Texts) -> Markup:
    """Render the IDs of a cause's cases as a list that can be expanded."""
    left_out = len(ids) - MAX_CASES
    return tag(
        "details",
        tag("summary", texts("cause-cases", number=f"{len(ids):,}")),
        tag("pre", "\n".join(ids[:MAX_CASES]), lang="en"),
        tag("p", texts("cases-left-out", number=f"{left_out:,}")) if left_out > 0 else None,
    )

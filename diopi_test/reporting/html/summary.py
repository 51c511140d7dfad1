"""The static summary of a report, for readers whose browser executes no scripts. The scripts replace it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from diopi_test.cases.model import CaseClass
from diopi_test.execution.verdict import Verdict
from diopi_test.reporting.html.markup import Content, Markup, join, static_table, tag
from diopi_test.reporting.html.messages import translate_message
from diopi_test.reporting.html.texts import Texts
from diopi_test.results.causes.text import sentence_of
from diopi_test.results.overview import describe_run
from diopi_test.results.records import CaseRecord, ModelReport, Report
from diopi_test.results.stacks import split_stack

MAX_FUNCTIONS = 100
"""Functions with failures that the summary lists."""

MAX_CAUSES = 50
"""Causes that the summary lists."""

SHORT = 300
"""Characters of a message."""


def render_summary(report: Report, language: str) -> Markup:
    """Return the summary: what was run, how far the vendor conforms, and what fails.

    Args:
        report: The report.
        language: The language of the summary.

    Returns:
        The content of the page's main element.
    """
    texts = Texts("texts.json", language)
    failed = [case for case in report.cases if report.counts(case)]
    return join(
        [
            tag("h1", report.vendor.title),
            tag("p", texts("no-script"), class_="hint"),
            _facts(report, texts),
            _headline(report, len(failed), texts),
            _warnings(report, texts),
            _families(report, texts),
            _causes(report, texts),
            _classes(report, texts),
            _failures(failed, texts),
            _models(report.models, texts),
        ]
    )


def _facts(report: Report, texts: Texts) -> Markup:
    pairs = [(name, text) for name, text in describe_run(report) if text]
    rows = [
        tag("div", tag("dt", texts(f"fact-{name}")), tag("dd", tag("code" if name == "command" else "span", text)))
        for name, text in pairs
    ]
    return tag("dl", rows)


def _headline(report: Report, failed: int, texts: Texts) -> Markup:
    kind = {0: "right", 1: "wrong"}.get(report.exit_status, "none")
    numbers = {"wrong": f"{failed:,}", "passed": f"{report.summary.passed:,}", "total": f"{report.summary.total:,}"}
    parts = tag("strong", texts(f"headline-{kind}", **numbers)), tag("span", texts("headline-counts", **numbers))
    return tag("p", parts, class_=f"headline is-{kind}")


def _warnings(report: Report, texts: Texts) -> Content:
    lines = list(report.errors)
    if report.summary.incomplete:
        lines.insert(0, f"{texts('incomplete', number=report.summary.not_run)} {report.summary.reason}")
    return tag("ul", [tag("li", line) for line in lines], class_="warnings") if lines else None


def _families(report: Report, texts: Texts) -> Content:
    if not report.families:
        return None
    keys = ("family", "functions", "implemented", "conforming", "not-conforming", "verdict-not_implemented")
    rows = [
        (
            tag("span", family.family),
            *(f"{number:,}" for number in (family.functions, family.implemented, family.conforming)),
            _names(family.not_conforming),
            _names(family.not_implemented),
        )
        for family in report.families
    ]
    total = {
        name: sum(getattr(family, name) for family in report.families)
        for name in ("functions", "implemented", "conforming")
    }
    title = tag("h2", texts("conformance", **total))
    return [title, static_table(texts("conformance-caption"), [texts(key) for key in keys], rows)]


def _names(names: Sequence[str]) -> Markup:
    return tag("span", [breakable(name) if not place else [", ", breakable(name)] for place, name in enumerate(names)])


def _classes(report: Report, texts: Texts) -> Content:
    classes = [(CaseClass[name], counts) for name, counts in report.summary.classes.items() if counts.total]
    verdicts = [verdict for verdict in Verdict if verdict is not Verdict.not_run and report.summary.number([verdict])]
    rows = [
        (
            tag("span", texts(f"class-{class_}"), "" if report.decides(class_) else f" {texts('does-not-count')}"),
            *(f"{counts.number([verdict]):,}" for verdict in verdicts),
        )
        for class_, counts in classes
    ]
    if not rows:
        return None
    columns = [texts("class"), *(texts(f"verdict-{verdict}") for verdict in verdicts)]
    return [tag("h2", texts("classes")), static_table(texts("classes-caption"), columns, rows)]


def _causes(report: Report, texts: Texts) -> Content:
    """Return a table of all causes; those that do not affect the exit status come last."""
    if not report.causes:
        return None
    rows = [
        (
            tag("span", sentence_of(cause), [tag("br"), tag("small", cause.likely)] if cause.likely else None),
            tag("span", texts(f"severity-{cause.severity}"), "" if cause.counts else f" {texts('does-not-count')}"),
            f"{cause.cases:,}",
            f"{len(cause.functions):,}",
            tag("code", cause.command),
        )
        for cause in report.causes[:MAX_CAUSES]
    ]
    columns = [texts(key) for key in ("cause", "severity", "cases", "functions", "again")]
    return [tag("h2", texts("causes", number=len(report.causes))), static_table(texts("causes-caption"), columns, rows)]


def _failures(failed: Sequence[CaseRecord], texts: Texts) -> Content:
    by_function: dict[str, list[CaseRecord]] = defaultdict(list)
    for case in failed:
        by_function[case.function].append(case)
    if not by_function:
        return None
    first = sorted(by_function.items(), key=lambda entry: (-len(entry[1]), entry[0]))[:MAX_FUNCTIONS]
    rows = [
        (
            tag("span", breakable(name)),
            f"{len(cases):,}",
            tag("span", breakable(cases[0].label)),
            _message(cases[0], texts),
        )
        for name, cases in first
    ]
    columns = [texts(key) for key in ("function", "wrong-cases", "first-of-them", "message")]
    return [tag("h2", texts("wrong-functions")), static_table(texts("wrong-functions-caption"), columns, rows)]


def _message(case: CaseRecord, texts: Texts) -> Markup:
    reason, stack = split_stack(case.message)
    text = translate_message(reason[:SHORT], texts.language)
    return tag("span", text, [tag("pre", "\n".join(stack[:20]))] if stack else None)


def _models(models: Sequence[ModelReport], texts: Texts) -> Content:
    if not models:
        return None
    rows = [
        (tag("span", model.name), tag("span", texts("yes" if model.trains else "no")), _missing(model, texts))
        for model in models
    ]
    columns = [texts(key) for key in ("model", "can-be-trained", "what-is-missing")]
    return [tag("h2", texts("models")), static_table(texts("models-caption"), columns, rows)]


def _missing(model: ModelReport, texts: Texts) -> Markup:
    items = [[breakable(name), f": {texts(f'verdict-{verdict}')}"] for name, verdict in model.failures.items()]
    items += [[name, f": {texts('not-mapped')}"] for name in model.not_mapped]
    return tag("ul", [tag("li", item) for item in items], class_="plain") if items else tag("span")


def breakable(text: str) -> Sequence[Content]:
    """Return a name with places at which a browser may break it: between its words, and after punctuation."""
    return list(_parts(text))


def _parts(text: str) -> Iterator[Content]:
    start = 0
    for end in range(1, len(text)):
        before, after = text[end - 1], text[end]
        if (after.isupper() and before.islower()) or before in "[-_./,":
            yield text[start:end]
            yield Markup("<wbr>")
            start = end
    yield text[start:]

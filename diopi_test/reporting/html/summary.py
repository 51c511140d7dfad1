"""The static summary of a report, for readers whose browser executes no scripts. The scripts replace it.

The functions that render return markup, or None if there is nothing to show. `Texts` maps the keys of texts to the
language of the report; `docs` is the address of the documentation, or empty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict

from diopi_proto.interface import lookup, prototypes
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import Verdict
from diopi_test.reporting.html.cause_summary import render_causes
from diopi_test.reporting.html.definitions import definition_page
from diopi_test.reporting.html.markup import (
    Content,
    Markup,
    breakable,
    join,
    name_list,
    static_table,
    tag,
    unbroken,
    words,
)
from diopi_test.reporting.html.messages import translate_message
from diopi_test.reporting.html.texts import Texts
from diopi_test.results.operators import list_operators, summarize_overrides
from diopi_test.results.overview import describe_run
from diopi_test.results.records import CaseRecord, ModelReport, Report
from diopi_test.results.stacks import split_stack

MAX_FUNCTIONS = 100
"""The maximum number of functions with failures that the summary lists."""

SHORT = 300
"""The maximum number of characters of a message in the summary; longer messages end with an ellipsis."""


def render_summary(report: Report, language: str, docs: str = "") -> Markup:
    """Return the static summary of a report: what was run, how far the vendor conforms, and what fails.

    Args:
        report: The report.
        language: The language of the summary.
        docs: The URL of the documentation's site, to which diagnoses then link; empty for no links.

    Returns:
        The content of the page's main element.
    """
    texts = Texts("texts.json", language)
    failed = [case for case in report.cases if report.counts(case)]
    return join(
        [
            tag("h1", report.title),
            tag("p", texts("no-script"), class_="hint"),
            _facts(report, texts),
            _headline(report, len(failed), texts),
            _warnings(report, texts),
            _families(report, texts),
            render_causes(report, texts, docs),
            _classes(report, texts),
            _failures(failed, texts, docs),
            _models(report.models, texts),
            _operators(report, texts),
        ]
    )


def _facts(report: Report, texts: Texts) -> Markup:
    """Render what was run, when and where."""
    pairs = [(name, text) for name, text in describe_run(report) if text]
    rows = [
        tag(
            "div",
            tag("dt", texts(f"fact-{name}")),
            tag("dd", tag("code" if name == "command" else "span", words(text))),
        )
        for name, text in pairs
    ]
    return tag("dl", rows)


def _headline(report: Report, failed: int, texts: Texts) -> Markup:
    """Render the result of the run in one line; `failed` is the number of failures that affect the exit status."""
    kind = {0: "right", 1: "wrong"}.get(report.exit_status, "none")
    numbers = {"wrong": f"{failed:,}", "passed": f"{report.summary.passed:,}", "total": f"{report.summary.total:,}"}
    parts = tag("strong", texts(f"headline-{kind}", **numbers)), tag("span", texts("headline-counts", **numbers))
    return tag("p", parts, class_=f"headline is-{kind}")


def _warnings(report: Report, texts: Texts) -> Content:
    """Render the errors of the run, whether it is incomplete, and contradictions of the declared arithmetic."""
    lines = list(report.errors)
    if report.summary.incomplete:
        reason = translate_message(report.summary.reason, texts.language)
        lines.insert(0, f"{texts('incomplete', number=report.summary.not_run)} {reason}")
    if check := report.declaration_check:
        lines += [f"{texts(f'declaration-{key}')} {text}" for key, text in check.findings]
    return tag("ul", [tag("li", line) for line in lines], class_="warnings") if lines else None


def _families(report: Report, texts: Texts) -> Content:
    """Render a table of the conformance of each family."""
    if not report.families:
        return None
    keys = ("family", "functions", "implemented", "conforming", "not-conforming", "verdict-not_implemented")
    rows = [
        (
            tag("span", family.family),
            *(f"{number:,}" for number in (family.functions, family.implemented, family.conforming)),
            name_list(family.not_conforming),
            name_list(family.not_implemented),
        )
        for family in report.families
    ]
    total = {
        name: sum(getattr(family, name) for family in report.families)
        for name in ("functions", "implemented", "conforming")
    }
    numerics = report.numerics
    key = "conformance-with-numerics" if numerics.qualifier else "conformance"
    values = {**total, "standard": report.proto_version, "numerics": numerics.declaration.name}
    title = tag("h2", texts(key, **values))
    return [title, static_table(texts("conformance-caption"), [texts(key) for key in keys], rows)]


def _classes(report: Report, texts: Texts) -> Content:
    """Render a table of the verdicts per class of cases."""
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


def _failures(failed: Sequence[CaseRecord], texts: Texts, docs: str) -> Content:
    """Render a table of the functions with the most failures, each with its first failed case and its definition."""
    by_function: dict[str, list[CaseRecord]] = defaultdict(list)
    for case in failed:
        by_function[case.function].append(case)
    if not by_function:
        return None
    first = sorted(by_function.items(), key=lambda entry: (-len(entry[1]), entry[0]))[:MAX_FUNCTIONS]
    rows = [
        (
            _function_name(name, docs),
            f"{len(cases):,}",
            tag("span", breakable(cases[0].label)),
            _message(cases[0], texts),
        )
        for name, cases in first
    ]
    columns = [texts(key) for key in ("function", "wrong-cases", "first-of-them", "message")]
    return [tag("h2", texts("wrong-functions")), static_table(texts("wrong-functions-caption"), columns, rows)]


def _function_name(name: str, docs: str) -> Markup:
    """Render the name of a function, as a link to its documentation page if the site of the documentation is known."""
    if not docs or name not in prototypes():
        return unbroken(name)
    return tag("a", unbroken(name), href=f"{docs.rstrip('/')}/{definition_page(lookup(name))}")


def _message(case: CaseRecord, texts: Texts) -> Markup:
    """Render the message of a case with its stack, if the case crashed."""
    reason, stack = split_stack(case.message)
    shortened = reason if len(reason) <= SHORT else f"{reason[:SHORT].rpartition(' ')[0]} …"
    text = translate_message(shortened, texts.language)
    return tag("span", text, [tag("pre", "\n".join(stack[:20]))] if stack else None)


def _models(models: Sequence[ModelReport], texts: Texts) -> Content:
    """Render a table of networks: whether the vendor can train each of them, and what is missing."""
    if not models:
        return None
    rows = [
        (tag("span", model.name), tag("span", texts("yes" if model.trains else "no")), _missing(model, texts))
        for model in models
    ]
    columns = [texts(key) for key in ("model", "can-be-trained", "what-is-missing")]
    return [tag("h2", texts("models")), static_table(texts("models-caption"), columns, rows)]


def _operators(report: Report, texts: Texts) -> Content:
    """Render the operators of a framework that served each function, if the run recorded them."""
    summary = summarize_overrides(report)
    if summary is None:
        return None
    numbers = {name: str(value) for name, value in asdict(summary).items()}
    unused = tag("p", texts("overrides-unused"), " ", name_list(summary.unused)) if summary.unused else None
    rows = [
        (unbroken(entry.function), name_list(entry.by_library), name_list(entry.by_framework))
        for entry in list_operators(report)
    ]
    columns = [texts(key) for key in ("function", "by-library", "by-framework")]
    return [tag("h2", texts("overrides", **numbers)), unused, static_table(texts("overrides-caption"), columns, rows)]


def _missing(model: ModelReport, texts: Texts) -> Markup:
    """Render the functions that fail for a network, and the framework's operators that no function serves."""
    items = [[breakable(name), f": {texts(f'verdict-{verdict}')}"] for name, verdict in model.failures.items()]
    items += [[name, f": {texts('not-mapped')}"] for name in model.not_mapped]
    return tag("ul", [tag("li", item) for item in items], class_="plain") if items else tag("span")

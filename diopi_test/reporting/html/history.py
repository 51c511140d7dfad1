"""The page of the history: trends as tables and static SVG, without JavaScript.

The functions that render return markup. `Texts` maps the keys of texts to the language of the page. A series contains
the runs of one vendor at one level and with one declared arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template

from diopi_test.execution.verdict import Verdict
from diopi_test.reporting.history.trends import (
    CauseTrend,
    Series,
    accuracy_drifts,
    cause_trends,
    latest_by_place,
    place_differences,
    rank_flaky_cases,
    speed_changes,
)
from diopi_test.reporting.html.cause_sentences import translate_text
from diopi_test.reporting.html.chart import Line, format_number, line_chart, sparkline
from diopi_test.reporting.html.markup import Content, Markup, join, static_table, tag
from diopi_test.reporting.html.page import asset, policy_digest
from diopi_test.reporting.html.texts import Texts

MAX_ROWS = 50
"""The maximum number of rows of a table of trends."""


def render_history(series: Sequence[Series], language: str = "en") -> str:
    """Return the page of the history.

    Args:
        series: The runs by vendor, level and declared arithmetic.
        language: The language of the page, one of `texts.LANGUAGES`.

    Returns:
        The page, in one file that loads nothing.
    """
    texts = Texts("history_texts.json", language)
    style = asset("style.css")
    content = [tag("h1", texts("title")), [_series(entry, texts) for entry in series] or tag("p", texts("empty"))]
    return Template(asset("history.html")).substitute(
        language=language,
        policy=policy_digest(style),
        title=escape(texts("title")),
        style=style,
        content=join(content),
    )


def _series(series: Series, texts: Texts) -> Markup:
    """Render the sections of one series of runs."""
    sections = (
        ("cases", _case_counts(series, texts)),
        ("causes", _causes(series, texts)),
        ("accuracy", _accuracy(series, texts)),
        ("flaky", _flaky(series, texts)),
        ("places", _places(series, texts)),
        ("duration", _durations(series, texts)),
        ("runs", _runs(series, texts)),
    )
    title = texts("series", vendor=series.vendor, level=series.level, numerics=series.numerics, number=len(series.runs))
    return tag("article", tag("h2", title), [tag("section", tag("h3", texts(key)), body) for key, body in sections])


def _labels(series: Series) -> list[str]:
    """Return the labels of the time axis: date and number of each run."""
    return [f"{run.entry.started[:10]} #{run.number}" for run in series.runs]


def _case_counts(series: Series, texts: Texts) -> Content:
    """Render a chart of passed, unsuccessful and missing cases."""
    lines = [
        Line(name=texts("passed"), values=[run.verdicts.get(Verdict.passed, 0) for run in series.runs]),
        Line(name=texts("unsuccessful"), values=[run.unsuccessful for run in series.runs]),
        Line(
            name=texts("not_implemented"), values=[run.verdicts.get(Verdict.not_implemented, 0) for run in series.runs]
        ),
    ]
    return line_chart(texts("cases"), _labels(series), lines)


def _causes(series: Series, texts: Texts) -> Content:
    """Render the causes of failures over time."""
    trends = cause_trends(series)
    if not trends:
        return tag("p", texts("no-causes"))
    line = Line(name=texts("cause-count"), values=[run.failing_causes for run in series.runs])
    columns = [texts(key) for key in ("cause", "severity", "state", "latest", "waived", "trend")]
    rows = [
        (
            tag("span", f"{trend.cause.cause}: {translate_text(trend.cause.sentence, texts.language)}"),
            tag("span", texts(f"severity-{trend.cause.severity}")),
            _state(trend, texts),
            *("–" if trend.latest is None else str(number) for number in trend.latest or (0, 0)),
            sparkline(trend.tested_cases, trend.cause.cause),
        )
        for trend in trends[:MAX_ROWS]
    ]
    table = static_table(texts("causes-caption"), columns, rows)
    return [line_chart(texts("causes"), _labels(series), [line]), table]


def _state(trend: CauseTrend, texts: Texts) -> Markup:
    """Render the state of a cause, with the number of devices on which it has this state if they differ."""
    state, states = texts(f"state-{trend.state}"), list(trend.states.values())
    if len({*states}) == 1:
        return tag("span", state)
    return tag("span", texts("state-on", state=state, count=states.count(trend.state), number=len(states)))


def _accuracy(series: Series, texts: Texts) -> Content:
    """Render the functions whose accuracy became worse."""
    drifts = accuracy_drifts(series)
    if not drifts:
        return tag("p", texts("no-drifts"))
    columns = [texts(key) for key in ("function", "device", "before", "after", "trend", "case")]
    rows = [
        (
            _data(drift.function),
            _data(drift.place),
            format_number(drift.before),
            format_number(drift.after),
            sparkline(drift.ratios, drift.function),
            _data(drift.case),
        )
        for drift in drifts[:MAX_ROWS]
    ]
    return static_table(texts("accuracy-caption"), columns, rows)


def _flaky(series: Series, texts: Texts) -> Content:
    """Render the cases that are flaky most often."""
    cases = rank_flaky_cases(series)
    if not cases:
        return tag("p", texts("no-flaky"))
    columns = [texts(key) for key in ("case", "flaky-runs", "last-seen")]
    rows = [(_data(case.case), f"{case.flaky} / {case.runs}", case.last[:10]) for case in cases[:MAX_ROWS]]
    return static_table(texts("flaky-caption"), columns, rows)


def _places(series: Series, texts: Texts) -> Content:
    """Render the functions whose results differ between devices or machines."""
    differences = place_differences(series)
    if not differences:
        return tag("p", texts("no-places"))
    columns = [texts("function"), *latest_by_place(series)]
    rows = []
    for difference in differences[:MAX_ROWS]:
        results = zip(difference.ratios, difference.unsuccessful, strict=True)
        rows.append((_data(difference.function), *(_place_cell(ratio, number) for ratio, number in results)))
    return static_table(texts("places-caption"), columns, rows)


def _place_cell(ratio: float | None, unsuccessful: int | None) -> str:
    """Return the text of a cell: error ratio and number of failures of a function at one place."""
    if unsuccessful is None:
        return "–"
    measured = "–" if ratio is None else format_number(ratio)
    return f"{measured}, {unsuccessful} ✗" if unsuccessful else measured


def _durations(series: Series, texts: Texts) -> Content:
    """Render the durations of the runs and the functions that became slower."""
    line = Line(name=texts("duration"), values=[run.entry.seconds for run in series.runs])
    chart = line_chart(texts("duration-caption"), _labels(series), [line])
    changes = speed_changes(series)
    if not changes:
        return [chart, tag("p", texts("no-speed"))]
    columns = [texts(key) for key in ("function", "before", "after", "device")]
    rows = [
        (_data(change.function), f"{change.before * 1e6:.1f} µs", f"{change.after * 1e6:.1f} µs", _data(change.place))
        for change in changes[:MAX_ROWS]
    ]
    return [chart, static_table(texts("speed-caption"), columns, rows)]


def _runs(series: Series, texts: Texts) -> Content:
    """Render a table of the runs."""
    keys = ("run", "started", "version", "device", "commit", "passed", "unsuccessful", "duration", "status")
    rows = [
        (
            f"#{run.number}",
            run.entry.started[:16].replace("T", " "),
            _data(run.entry.version),
            _data(run.entry.place),
            _data(run.entry.revision[:12]),
            f"{run.verdicts.get(Verdict.passed, 0):,}",
            f"{run.unsuccessful:,}",
            f"{run.entry.seconds:.1f} s",
            str(run.entry.exit_status),
        )
        for run in reversed(series.runs)
    ]
    return static_table(texts("runs-caption"), [texts(key) for key in keys], rows)


def _data(text: str) -> Markup:
    """Return text that is in English whatever the language of the page is."""
    return tag("span", text, lang="en")

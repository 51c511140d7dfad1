"""`diopi-test history`: keep the results of runs in a database and show trends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.table import Table

from diopi_proto.messages import pluralize
from diopi_test.cli.console import UnusableError, console, print_table, read_report, write_report
from diopi_test.cli.options import origin_options, output_option

if TYPE_CHECKING:
    from diopi_test.reporting.history.trends import CauseTrend, RunData, Series

F = TypeVar("F", bound=Callable[..., Any])
"""The decorated command."""

MAX_LISTED = 20
"""Rows per kind of trend that the terminal shows."""


@click.group(no_args_is_help=True)
def history() -> None:
    """Keep the results of runs in a database and show trends.

    The database is one SQLite file. Several commands may use it at the same time. docs/history.md describes its tables.
    """


_db_option = click.option(
    "--db",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="DIOPI_HISTORY",
    metavar="FILE",
    help="The database; by default history.sqlite in the user's state folder. [env var: DIOPI_HISTORY]",
)
"""The option for the file of the database."""


def _filter_options(command: F) -> F:
    """Return a command with the options that select runs by vendor and level."""
    command = click.option("--level", default="", metavar="NAME", help="Only runs of this level.")(command)
    return click.option("--vendor", default="", metavar="NAME", help="Only runs of the vendor with this name.")(command)


@history.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG...", type=click.Path(path_type=Path, exists=True))
@_db_option
@origin_options
def add(logs: tuple[Path, ...], db: Path | None, device: str, driver: str, commit: str) -> None:
    """Add runs to the history.

    LOG is a log, or a report that `diopi-test run --json` has written. A run that is in the history already is not
    added again; if it was resumed since, its results are replaced. The device, driver and commit are those of the log
    unless you state others.

    Exit status: 0 all runs are in the history; 2 wrong usage; 3 the history can't be used.
    """
    from diopi_test.reporting.history.database import default_path
    from diopi_test.reporting.history.entry import cause_entries, complete_origin

    reports = [(path, read_report(path)) for path in logs]
    with _opened(db or default_path(), create=True) as database:
        for path, report in reports:
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="microseconds")
            origin = complete_origin(report, changed, device=device, driver=driver, commit=commit)
            console.print(
                f"{database.add(report, origin, cause_entries(report))}: {path}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
            if report.origin is None:
                console.print("  the log does not state when the run began: using the time of the file")


@history.command("list")
@_db_option
@_filter_options
def list_runs(db: Path | None, vendor: str, level: str) -> None:
    """List the runs in the history, oldest first."""
    from diopi_test.execution.verdict import UNSUCCESSFUL
    from diopi_test.reporting.history.database import default_path

    table = Table(box=None)
    for title in ("run", "started (UTC)", "vendor", "level", "device", "commit", "passed", "failed", "took", "status"):
        table.add_column(title, overflow="fold")
    with _opened(db or default_path()) as database:
        for number, entry in database.runs(vendor, level).items():
            verdicts = database.verdicts(number)
            failed = sum(count for verdict, count in verdicts.items() if verdict in UNSUCCESSFUL)
            numbers = (
                f"{verdicts.get('passed', 0):,}",
                f"{failed:,}",
                f"{entry.seconds:.0f} s",
                str(entry.exit_status),
            )
            start = entry.started[:16].replace("T", " ")
            table.add_row(str(number), start, entry.title, entry.level, entry.place, entry.revision[:12], *numbers)
    print_table(table)


@history.command()
@click.argument("run", type=click.IntRange(min=1), required=False)
@_db_option
@_filter_options
@click.option(
    "--language", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Language of --html."
)
@output_option("--html", "html_file", "Write a self-contained HTML page with the trends.")
def show(run: int | None, db: Path | None, vendor: str, level: str, language: str, html_file: Path | None) -> None:
    """Show a run, or the trends of all runs.

    RUN is a number that `diopi-test history list` shows. Without it, the command compares the runs of each vendor at
    each level and with each declared arithmetic: causes, accuracy, flaky cases, devices and durations.
    """
    from diopi_test.reporting.history.database import default_path
    from diopi_test.reporting.history.trends import read_series
    from diopi_test.reporting.html.history import render_history

    with _opened(db or default_path()) as database:
        all_series = read_series(database, vendor, level)
    if run is not None:
        lines = _run_lines(_find_run(all_series, run))
    else:
        lines = (line for series in all_series for line in _trend_lines(series))
    if html_file is not None:
        write_report(html_file, render_history(all_series, language))
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if not all_series:
        console.print("the history has no such runs")


def _find_run(all_series: Sequence[Series], number: int) -> RunData:
    """Return a run by its number; raise click.UsageError if there is none."""
    for series in all_series:
        for data in series.runs:
            if data.number == number:
                return data
    raise click.UsageError(f"there is no run {number} in the history; diopi-test history list shows the numbers")


def _opened(path: Path, *, create: bool = False) -> Any:
    """Return a context manager that opens the history and converts its errors to errors of the command line."""
    from contextlib import contextmanager

    from diopi_test.reporting.history.database import History, HistoryError

    @contextmanager
    def opened() -> Iterator[History]:
        try:
            with History.opened(path, create=create) as database:
                yield database
        except HistoryError as error:
            raise UnusableError(str(error)) from error

    return opened()


def _run_lines(data: RunData) -> Iterator[str]:
    """Yield the lines about one run."""
    entry = data.entry
    yield f"run {data.number}: {entry.title} on {entry.place}"
    for name in ("started", "command", "workers", "revision", "level", "baseline", "numerics", "python", "platform"):
        if value := getattr(entry, name):
            yield f"  {name}: {value}"
    counts = ", ".join(f"{number:,} {verdict.replace('_', ' ')}" for verdict, number in data.verdicts.items())
    yield f"  {counts or 'no cases'} in {entry.seconds:.1f} s, exit status {entry.exit_status}"
    for cause in list(data.causes.values())[:MAX_LISTED]:
        waived = f", {cause.waived:,} waived" if cause.waived else ""
        yield f"  {cause.cause}: {cause.severity}: {cause.sentence} ({pluralize(cause.cases, 'case')}{waived})"
    closest = sorted((f for f in data.functions.values() if f.ratio), key=lambda f: -(f.ratio or 0))
    for function in closest[:MAX_LISTED]:
        yield f"  {function.ratio:.3g} of the budget: {function.ratio_case}"
    yield from (f"  flaky: {case}" for case in sorted(data.flaky)[:MAX_LISTED])


def _trend_lines(series: Series) -> Iterator[str]:
    """Yield the lines about the trends of a series."""
    from diopi_test.reporting.history import trends

    yield f"{series.vendor}, level {series.level}, numerics {series.numerics}: {pluralize(len(series.runs), 'run')}"
    for trend in trends.cause_trends(series)[:MAX_LISTED]:
        numbers = " → ".join("–" if number is None else str(number) for number in trend.tested_cases[-5:])
        noun = "case" if trend.tested_cases[-1] == 1 else "cases"
        waived = f", {trend.latest[1]:,} waived" if trend.latest and trend.latest[1] else ""
        state = _describe_state(trend)
        yield f"  cause {trend.cause.cause} ({state}): {numbers} {noun}{waived}: {trend.cause.sentence}"
    for drift in trends.accuracy_drifts(series)[:MAX_LISTED]:
        ratios = f"{drift.before:.3g} → {drift.after:.3g} of its budget"
        yield f"  less accurate: {drift.function}: {ratios} on {drift.place}, {drift.case}"
    for flaky in trends.rank_flaky_cases(series)[:MAX_LISTED]:
        yield f"  flaky in {flaky.flaky} of {pluralize(flaky.runs, 'run')}: {flaky.case}, last on {flaky.last[:10]}"
    places = list(trends.latest_by_place(series))
    for difference in trends.place_differences(series)[:MAX_LISTED]:
        results = zip(places, difference.ratios, difference.unsuccessful, strict=True)
        yield f"  differs: {difference.function}: {'; '.join(_describe_place(*result) for result in results)}"
    for change in trends.speed_changes(series)[:MAX_LISTED]:
        times = f"{change.before * 1e6:.1f} µs → {change.after * 1e6:.1f} µs"
        yield f"  slower: {change.function}: {times} on {change.place}"
    durations = " → ".join(f"{run.entry.seconds:.0f}" for run in series.runs[-5:])
    yield f"  duration of the latest runs: {durations} s"


def _describe_state(trend: CauseTrend) -> str:
    """Return the state of a cause as text, such as "present on 1 of 2 devices"."""
    state, states = trend.state.replace("_", " "), list(trend.states.values())
    return state if len({*states}) == 1 else f"{state} on {states.count(trend.state)} of {len(states)} devices"


def _describe_place(place: str, ratio: float | None, unsuccessful: int | None) -> str:
    """Return a description of the results of a function at one place.

    Args:
        place: The machine and device on which runs were made.
        ratio: The largest error / budget; None if it was not measured.
        unsuccessful: The number of failed cases; None if the function was not tested there.
    """
    if unsuccessful is None:
        return f"{place}: not tested"
    measured = "" if ratio is None else f"{ratio:.3g} of the budget, "
    return f"{place}: {measured}{unsuccessful} failed"

"""`diopi-test plan`: which functions to implement or fix, in which order, so that more networks can run."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from diopi_proto.messages import describe_unknown, pluralize
from diopi_test.cli.console import console, read_report, write_report
from diopi_test.cli.options import complete_names, output_option
from diopi_test.traces.files import load_shipped_trace, model_names

if TYPE_CHECKING:
    from diopi_test.results.planning import PlannedObstacle, Stage

NOUNS = {
    "function": ("function", "functions"),
    "element_type": ("element type", "element types"),
    "failure": ("failing function", "failing functions"),
    "cause": ("cause", "causes"),
}
"""What obstacles of each kind are called, except for untested functions."""

VERBS = {
    "function": "implement",
    "element_type": "support",
    "failure": "correct",
    "cause": "fix",
    "not_run": "test",
}
"""What a vendor does about an obstacle of each kind."""


def _parse_models(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of networks; raise click.BadParameter, with similar names, if a network is unknown."""
    names = tuple(dict.fromkeys(name for value in values for name in value.split(",") if name))
    for name in names:
        if name not in model_names():
            raise click.BadParameter(describe_unknown(name, model_names(), "models"), context, option)
    return names


@click.command()
@click.argument(
    "sources", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option(
    "--models",
    multiple=True,
    metavar="NAMES",
    callback=_parse_models,
    shell_complete=complete_names(model_names),
    help="Only these networks, separated by commas; by default those of the runs with level models, or all. Can be "
    "repeated.",
)
@output_option("--json", "json_file", "Write the plan as JSON, see docs/report.md.")
def plan(sources: tuple[Path, ...], models: tuple[str, ...], json_file: Path | None) -> None:
    """Show which functions to implement or fix, in which order, so that more networks can run.

    LOG is a log, or a report that `diopi-test run --json` has written. If the run has the level `models`, the command
    evaluates the calls of each network. Otherwise, it evaluates all cases of the functions that a network calls. With
    several logs, the first one that contains a network decides.

    Each step names the functions and fixes that the next network needs. For each of them, it states the number of
    networks, of distinct calls (cases), and of calls per training step that need it.
    """
    from diopi_test.baseline.codec import to_json
    from diopi_test.results.network_needs import needs_in_runs, networks_of_run
    from diopi_test.results.planning import plan_stages

    reports = [read_report(source) for source in sources]
    names = models or tuple(dict.fromkeys(name for report in reports for name in networks_of_run(report)))
    impossible = {name: sorted(missing) for name in names if (missing := load_shipped_trace(name).not_mapped)}
    needs = needs_in_runs(reports, [name for name in names if name not in impossible])
    not_run = [name for name in names if name not in impossible and name not in needs]
    stages = plan_stages(needs)
    if json_file is not None:
        content = {"stages": [to_json(stage) for stage in stages], "impossible": impossible, "not_run": not_run}
        write_report(json_file, content)
    sentences = {cause.id: f" ({cause.sentence})" for report in reports for cause in report.causes}
    lines = [line for stage in stages for line in _stage_lines(stage, sentences, is_first=stage is stages[0])]
    lines += [
        f"{name} can't be unlocked: the standard has no function for {', '.join(operators)}"
        for name, operators in impossible.items()
    ]
    if not_run:
        lines.append(f"not in this run: {', '.join(not_run)} (diopi-test run --level models --model NAME)")
    lines += [
        f"commands that reproduce the causes: diopi-test report {shlex.quote(str(source))}"
        for source, report in zip(sources, reports, strict=True)
        if report.causes
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _stage_lines(stage: Stage, sentences: Mapping[str, str], *, is_first: bool) -> Iterator[str]:
    """Yield the lines about a stage.

    Args:
        stage: The stage.
        sentences: What to add to the line of an obstacle, by the name of the obstacle.
        is_first: Whether this is the first stage.
    """
    networks = ", ".join(stage.networks)
    if not stage.obstacles:
        yield f"already working: {networks}"
        return
    tested = [entry for entry in stage.obstacles if entry.obstacle.kind.name != "not_run"]
    untested = len(stage.obstacles) - len(tested)
    prefix = "" if is_first else "then "
    condition = f", if {pluralize(untested, 'untested function passes', 'untested functions pass')}" if untested else ""
    if tested:
        yield f"{prefix}{_count_kinds(tested)} {'unlocks' if len(tested) == 1 else 'unlock'} {networks}{condition}:"
    else:
        yield f"{prefix}{networks} {'works' if len(stage.networks) == 1 else 'work'}{condition}:"
    for entry in stage.obstacles:
        yield f"  {_describe(entry)}{sentences.get(entry.obstacle.name, '')}"


def _count_kinds(obstacles: Sequence[PlannedObstacle]) -> str:
    """Return the number of obstacles of each kind as text, such as "4 functions and 2 causes"."""
    counts = Counter(entry.obstacle.kind.name for entry in obstacles)
    parts = [pluralize(counts[kind], *nouns) for kind, nouns in NOUNS.items() if counts[kind]]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _describe(entry: PlannedObstacle) -> str:
    """Return a line about an obstacle: how to remove it, and how much it blocks."""
    blocked = (
        pluralize(len(entry.networks), "network"),
        pluralize(entry.cases, "case"),
        f"{pluralize(entry.calls_per_step, 'call')} per step",
    )
    return f"{VERBS[entry.obstacle.kind.name]} {entry.obstacle.name}: {', '.join(blocked)}"

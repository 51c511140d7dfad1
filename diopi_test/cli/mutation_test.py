"""The command `diopi-test mutation-test`: run mutation tests of the cases."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from diopi_proto.interface import prototypes
from diopi_test.cli.console import console, write_report
from diopi_test.cli.numerics import numerics_option
from diopi_test.cli.options import dask_option, open_spread, output_option, workers_option
from diopi_test.cli.selection_options import select_functions, selection_options
from diopi_test.run.progress import VisibleProgress

if TYPE_CHECKING:
    from diopi_test.baseline.parallel import ParallelMap
    from diopi_test.quality.mutation import MutationReport
    from diopi_test.run.selection import Selection

T = TypeVar("T")
"""The result of the work on a function."""


@click.command()
@click.option(
    "--level",
    type=click.Choice(("full", "large")),
    default="full",
    show_default=True,
    help="Level of the cases: full runs all mutants except those that depend on the size, large runs only these.",
)
@selection_options("functions", "families", "expression", "seed", "sample", "shard")
@click.option(
    "--kind",
    "kinds",
    metavar="KIND",
    multiple=True,
    help="Only mutants of this kind, see docs/mutation_testing.md. Can be repeated. --choose then only adds cases.",
)
@numerics_option
@workers_option
@dask_option
@output_option("--json", "json_file", "Write the results to this file as JSON.")
@output_option("--markdown", "markdown", "Write the results to this file as a Markdown page.")
@output_option("--choose", "choose", "Update the selection of smoke cases that kill the same mutants in this file.")
def mutation_test(
    level: str,
    selection: Selection,
    kinds: tuple[str, ...],
    numerics: str | None,
    workers: int | None,
    dask: str | None,
    json_file: Path | None,
    markdown: Path | None,
    choose: Path | None,
) -> None:
    """Run mutation tests: inject defects into a correct vendor and report which ones the cases detect.

    The exit status is 0 only if the cases kill every mutant that changes a result, or 95 % of these mutants with
    --numerics. The last line is the score.
    """
    from diopi_impl import IEEE, find_numerics
    from diopi_test.cases.selection import select_cases
    from diopi_test.quality.mutation import run_mutation_tests, suffices
    from diopi_test.quality.mutation.page import render_page
    from diopi_test.quality.mutation.report import print_report, to_json

    if choose is not None and numerics is not None:
        raise click.UsageError("--choose selects cases by IEEE 754 budgets: use it without --numerics")
    declared = IEEE if numerics is None else find_numerics(numerics)
    functions = select_functions(selection, lambda name: len(select_cases(name, level)))
    with open_spread(workers, dask) as spread:
        work = partial(run_mutation_tests, level=level, numerics=declared, kinds=kinds)
        ordered = list(_with_progress("running mutants", work, functions, spread).values())
    print_report(ordered, console)
    if json_file is not None:
        write_report(json_file, to_json(ordered))
    if markdown is not None:
        write_report(markdown, render_page(ordered))
    if choose is not None and level == "full":
        write_report(choose, update_selection(choose, ordered, keeps_cases=bool(kinds)))
    sys.exit(0 if suffices(ordered, declared) else 1)


def update_selection(file: Path, reports: Sequence[MutationReport], *, keeps_cases: bool) -> dict[str, Sequence[str]]:
    """Return the smoke selection in a file, with new entries for the tested functions.

    Args:
        file: The file with the smoke selection; it need not exist.
        reports: The reports of the tested functions.
        keeps_cases: Whether the new cases of a function are added to its previous cases, instead of replacing them.

    Returns:
        The labels of the cases by function.
    """
    previous = json.loads(file.read_text("utf-8")) if file.exists() else {}
    chosen = {report.function: report.smoke_selection for report in reports}
    if keeps_cases:
        chosen = {name: sorted({*previous.get(name, ()), *labels}) for name, labels in chosen.items()}
    selection = {**previous, **chosen}
    return {name: selection[name] for name in prototypes() if selection.get(name)}


def _with_progress(text: str, work: Callable[[str], T], functions: list[str], spread: ParallelMap) -> dict[str, T]:
    """Return the result of `work` for each function, in the order of the functions, and show a progress bar."""
    results = {}
    with VisibleProgress(console) as progress:
        task = progress.add_task(text, total=len(functions))
        for name, result in spread(work, functions):
            results[name] = result
            progress.update(task, advance=1, description=name)
    return {name: results[name] for name in functions}

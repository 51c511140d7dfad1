"""`diopi-test audit`: which faults the cases catch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from diopi_test.cli.options import (
    console,
    dask_option,
    open_spread,
    output_option,
    select_functions,
    selection_options,
    workers_option,
    write_report,
)
from diopi_test.harness.progress import VisibleProgress

if TYPE_CHECKING:
    from diopi_test.baseline.parallel import ParallelMap
    from diopi_test.harness.selection import Selection
    from diopi_test.quality.audit import FunctionAudit

T = TypeVar("T")


@click.command()
@click.option(
    "--level",
    type=click.Choice(("full", "large")),
    default="full",
    show_default=True,
    help="Whose cases: full for all faults but those of size, large for these.",
)
@selection_options("functions", "families", "expression", "seed", "sample", "shard")
@workers_option
@dask_option
@output_option("--json", "json_file", "Write the matrix to this file.")
@output_option("--markdown", "markdown", "Write it as a page to this file.")
@output_option("--choose", "choose", "Write which cases the smoke level needs to catch as much to this file.")
def audit(
    level: str,
    selection: Selection,
    workers: int | None,
    dask: str | None,
    json_file: Path | None,
    markdown: Path | None,
    choose: Path | None,
) -> None:
    """Put faults into a correct vendor and show which ones the cases catch.

    Exit status 0 only if every fault that makes a difference is caught. The last line is the count.
    """
    from diopi_test.baseline import generate
    from diopi_test.cases.selection import select_cases
    from diopi_test.quality.audit import audit_function
    from diopi_test.quality.audit.page import page
    from diopi_test.quality.audit.report import show, to_json

    functions = select_functions(
        generate.functions_with_cases(level), selection, lambda name: len(select_cases(name, level))
    )
    with open_spread(workers, dask) as spread:
        work = partial(audit_function, level=level)
        ordered = list(_with_progress("auditing", work, functions, spread).values())
    show(ordered, console)
    if json_file is not None:
        write_report(json_file, to_json(ordered))
    if markdown is not None:
        write_report(markdown, page(ordered))
    if choose is not None and level == "full":
        write_report(choose, _smoke_selection(ordered))
    sys.exit(1 if any(result.survivors for result in ordered) else 0)


def _smoke_selection(audits: Sequence[FunctionAudit]) -> dict[str, Sequence[str]]:
    """The smoke selection of these functions; those of others stay as they are."""
    from diopi_test.baseline.generate import functions_with_cases
    from diopi_test.cases.selection import smoke_selection

    chosen = {**smoke_selection(), **{result.function: result.smoke_selection for result in audits}}
    return {name: chosen[name] for name in functions_with_cases("full") if chosen.get(name)}


def _with_progress(text: str, work: Callable[[str], T], functions: list[str], spread: ParallelMap) -> dict[str, T]:
    """What `work` gives for each function, in their order, with a bar to watch."""
    results = {}
    with VisibleProgress(console) as progress:
        task = progress.add_task(text, total=len(functions))
        for name, result in spread(work, functions):
            results[name] = result
            progress.update(task, advance=1, description=name)
    return {name: results[name] for name in functions}

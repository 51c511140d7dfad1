"""`diopi-test gen-data`: the baseline made, and its weak cases listed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.progress import TaskID

from diopi_test.cli.options import (
    console,
    dask_option,
    data_option,
    level_option,
    select_functions,
    selection_options,
    shuffle_option,
    spreading,
    workers_option,
)
from diopi_test.cli.original_words import explain_original_words
from diopi_test.harness.progress import VisibleProgress

if TYPE_CHECKING:
    from diopi_test.harness.selection import Selection


@click.command("gen-data")
@level_option
@data_option
@selection_options("functions", "families", "expression", "shard")
@workers_option
@dask_option
@shuffle_option("Go through functions, and the cases of each, in an order")
@explain_original_words()
def gen_data(
    level: str, data: Path | None, selection: Selection, workers: int | None, dask: str | None, seed: int | None
) -> None:
    """Make the baseline: data, expected results and error budgets of every case.

    It is made in the folder of the level in --data. Without that, the level that ships is made in its source tree if
    this is one, all else in a folder of the user's cache, where `run` finds it.

    Afterwards list the weak cases: those whose expected results could not tell right from wrong.
    """
    from diopi_test.baseline import generate
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.baseline.location import folder_to_write
    from diopi_test.cases.selection import select_cases
    from diopi_test.execution.listing import list_cases
    from diopi_test.quality.weak_cases import find_weak_cases

    functions = select_functions(
        generate.functions_with_cases(level), selection, lambda name: len(select_cases(name, level))
    )
    folder = (data / level if data else folder_to_write(level)).absolute()  # workers may be elsewhere
    with spreading(workers, dask) as spread, VisibleProgress(console) as progress:

        def advance(task: TaskID) -> Callable[[str, object], None]:
            return lambda function, _: progress.update(task, advance=1, description=function)

        making, examining = (
            progress.add_task(text, total=len(functions)) for text in ("making", "looking for weak cases")
        )
        try:
            made = generate.generate(functions, level, folder, spread, advance(making), list_cases, seed)
            weak = find_weak_cases(functions, level, folder, spread, advance(examining), seed)
        except (BaselineError, OSError) as error:
            raise click.ClickException(str(error)) from error
    console.print(f"{made} cases made, {len(functions)} functions are up to date in {folder}", soft_wrap=True)
    for finding in weak:
        console.print(f"weak: {finding}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len({finding.case for finding in weak})} weak cases")
    if seed is not None:
        console.print(f"made with --shuffle {seed}", highlight=False)

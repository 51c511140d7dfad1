"""`diopi-test gen-data`: generate a baseline and list its non-discriminating cases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.progress import TaskID

from diopi_proto.messages import pluralize
from diopi_test.cli.console import console
from diopi_test.cli.options import dask_option, data_option, level_option, open_spread, workers_option
from diopi_test.cli.original_options import explain_original_options
from diopi_test.cli.selection_options import select_functions, selection_options, shuffle_option
from diopi_test.run.progress import VisibleProgress

if TYPE_CHECKING:
    from diopi_test.run.selection import Selection


@click.command("gen-data")
@level_option
@data_option
@selection_options("functions", "families", "expression", "shard")
@workers_option
@dask_option
@shuffle_option("Process the functions and their cases in random order")
@explain_original_options()
def gen_data(
    level: str, data: Path | None, selection: Selection, workers: int | None, dask: str | None, seed: int | None
) -> None:
    """Generate the inputs and expected results of a level.

    The baseline also contains the error budgets. It is written to the level's folder in --data. Without --data, the
    level smoke is written to the source tree, if there is one, and any other level to the user's cache, where `run`
    finds it.

    Afterwards the command lists the non-discriminating cases: those that no wrong result could fail.
    """
    from diopi_test.baseline import generate
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.baseline.location import folder_to_write
    from diopi_test.cases.selection import select_cases
    from diopi_test.execution.listing import list_cases
    from diopi_test.quality.non_discriminating import find_non_discriminating_cases

    functions = select_functions(selection, lambda name: len(select_cases(name, level)))
    folder = (data / level if data else folder_to_write(level)).absolute()  # workers may have another directory
    with open_spread(workers, dask) as spread, VisibleProgress(console) as progress:

        def advance(task: TaskID) -> Callable[[str, object], None]:
            return lambda function, _: progress.update(task, advance=1, description=function)

        generating, examining = (
            progress.add_task(text, total=len(functions))
            for text in ("generating", "looking for non-discriminating cases")
        )
        try:
            generated = generate.generate(functions, level, folder, spread, advance(generating), list_cases, seed)
            non_discriminating = find_non_discriminating_cases(
                functions, level, folder, spread, advance(examining), seed
            )
        except (BaselineError, OSError) as error:
            raise click.ClickException(str(error)) from error
    up_to_date = f"{pluralize(len(functions), 'function')} {'is' if len(functions) == 1 else 'are'} up to date"
    console.print(
        f"generated {pluralize(generated, 'case')}; {up_to_date} in {folder}", highlight=False, soft_wrap=True
    )
    for finding in non_discriminating:
        console.print(f"non-discriminating: {finding}", markup=False, highlight=False, soft_wrap=True)
    console.print(
        pluralize(len({finding.case for finding in non_discriminating}), "non-discriminating case"), highlight=False
    )
    if seed is not None:
        console.print(f"order of --shuffle {seed}", highlight=False)

"""`diopi-test bundle`: write the calls of cases to a file, for a runner on a target without Python."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from diopi_proto.messages import pluralize
from diopi_test.cli.console import UnusableError, console
from diopi_test.cli.options import OutputFile, data_option, level_option, workers_option
from diopi_test.cli.selection_options import selection_options
from diopi_test.run.selection import Selection


@click.command()
@level_option
@data_option
@selection_options("functions", "families", "dtypes", "classes", "expression", "cases", "seed", "sample", "shard")
@workers_option
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    metavar="FILE",
    default="cases.diopi",
    show_default=True,
    help="Write the bundle to this file.",
)
def bundle(level: str, data: Path | None, selection: Selection, workers: int | None, output: Path) -> None:
    """Write the calls of cases to a file, for a target without Python.

    The program `diopi-runner` makes these calls on the target, and `diopi-test evaluate` evaluates its results. The
    file contains no expected results.

    Exit status: 0 the file is written; 2 wrong usage; 3 no case is selected, or the baseline can't be used.
    """
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.cli.options import default_workers
    from diopi_test.run.keywords import SelectionError
    from diopi_test.run.options import RunOptions
    from diopi_test.target.bundling import write_bundle

    options = RunOptions(vendor="", level=level, data=data, selection=selection, workers=workers or default_workers())
    try:
        options.source.prepare(console, options.workers)
        written = write_bundle(output, options)
    except SelectionError as error:
        raise click.UsageError(str(error)) from error
    except (BaselineError, OSError) as error:
        raise UnusableError(str(error)) from error
    size = output.stat().st_size / 1e6
    text = f"{output}: {pluralize(written.case_count, 'case')}, {pluralize(written.call_count, 'call')}, {size:.1f} MB"
    console.print(text, highlight=False, markup=False, soft_wrap=True)
    if left_out := Counter(case.function for case in written.left_out):
        names = ", ".join(f"{name} ({count})" for name, count in left_out.items())
        text = f"{pluralize(len(written.left_out), 'case')} can't run on a target: {names}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)

"""The options of `run` for a target without Python, and the part of a run that takes place on the target."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, final

import click

from diopi_test.cli.console import UnusableError, console
from diopi_test.cli.options import combine_options
from diopi_test.run.options import RunOptions

if TYPE_CHECKING:
    from diopi_test.run.interruption import Interruption
    from diopi_test.run.runner import WaitForCases
    from diopi_test.target.remote_run import TargetFiles, TargetRun

target_options = combine_options(
    [
        click.option(
            "--target",
            metavar="COMMAND",
            help="Make the calls on a target with diopi-runner. COMMAND, such as 'ssh board', passes a shell command "
            "line to the target; see docs/targets.md.",
        ),
        click.option(
            "--runner",
            type=click.Path(path_type=Path, dir_okay=False, exists=True),
            metavar="FILE",
            help="With --target: the runner for the target.",
        ),
        click.option(
            "--target-folder",
            default="/tmp",
            show_default=True,
            metavar="DIR",
            help="With --target: the folder on the target for temporary files.",
        ),
        click.option(
            "--time-scale",
            type=click.FloatRange(min=0, min_open=True),
            default=1.0,
            show_default=True,
            help="With --target: multiply the time limit of a case by this factor, for a slow target.",
        ),
    ]
)
"""The options that describe a target."""


@final
@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """The values of the options that describe a target.

    Attributes:
        target: the command that passes a command line to the target; None for a run on this machine.
        runner: the path of the runner on this machine; None if the option is missing.
        target_folder: the folder on the target for temporary files.
        time_scale: the factor by which the time limit of a case is multiplied.
    """

    target: str | None
    runner: Path | None
    target_folder: str
    time_scale: float

    def require_runner(self) -> Path:
        """Return the runner; raise click.UsageError if the option is missing."""
        if self.runner is None:
            raise click.UsageError("--target requires --runner with the diopi-runner that was built for the target")
        return self.runner


@contextmanager
def run_cases_on_target(
    options: RunOptions, target: TargetOptions, log: Path, interruption: Interruption
) -> Iterator[tuple[RunOptions, WaitForCases]]:
    """Make the calls of the selected cases on a target, in the background.

    Args:
        options: The options of the run.
        target: The options of the target.
        log: The path of the log. The results are stored next to the log.
        interruption: The handler of signals, which ends the run on the target as well.

    Yields:
        The options of the run that evaluates the results, and the function that waits for the results of cases.

    Raises:
        click.UsageError: The options name no runner or no compiled library, or select no case.
        UnusableError: The target or the baseline can't be used.
    """
    from diopi_test.target.bundling import write_bundle
    from diopi_test.target.connection import TargetError
    from diopi_test.target.remote_run import TargetFiles, copy_declarations

    runner, library = target.require_runner(), Path(options.vendor)
    if not library.is_file():
        raise click.UsageError(f"--target requires --vendor with a compiled library; {options.vendor} is not a file")
    results = log.with_suffix(".results.diopi")
    results.parent.mkdir(parents=True, exist_ok=True)
    options.source.prepare(console, options.workers)
    with tempfile.TemporaryDirectory(prefix="diopi-target-") as folder:
        files = TargetFiles(runner=runner, cases=Path(folder) / "cases.diopi", library=library)
        try:
            write_bundle(files.cases, options)
            timeout = options.timeout * target.time_scale
            with _stream_results(files, results, target, timeout, interruption) as run:
                copy_declarations(library, results)
                yield (
                    replace(options, vendor=str(results)),
                    lambda cases: run.wait_for(case.id for case in cases),
                )
        except (TargetError, OSError) as error:
            raise UnusableError(str(error)) from error


@contextmanager
def _stream_results(
    files: TargetFiles, results: Path, target: TargetOptions, timeout: float, interruption: Interruption
) -> Iterator[TargetRun]:
    """Make the calls of the bundle on the target in the background, and write the results to a file as they arrive.

    Args:
        files: The files that the target needs.
        results: The file for the results.
        target: The options of the target.
        timeout: The time limit of a case in seconds.
        interruption: The handler of signals.

    Yields:
        The run on the target.
    """
    from diopi_test.target.bundle import BundleHeader
    from diopi_test.target.connection import TargetConnection
    from diopi_test.target.remote_run import StreamedResults, run_on_target

    assert target.target is not None
    connection = TargetConnection(target.target, target.target_folder)
    with results.open("wb") as file:
        streamed = StreamedResults(file, BundleHeader(files.cases).identity)
        with run_on_target(connection, files, streamed, timeout, interruption.check) as run:
            yield run

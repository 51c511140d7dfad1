"""`diopi-test run`: the suite on one vendor, or on several."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from diopi_test.cli.options import (
    Unusable,
    check_options,
    completing,
    console,
    dask_option,
    data_option,
    default_workers,
    durations_option,
    level_option,
    list_cases,
    output_option,
    selection_options,
    vendor_option,
    workers_option,
    write_report,
)
from diopi_test.cli.original_words import explain_original_words
from diopi_test.harness.options import MAX_LOST, TIMEOUT, RunOptions
from diopi_test.models.files import model_names

if TYPE_CHECKING:
    from diopi_test.harness.recorder import LogContent
    from diopi_test.harness.records import Report


@click.command()
@vendor_option
@level_option
@click.option(
    "--model",
    metavar="NAME",
    help="With --level models: only what this network calls; see docs/models.md.",
    shell_complete=completing(model_names),
)
@data_option
@selection_options()
@workers_option
@dask_option
@check_options
@click.option(
    "--waivers",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Cases that may fail, a TOML file. May be given more than once.",
)
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=TIMEOUT, show_default=True, help="Seconds a case may take."
)
@click.option("--memory", type=click.IntRange(min=1), metavar="MIB", help="Memory a process with the vendor may have.")
@click.option(
    "--max-crashes",
    "max_lost",
    type=click.IntRange(min=1),
    default=MAX_LOST,
    show_default=True,
    help="Crashes and hangs of a function before the rest of it is not run.",
)
@click.option("--huge", is_flag=True, help="With --level large: also cases whose storages have more than 2^31 bytes.")
@click.option("--strict", is_flag=True, help="Count negative tests and what PyTorch leaves open like all other cases.")
@click.option(
    "--perf", is_flag=True, help="Time the calls of cases that pass, by one process if -n does not ask for more."
)
@click.option(
    "--dump",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write inputs, results, what is expected and budgets of cases that do not succeed into this folder, as .npz.",
)
@click.option("--debug", is_flag=True, help="Run the one case that is selected in this process, for debuggers.")
@click.option(
    "--plan",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Make the runs of this TOML file, one after the other, instead of one.",
)
@durations_option
@output_option("--json", "json_file", "Write the report to this file.")
@output_option("--log", "log", "Write the log to this new file, instead of one in the user's folder for state.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Go on with the run of this log, with its options.",
)
@click.option("--resumed", is_flag=True, hidden=True)
@explain_original_words(but=("--nhwc", "--four_bytes"))
def run(
    json_file: Path | None,
    log: Path | None,
    resume: Path | None,
    resumed: bool,
    workers: int | None,
    durations: int,
    only_list: bool,
    debug: bool,
    plan: Path | None,
    level: str,
    model: str | None,
    **given: Any,
) -> None:
    """Run the suite on a vendor.

    Exit status: 0 all executed cases passed that are demanded, 1 some did not, 2 usage, 3 the vendor does not start,
    nothing was executed, some cases have no verdict (the run was interrupted, say), the baseline is unusable, or the
    report can't be written.
    """
    from diopi_test.harness.interruption import Interruption

    workers = workers or (1 if given["perf"] else default_workers())
    options = RunOptions(workers=workers, level=_level_of(level, model), **given)
    try:
        if debug:
            with _as_errors():  # signals are the debugger's
                sys.exit(_debug(options))
        with _as_errors(), Interruption():
            if resume is not None:
                _resume(resume, json_file, options, durations)
            if plan is not None:
                status = _run_plan(plan, json_file, options.workers)
            elif only_list:
                status = _list(options)
            else:
                status = _run(options, json_file, log, resumed, durations)
    except KeyboardInterrupt as interrupt:
        raise Unusable(f"{interrupt} before the report was written") from interrupt
    sys.exit(status)


def _level_of(level: str, model: str | None) -> str:
    """The level that is asked for; click.UsageError if there is no such model, or if the level is not of models."""
    from diopi_test.cases.selection import LEVELS, MODELS, level_of_model

    if model is None:
        return level
    if level != MODELS:
        raise click.UsageError(f"--model is for --level {MODELS}, not for {level}")
    if level_of_model(model) not in LEVELS:
        near = get_close_matches(model, model_names())
        known = f"near are {', '.join(near)}" if near else f"known are {', '.join(model_names())}"
        raise click.UsageError(f"there is no model {model!r}; {known}")
    return level_of_model(model)


@contextmanager
def _as_errors() -> Iterator[None]:
    """What can't be run, as the command line tells it."""
    from diopi_impl import VendorNotFoundError
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.harness.keywords import SelectionError
    from diopi_test.harness.log import LogError, LogExistsError
    from diopi_test.harness.tables import TableError

    try:
        yield
    except (VendorNotFoundError, SelectionError, TableError, LogExistsError) as error:
        raise click.UsageError(str(error)) from error
    except (BaselineError, LogError) as error:
        raise Unusable(str(error)) from error


def _list(options: RunOptions) -> int:
    from diopi_test.harness.runner import list_cases_of

    list_cases(list_cases_of(options))
    return 0


def _debug(options: RunOptions) -> int:
    """Run the only case selected in this process; the exit status."""
    from diopi_test.execution.verdict import Verdict
    from diopi_test.harness.collection import RUNTIME
    from diopi_test.harness.debug import debug, the_only
    from diopi_test.harness.runner import collect, prepare

    prepare(options, console)
    level, cases = collect(options)
    case = the_only(cases, lambda one: one.id)
    path = None if case.function == RUNTIME else level.path(case.function)
    outcome = debug(options.vendor, path, case, options.of_cases, click.echo)
    return 0 if outcome.verdict is Verdict.passed else 1


NEVER_RESUMED = frozenset({"--json", "--log", "--dump", "--plan", "--debug", "--dask", "--resume", "--resumed"})
"""Options that the command in a log never has: they write files, or run something else."""


def _words_to_resume(log: Path, command: str, folder: str) -> list[str]:
    """The words after `diopi-test run` of the command in a log; LogError if it must not be run.

    The command loads a vendor, and so runs its code: a log that came from elsewhere could name any. Logs in the user's
    folder for state were written here; any other log is resumed only where its command was given.
    """
    from diopi_test.harness.log import LogError, state_folder

    try:
        program, name, *words = shlex.split(command)
    except ValueError as error:
        raise LogError(f"the command in {log} can't be read: {error}: {command!r}") from error
    if (program, name) != ("diopi-test", "run") or any(word.partition("=")[0] in NEVER_RESUMED for word in words):
        raise LogError(f"the command in {log} is none that a run writes to its log: {command!r}")
    is_own = log.resolve().parent == state_folder().resolve()
    if not is_own and os.path.realpath(folder) != os.path.realpath(os.getcwd()):
        raise LogError(
            f"{log} would run this command in {folder}: {shlex.join(['diopi-test', 'run', *words])}; "
            "if you trust the log, change to that folder and resume it there"
        )
    return words


def _resume(log: Path, json_file: Path | None, options: RunOptions, durations: int) -> None:
    """Show the command of a log, and run it once more, where it was given, for the cases that are left."""
    from diopi_test.harness.log import LogError
    from diopi_test.harness.output import printable
    from diopi_test.harness.recorder import LogContent

    header = LogContent.read(log).header
    words = _words_to_resume(log, header.command, header.folder)
    shown_command = f"resuming in {header.folder}: {shlex.join(['diopi-test', 'run', *words])}"
    console.print(printable(shown_command), highlight=False, markup=False, soft_wrap=True)
    output = ["--json", str(json_file.absolute())] if json_file else []
    cluster = ["--dask", options.dask] if options.dask else []
    log = log.absolute()
    try:
        os.chdir(header.folder)
    except OSError as error:
        raise LogError(f"the folder in which the run of {log} began can't be used: {error}") from error
    shown = ["--durations", str(durations)]
    more = ["-n", str(options.workers), *cluster, *output, *shown, "--log", str(log), "--resumed"]
    run.main([*words, *more], standalone_mode=False)


def _run(options: RunOptions, json_file: Path | None, log: Path | None, resumed: bool, durations: int) -> int:
    """Run the suite, write and show the report; the exit status."""
    from diopi_test.baseline.codec import to_json
    from diopi_test.harness.log import new_log
    from diopi_test.harness.report import show
    from diopi_test.harness.runner import run as run_suite

    if (seed := options.selection.seed) is not None:
        console.print(f"shuffled with seed {seed}", highlight=False)  # at once: the run may not come to its end
    content: LogContent = run_suite(options, log or new_log(), console, resumed=resumed)
    report = content.report()
    try:
        if json_file is not None:
            write_report(json_file, to_json(report))
    finally:
        show(report, console, durations)
        console.print(f"log: {content.path}", highlight=False, markup=False, soft_wrap=True)
    return report.exit_status


def _run_plan(plan: Path, json_file: Path | None, workers: int) -> int:
    """Make the runs of a plan, each with a log of its own, write and show what they found; the exit status."""
    import time

    from diopi_test.baseline.codec import to_json
    from diopi_test.harness.plan import read_plan
    from diopi_test.harness.records import SCHEMA_VERSION, PlannedReport, PlanReport
    from diopi_test.harness.report import show_plan

    planned, start = read_plan(plan), time.monotonic()
    runs = tuple(PlannedReport(one.name, _report_of(one.options(workers))) for one in planned)
    report = PlanReport(SCHEMA_VERSION, runs, round(time.monotonic() - start, 3))
    if json_file is not None:
        write_report(json_file, to_json(report))
    show_plan(report, console)
    return report.exit_status


def _report_of(options: RunOptions) -> Report:
    """The report of a run of a plan; one that tells why if it can't be made."""
    from diopi_impl import VendorNotFoundError
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.harness.keywords import SelectionError
    from diopi_test.harness.log import new_log
    from diopi_test.harness.recorder import LogContent
    from diopi_test.harness.runner import run as run_suite

    try:
        return run_suite(options, new_log(), console).report()
    except (VendorNotFoundError, BaselineError, SelectionError) as error:
        return LogContent.of_failed(options, str(error)).report()

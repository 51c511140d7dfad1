"""`diopi-test run`: run the suite against one vendor or several vendors."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from diopi_proto.interface import prototypes
from diopi_proto.messages import describe_unknown, pluralize
from diopi_test.cases.case import CaseClass
from diopi_test.cli.check_options import check_options
from diopi_test.cli.console import UnusableError, console, list_cases, write_report
from diopi_test.cli.library_families import with_library_families
from diopi_test.cli.next_step import suggest_next_step
from diopi_test.cli.numerics import numerics_option
from diopi_test.cli.options import (
    SOAK_LEVEL,
    complete_names,
    dask_option,
    data_option,
    default_workers,
    durations_option,
    make_level_option,
    origin_options,
    output_option,
    vendor_option,
    workers_option,
)
from diopi_test.cli.original_options import explain_original_options
from diopi_test.cli.selection_options import selection_options
from diopi_test.cli.severity import fail_on_option
from diopi_test.cli.target_options import TargetOptions, run_cases_on_target, target_options
from diopi_test.results.causes.severity import Severity
from diopi_test.run.limits import DEFAULT_MAX_LOST, DEFAULT_TIMEOUT, SOAK_LEVEL_CALLS
from diopi_test.run.options import RunOptions
from diopi_test.traces.files import model_names

if TYPE_CHECKING:
    from diopi_test.results.records import Report
    from diopi_test.run.interruption import Interruption
    from diopi_test.run.plan import PlannedRun
    from diopi_test.run.recorder import LogContent


HUGE_MEMORY = 14 * 2**30
"""The bytes of memory that a worker and its evaluator need for a case with `--huge`."""

MAX_LISTED = 8
"""The number of affected functions that a message names."""


@click.command()
@with_library_families
@vendor_option
@make_level_option([SOAK_LEVEL], f" {SOAK_LEVEL} stands for the soak tests of level full.")
@click.option(
    "--model",
    metavar="NAME",
    help="With --level models: only the calls of this network; see docs/models.md.",
    shell_complete=complete_names(model_names),
)
@data_option
@selection_options()
@click.option(
    "--affected-by",
    "changed_functions",
    multiple=True,
    metavar="FUNCTION",
    shell_complete=complete_names(prototypes),
    help="Only the cases that a change of this function can affect, see docs/selecting.md. Can be repeated.",
)
@click.option(
    "--since",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="LOG",
    help="Only the cases of this log that have no verdict, or that changes of the vendor since the log can affect.",
)
@workers_option
@dask_option
@check_options
@click.option(
    "--waivers",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="TOML file of cases that may fail. Can be repeated.",
)
@numerics_option
@click.option(
    "--check-numerics/--no-check-numerics",
    default=None,
    help="Compare the declared arithmetic with measurements at the end of the run. By default, unless it is IEEE 754.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=DEFAULT_TIMEOUT,
    show_default=True,
    help="Time limit of a case in seconds.",
)
@click.option(
    "--memory",
    type=click.IntRange(min=1),
    metavar="MIB",
    help="Memory limit in MiB of the process that loads the vendor. The process that evaluates results has no limit.",
)
@click.option(
    "--max-crashes",
    "max_lost",
    type=click.IntRange(min=1),
    default=DEFAULT_MAX_LOST,
    show_default=True,
    help="Skip the remaining cases of a function after this number of crashes and hangs.",
)
@click.option("--huge", is_flag=True, help="With --level large: also cases with tensors of more than 2^31 bytes.")
@click.option(
    "--strict",
    is_flag=True,
    help="Count all failures: also minor ones, negative tests and cases that PyTorch leaves open.",
)
@fail_on_option(default=Severity.major)
@click.option("--perf", is_flag=True, help="Measure the calls of cases that pass; uses one worker by default.")
@origin_options
@click.option(
    "--dump",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write inputs, results, expected results and budgets of failed cases to this folder, as .npz files.",
)
@click.option("--debug", is_flag=True, help="Run the only selected case in this process, for debuggers.")
@click.option(
    "--plan",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Perform the runs of this TOML file one after another instead of a single run.",
)
@target_options
@durations_option
@output_option("--json", "json_file", "Write the report to this file.")
@output_option("--log", "log", "Write the log to this new file instead of a file in the user's state folder.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="LOG",
    help="Continue the run of this log with the options of that run.",
)
@click.option("--resumed", is_flag=True, hidden=True)
@explain_original_options(excluded_options=("--nhwc", "--four_bytes"))
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
    changed_functions: tuple[str, ...],
    since: Path | None,
    target: str | None,
    runner: Path | None,
    target_folder: str,
    time_scale: float,
    **options_of_run: Any,
) -> None:
    """Run the suite against a vendor.

    With --family device-runtime or --family collectives, run the cases of a vendor's library of this kind; see
    docs/device_runtime.md and docs/collectives.md.

    Exit status: 0 all executed cases that count passed; 1 a case that counts failed; 2 wrong usage; 3 the vendor does
    not start, no case was executed, some cases have no verdict (for example because the run was interrupted), the
    baseline can't be used, or the report can't be written.
    """
    from diopi_test.results.log import new_log
    from diopi_test.run.interruption import Interruption

    workers = workers or (1 if options_of_run["perf"] else default_workers())
    options = RunOptions(workers=workers, level=_resolve_level(level, model), **options_of_run)
    if level == SOAK_LEVEL:
        options = _select_soak_tests(options)
    try:
        if changed_functions or since is not None:
            with _convert_errors():
                options = _select_affected(options, changed_functions, since)
        if debug:
            with _convert_errors():  # the debugger handles signals
                sys.exit(_debug(options))
        with _convert_errors(), Interruption() as interruption:
            if resume is not None:
                _resume(resume, json_file, options, durations)
            if plan is not None:
                status = _run_plan(plan, json_file, options.workers)
            elif only_list:
                status = _list(options)
            else:
                _require_memory(options)
                on_target = TargetOptions(
                    target=target, runner=runner, target_folder=target_folder, time_scale=time_scale
                )
                content, options = _execute(options, on_target, log or new_log(), resumed, interruption)
                status = _conclude(content, options, json_file, durations)
    except KeyboardInterrupt as interrupt:
        raise UnusableError(f"{interrupt} before the report was written") from interrupt
    sys.exit(status)


def _require_memory(options: RunOptions) -> None:
    """Raise click.UsageError if this machine does not have the memory that huge cases need."""
    memory, least = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), options.workers * HUGE_MEMORY
    if options.huge and not options.dask and memory < least:
        raise click.UsageError(
            f"--huge with {pluralize(options.workers, 'worker')} needs {least >> 30} GiB of memory, but this machine "
            f"has {memory >> 30} GiB; use fewer workers (-n), or leave out --huge"
        )


def _select_soak_tests(options: RunOptions) -> RunOptions:
    """Return the options of `--level soak`: level full, only soak tests, and more calls unless `--soak` sets them."""
    is_default = click.get_current_context().get_parameter_source("soak") is ParameterSource.DEFAULT
    selection = replace(options.selection, classes=(*options.selection.classes, CaseClass.soak.value))
    return replace(options, level="full", selection=selection, soak=SOAK_LEVEL_CALLS if is_default else options.soak)


def _resolve_level(level: str, model: str | None) -> str:
    """Return the name of the level; raise click.UsageError if `--model` is unknown or used with another level."""
    if model is None:
        return level
    if level != "models":
        raise click.UsageError(f"--model requires --level models; the level is {level}")
    if model not in model_names():
        raise click.UsageError(f"--model: {describe_unknown(model, model_names(), 'models')}")
    return f"models-{model}"


def _select_affected(options: RunOptions, functions: tuple[str, ...], since: Path | None) -> RunOptions:
    """Restrict the options to the cases that a change can affect, and print the functions of these cases.

    Args:
        options: The options of the run.
        functions: The values of `--affected-by`: names of changed functions, separated by commas.
        since: The log of `--since`; None if the option is not used.

    Returns:
        The options with the affected cases in their selection.

    Raises:
        click.UsageError: Both options are used.
    """
    from diopi_test.run.case_executor import executor_of
    from diopi_test.run.changes import find_affected

    if functions and since is not None:
        raise click.UsageError("--affected-by and --since exclude each other")
    names = tuple(name for value in functions for name in value.split(",") if name)
    start = partial(executor_of, options.vendor, options.limits, options.execution, workers=1, dask=options.dask)
    numerics = options.execution.numerics
    affected = find_affected(options.vendor, options.source, start, names, since, numerics)
    selected = affected.functions if affected.ids is None else {name.partition("[")[0] for name in affected.ids}
    if selected:
        listed = ", ".join(sorted(selected)[:MAX_LISTED]) + (", …" if len(selected) > MAX_LISTED else "")
        text = f"{pluralize(len(selected), 'function')} to run ({affected.reason}): {listed}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    return replace(options, selection=replace(options.selection, affected=affected))


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Return a context manager that converts the errors of a run to command-line errors with the right exit status."""
    from diopi_impl import NumericsError, VendorNotFoundError
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.results.log import LogError, LogExistsError
    from diopi_test.run.keywords import SelectionError
    from diopi_test.waivers.tables import TableError

    try:
        yield
    except (VendorNotFoundError, NumericsError, SelectionError, TableError, LogExistsError) as error:
        raise click.UsageError(str(error)) from error
    except (BaselineError, LogError) as error:
        raise UnusableError(str(error)) from error


def _list(options: RunOptions) -> int:
    """List the selected cases instead of running them; return the exit status."""
    list_cases(options.source.list_cases())
    return 0


def _debug(options: RunOptions) -> int:
    """Run the only selected case in this process and return the exit status."""
    from diopi_test.execution.runtime_cases import RUNTIME
    from diopi_test.execution.verdict import Verdict
    from diopi_test.run.debug import debug, select_only_case

    options.source.prepare(console, options.workers)
    level, cases = options.source.collect()
    case = select_only_case(cases, lambda collected: collected.id)
    path = None if case.function == RUNTIME else level.path(case.function)
    outcome = debug(options.vendor, path, case, options.execution, click.echo)
    return 0 if outcome.verdict is Verdict.passed else 1


NOT_RESUMABLE = frozenset({"--json", "--log", "--dump", "--plan", "--debug", "--dask", "--resume", "--resumed"})
"""Options that the command in a log can't have: they write files or start other runs."""


def _read_words_to_resume(log: Path, command: str, folder: str) -> list[str]:
    """Return the words after `diopi-test run` of the command in a log; raise LogError if it must not be run.

    The command loads a vendor and therefore runs its code, and a log from another person could name any vendor. Logs in
    the user's state folder were written by this user. Any other log is resumed only in the folder of its command.

    Args:
        log: the path of the log.
        command: the command in the log.
        folder: the folder in which the command was run.

    Returns:
        The words of the command.

    Raises:
        LogError: if the command is not a `diopi-test run`, or the log is not trusted.
    """
    from diopi_test.results.log import LogError, state_folder

    try:
        program, name, *words = shlex.split(command)
    except ValueError as error:
        raise LogError(f"the command in {log} can't be parsed: {error}: {command!r}") from error
    if (program, name) != ("diopi-test", "run") or any(word.partition("=")[0] in NOT_RESUMABLE for word in words):
        raise LogError(f"the command in {log} is not a command that a run writes to its log: {command!r}")
    is_in_state_folder = log.resolve().parent == state_folder().resolve()
    if not is_in_state_folder and os.path.realpath(folder) != os.path.realpath(os.getcwd()):
        raise LogError(
            f"{log} would run this command in {folder}: {shlex.join(['diopi-test', 'run', *words])}; "
            "if you trust the log, change to that folder and resume the run there"
        )
    return words


def _resume(log: Path, json_file: Path | None, options: RunOptions, durations: int) -> None:
    """Show the command of a log, and run it again in its folder for the remaining cases.

    Args:
        log: the log of the interrupted run.
        json_file: the file for the report; None for none.
        options: the options, of which only the number of workers and the cluster replace those of the log.
        durations: the number of slow functions to list.

    Raises:
        LogError: The log can't be resumed, or its folder can't be used.
    """
    from diopi_test.results.log import LogError
    from diopi_test.run.output import printable
    from diopi_test.run.recorder import LogContent

    header = LogContent.read(log).header
    words = _read_words_to_resume(log, header.command, header.folder)
    shown_command = f"resuming in {header.folder}: {shlex.join(['diopi-test', 'run', *words])}"
    console.print(printable(shown_command), highlight=False, markup=False, soft_wrap=True)
    output = ["--json", str(json_file.absolute())] if json_file else []
    cluster = ["--dask", options.dask] if options.dask else []
    log = log.absolute()
    try:
        os.chdir(header.folder)
    except OSError as error:
        raise LogError(f"the folder of the run in {log} can't be used: {error}") from error
    durations_words = ["--durations", str(durations)]
    added_words = ["-n", str(options.workers), *cluster, *output, *durations_words, "--log", str(log), "--resumed"]
    run.main([*words, *added_words], standalone_mode=False)


def _execute(
    options: RunOptions, on_target: TargetOptions, log: Path, resumed: bool, interruption: Interruption
) -> tuple[LogContent, RunOptions]:
    """Run the suite, on a target if the options name one.

    Args:
        options: The options of the run.
        on_target: The options of the target.
        log: The path of the log.
        resumed: Whether to continue the run of the log.
        interruption: The interruptions of the run.

    Returns:
        The content of the log, and the options of the run whose report is written.
    """
    from diopi_test.run.runner import run as run_suite

    if (seed := options.selection.seed) is not None:
        console.print(f"shuffled with seed {seed}", highlight=False)  # before the run, which may be interrupted
    if on_target.target is None:
        return run_suite(options, log, console, resumed=resumed), options
    with run_cases_on_target(options, on_target, log, interruption) as (evaluation, wait_for):
        return run_suite(evaluation, log, console, resumed=resumed, wait_for=wait_for), evaluation


def _conclude(content: LogContent, options: RunOptions, json_file: Path | None, durations: int) -> int:
    """Write and show the report of a run, and return the exit status."""
    from diopi_test.baseline.codec import to_json
    from diopi_test.results.report import show

    report = content.report()
    try:
        if json_file is not None:
            write_report(json_file, to_json(report))
    finally:
        show(report, console, durations)
        console.print(f"log: {content.path}", highlight=False, markup=False, soft_wrap=True)
        if suggestion := suggest_next_step(report, content.path, options):
            console.print(suggestion, highlight=False, markup=False, soft_wrap=True)
    return report.exit_status


def _run_plan(plan: Path, json_file: Path | None, workers: int) -> int:
    """Perform the runs of a plan, each with a new log; write and show the report, and return the exit status."""
    import time

    from diopi_test.baseline.codec import to_json
    from diopi_test.results.records import SCHEMA_VERSION, PlannedReport, PlanReport
    from diopi_test.results.report import show_plan
    from diopi_test.run.plan import read_plan

    planned, start = read_plan(plan), time.monotonic()
    runs = tuple(PlannedReport(run.name, _run_planned(_options_of_planned(run, workers))) for run in planned)
    report = PlanReport(SCHEMA_VERSION, runs, round(time.monotonic() - start, 3))
    if json_file is not None:
        write_report(json_file, to_json(report))
    show_plan(report, console)
    return report.exit_status


def _options_of_planned(run: PlannedRun, workers: int) -> RunOptions:
    """Return the options of a planned run; raise SelectionError if a name is not known."""
    return RunOptions(
        vendor=run.vendor,
        level=run.level,
        data=run.data,
        selection=run.selection,
        workers=workers,
        timeout=run.timeout,
        waivers=run.waivers,
        numerics=run.numerics,
    )


def _run_planned(options: RunOptions) -> Report:
    """Return the report of a planned run; if the run can't start, the report contains the error."""
    from diopi_impl import VendorNotFoundError
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.results.log import new_log
    from diopi_test.run.keywords import SelectionError
    from diopi_test.run.recorder import LogContent
    from diopi_test.run.runner import run as run_suite

    try:
        return run_suite(options, new_log(), console).report()
    except (VendorNotFoundError, BaselineError, SelectionError) as error:
        return LogContent.from_failure(options.header(), str(error)).report()

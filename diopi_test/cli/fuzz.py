"""`diopi-test fuzz`: run random valid calls and minimize the failures."""

from __future__ import annotations

import shlex
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from diopi_proto.messages import pluralize
from diopi_test.baseline.shuffle import RANDOM
from diopi_test.cli.console import UnusableError, console
from diopi_test.cli.numerics import numerics_option
from diopi_test.cli.options import vendor_option
from diopi_test.cli.selection_options import Seed, select_functions, selection_options

if TYPE_CHECKING:
    from diopi_test.fuzz.findings import FindingsWriter, FuzzFinding
    from diopi_test.fuzz.search import Search, Signature
    from diopi_test.run.selection import Selection

TIMEOUT = 30.0
"""The default time limit of a call in seconds; random calls are small."""


@click.command()
@vendor_option
@selection_options("functions", "families", "expression", "shard")
@click.option("--minutes", type=click.FloatRange(min=0), default=10, show_default=True, help="Duration of the search.")
@click.option("--rounds", type=click.IntRange(min=1), help="Stop after this number of rounds through all functions.")
@click.option(
    "--seed",
    type=Seed(),
    default=RANDOM,
    metavar="SEED",
    help="Seed of the random calls, an integer; a new seed by default.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=TIMEOUT,
    show_default=True,
    help="Time limit of a call in seconds.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the findings to this folder, which `run --data` accepts; fuzz-SEED by default.",
)
@click.option(
    "--waivers",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="TOML file of calls that may fail. Can be repeated.",
)
@click.option(
    "--failed-in",
    "failed_in",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="REPORT",
    help="Report or log of an earlier run: its failures are not findings, and their functions are searched less. "
    "Can be repeated.",
)
@numerics_option
@click.option("--statistics", is_flag=True, help="Show how many calls of each function were valid and how they vary.")
def fuzz(
    vendor: str,
    selection: Selection,
    minutes: float,
    rounds: int | None,
    seed: int,
    timeout: float,
    output: Path | None,
    waivers: tuple[Path, ...],
    failed_in: tuple[Path, ...],
    numerics: str | None,
    statistics: bool,
) -> None:
    """Fuzz a vendor with random valid calls and minimize the failures.

    The seed determines the calls. Press Ctrl-C to stop the search and keep its findings.

    Exit status: 0 no findings; 1 findings; 2 wrong usage; 3 the vendor does not start, no call was run, or the findings
    can't be written.
    """
    if find_spec("hypothesis") is None:
        raise click.UsageError("the fuzzer needs one more package: pip install 'diopi[fuzz]'")
    from diopi_impl import find_numerics
    from diopi_test.cases.selection import select_cases
    from diopi_test.fuzz.findings import FindingsWriter
    from diopi_test.fuzz.search import Search
    from diopi_test.fuzz.trial import TrialRunner
    from diopi_test.waivers.rules import Waivers

    functions = select_functions(selection, lambda name: bool(select_cases(name, "full")))
    writer = FindingsWriter(output or Path(f"fuzz-{seed}"))
    console.print(f"seed {seed}", highlight=False)  # before the search, which may be interrupted
    with _convert_errors():
        writer.check_is_new()
        command_line_waivers = Waivers.read(waivers)
        known_failures_by_function = _read_known_failures(failed_in)
        with TrialRunner(vendor, timeout, None if numerics is None else find_numerics(numerics)) as trials:
            description = trials.describe()
            deadline = time.monotonic() + 60 * minutes
            search = Search(
                trials=trials,
                seed=seed,
                deadline=deadline,
                report=partial(_report, writer),
                known=known_failures_by_function,
            )
            search.waivers = command_line_waivers + Waivers.from_vendor(description.name, description.waivers)
            _run(search, functions, rounds)
    options = ["--vendor", vendor, *([] if numerics is None else ["--numerics", numerics])]
    _print_summary(search, writer, statistics, options)
    sys.exit(1 if writer.found else 0)


def _read_known_failures(paths: Iterable[Path]) -> dict[str, set[Signature]]:
    """Return the signatures of the failures in reports of earlier runs, by function."""
    from diopi_test.fuzz.search import known_failures
    from diopi_test.reporting.reading import read_report

    return known_failures(record for path in paths for record in read_report(path).cases)


def _report(writer: FindingsWriter, finding: FuzzFinding) -> None:
    """Write a finding and print its description."""
    for line in writer.add(finding).lines():
        console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Return a context manager that converts the errors of a search to command-line errors with exit statuses."""
    from diopi_impl import VendorError, VendorNotFoundError
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.reporting.reading import ReportError
    from diopi_test.run.isolation.fork_server import ForkServerError
    from diopi_test.waivers.tables import TableError

    try:
        yield
    except (VendorNotFoundError, TableError, FileExistsError, ReportError) as error:
        raise click.UsageError(str(error)) from error
    except (VendorError, ForkServerError, BaselineError, OSError) as error:
        raise UnusableError(str(error)) from error
    except Exception as error:  # a defect of the fuzzer must not end with status 1, which means findings
        raise UnusableError("".join(traceback.format_exception(error))) from error


def _run(search: Search, functions: list[str], rounds: int | None) -> None:
    """Search until the time or the rounds are over, or until the user interrupts."""
    from diopi_test.run.interruption import Interruption

    try:
        with Interruption() as interruption:
            search.check = interruption.check
            search.run(functions, rounds)
    except KeyboardInterrupt as interrupt:
        console.print(str(interrupt) or "interrupted")


def _print_summary(search: Search, writer: FindingsWriter, statistics: bool, options: list[str]) -> None:
    """Print how many calls were run and what they found; raise UnusableError if no call was run.

    Args:
        search: The search that has ended.
        writer: The writer of its findings.
        statistics: Whether to print statistics of each function.
        options: The options of `diopi-test run` that repeat the findings.

    Raises:
        UnusableError: No call was run.
    """
    from diopi_test.fuzz.statistics import print_statistics, summarize

    if statistics:
        print_statistics(search.statistics, console)
    console.print(summarize(search.statistics.values()), highlight=False)
    if not any(statistic.legal for statistic in search.statistics.values()):
        raise UnusableError("no call was run")
    number = len(writer.found)
    console.print(f"{pluralize(number, 'finding')}; repeat with --seed {search.seed}", highlight=False)
    if number:
        command = shlex.join(["diopi-test", "run", *options, "--data", str(writer.folder)])
        console.print(command, highlight=False, markup=False, soft_wrap=True)

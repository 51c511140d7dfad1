"""`diopi-test fuzz`: calls nobody wrote, drawn, judged, and shrunk where they go wrong."""

from __future__ import annotations

import shlex
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from diopi_test.baseline.shuffle import RANDOM
from diopi_test.cli.options import Seed, Unusable, console, select_functions, selection_options, vendor_option

if TYPE_CHECKING:
    from diopi_test.fuzz.findings import FindingsWriter, FuzzFinding
    from diopi_test.fuzz.search import Search
    from diopi_test.harness.selection import Selection

TIMEOUT = 30.0
"""Seconds a call may take, if nobody says: those that are drawn are small."""


@click.command()
@vendor_option
@selection_options("functions", "families", "expression", "shard")
@click.option("--minutes", type=click.FloatRange(min=0), default=10, show_default=True, help="How long to search.")
@click.option("--rounds", type=click.IntRange(min=1), help="End after so many rounds through all functions.")
@click.option(
    "--seed", type=Seed(), default=RANDOM, metavar="SEED", help="Draw from this seed; from a new one if not given."
)
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=TIMEOUT, show_default=True, help="Seconds a call may take."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write what is found into this folder, for --data; into fuzz-SEED if not given.",
)
@click.option(
    "--waivers",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Calls that may fail, a TOML file. May be given more than once.",
)
@click.option(
    "--statistics", is_flag=True, help="Show, for each function, how many calls were legal and how they vary."
)
def fuzz(
    vendor: str,
    selection: Selection,
    minutes: float,
    rounds: int | None,
    seed: int,
    timeout: float,
    output: Path | None,
    waivers: tuple[Path, ...],
    statistics: bool,
) -> None:
    """Draw legal calls, run them on a vendor, and shrink those that go wrong.

    The seed decides what is drawn. Ctrl-C ends the search with what was found.

    Exit status: 0 nothing found, 1 something, 2 usage, 3 the vendor does not start, no call was run, or what was found
    can't be written.
    """
    if find_spec("hypothesis") is None:
        raise click.UsageError("the fuzzer needs one more package: pip install 'diopi[fuzz]'")
    from diopi_test.baseline.generate import functions_with_cases
    from diopi_test.fuzz.findings import FindingsWriter
    from diopi_test.fuzz.search import Search
    from diopi_test.fuzz.trial import Trials
    from diopi_test.harness.waivers import Waivers

    functions = select_functions(functions_with_cases("full"), selection, lambda name: 1)
    writer = FindingsWriter(output or Path(f"fuzz-{seed}"))
    console.print(f"drawn from seed {seed}", highlight=False)  # at once: the search may not come to its end

    def report(finding: FuzzFinding) -> None:
        for line in writer.add(finding).lines():
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    with _ending_as_said():
        writer.check()
        given = Waivers.read(waivers)
        with Trials(vendor, timeout) as trials:
            said = trials.describe()
            search = Search(trials, seed, time.monotonic() + 60 * minutes, report)
            search.waivers = given + Waivers.of_vendor(said.name, said.waivers)
            _run(search, functions, rounds)
    _tell(search, writer, statistics, vendor)
    sys.exit(1 if writer.found else 0)


@contextmanager
def _ending_as_said() -> Iterator[None]:
    """Make of what goes wrong in a search the exit status it has."""
    from diopi_impl import VendorError, VendorNotFoundError
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.harness.isolation.fork_server import ForkServerError
    from diopi_test.harness.tables import TableError

    try:
        yield
    except (VendorNotFoundError, TableError, FileExistsError) as error:
        raise click.UsageError(str(error)) from error
    except (VendorError, ForkServerError, BaselineError, OSError) as error:
        raise Unusable(str(error)) from error
    except Exception as error:  # of the fuzzer itself: no finding, which status 1 would be
        raise Unusable("".join(traceback.format_exception(error))) from error


def _run(search: Search, functions: list[str], rounds: int | None) -> None:
    """Search until the end, or until interrupted."""
    from diopi_test.harness.interruption import Interruption

    try:
        with Interruption() as interruption:
            search.check = interruption.check
            search.run(functions, rounds)
    except KeyboardInterrupt as interrupt:
        console.print(str(interrupt) or "interrupted")


def _tell(search: Search, writer: FindingsWriter, statistics: bool, vendor: str) -> None:
    """Print what was drawn and found; Unusable if no call was run."""
    from diopi_test.fuzz.statistics import show, summary

    if statistics:
        show(search.statistics, console)
    console.print(summary(search.statistics.values()), highlight=False)
    if not any(one.legal for one in search.statistics.values()):
        raise Unusable("no call was run")
    number = len(writer.found)
    console.print(f"{number} finding{'' if number == 1 else 's'}; repeat with --seed {search.seed}", highlight=False)
    if number:
        command = shlex.join(["diopi-test", "run", "--vendor", vendor, "--data", str(writer.folder)])
        console.print(command, highlight=False, markup=False, soft_wrap=True)

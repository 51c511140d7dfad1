"""`diopi-test run --family device-runtime` and `--family collectives`: run cases on a vendor's library."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import click
from click.core import ParameterSource

from diopi_proto.messages import pluralize
from diopi_test.cli.console import UnusableError, write_report

if TYPE_CHECKING:
    from diopi_test.device_runtime.run import RuntimeOutcome

SCHEMA_VERSION = 1
"""The version of the JSON report of these cases."""

OPTIONS = frozenset({"families", "vendor", "expression", "only_list", "timeout", "json_file"})
"""The parameters of `run` that apply to cases of a library."""

DEFAULT_RANKS = 4
"""The default number of ranks of collectives."""

LARGE_LEVEL = "full"
"""The level of the cases of collectives with 2^24 elements."""


@final
@dataclass(frozen=True, kw_only=True)
class LibraryRun:
    """The options of a run of a library family.

    Attributes:
        family: the name of the family of cases.
        library: the path of the library under test; None for the library of the built-in device.
        timeout: the maximum duration of a case in seconds.
        ranks: the number of ranks of collectives.
        level: the level of the cases of collectives.
    """

    family: str
    library: Path | None
    timeout: float
    ranks: int
    level: str


@final
@dataclass(frozen=True, kw_only=True)
class LibraryFamily:
    """A family of cases that test a library without operators: a device runtime, or collectives.

    Attributes:
        options: the parameters of the command that apply besides `OPTIONS`.
        list_cases: returns the names of the cases.
        run: runs cases on a library and yields their outcomes.
    """

    options: frozenset[str]
    list_cases: Callable[[LibraryRun], list[str]]
    run: Callable[[Path, Sequence[str], LibraryRun], Iterator[RuntimeOutcome]]


def _list_device_runtime(_: LibraryRun) -> list[str]:
    """Return the names of the cases of device runtimes."""
    from diopi_test.device_runtime.all_cases import CASES

    return list(CASES)


def _run_device_runtime(library: Path, cases: Sequence[str], described: LibraryRun) -> Iterator[RuntimeOutcome]:
    """Run cases of device runtimes on a library, and yield their outcomes."""
    from diopi_test.device_runtime.run import run_cases

    return run_cases(library, cases, described.timeout)


def _list_collectives(described: LibraryRun) -> list[str]:
    """Return the names of the cases of collectives at the level of the run."""
    from diopi_test.collectives.all_cases import CASES, LARGE_CASES

    return [name for name in CASES if described.level == LARGE_LEVEL or name not in LARGE_CASES]


def _run_collectives(library: Path, cases: Sequence[str], described: LibraryRun) -> Iterator[RuntimeOutcome]:
    """Run cases of collectives on a library, and yield their outcomes."""
    from diopi_test.collectives.run import run_collective_cases

    return run_collective_cases(library, cases, described.ranks, described.timeout)


FAMILIES = {
    "device-runtime": LibraryFamily(options=frozenset(), list_cases=_list_device_runtime, run=_run_device_runtime),
    "collectives": LibraryFamily(
        options=frozenset({"ranks", "level"}), list_cases=_list_collectives, run=_run_collectives
    ),
}
"""The families by their name in the option `--family`."""


def with_library_families(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command `run` with the option `--ranks`, which runs the cases of a library family if one is named.

    Otherwise, `command` is called with its own options.
    """

    @click.option(
        "--ranks",
        type=click.IntRange(1, 64),
        default=DEFAULT_RANKS,
        show_default=True,
        help="With --family collectives: the number of processes.",
    )
    @wraps(command)
    def choose_family(*arguments: Any, ranks: int, **options: Any) -> Any:
        named = [family for family in options["families"] if family in FAMILIES]
        if not named:
            if _is_set("ranks"):
                raise click.UsageError("--ranks applies only to --family collectives")
            return command(*arguments, **options)
        _reject_other_options(named[0], options)
        described = LibraryRun(
            family=named[0],
            library=Path(options["vendor"]) if _is_set("vendor") else None,
            timeout=float(options["timeout"]),
            ranks=ranks,
            level=options["level"],
        )
        sys.exit(_run(described, options["expression"], options["only_list"], options["json_file"]))

    return choose_family


def _is_set(parameter: str) -> bool:
    """Return whether the value of a parameter of the command is not the default."""
    return click.get_current_context().get_parameter_source(parameter) is not ParameterSource.DEFAULT


def _reject_other_options(family: str, options: dict[str, Any]) -> None:
    """Raise click.UsageError if the command line has another family, or an option that does not apply."""
    if options["families"] != (family,):
        raise click.UsageError(f"--family {family} can't be combined with other families")
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and name not in OPTIONS | FAMILIES[family].options:
            raise click.UsageError(f"{parameter.opts[0]} does not apply to --family {family}")


def _run(described: LibraryRun, expression: str | None, only_list: bool, json_file: Path | None) -> int:
    """Run the selected cases on a library, and print the verdicts.

    Args:
        described: The options of the run.
        expression: The keyword expression that the names of cases must match; None for all cases.
        only_list: Whether to print the names of the cases instead of running them.
        json_file: The file to which the report is written; None to write none.

    Returns:
        The exit status: 0 if the cases passed, 1 if a case failed, 3 if no case passed and none failed.

    Raises:
        UnusableError: There is no library, or the library is not of this family.
    """
    from diopi_test.execution.verdict import UNSUCCESSFUL, Verdict
    from lib_rt.device_runtime_client import NoDeviceRuntimeError

    family = FAMILIES[described.family]
    cases = _select_cases(family.list_cases(described), expression)
    if only_list:
        click.echo("\n".join([*cases, pluralize(len(cases), "case")]))
        return 0
    library, start = _find_library(described), time.monotonic()
    outcomes = []
    try:
        for outcome in family.run(library, cases, described):
            outcomes.append(outcome)
            if outcome.verdict is not Verdict.passed:
                click.echo(f"{outcome.verdict.value}  {outcome.case}: {outcome.message}")
    except NoDeviceRuntimeError as error:
        raise UnusableError(str(error)) from error
    if json_file is not None:
        write_report(json_file, _render_report(described, library, outcomes))
    counts = Counter(outcome.verdict for outcome in outcomes)
    listed = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items())
    click.echo(f"{pluralize(len(outcomes), 'case')} in {time.monotonic() - start:.1f} s: {listed or 'none selected'}")
    return 1 if set(counts) & UNSUCCESSFUL else 3 * (not counts[Verdict.passed])


def _select_cases(names: Sequence[str], expression: str | None) -> list[str]:
    """Return the names that match a keyword expression; raise click.UsageError if it is malformed."""
    from diopi_test.run.keywords import Keywords, SelectionError

    try:
        keywords = None if expression is None else Keywords(expression)
    except SelectionError as error:
        raise click.UsageError(str(error)) from error
    return [name for name in names if keywords is None or keywords.match(name)]


def _find_library(described: LibraryRun) -> Path:
    """Return the path of the library under test; by default, the library of the built-in device."""
    from lib_rt.device_runtime import find_device_runtime
    from lib_rt.errors import LibraryNotFoundError

    if described.library is not None:
        if not described.library.is_file():
            raise click.UsageError(
                f"--vendor is {described.library}; --family {described.family} expects the path of a library"
            )
        return described.library.resolve()
    try:
        return find_device_runtime()
    except LibraryNotFoundError as error:
        raise UnusableError(str(error)) from error


def _render_report(described: LibraryRun, library: Path, outcomes: Sequence[RuntimeOutcome]) -> dict[str, Any]:
    """Return the report as JSON data."""
    cases = [{"case": o.case, "verdict": o.verdict.value, "message": o.message} for o in outcomes]
    ranks = {"ranks": described.ranks} if described.family == "collectives" else {}
    return {
        "schema_version": SCHEMA_VERSION,
        "family": described.family,
        "library": str(library),
        **ranks,
        "cases": cases,
    }

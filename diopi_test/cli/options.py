"""What the commands share: options, the console, selections, and writing files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast, final

import click
from click.shell_completion import CompletionItem
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from diopi_impl.plugins import known_vendors
from diopi_proto.families import families
from diopi_proto.interface import prototypes
from diopi_proto.types import Dtype
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.shuffle import RANDOM, seed_of
from diopi_test.cases.model import FORMER_NAME_OF_NEGATIVE, CaseClass
from diopi_test.cases.selection import LEVELS, WHOLE_LEVELS, level_of_model
from diopi_test.harness import output
from diopi_test.harness.collection import RUNTIME, collect_level, collect_runtime
from diopi_test.harness.keywords import SelectionError
from diopi_test.harness.options import known_checks, rename_check
from diopi_test.harness.output import Terminal
from diopi_test.harness.selection import NOT, FailedCases, Selection, Shard, check_names

if TYPE_CHECKING:
    from diopi_test.baseline.parallel import Spread
    from diopi_test.harness.collection import Collected
    from diopi_test.harness.records import Report


console = Console(file=cast(IO[str], Terminal()))

WIDEST = 10_000
"""Columns of a table that is written to a file or a pipe, at most."""

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C")

Completing = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())


class Unusable(click.ClickException):
    """The baseline can't be used, there is nothing to run, or a report can't be written."""

    exit_code = 3


@final
class Seed(click.ParamType[int]):
    """An integer, or `random` for a new one."""

    name = "seed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return value if isinstance(value, int) else seed_of(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@final
class OutputFile(click.Path):
    """A file to be written, which is refused before any work is done if it could not be written at its end."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            output.check_writable(path)
        except OSError as error:
            self.fail(str(error), param, ctx)
        return path


@final
class LevelName(click.ParamType[str]):
    """The name of a level; an unknown one is answered with names like it."""

    name = "level"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in LEVELS:
            return str(value)
        known = ", ".join(map(repr, WHOLE_LEVELS))
        similar = get_close_matches(value, LEVELS, n=1)
        suggestion = f" Did you mean {similar[0]!r}?" if similar else ""
        self.fail(f"{value!r} is not one of {known}.{suggestion}", param, ctx)


def default_workers() -> int:
    """One process a CPU this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _all_of(options: Sequence[Callable[[Callable[..., Any]], Callable[..., Any]]]) -> Callable[[F], F]:
    """Several options, in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def completing(known: Callable[[], Iterable[str]], *, files: bool = False) -> Completing:
    """What the shell completes a value to: known names, after `no-` too; those of files where none fits."""

    def complete(context: click.Context, option: click.Parameter, begun: str) -> list[CompletionItem]:
        no = NOT if begun.startswith(NOT) else ""
        found = [CompletionItem(no + name) for name in known() if name.startswith(begun.removeprefix(NOT))]
        return found or ([CompletionItem(begun, type="file")] if files else [])

    return complete


_KNOWN: Mapping[str, Callable[[], Iterable[str]]] = {
    "functions": prototypes,
    "families": families,
    "dtypes": lambda: Dtype.__members__,
    "classes": lambda: [one.value for one in CaseClass],
}
"""The names that options of selecting know, by the field of `Selection`."""


@contextmanager
def _as_usage() -> Iterator[None]:
    """A selection that can't be made is wrong usage."""
    try:
        yield
    except SelectionError as error:
        raise click.UsageError(str(error)) from error


FORMER_VENDORS = {"diopi_test.quality.echo:vendor": "diopi_test.quality.stub_vendor:vendor"}
"""The current paths of vendors, by their deprecated paths."""


def _rename_vendor(context: click.Context, option: click.Parameter, name: str) -> str:
    """Return the current path of a vendor; print a notice if the given path is deprecated."""
    if name in FORMER_VENDORS:
        click.echo(f"--vendor {name} is deprecated: use --vendor {FORMER_VENDORS[name]}", err=True)
    return FORMER_VENDORS.get(name, name)


vendor_option = click.option(
    "--vendor",
    callback=_rename_vendor,
    default="jax_cpu",
    show_default=True,
    help="Name, module:attribute, or path of a .so.",
    shell_complete=completing(known_vendors, files=True),
)
level_option = click.option(
    "--level",
    type=LevelName(),
    shell_complete=completing(lambda: LEVELS),
    metavar=f"[{'|'.join(WHOLE_LEVELS)}|{level_of_model('NAME')}]",
    default="smoke",
    show_default=True,
    help="Which baseline; models-NAME is the part of models that one network gives.",
)
data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the baselines, instead of the package for what ships and the user's cache for all else.",
)
workers_option = click.option("-n", "workers", type=click.IntRange(min=1), help="Processes; by default one a CPU.")


def _with_distributed(context: click.Context, option: click.Parameter, address: str | None) -> str | None:
    """The address of a cluster; wrong usage if what talks to one is not installed."""
    if address is not None and find_spec("distributed") is None:
        raise click.BadParameter("a cluster needs more packages: pip install 'diopi[dask]'", context, option)
    return address


dask_option = click.option(
    "--dask",
    metavar="ADDRESS",
    callback=_with_distributed,
    help="Spread the work over the Dask cluster with this scheduler (tcp://HOST:PORT), instead of -n processes.",
)


@contextmanager
def spreading(workers: int | None, dask: str | None) -> Iterator[Spread]:
    """Who does work on many functions: processes of this machine, or a cluster; Unusable if that fails."""
    from diopi_test.baseline.cluster import Cluster, ClusterError
    from diopi_test.baseline.parallel import processes

    if dask is None:
        yield processes(workers or default_workers())
        return
    try:
        with Cluster(dask) as cluster:
            yield cluster.spread
    except ClusterError as error:
        raise Unusable(str(error)) from error


def shuffle_option(text: str) -> Callable[[F], F]:
    """`--shuffle`, with or without a seed."""
    seed = f"{text} drawn from SEED, an integer; from a new one if none is given."
    return click.option("--shuffle", "seed", type=Seed(), is_flag=False, flag_value=RANDOM, metavar="[SEED]", help=seed)


def _parsed(parse: Callable[[Any], C]) -> Callable[[click.Context, click.Parameter, Any], C | None]:
    """A callback that makes something of an option's value; wrong usage if that can't be made of it."""

    def callback(context: click.Context, option: click.Parameter, value: Any) -> C | None:
        try:
            return None if value is None else parse(value)
        except SelectionError as error:
            raise click.BadParameter(str(error), context, option) from error

    return callback


def _names(option: str, variable: str, what: str) -> Callable[[F], F]:
    """An option for names, of which several may be given."""
    text = f"Only this {what}, or not it: no-NAME. May be given more than once."
    complete = completing(_KNOWN[variable])
    callback = _replace_former_classes if variable == "classes" else None
    return click.option(
        option, variable, multiple=True, metavar="[no-]NAME", help=text, shell_complete=complete, callback=callback
    )


def _replace_former_classes(context: click.Context, option: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of classes with the former name of `negative` replaced, and print a notice if it occurs."""
    former, negative = FORMER_NAME_OF_NEGATIVE, CaseClass.negative.value
    replacements = {former: negative, f"{NOT}{former}": f"{NOT}{negative}"}
    current = tuple(replacements.get(name, name) for name in names)
    if current != names:
        click.echo(f"--class {former} is deprecated; use --class {negative}.", err=True)
    return current


def _complete_case(context: click.Context, option: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the ids of cases that begin so; before the bracket only the functions, each with an open bracket."""
    from diopi_test.baseline.level import open_level
    from diopi_test.baseline.location import folder_to_read

    function, bracket, _ = begun.partition("[")
    if not bracket:
        return [CompletionItem(f"{name}[") for name in (RUNTIME, *prototypes()) if name.startswith(begun)]
    if function == RUNTIME:
        cases = list(collect_runtime())
    else:
        level, data = context.params.get("level") or "smoke", context.params.get("data")
        folder = data / level if data else folder_to_read(level)
        try:
            cases = collect_level(open_level(folder), lambda name: name == function)
        except BaselineError:  # it has not been made
            cases = []
    return [CompletionItem(case.id) for case in cases if case.id.startswith(begun)]


_SELECTING: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "functions": _names("--function", "functions", "standard function"),
    "families": _names("--family", "families", "family of functions"),
    "dtypes": _names("--dtype", "dtypes", "element type under test"),
    "classes": _names("--class", "classes", "class of cases"),
    "expression": click.option(
        "-k", "expression", metavar="EXPR", help="Only what matches this pytest keyword expression."
    ),
    "cases": click.option(
        "--case",
        "cases",
        multiple=True,
        metavar="ID",
        help="Only this case. May be given more than once.",
        shell_complete=_complete_case,
    ),
    "failed": click.option(
        "--failed-in",
        "failed",
        type=click.Path(path_type=Path, dir_okay=False),
        callback=_parsed(FailedCases.read),
        help="Only what failed, or has no verdict, by this report (of --json).",
    ),
    "seed": shuffle_option("Mix the cases of all functions, or the functions, in an order"),
    "sample": click.option(
        "--sample",
        type=click.IntRange(min=1),
        help="With --shuffle: so many functions, drawn from SEED.",
    ),
    "shard": click.option(
        "--shard",
        metavar="I/N",
        callback=_parsed(Shard.parse),
        help="Only part I of N equal ones, 1/N being the first.",
    ),
}
"""The options of selecting, by the field of `Selection` that they give."""


def selection_options(*fields: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The options for these fields of `Selection`, all if none is named; the command gets the selection as such."""
    names = fields or tuple(_SELECTING)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_selection(*arguments: Any, **options: Any) -> Any:
            with _as_usage():
                selection = Selection(**{name: options.pop(name) for name in names})
            return command(*arguments, selection=selection, **options)

        return _all_of([_SELECTING[name] for name in names])(with_selection)

    return decorate


def _known_names(context: click.Context, option: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the current names of checks; wrong usage if a check does not exist."""
    for name in names:
        if rename_check(name) != name:
            click.echo(f"--check {name} is deprecated: use --check {rename_check(name)}", err=True)
    current = tuple(map(rename_check, names))
    with _as_usage():
        check_names("--check", current, known_checks)
    return current


INT32_ALIASES = ("--four-bytes", "--four_bytes")
"""Deprecated names of `--int32-indices`."""


def _remember_alias(context: click.Context, option: click.Parameter, value: bool) -> None:
    context.meta[INT32_ALIASES[0]] = value


def _or_alias(context: click.Context, option: click.Parameter, value: bool) -> bool:
    """Return whether an option or its deprecated alias is given."""
    return value or context.meta.get(INT32_ALIASES[0], False)


check_options = _all_of(
    [
        click.option(
            "--check",
            "checks",
            multiple=True,
            metavar="[no-]NAME",
            callback=_known_names,
            shell_complete=completing(known_checks),
            help="Evaluate only this check; with no-, all checks except this one. Can be repeated.",
        ),
        click.option(
            "--max-failures", type=click.IntRange(min=1), help="Stop after so many cases that did not succeed."
        ),
        click.option("--list", "only_list", is_flag=True, help="Print what would run, without running it."),
        click.option("--nhwc", is_flag=True, help="4-D and 5-D tensors with channels in channels-last."),
        click.option(
            "--int32-indices",
            is_flag=True,
            callback=_or_alias,
            help="int32 in place of int64 for indices, where both are standard; cases with int32 indices count.",
        ),
        click.option(
            *INT32_ALIASES, is_flag=True, is_eager=True, hidden=True, expose_value=False, callback=_remember_alias
        ),
    ]
)
"""What else a run may be told: `checks`, `max_failures`, `only_list`, `nhwc` and `int32_indices`."""


durations_option = click.option(
    "--durations",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Show the N functions, and the N cases, that took longest.",
)


def output_option(name: str, variable: str, text: str) -> Callable[[F], F]:
    """An option that names a file to be written."""
    return click.option(name, variable, type=OutputFile(), help=text)


def print_table(table: Table) -> None:
    """Print a table; where it does not go to a terminal, as wide as its content, so that nothing is shortened."""
    width = console.width if console.is_terminal else WIDEST
    Console(file=console.file, width=width, force_terminal=console.is_terminal).print(table)


def write_report(file: Path, content: Any) -> None:
    """Write a report: text as it is, anything else as JSON."""
    text = content if isinstance(content, str) else json.dumps(content, indent=1) + "\n"
    try:
        output.write_text(file, text)
    except OSError as error:
        raise Unusable(f"{file} can't be written: {error}") from error


def read_report(path: Path) -> Report:
    """The report in a file, which may be a log; a usage error if there is none."""
    from diopi_test.reporting.reading import ReportError
    from diopi_test.reporting.reading import read_report as read

    try:
        return read(path)
    except ReportError as error:
        raise click.UsageError(str(error)) from error


def select_functions(functions: list[str], selection: Selection, size: Callable[[str], int]) -> list[str]:
    """Those of the functions, of `size` cases each, that are selected; a usage error if there is none."""
    with _as_usage():
        return selection.apply_to_functions(functions, size)


def list_cases(cases: Sequence[Collected]) -> None:
    """Print what would run: an id a line, and their number."""
    for case in cases:
        click.echo(case.id)
    click.echo(f"{len(cases)} cases")

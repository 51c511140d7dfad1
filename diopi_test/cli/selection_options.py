"""Options that select cases or functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, final

import click
from click.shell_completion import CompletionItem

from diopi_proto.families import families
from diopi_proto.interface import prototypes
from diopi_proto.types import Dtype
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.shuffle import RANDOM, parse_seed
from diopi_test.cases.case import CaseClass
from diopi_test.cli.options import combine_options, complete_names, convert_selection_errors
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.run.collection import collect_level, collect_runtime
from diopi_test.run.keywords import SelectionError
from diopi_test.run.selection import EXCLUSION_PREFIX, FailedCases, Selection, Shard

F = TypeVar("F", bound=Callable[..., Any])
"""The decorated command."""

C = TypeVar("C")
"""The type that an option's value is parsed as."""


@final
class Seed(click.ParamType[int]):
    """The type of a seed: an integer, or `random` for a new seed."""

    name = "seed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the seed as an integer; fail with a usage error if it is not an integer."""
        try:
            return value if isinstance(value, int) else parse_seed(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


_KNOWN_NAMES: Mapping[str, Callable[[], Iterable[str]]] = {
    "functions": prototypes,
    "families": families,
    "dtypes": lambda: Dtype.__members__,
    "classes": lambda: [case_class.value for case_class in CaseClass],
}
"""The names that the shell completes, by field of `Selection`."""


def shuffle_option(text: str) -> Callable[[F], F]:
    """Return the option `--shuffle`, whose seed may be omitted; `text` begins its help."""
    text = f"{text}, determined by the integer SEED; by default a new seed."
    return click.option("--shuffle", "seed", type=Seed(), is_flag=False, flag_value=RANDOM, metavar="[SEED]", help=text)


def _parse_value(parse: Callable[[Any], C]) -> Callable[[click.Context, click.Parameter, Any], C | None]:
    """Return a callback that parses an option's value and reports an invalid value as a usage error."""

    def callback(context: click.Context, option: click.Parameter, value: Any) -> C | None:
        try:
            return None if value is None else parse(value)
        except SelectionError as error:
            raise click.BadParameter(str(error), context, option) from error

    return callback


def _names_option(option: str, variable: str, noun: str) -> Callable[[F], F]:
    """Return a decorator that adds an option for names, which can be repeated.

    Args:
        option: the name of the option, such as `--function`.
        variable: the name of the command's parameter.
        noun: what the option names, for the help.
    """
    text = f"Only this {noun}, or with no-NAME all but this one. Can be repeated."
    complete = complete_names(_KNOWN_NAMES[variable])
    callback = _replace_former_classes if variable == "classes" else None
    return click.option(
        option, variable, multiple=True, metavar="[no-]NAME", help=text, shell_complete=complete, callback=callback
    )


def _replace_former_classes(context: click.Context, option: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of classes with the former name of `negative` replaced, and print a notice if it occurs."""
    former, negative = CaseClass.negative.former_name, CaseClass.negative.value
    replacements = {former: negative, f"{EXCLUSION_PREFIX}{former}": f"{EXCLUSION_PREFIX}{negative}"}
    current = tuple(replacements.get(name, name) for name in names)
    if current != names:
        click.echo(f"--class {former} is deprecated; use --class {negative} instead", err=True)
    return current


def _complete_case(context: click.Context, option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the matching IDs of cases; before the bracket only the functions, each with an open bracket."""
    from diopi_test.baseline.level import open_level
    from diopi_test.baseline.location import folder_to_read

    function, bracket, _ = incomplete.partition("[")
    if not bracket:
        return [CompletionItem(f"{name}[") for name in (RUNTIME, *prototypes()) if name.startswith(incomplete)]
    if function == RUNTIME:
        cases = list(collect_runtime())
    else:
        level, data = context.params.get("level") or "smoke", context.params.get("data")
        folder = data / level if data else folder_to_read(level)
        try:
            cases = collect_level(open_level(folder), lambda name: name == function)
        except BaselineError:  # the baseline has not been generated
            cases = []
    return [CompletionItem(case.id) for case in cases if case.id.startswith(incomplete)]


_SELECTION_OPTIONS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "functions": _names_option("--function", "functions", "standard function"),
    "families": _names_option("--family", "families", "family of functions"),
    "dtypes": _names_option("--dtype", "dtypes", "element type under test"),
    "classes": _names_option("--class", "classes", "class of cases"),
    "expression": click.option(
        "-k", "expression", metavar="EXPR", help="Only cases whose IDs match this pytest keyword expression."
    ),
    "cases": click.option(
        "--case",
        "cases",
        multiple=True,
        metavar="ID",
        help="Only the case with this ID. Can be repeated.",
        shell_complete=_complete_case,
    ),
    "failed": click.option(
        "--failed-in",
        "failed",
        type=click.Path(path_type=Path, dir_okay=False),
        callback=_parse_value(FailedCases.read),
        metavar="REPORT",
        help="Only the cases that failed, or have no verdict, in this report (written by --json).",
    ),
    "seed": shuffle_option("Shuffle the cases, or the functions"),
    "sample": click.option(
        "--sample",
        type=click.IntRange(min=1),
        help="With --shuffle: only this number of functions, chosen by SEED.",
    ),
    "shard": click.option(
        "--shard",
        metavar="I/N",
        callback=_parse_value(Shard.parse),
        help="Only part I of N equal parts; 1/N is the first.",
    ),
}
"""The options that select cases or functions, by field of `Selection`."""


def selection_options(*fields: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds selection options and passes the command a `Selection`.

    Args:
        fields: the fields of `Selection`; all fields if empty.

    Returns:
        The decorator of a command, which gets the parameter `selection`.
    """
    names = fields or tuple(_SELECTION_OPTIONS)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_selection(*arguments: Any, **options: Any) -> Any:
            with convert_selection_errors():
                selection = Selection(**{name: options.pop(name) for name in names})
            return command(*arguments, selection=selection, **options)

        return combine_options([_SELECTION_OPTIONS[name] for name in names])(with_selection)

    return decorate


def select_functions(selection: Selection, size: Callable[[str], int]) -> list[str]:
    """Return the selected functions that have cases; raise click.UsageError if there are none.

    Args:
        selection: the selection of the command line.
        size: returns the number of cases of a function, by which the functions are divided into shards of equal size.

    Returns:
        The names of the selected functions, in their order.
    """
    with convert_selection_errors():
        return selection.apply_to_functions(list(prototypes()), size)

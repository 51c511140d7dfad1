"""The options of `run` that change how cases are run: checks, limits of failures, numbers of calls, conversions."""

from __future__ import annotations

import click

from diopi_impl.deprecated_options import renamed_option
from diopi_test.cli.options import SOAK_LEVEL, combine_options, complete_names, convert_selection_errors
from diopi_test.run.limits import DEFAULT_CHAIN_LENGTH, DEFAULT_SOAK_CALLS, SOAK_LEVEL_CALLS
from diopi_test.run.options import known_checks, rename_check
from diopi_test.run.selection import check_names


def _current_check_names(context: click.Context, option: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the current names of checks; raise click.UsageError if a check does not exist."""
    for name in names:
        if rename_check(name) != name:
            click.echo(f"--check {name} is deprecated; use --check {rename_check(name)} instead", err=True)
    current = tuple(map(rename_check, names))
    with convert_selection_errors():
        check_names("--check", "checks", current, known_checks)
    return current


check_options = combine_options(
    [
        click.option(
            "--check",
            "checks",
            multiple=True,
            metavar="[no-]NAME",
            callback=_current_check_names,
            shell_complete=complete_names(known_checks),
            help="Evaluate only this check, or with no-NAME all but this one. Can be repeated.",
        ),
        click.option("--max-failures", type=click.IntRange(min=1), help="Stop after this number of failed cases."),
        click.option(
            "--stop-after-identical",
            type=click.IntRange(min=0),
            metavar="N",
            help="Stop when N calls in a row fail with the same status and message; 0 for never. By default, the run "
            "stops if its first 50 calls, of at least 5 functions, fail in the same way.",
        ),
        click.option("--list", "only_list", is_flag=True, help="Print the IDs of the cases without running them."),
        click.option(
            "--nhwc", is_flag=True, help="Use the channels-last layout for 4-D and 5-D tensors with channels."
        ),
        click.option(
            "--in-flight",
            type=click.IntRange(min=0),
            metavar="N",
            default=DEFAULT_CHAIN_LENGTH,
            show_default=True,
            help="Make chains of at most N calls without synchronization between them; 0 for no chains.",
        ),
        click.option(
            "--soak",
            type=click.IntRange(min=0),
            metavar="N",
            default=DEFAULT_SOAK_CALLS,
            show_default=f"{DEFAULT_SOAK_CALLS:,}; {SOAK_LEVEL_CALLS:,} with --level {SOAK_LEVEL}",
            help="Call each function N times in its soak test; 0 for no soak tests.",
        ),
        renamed_option(
            "--int32-indices",
            deprecated_names=["--four-bytes", "--four_bytes"],
            is_flag=True,
            help="Use int32 indices wherever the standard allows int64 and int32; cases with int32 indices count.",
        ),
    ]
)
"""A decorator that adds these options, and `--list`, to a command."""

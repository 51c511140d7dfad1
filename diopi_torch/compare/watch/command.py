"""The command line of a watch: run a PyTorch program under a watch, or replay a stored call."""

from __future__ import annotations

import runpy
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import click

from diopi_torch.compare.watch.judge import NotJudgedError, replay
from diopi_torch.compare.watch.stored_call import load_call
from diopi_torch.comparing import watch
from diopi_torch.fallback import operator_name
from diopi_torch.settings import SettingError, parse_overhead

FAILURE = 1
"""The exit status if an operator computed an incorrect result."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--device", help="Judge only the calls on this type of device, such as cuda. [default: all devices]")
@click.option(
    "--overhead",
    default="100%",
    show_default=True,
    help="Time for judging, relative to the time of the program, or `unlimited`.",
)
@click.option(
    "--cases",
    type=click.Path(path_type=Path),
    default=Path("watch.cases"),
    show_default=True,
    help="Folder for cases of wrong calls; must not contain cases.",
)
@click.option("--report", type=click.Path(path_type=Path), help="File for the report. [default: standard error]")
@click.option(
    "--replay",
    "stored",
    type=click.Path(path_type=Path, exists=True),
    help="Instead of running a program, repeat the call in this file on the device and judge it.",
)
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def main(
    device: str | None, overhead: str, cases: Path, report: Path | None, stored: Path | None, program: Sequence[str]
) -> None:
    """Run PROGRAM, a Python file or `-m` and a module, with its arguments, and judge its calls of ATen operators.

    The exit status is 1 if an operator is wrong. Otherwise it is that of the program.

    \b
    Example:
        python -m diopi_torch.watch --device cpu -- train.py
    """
    if stored is not None:
        sys.exit(_replay(stored, device or "cpu"))
    if not program:
        raise click.UsageError("Missing argument 'PROGRAM'.")
    try:
        session = watch(device=device, overhead=parse_overhead("--overhead", overhead), cases=cases, report=report)
    except (SettingError, FileExistsError) as error:
        raise click.UsageError(str(error)) from None
    with session:
        status = _run_program(program)
    sys.exit(FAILURE if session.wrong_operators else status)


def _replay(stored: Path, device: str) -> int:
    """Repeat the call in the file `stored` on a device, print the judgment, and return the exit status."""
    try:
        operator, named = load_call(stored, device)
        judgment = replay(operator, named)
    except (OSError, ValueError, zipfile.BadZipFile, NotJudgedError) as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"{operator_name(operator)}: {judgment.message or 'right'} (by {', '.join(judgment.references)})")
    return FAILURE if judgment.severity is not None else 0


def _run_program(program: Sequence[str]) -> int | str | None:
    """Run a program as `python` would.

    Args:
        program: the path of a Python file, or `-m` and the name of a module; then the arguments of the program.

    Returns:
        The argument of `sys.exit` if the program calls that; otherwise None.
    """
    is_module = program[0] == "-m"
    words = list(program[1:] if is_module else program)
    sys.argv = words
    sys.path[0] = "" if is_module else str(Path(words[0]).resolve().parent)
    try:
        if is_module:
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        return end.code
    return None

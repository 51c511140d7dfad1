"""The command `python -m diopi_torch.watch`: run a PyTorch program and name the operators that are wrong."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from diopi_torch.comparing import watch
from diopi_torch.settings import SettingError, parse_overhead

FAILURE = 1
"""The exit status if an operator is wrong."""


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
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def main(device: str | None, overhead: str, cases: Path, report: Path | None, program: Sequence[str]) -> None:
    """Run PROGRAM, a Python file or `-m` and a module, with its arguments, and judge its calls of ATen operators.

    The exit status is 1 if an operator is wrong. Otherwise it is that of the program.

    \b
    Example:
        python -m diopi_torch.watch --device cpu -- train.py
    """
    try:
        session = watch(device=device, overhead=parse_overhead("--overhead", overhead), cases=cases, report=report)
    except (SettingError, FileExistsError) as error:
        raise click.UsageError(str(error)) from None
    with session:
        status = _run_program(program)
    sys.exit(FAILURE if session.wrong_operators else status)


def _run_program(program: Sequence[str]) -> int | str | None:
    """Run a program as Python would; return the argument of its `sys.exit`, or None."""
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


if __name__ == "__main__":
    main(prog_name="python -m diopi_torch.watch")

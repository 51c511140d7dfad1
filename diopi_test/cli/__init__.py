"""The command line `diopi-test`, one module a command.

May import every chapter. A command's module is imported when the command is asked for, and imports what it needs when
it runs: so `--help` and wrong usage answer at once, and `doctor` where something needed is missing.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import click

from diopi_test.cli.examples import epilog
from diopi_test.cli.original_words import explain_original_words

__all__ = ["main"]

COMMANDS = {
    **{name: name for name in ("run", "report", "compare", "submit", "verify", "waive", "show", "doctor")},
    "gen-data": "gen_data",
    **{name: name for name in ("audit", "fingerprint", "fuzz", "trace", "export")},
    "import-config": "import_config",
    "list": "list_functions",
}
"""By the name of a command, in the order of `--help`, the name of its module, and of the command in it."""


class CannotRunError(click.ClickException):
    """The command can't do its work, although the command line is correct."""

    exit_code = 3


class Commands(click.Group):
    """The commands, each imported when it is asked for."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an interruption, and a working directory that was deleted, end it with status 3."""
        try:
            os.getcwd()
        except OSError as error:
            raise CannotRunError(f"the working directory can't be used: {error}; change to another one") from error
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise CannotRunError(str(interrupt) or "interrupted") from interrupt

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; an error that names the doctor if what it needs can't be imported."""
        if cmd_name not in COMMANDS:
            return None
        try:
            module = import_module(f"{__name__}.{COMMANDS[cmd_name]}")
        except (ImportError, OSError, RuntimeError) as error:
            raise click.ClickException(f"{error}; `diopi-test doctor` says what is missing") from error
        command: click.Command = getattr(module, COMMANDS[cmd_name])
        command.epilog = epilog(cmd_name)
        return command


@click.group(cls=Commands, epilog=epilog(""))
@click.version_option(package_name="diopi")
@explain_original_words()
def main() -> None:
    """DIOPI conformance: check a vendor's operators against the standard."""

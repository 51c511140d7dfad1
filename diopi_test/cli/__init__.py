"""The command line `diopi-test`: one module per command.

The modules may import every chapter. A command's module is imported when the command is called, and it imports its
dependencies when it runs. Therefore `--help` and usage errors respond quickly, and `doctor` works even if a dependency
is missing.
"""

from __future__ import annotations

import ast
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from diopi_test.cli.examples import epilog
from diopi_test.cli.original_options import explain_original_options

__all__ = ["main"]

COMMANDS = {
    **{
        name: name
        for name in ("run", "report", "plan", "compare", "history", "submit", "verify", "waive", "show", "doctor")
    },
    "gen-data": "gen_data",
    "mutation-test": "mutation_test",
    **{name: name for name in ("fingerprint", "fuzz", "trace", "export", "bundle", "evaluate")},
    "import-config": "import_config",
    "list": "list_functions",
    "describe": "describe",
    "new-operator": "new_operator",
    "refresh": "refresh",
}
"""The modules of the commands, in the order of `--help`; each module has the name of its function."""


FORMER_COMMANDS = {"audit": "mutation-test"}
"""The current names of commands, by their deprecated names, which still work."""


class CannotRunError(click.ClickException):
    """The command line is correct, but the command can't run."""

    exit_code = 3


class LazyGroup(click.Group):
    """A group of commands that imports a command only when it is needed."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; exit with status 3 if it is interrupted or the working directory was deleted.

        Args:
            ctx: the context of the group.

        Returns:
            The result of the command.

        Raises:
            CannotRunError: if the command was interrupted, or there is no working directory.
        """
        try:
            os.getcwd()
        except OSError as error:
            raise CannotRunError(f"the working directory can't be used: {error}; change to another one") from error
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise CannotRunError(str(interrupt) or "interrupted") from interrupt

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, with its examples and the summary that `diopi-test --help` shows.

        Args:
            ctx: the context of the group.
            cmd_name: the name of the command.

        Returns:
            The command; None if there is no command of this name.

        Raises:
            click.ClickException: if the command's module can't be imported; the message points to `doctor`.
        """
        if cmd_name in FORMER_COMMANDS:
            name = FORMER_COMMANDS[cmd_name]
            click.echo(f"diopi-test {cmd_name} is deprecated: use diopi-test {name}", err=True)
            return self.get_command(ctx, name)
        if cmd_name not in COMMANDS:
            return None
        try:
            module = import_module(f"{__name__}.{COMMANDS[cmd_name]}")
        except (ImportError, OSError, RuntimeError) as error:
            raise click.ClickException(f"{error}; `diopi-test doctor` shows what is missing") from error
        command: click.Command = getattr(module, COMMANDS[cmd_name])
        command.epilog = epilog(cmd_name)
        command.short_help = _summarize(command.help)  # click shortens `help`
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their summaries, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _read_summary(module)) for name, module in COMMANDS.items()])


def _read_summary(module: str) -> str:
    """Return the summary of a command from the source of its module, whose import takes a second."""
    source = Path(__file__).with_name(f"{module}.py").read_text("utf-8")
    functions = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    return _summarize(ast.get_docstring(functions[module]))


def _summarize(text: str | None) -> str:
    """Return the first paragraph of a help text as one line."""
    return " ".join((text or "").partition("\n\n")[0].split())


@click.group(cls=LazyGroup, epilog=epilog(""))
@click.version_option(package_name="diopi")
@explain_original_options()
def main() -> None:
    """Check whether a vendor's operators conform to the DIOPI standard."""

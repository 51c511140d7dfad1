"""Command-line options with deprecated names: a hidden name still works and prints one line on stderr."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, final

import click
from click.core import ParameterSource

F = TypeVar("F", bound=Callable[..., Any])
"""The decorated command."""


@final
class RenamedOption(click.Option):
    """An option that takes its value from a deprecated name if the command line has that name instead."""

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> tuple[Any, ParameterSource]:
        """Return the value and its source; a deprecated name counts as the command line."""
        value, source = super().consume_value(ctx, opts)
        key = _meta_key(self.opts)
        if source is not ParameterSource.COMMANDLINE and key in ctx.meta:
            return ctx.meta[key], ParameterSource.COMMANDLINE
        return value, source


def renamed_option(*declarations: str, deprecated_names: Sequence[str], **attributes: Any) -> Callable[[F], F]:
    """Return a decorator like `click.option` whose option has deprecated names, too.

    Args:
        declarations: the names of the option, as for `click.option`.
        deprecated_names: the names that are hidden and print a deprecation line.
        attributes: everything else that `click.option` accepts.

    Returns:
        The decorator of a command.
    """

    def decorate(command: F) -> F:
        """Add the option and its hidden deprecated names to a command."""
        names = [name for name in declarations if name.startswith("-")]
        for number, name in enumerate(deprecated_names):
            command = click.option(
                name,
                f"deprecated_{number}_{_meta_key(names)}",
                is_flag=attributes.get("is_flag", False),
                is_eager=True,
                hidden=True,
                expose_value=False,
                callback=_store_value(name, names),
            )(command)
        return click.option(*declarations, cls=RenamedOption, **attributes)(command)

    return decorate


def _meta_key(names: Sequence[str]) -> str:
    """Return the key under which a deprecated name stores its value: the longest name without dashes."""
    return max(names, key=len).lstrip("-").replace("-", "_")


def _store_value(name: str, names: Sequence[str]) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return the callback of a deprecated name, which warns and stores the value for the current name of the option."""

    def store(context: click.Context, option: click.Parameter, value: Any) -> None:
        """Warn about the deprecated name and store the value."""
        if context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
            click.echo(f"{name} is deprecated; use {max(names, key=len)} instead", err=True)
            context.meta[_meta_key(names)] = value

    return store

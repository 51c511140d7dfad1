"""The option `--fail-on` of the commands that run cases or report on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from diopi_test.results.causes.severity import Severity

F = TypeVar("F", bound=Callable[..., Any])
"""The decorated command."""


def fail_on_option(default: Severity | None) -> Callable[[F], F]:
    """Return the option `--fail-on`, the least severity of failures that affect the exit status.

    Args:
        default: the default; None for the severity of the run.
    """
    return click.option(
        "--fail-on",
        type=click.Choice([severity.value for severity in Severity]),
        default=default.value if default else None,
        callback=lambda context, parameter, value: Severity(value) if value else None,
        show_default=default.value if default else "as in the run",
        help="Least severity of failures that affect the exit status: minor (sign of zero, flushed subnormals), major "
        "(rounding, NaN, infinity, types, errors) or critical (wrong numbers, memory, crashes).",
    )

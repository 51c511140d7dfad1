"""Words of the original suite's command line: each is answered by what to say instead."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def _of_function(name: str) -> str:
    from diopi_test.original.names import meanings, near

    if name in ("all", "all_ops"):
        return "leave it out: all functions are run if none is named"
    found = [meaning.prototype.name for meaning in meanings(name)] or near(name)
    chosen = " ".join(f"--function {function}" for function in dict.fromkeys(found))
    return f"say {chosen or '--function NAME'}; `diopi-test list` has the names"


_MODES: Mapping[str, str] = {
    "gen_data": "say `diopi-test gen-data --level full`; the level smoke ships, and needs none",
    "gen_case": "there is no such step: `diopi-test run` finds the cases in the baseline",
    "run_test": "say `diopi-test run`",
}


def _of_mode(mode: str) -> str:
    return _MODES.get(mode) or "say `diopi-test gen-data` (gen_data) or `diopi-test run` (run_test)"


WORDS: Mapping[str, Callable[[str], str]] = {
    "--fname": _of_function,
    "--mode": _of_mode,
    "--filter_dtype": lambda name: f"say --dtype no-{name}",
    "--html_report": lambda _: "say `diopi-test report LOG --html FILE`, of the log that a run names at its end",
    "--model_name": lambda name: f"say --level models --model {name}; docs/models.md has the networks",
    "--nhwc": lambda _: "say it to `diopi-test run`: the stored data are the same",
    "--four_bytes": lambda _: "say --four-bytes to `diopi-test run`: the stored data are the same",
}
"""By option, from its value to what is to be said instead."""

SWITCHES = ("--html_report", "--nhwc", "--four_bytes")
"""Those that may stand without a value."""


def explain_original_words(*, but: Collection[str] = ()) -> Callable[[F], F]:
    """Make a command answer the original options, but for those it has itself; they are wrong usage all the same."""

    def decorate(command: F) -> F:
        for word, answer in WORDS.items():
            if word not in but:
                command = _option(word, answer)(command)
        return command

    return decorate


def _option(word: str, answer: Callable[[str], str]) -> Callable[[F], F]:
    usual = "" if word in SWITCHES else None
    refused = _refused(word, answer)
    return click.option(word, expose_value=False, hidden=True, is_flag=False, flag_value=usual, callback=refused)


def _refused(word: str, answer: Callable[[str], str]) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def callback(context: click.Context, option: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(
                f"{word} {value}".rstrip() + f" is an option of the original suite; here {answer(value)}"
            )

    return callback

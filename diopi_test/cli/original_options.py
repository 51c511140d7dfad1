"""Options of the original suite's command line: each is a usage error that names its replacement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
"""The decorated command."""


def _function_options(name: str) -> str:
    """Return the advice for an option that selects a function: the current options with the same effect."""
    from diopi_test.original.names import meanings, similar_functions

    if name in ("all", "all_ops"):
        return "omit it: a run covers all functions by default"
    names = [meaning.prototype.name for meaning in meanings(name)] or similar_functions(name)
    chosen = " ".join(f"--function {function}" for function in dict.fromkeys(names))
    return f"use {chosen or '--function NAME'}; `diopi-test list` shows the names"


MODES: Mapping[str, str] = {
    "gen_data": "use `diopi-test gen-data --level full`; the level smoke ships with the package",
    "gen_case": "omit this step: `diopi-test run` finds the cases in the baseline",
    "run_test": "use `diopi-test run`",
    "utest": "use `diopi-test run -k runtime`",
    "utest_diopi_test": "run `pytest` in the source tree, which tests the suite itself",
}
"""The replacement of each value of --mode."""


def _network_option(name: str) -> str:
    """Return the advice for an option that selects a network."""
    from diopi_test.original.networks import replacements

    commands = " or ".join(f"--level models --model {network}" for network in replacements(name.lower(), ()))
    return f"use {commands or '--level models --model NAME'}; docs/models.md lists the networks"


def _constant_advice(advice: str) -> Callable[[str], str]:
    """Return a function that returns this advice for every value of an option."""
    return lambda _: advice


_CASE_FILES = "select cases with --function, --family, -k or --case: there are no files of cases"
"""The advice for options that name files of cases."""

_DATABASE = "use `diopi-test report LOG --json FILE`: every run writes a log, and the report has the tables' contents"
"""The advice for options of the database of results."""

ORIGINAL_OPTIONS: Mapping[str, Callable[[str], str]] = {
    "--mode": lambda mode: MODES.get(mode) or "use `diopi-test gen-data` (gen_data) or `diopi-test run` (run_test)",
    "--fname": _function_options,
    "--model_name": _network_option,
    "--get_model_list": _constant_advice(
        "see docs/models.md for the networks; `diopi-test run --level models --list` shows the calls"
    ),
    "--impl_folder": _constant_advice(
        "use --vendor PATH of libdiopi_impl.so; `diopi-test import-config` translates device_configs.py to waivers"
    ),
    "--filter_dtype": lambda name: f"use --dtype no-{name or 'NAME'}, once for each type",
    "--nhwc": _constant_advice("pass it to `diopi-test run`, which needs no other stored data"),
    "--nhwc_min_dim": _constant_advice("omit it: `diopi-test run --nhwc` converts all tensors that have 4 or 5 axes"),
    "--four_bytes": _constant_advice("pass --int32-indices to `diopi-test run`, which needs no other stored data"),
    "--case_output_dir": _constant_advice(_CASE_FILES),
    "--test_cases_path": _constant_advice(_CASE_FILES),
    "--file_or_dir": _constant_advice(_CASE_FILES),
    "--pytest_args": _constant_advice("use `pytest baseline_data/smoke --vendor NAME` with these arguments"),
    "--failure_debug_level": _constant_advice("use `diopi-test show CASE`, or pass --dump DIR to `diopi-test run`"),
    "--html_report": _constant_advice(
        "use `diopi-test report LOG --html FILE`; a run prints the path of its log at the end"
    ),
    "--test_result_path": _constant_advice("use `diopi-test report LOG --json FILE`; docs/original.md shows the table"),
    "--use_db": _constant_advice(_DATABASE),
    "--db_path": _constant_advice(_DATABASE),
}
"""For each option of the original suite, a function that returns the advice for a value of the option."""

OPTIONS_WITH_OPTIONAL_VALUE = (
    "--get_model_list",
    "--nhwc",
    "--four_bytes",
    "--html_report",
    "--use_db",
    "--filter_dtype",
)
"""The options of the original suite whose value may be omitted."""


def explain_original_options(*, excluded_options: Collection[str] = ()) -> Callable[[F], F]:
    """Return a decorator that makes a command explain the original options in usage errors.

    Args:
        excluded_options: the names of original options that the command has itself.

    Returns:
        The decorator of a command.
    """

    def decorate(command: F) -> F:
        for word, explain in ORIGINAL_OPTIONS.items():
            if word not in excluded_options:
                command = _option(word, explain)(command)
        return command

    return decorate


def _option(word: str, explain: Callable[[str], str]) -> Callable[[F], F]:
    """Return a decorator that adds a hidden option of the original suite. Its use is an error that gives advice.

    Args:
        word: the option, such as `--fname`.
        explain: returns the advice for the value of the option.
    """
    callback = _reject(word, explain)
    if word in OPTIONS_WITH_OPTIONAL_VALUE:
        return click.option(word, expose_value=False, hidden=True, is_flag=False, flag_value="", callback=callback)
    return click.option(word, expose_value=False, hidden=True, callback=callback)


def _reject(word: str, explain: Callable[[str], str]) -> Callable[[click.Context, click.Parameter, str | None], None]:
    """Return the callback of an option, which raises a usage error with advice if the option is used.

    Args:
        word: the option.
        explain: returns the advice for the value of the option.
    """

    def callback(context: click.Context, option: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(
                f"{word} {value}".rstrip() + f" is an option of the original suite; instead, {explain(value)}"
            )

    return callback

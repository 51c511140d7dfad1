"""Options of the original suite's command line: each is answered by what replaces it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def _function_options(name: str) -> str:
    from diopi_test.original.names import meanings, near

    if name in ("all", "all_ops"):
        return "leave it out: all functions are run if none is named"
    found = [meaning.prototype.name for meaning in meanings(name)] or near(name)
    chosen = " ".join(f"--function {function}" for function in dict.fromkeys(found))
    return f"say {chosen or '--function NAME'}; `diopi-test list` has the names"


MODES: Mapping[str, str] = {
    "gen_data": "say `diopi-test gen-data --level full`; the level smoke ships, and needs none",
    "gen_case": "there is no such step: `diopi-test run` finds the cases in the baseline",
    "run_test": "say `diopi-test run`",
    "utest": "say `diopi-test run -k runtime`",
    "utest_diopi_test": "run `pytest` in the source tree: these are the tests of the suite itself",
}
"""What replaces each value of --mode."""


def _network_option(name: str) -> str:
    from diopi_test.original.networks import replacements

    commands = " or ".join(f"--level models --model {network}" for network in replacements(name.lower(), ()))
    return f"say {commands or '--level models --model NAME'}; docs/models.md has the networks"


def _always(answer: str) -> Callable[[str], str]:
    return lambda _: answer


_CASE_FILES = "there are no files of cases: select cases with --function, --family, -k or --case"
_DATABASE = "every run writes a log; say `diopi-test report LOG --json FILE` for what the tables have"

WORDS: Mapping[str, Callable[[str], str]] = {
    "--mode": lambda mode: MODES.get(mode) or "say `diopi-test gen-data` (gen_data) or `diopi-test run` (run_test)",
    "--fname": _function_options,
    "--model_name": _network_option,
    "--get_model_list": _always(
        "see docs/models.md for the networks; `diopi-test run --level models --list` has calls"
    ),
    "--impl_folder": _always(
        "say --vendor PATH of libdiopi_impl.so; `diopi-test import-config` translates device_configs.py to waivers"
    ),
    "--filter_dtype": lambda name: f"say --dtype no-{name or 'NAME'}, once for each type",
    "--nhwc": _always("say it to `diopi-test run`: the stored data are the same"),
    "--nhwc_min_dim": _always("leave it out: `diopi-test run --nhwc` converts tensors with 4 and 5 axes"),
    "--four_bytes": _always("say --int32-indices to `diopi-test run`: the stored data are the same"),
    "--case_output_dir": _always(_CASE_FILES),
    "--test_cases_path": _always(_CASE_FILES),
    "--file_or_dir": _always(_CASE_FILES),
    "--pytest_args": _always("say `pytest baseline_data/smoke --vendor NAME` with these arguments"),
    "--failure_debug_level": _always("say `diopi-test show CASE`, or --dump DIR to `diopi-test run`"),
    "--html_report": _always("say `diopi-test report LOG --html FILE`, of the log that a run names at its end"),
    "--test_result_path": _always("say `diopi-test report LOG --json FILE`; docs/original.md makes a table of it"),
    "--use_db": _always(_DATABASE),
    "--db_path": _always(_DATABASE),
}
"""For each option, a function from its value to what replaces it."""

SWITCHES = ("--get_model_list", "--nhwc", "--four_bytes", "--html_report", "--use_db", "--filter_dtype")
"""The options that may stand without a value."""


def explain_original_words(*, but: Collection[str] = ()) -> Callable[[F], F]:
    """Make a command answer the original options, but for those it has itself; they are wrong usage all the same."""

    def decorate(command: F) -> F:
        for word, answer in WORDS.items():
            if word not in but:
                command = _option(word, answer)(command)
        return command

    return decorate


def _option(word: str, answer: Callable[[str], str]) -> Callable[[F], F]:
    refused = _refused(word, answer)
    if word in SWITCHES:
        return click.option(word, expose_value=False, hidden=True, is_flag=False, flag_value="", callback=refused)
    return click.option(word, expose_value=False, hidden=True, callback=refused)


def _refused(word: str, answer: Callable[[str], str]) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def callback(context: click.Context, option: click.Parameter, value: str | None) -> None:
        if value is not None:
            raise click.UsageError(
                f"{word} {value}".rstrip() + f" is an option of the original suite; here {answer(value)}"
            )

    return callback

"""A deprecated name of an option works like the current name, is hidden, and prints one line on stderr."""

import click
import pytest
from click.testing import CliRunner, Result

from diopi_impl.deprecated_options import renamed_option


def invoke(*words: str) -> Result:
    """Call a command with two renamed options; it prints their values."""

    @click.command()
    @renamed_option("-o", "--output", deprecated_names=["--out", "--into"], required=True, type=int)
    @renamed_option("--fast", deprecated_names=["--quick"], is_flag=True)
    def command(output: int, fast: bool) -> None:
        click.echo(f"{output} {fast}")

    return CliRunner().invoke(command, words)


@pytest.mark.parametrize("words", [("--output", "3"), ("-o", "3"), ("--output=3",)])
def test_the_current_names_print_no_warning(words: tuple[str, ...]) -> None:
    done = invoke(*words)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "3 False\n", "")


@pytest.mark.parametrize("name", ["--out", "--into"])
def test_a_deprecated_name_works_and_prints_one_line(name: str) -> None:
    done = invoke(name, "3", "--quick")
    assert (done.exit_code, done.stdout) == (0, "3 True\n")
    assert done.stderr.splitlines() == [
        f"{name} is deprecated; use --output instead",
        "--quick is deprecated; use --fast instead",
    ]


def test_the_current_name_takes_precedence() -> None:
    assert invoke("--out", "3", "--output", "4").stdout == "4 False\n"


def test_a_value_is_checked_whatever_the_name() -> None:
    for name in ("--out", "--output"):
        done = invoke(name, "three")
        assert done.exit_code == 2 and "Invalid value for '-o' / '--output'" in done.stderr
    assert "Missing option '-o' / '--output'" in invoke().stderr


def test_help_hides_deprecated_names() -> None:
    assert not {"--out", "--into", "--quick"} & set(invoke("--help").output.replace(",", " ").split())

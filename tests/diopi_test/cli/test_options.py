"""Options that select cases: a selection that is printed as options and parsed again is the same selection."""

import json
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from diopi_test.cli.check_options import check_options
from diopi_test.cli.console import list_cases
from diopi_test.cli.options import vendor_option, workers_option
from diopi_test.cli.selection_options import selection_options
from diopi_test.run.collection import Collected
from diopi_test.run.options import RunOptions
from diopi_test.run.selection import FailedCases, Selection, Shard

ParsedOptions = dict[str, Any]


def parse_options(*arguments: object) -> tuple[Result, ParsedOptions]:
    """Invoke a command with all options for selection and checks; return its result and the parsed options."""
    options_seen: ParsedOptions = {}

    @click.command()
    @vendor_option
    @click.option("--level")
    @selection_options()
    @check_options
    @workers_option
    def command(selection: Selection, **options: Any) -> None:
        options_seen.update(options, selection=selection)

    return CliRunner().invoke(command, [str(argument) for argument in arguments]), options_seen


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Write a report with one crashed case and return its path."""
    path = tmp_path / "a report.json"
    path.write_text(json.dumps({"cases": [{"id": "diopiSin[float32-a]", "verdict": "crashed"}]}))
    return path


def selection_with_every_option(report: Path) -> Selection:
    """Return a selection that uses every option."""
    return Selection(
        functions=("diopiSin", "no-diopiCos"),
        families=("pointwise", "no-conv"),
        dtypes=("float32", "no-int8"),
        expression="-sin and not (cos or tan)",
        cases=("diopiSin[float32-a b]", "runtime[name]"),
        failed=FailedCases.read(report),
        seed=7,
        sample=3,
        shard=Shard(2, 5),
    )


def test_every_case_is_selected_and_checked_without_options() -> None:
    result, options_seen = parse_options()
    assert result.exit_code == 0, result.output
    assert options_seen["selection"] == Selection()
    options = {"checks": (), "max_failures": None, "only_list": False, "nhwc": False, "int32_indices": False}
    assert {name: options_seen[name] for name in options} == options


def test_a_selection_printed_as_options_is_parsed_to_the_same_selection(report: Path) -> None:
    selection = selection_with_every_option(report)
    result, options_seen = parse_options(*selection.words())
    assert result.exit_code == 0, result.output
    assert options_seen["selection"] == selection


def test_the_command_of_a_run_selects_and_checks_the_same(report: Path) -> None:
    """The command begins with "diopi-test run". `only_list` is no option of runs, and the command names no workers."""
    options = RunOptions(
        vendor="any vendor",
        selection=selection_with_every_option(report),
        checks=("values", "no-form"),
        max_failures=4,
        nhwc=True,
        int32_indices=True,
    )
    result, options_seen = parse_options(*shlex.split(options.command())[2:])
    assert result.exit_code == 0, result.output
    assert (
        RunOptions(**{name: value for name, value in options_seen.items() if name != "only_list"} | {"workers": 1})
        == options
    )


def test_the_command_of_a_case_checks_it_as_the_run_does(report: Path) -> None:
    """The command keeps the seed, which decides the inputs, and drops the limit of failures, as there is one case."""
    options = RunOptions(
        vendor="any", selection=selection_with_every_option(report), checks=("values",), max_failures=4, nhwc=True
    )
    result, options_seen = parse_options(*shlex.split(options.command_of("diopiCos[int8-a]"))[2:])
    assert result.exit_code == 0, result.output
    assert options_seen["selection"] == Selection(cases=("diopiCos[int8-a]",), seed=7)
    assert (options_seen["checks"], options_seen["nhwc"], options_seen["max_failures"]) == (("values",), True, None)


def test_former_name_of_a_check_is_deprecated() -> None:
    result, options_seen = parse_options("--check", "no-meaning", "--check", "no-values")
    assert result.exit_code == 0, result.output
    assert options_seen["checks"] == ("no-validity", "no-values")
    (line,) = result.stderr.splitlines()
    assert "no-meaning" in line and "no-validity" in line


def test_former_path_of_the_stub_vendor_is_deprecated() -> None:
    result, options_seen = parse_options("--vendor", "diopi_test.quality.echo:vendor")
    assert result.exit_code == 0, result.output
    assert options_seen["vendor"] == "diopi_test.quality.stub_vendor:vendor"
    (line,) = result.stderr.splitlines()
    assert "diopi_test.quality.echo:vendor" in line and "diopi_test.quality.stub_vendor:vendor" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--function", "diopiSn"], "Did you mean 'diopiSin'"),
        (["--family", "no-cnv"], "Did you mean 'conv'"),
        (["--dtype", "float31"], "Did you mean 'float32'"),
        (["--case", "diopiSn[float32]"], "Did you mean 'diopiSin'"),
        (["--shard", "3/2"], "Invalid value for '--shard': there is no shard 3/2"),
        (["--failed-in", "/nowhere"], "Invalid value for '--failed-in': /nowhere can't be read: No such file"),
        (["--check", "value"], "Did you mean 'values'"),
        (["--max-failures", "0"], "Invalid value for '--max-failures'"),
        (["--sample", "2"], "--sample goes with --shuffle"),
        (["-k", "sin and and cos"], "    sin and and cos\n            ^\n"),
    ],
)
def test_an_invalid_option_is_a_usage_error(arguments: list[str], message: str) -> None:
    result, _ = parse_options(*arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_selection_options_adds_only_the_named_options() -> None:
    @click.command()
    @selection_options("families", "shard")
    def command(selection: Selection) -> None:
        click.echo(selection.describe())

    result = CliRunner().invoke(command, ["--family", "conv", "--shard", "1/2"])
    assert result.output == "--family 'conv' --shard '1/2'\n"
    assert CliRunner().invoke(command, ["-k", "sin"]).exit_code == 2


def test_list_cases_prints_ids_and_their_number(capsys: pytest.CaptureFixture[str]) -> None:
    list_cases([Collected(function="diopiSin", label="a"), Collected(function="runtime", label="b")])
    assert capsys.readouterr().out == "diopiSin[a]\nruntime[b]\n2 cases\n"
    list_cases([Collected(function="diopiSin", label="a")])
    assert capsys.readouterr().out == "diopiSin[a]\n1 case\n"


def test_a_torch_setup_is_appended_to_the_name_of_the_vendor() -> None:
    result, options_seen = parse_options("--vendor", "torch:cuda:0", "--torch-setup", "kernels:enable")
    assert result.exit_code == 0 and options_seen["vendor"] == "torch:cuda:0+kernels:enable"


@pytest.mark.parametrize(
    ("vendor", "setup", "message"),
    [
        ("jax_cpu", "kernels:enable", "--torch-setup requires --vendor torch:DEVICE; the vendor is jax_cpu"),
        ("torch:cpu+kernels:enable", "kernels:enable", "--torch-setup requires --vendor torch:DEVICE"),
        ("torch:cpu", "kernels", "--torch-setup is 'kernels', expected MODULE:FUNCTION"),
        ("torch:cpu", ":enable", "--torch-setup is ':enable', expected MODULE:FUNCTION"),
    ],
)
def test_an_invalid_torch_setup_is_a_usage_error(vendor: str, setup: str, message: str) -> None:
    result, _ = parse_options("--vendor", vendor, "--torch-setup", setup)
    assert result.exit_code == 2 and message in result.output

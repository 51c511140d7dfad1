"""The examples in docs/original.md do what the page says, and every original option is explained."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from diopi_impl import find_vendor
from diopi_test.baseline.descriptions import described_functions
from diopi_test.baseline.store import BaselineFile
from diopi_test.cli import COMMANDS, main
from diopi_test.cli.original_options import MODES, ORIGINAL_OPTIONS
from diopi_test.execution.verdict import Verdict
from diopi_test.run.described import compute_results
from diopi_test.run.run_case import run_case

PAGE = (Path(__file__).parents[2] / "docs" / "original.md").read_text("utf-8")


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working directory with the files of the page."""
    monkeypatch.chdir(tmp_path)
    for name, text in re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)```", PAGE, re.DOTALL):
        Path(name).write_text(text, "utf-8")
    return tmp_path


def run_example(number: int, heading: str) -> Result:
    """Run the page's import command with this number, and compare the output with what the page shows."""
    command = re.findall(r"^    diopi-test (import-config .*)$", PAGE, re.MULTILINE)[number]
    expected = re.search(rf"<!-- {heading} -->\n```\n(.*?)```", PAGE, re.DOTALL)
    done = CliRunner().invoke(main, command.split())
    assert expected and done.output == expected[1]
    return done


@pytest.mark.slow
@pytest.mark.usefixtures("example")
def test_the_example_is_translated_as_shown() -> None:
    assert run_example(0, "import").exit_code == 1
    data = Path("imported")
    assert compute_results(data, "smoke", described_functions(data), Console(quiet=True)) == []
    vendor = find_vendor("jax_cpu")
    ended = {}
    for path in Path("imported/smoke").glob("*.h5"):
        file = BaselineFile(path)
        for label in file.labels:
            with vendor.open_device() as device:
                ended[f"{path.stem}[{label}]"] = run_case(vendor, device, file.case(label)).verdict
    assert set(ended.values()) == {Verdict.passed} and "diopiConvolution2d[float16-conv_2d-0]" in ended


def test_the_example_of_a_network_is_printed_as_shown(example: Path) -> None:
    entry = "dict(name=['conv2d'], interface=['torch'], tensor_para=dict(args=[dict(ins=['input'], shape=((2, 3),))]))"
    (example / "resnet50_config.py").write_text(f"resnet50_config = {{'conv2d': {entry}}}")
    assert run_example(1, "network").exit_code == 0


@pytest.mark.slow
def test_the_program_that_writes_tables_works(example: Path) -> None:
    words = ["run", "-n", "1", "--function", "diopiNeg", "--dtype", "float32", "--json", "report.json"]
    assert CliRunner().invoke(main, words).exit_code == 0
    program = re.search(r"makes two tables.*?```python\n(.*?)```", PAGE, re.DOTALL)
    assert program
    subprocess.run([sys.executable, "-c", program[1]], check=True)
    cases = json.loads((example / "report.json").read_text())["cases"]
    with (example / "cases.csv").open(newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == [case["id"] for case in cases] != []
    with (example / "functions.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row == {"function": "diopiNeg", "cases": str(len(cases)), "passed": str(len(cases)), "success rate": "1.0"}


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_has_a_line(mode: str) -> None:
    assert f"| `--mode {mode}` |" in PAGE


def test_every_replacement_of_an_option_is_a_command_of_the_suite() -> None:
    replacements = [replacement("resnet50") for replacement in ORIGINAL_OPTIONS.values()] + list(MODES.values())
    commands = {word for replacement in replacements for word in re.findall(r"diopi-test ([\w-]+)", replacement)}
    assert commands <= set(COMMANDS) and len(commands) > 4


def test_every_option_of_the_original_suite_has_a_line() -> None:
    section = PAGE.partition("\n## Options of main.py\n")[2].partition("\n## ")[0]
    rows = set(re.findall(r"^\| `(--\w+)", section, re.MULTILINE))
    assert rows == set(ORIGINAL_OPTIONS)

"""Every example of docs/accelerators.md works, and its tables list the fields and declarations that exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest
from baselines import make_level
from case_records import case_record, report_of
from click.testing import CliRunner
from commands import run_here
from scripts import load_script

from diopi_impl import Numerics, NumericsError, find_numerics
from diopi_impl.numerics import ELEMENTARY_FUNCTIONS, read_numerics, shipped_names
from diopi_impl.numerics.validation import values_of
from diopi_test.baseline.location import package_folder
from diopi_test.results.overview import describe_conformance, describe_run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "accelerators.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """Return the blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def rows(heading: str) -> dict[str, str]:
    """Return the rows of the table whose first column has this heading: the text of each row by its name."""
    table = PAGE.partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    return {row[0]: row[1] for row in re.findall(r"^\| `(\w[\w-]*)` (\|.*)$", table, re.MULTILINE)}


def test_every_declaration_of_the_page_is_valid(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    path = tmp_path / "my_chip.toml"
    path.write_text(text)
    numerics = read_numerics(path)
    assert (numerics.name, numerics.float32_products) == ("my_chip", "tf32")
    assert set(numerics.elementary) == {"exp", "tanh", "log"} <= set(ELEMENTARY_FUNCTIONS)


def test_the_vendor_of_the_page_declares_its_arithmetic() -> None:
    (text,) = blocks("python")
    path = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-c", f"{text}\nprint(vendor.numerics.name, vendor.numerics.is_ieee)"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, timeout=300)
    assert done.stdout == "my_chip False\n", done.stderr


@pytest.mark.parametrize(
    "text",
    ['float32_products = "fp19"', "[elementary]\nexp = { absolute = 0.05, minimum = -20, maximum = -10 }"],
)
def test_the_shown_message_is_that_of_an_invalid_declaration(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_chip.toml").write_text(text)
    with pytest.raises(NumericsError) as caught:
        find_numerics("my_chip.toml")
    assert f"{caught.value}\n" in blocks("text")


def test_the_shown_report_names_the_declaration() -> None:
    report = report_of([case_record("diopiRelu[float32-a]", "passed")], numerics=find_numerics("tf32"))
    lines, _ = (block.splitlines() for block in blocks("text") if block.startswith("numerics: "))
    assert lines[0] == f"numerics: {dict(describe_run(report))['numerics']}"
    assert lines[1].partition(" conform")[2] == describe_conformance(report).partition(" conforms")[2]


@pytest.mark.slow
def test_the_shown_contradictions_are_those_of_torch_cpu(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the page shows a run of torch_cpu, which needs PyTorch")
    data = make_level(tmp_path / "smoke", "diopiMm").parent
    arguments = ("--vendor", "torch_cpu", "--numerics", "tf32", "-n", 1, "--log", tmp_path / "log")
    done = run_here("run", "--data", data, "--case", "diopiMm[float32-odd]", *arguments)
    _, example = (block.splitlines() for block in blocks("text") if block.startswith("numerics: "))
    assert [line for line in done.stdout.splitlines() if line in example] == example


def benchmark_commands() -> list[list[str]]:
    """Return the arguments of each shown command of benchmarks/declared_numerics.py, with a vendor for `NAME`."""
    commands = re.findall(r"python benchmarks/declared_numerics\.py ([^`\n]+)", PAGE)
    return [shlex.split(command.replace("NAME", "fast-math")) for command in commands]


@pytest.fixture
def declared_numerics() -> ModuleType:
    """Return the module benchmarks/declared_numerics.py."""
    pytest.importorskip("torch", reason="the vendors of the benchmark change torch_cpu, which needs PyTorch")
    return load_script(ROOT / "benchmarks" / "declared_numerics.py")


def test_the_shown_commands_of_the_benchmark_have_options_that_exist(declared_numerics: ModuleType) -> None:
    commands = benchmark_commands()
    assert len(commands) >= 4
    for arguments in commands:
        declared_numerics.main.make_context("declared_numerics", arguments)


@pytest.mark.slow
def test_the_benchmark_measures_the_columns_of_the_page(declared_numerics: ModuleType) -> None:
    options = ("--vendor", "tf32", "--function", "diopiMm", "--level", "smoke", "--mutants", "0")
    done = CliRunner().invoke(declared_numerics.main, [*options, "--data", str(package_folder())])
    assert done.exit_code == 0, done.output
    name, functions, cases, fail_without, named, _, fail_with, _ = done.stdout.splitlines()[-1].strip("| ").split(" | ")
    assert (name, functions, named, fail_with) == ("`tf32`", "1", "1 of 1", "0")
    assert int(cases) > int(fail_without) > 0


def test_the_page_lists_every_declaration_that_ships() -> None:
    assert set(rows("name")) == set(shipped_names())


def test_the_page_lists_every_field_with_its_values() -> None:
    table = rows("key")
    assert list(table) == [item.name for item in fields(Numerics)]
    for name in ("float32_products", "half_accumulation", "convolutions", "subnormals", "sum_order", "float64"):
        assert [value for value in values_of(Numerics, name) if f"`{value}`" not in table[name]] == [], name

"""Every command has valid examples and a line on its page, and the shell completes commands."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner
from command_lines import parse

from diopi_test.cli import COMMANDS, main
from diopi_test.cli.examples import EXAMPLES
from diopi_test.run.collection import collect_runtime

ROOT = Path(__file__).parents[3]
VARIABLE = "_DIOPI_TEST_COMPLETE"


def test_every_command_has_examples() -> None:
    assert set(EXAMPLES) == {"", *COMMANDS}
    assert all(EXAMPLES.values())


@pytest.mark.parametrize("words", [words for examples in EXAMPLES.values() for words, _ in examples])
def test_every_example_of_a_help_text_parses(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parse(words)


@pytest.mark.parametrize("module", ["diopi_test.cli", "diopi_engine.cli", "diopi_torch.__main__"])
def test_help_shows_whole_summaries(module: str) -> None:
    if module.startswith("diopi_torch"):
        pytest.importorskip("torch")
    group: click.Group = importlib.import_module(module).main
    done = CliRunner().invoke(group, ["--help"], terminal_width=80)
    listed = " ".join(done.output.partition("Commands:")[2].partition("Examples:")[0].split())
    assert "..." not in listed
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None and command.help
        summary = " ".join(command.help.partition("\n\n")[0].split())
        assert f"{name} {summary}" in listed


def test_help_imports_neither_commands_nor_numpy() -> None:
    script = "import sys; from diopi_test.cli import main; main(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"numpy", "diopi_test.cli.run"} & {*done.stdout.split()}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_the_examples_line_by_line(command: str) -> None:
    done = CliRunner().invoke(main, [command, "--help"], terminal_width=100)
    assert done.exit_code == 0
    lines = [line.strip() for line in done.output.partition("Examples:")[2].splitlines()]
    for words, purpose in EXAMPLES[command]:
        assert f"diopi-test {words}" in lines and purpose in lines


def test_every_command_has_a_line_on_the_page() -> None:
    page = (ROOT / "docs" / "command_line.md").read_text("utf-8")
    named = {
        name for row in re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE) for name in re.findall(r"`([\w-]+)`", row)
    }
    assert set(COMMANDS) <= named


def complete_words(*words: str) -> list[str]:
    """Return the words that the shell completion suggests for the last word."""
    complete = BashComplete(main, {}, "diopi-test", VARIABLE)
    return [item.value for item in complete.get_completions(list(words[:-1]), words[-1])]


def test_the_shell_completes_commands_options_and_names() -> None:
    assert complete_words("fin") == ["fingerprint"]
    assert complete_words("run", "--fam") == ["--family"]
    assert complete_words("run", "--family", "act") == ["activation"]
    assert complete_words("run", "--dtype", "no-bf") == ["no-bfloat16"]
    assert complete_words("run", "--function", "diopiSoftmaxB") == ["diopiSoftmaxBackward"]
    assert complete_words("run", "--class", "opt") == ["optional"]
    assert complete_words("run", "--vendor", "jax") == ["jax_cpu"]
    assert complete_words("run", "--level", "models-resnet1") == ["models-resnet18"]
    assert complete_words("run", "--check", "val") == ["values", "validity"]
    assert complete_words("run", "--check", "no-val") == ["no-values", "no-validity"]
    assert complete_words("run", "--model", "resnet5") == ["resnet50"]
    assert complete_words("run", "--case", "diopiSoftmaxB") == ["diopiSoftmaxBackward["]
    assert complete_words("run", "--case", "diopiSqrt[float32-sp") == ["diopiSqrt[float32-special]"]
    assert complete_words("run", "--case", "runtime[") == [case.id for case in collect_runtime()]
    assert "html_report" not in " ".join(complete_words("run", "--"))


def test_cases_of_a_missing_level_are_not_completed(tmp_path: Path) -> None:
    assert complete_words("run", "--data", str(tmp_path), "--case", "diopiSqrt[float32") == []


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (("--level", "smok"), "'smok' is not one of 'smoke', 'full', 'large', 'models', 'soak'. Did you mean 'smoke'?"),
        (("--level", "models-resnet5"), "Did you mean 'models-resnet50'?"),
        (("--level", "xyz"), "'xyz' is not one of 'smoke', 'full', 'large', 'models', 'soak'."),
        (("--level", "models", "--model", "resnet5"), "Did you mean 'resnet50'"),
        (("--vendor", "jaxcpu", "-k", "diopiSqrt"), "Did you mean 'jax_cpu'?"),
        (("--family", "activaton"), "Did you mean 'activation'?"),
        (("--case", "diopiAdd[float32-rwo]"), "Did you mean 'diopiAdd[float32-row]'"),
        (("--case", "diopiSqr[float32-matrix]"), "diopiSqrt"),
    ],
)
def test_run_suggests_names_that_are_spelled_alike(words: tuple[str, ...], suggestion: str) -> None:
    done = CliRunner().invoke(main, ["run", *words], terminal_width=400)
    assert done.exit_code == 2
    assert suggestion in " ".join(done.output.split())


def test_the_script_for_bash_completes(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    command = tmp_path / "diopi-test"
    command.write_text(f'#!{sys.executable}\nfrom diopi_test.cli import main\nmain(prog_name="diopi-test")\n')
    command.chmod(0o755)
    script = (
        f'eval "$({VARIABLE}=bash_source diopi-test)"; COMP_WORDS=(diopi-test fin); COMP_CWORD=1;'
        " _diopi_test_completion diopi-test; echo ${COMPREPLY[@]}"
    )
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [bash, "-c", script], capture_output=True, text=True, cwd=tmp_path, env=environment, check=True
    )
    assert done.stdout.strip() == "fingerprint", done.stderr


def test_a_command_that_cannot_be_imported_names_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> Any:
        raise ImportError("No module named 'numpy'")

    monkeypatch.setattr("diopi_test.cli.import_module", fails)
    done = CliRunner().invoke(main, ["run"])
    assert done.exit_code == 1
    assert done.output == "Error: No module named 'numpy'; `diopi-test doctor` shows what is missing\n"
    assert CliRunner().invoke(main, ["no-such-command"]).exit_code == 2

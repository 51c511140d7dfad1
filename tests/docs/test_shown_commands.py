"""Every command that a page or a help text shows runs as shown, or has a reason why it can't.

The variable `DIOPI_SHOWN_COMMANDS` decides which commands run:

- If it is not set, no command runs. Commands of `diopi-test` are still parsed, and other programs are looked up.
- If it is `all`, every command runs.
- Any other value is a seed. Every cheap command runs, and a sample of the others. CI draws a new seed
  each time and prints it.

This command runs all of them, for which it needs the extra `torch`:

    DIOPI_SHOWN_COMMANDS=all pytest -n 2 tests/docs/test_shown_commands.py
"""

import os
import random
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_lines import parse, simple_commands
from prepared_folder import execute, prepare
from shown_commands import commands_of_block, mark_of, marks, shown_commands

from diopi_test.cli import COMMANDS

ROOT = Path(__file__).parents[2]

TEXTS = tuple(dict.fromkeys(command.text for command in shown_commands()))

SETTING = os.environ.get("DIOPI_SHOWN_COMMANDS", "")
"""`all`, the seed of a sample, or nothing."""

EXPENSIVE = re.compile(r"diopi-test (fingerprint|fuzz|gen-data|list|mutation-test|run)\b(?!.*--help\b).*")
"""Commands that execute or count cases, seconds to a minute each. The test that parses them always runs."""

SAMPLE = 10
"""The number of expensive commands that run for a seed."""

OUTPUT = re.compile(
    r"(?:--log|watch .*--cases|waive \S+ --output|import-config .*--output|fuzz .*--output) (\S+)|submit \S+ (\S+)"
)
"""The files and folders that a command writes and that must not exist."""


def command_of(text: str) -> str:
    """Return the command that runs for a shown one: itself, or the shorter form of its mark."""
    mark = mark_of(text)
    return text if mark is None else mark.instead


RUNNABLE = tuple({command: text for text in TEXTS if (command := command_of(text))}.values())
"""The shown commands that run. If several have the same shorter form, only one of them is here."""


def commands_that_run(setting: str) -> list[str]:
    """Return the shown commands that run with a value of `DIOPI_SHOWN_COMMANDS`."""
    expensive = [text for text in RUNNABLE if EXPENSIVE.fullmatch(command_of(text))]
    if setting != "all":
        expensive = random.Random(setting).sample(expensive, SAMPLE)
    return [text for text in RUNNABLE if text in expensive or not EXPENSIVE.fullmatch(command_of(text))]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all files that the commands assume."""
    for tool in ("bash", "cc", "ssh-keygen"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} here")
    pytest.importorskip("torch", reason="commands use torch_cpu and trace networks: pip install 'diopi[torch]'")
    folder = tmp_path_factory.mktemp("prepared")
    prepare(folder)
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Iterator[Path]:
    """Return a copy of the prepared folder for one command."""
    copy = tmp_path / "folder"
    shutil.copytree(prepared, copy, symlinks=True)
    yield copy
    shutil.rmtree(copy)


@pytest.mark.skipif(not SETTING, reason="takes minutes: set DIOPI_SHOWN_COMMANDS to a seed or to all")
@pytest.mark.parametrize("text", commands_that_run(SETTING))
def test_a_shown_command_runs(text: str, prepared: Path, folder: Path) -> None:
    mark, command = mark_of(text), command_of(text)
    for output in filter(None, (name for match in OUTPUT.findall(command) for name in match)):
        shutil.rmtree(folder / output, ignore_errors=True)
        folder.joinpath(output).unlink(missing_ok=True)
    place = prepared if "--resume" in command else folder  # a log is resumed where it was written
    execute(command, place, mark.status if mark else 0)


@pytest.mark.parametrize("text", RUNNABLE)
def test_a_shown_command_parses(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for program, *words in simple_commands(command_of(text).replace("~/", "home/")):
        if program == "diopi-test" and words not in ([], ["--help"]):
            parse(shlex.join(words))
        else:
            assert shutil.which(program) or program == "eval", text


def test_every_command_that_is_not_parsed_runs_with_every_seed() -> None:
    assert {text for text in RUNNABLE if not command_of(text).startswith("diopi-test ")} <= set(commands_that_run("1"))
    assert set(commands_that_run("all")) == set(RUNNABLE)
    assert set(commands_that_run("1")) < set(RUNNABLE)


def test_ci_runs_shown_commands() -> None:
    script = ROOT.joinpath(".ci", "run").read_text("utf-8")
    assert re.search(r"^DIOPI_SHOWN_COMMANDS=\S+ pytest .*tests/docs/test_shown_commands\.py", script, re.MULTILINE)


def test_every_mark_has_a_reason_and_matches_a_shown_command() -> None:
    assert [mark.pattern for mark in marks() if not mark.reason] == []
    first_marks = {mark_of(text) for text in TEXTS}
    assert [mark.pattern for mark in marks() if mark not in first_marks] == []


def test_every_file_that_a_reason_names_exists() -> None:
    files = [file for mark in marks() for file in re.findall(r"(?:tests|\.ci)/[\w/.]*\w", mark.reason)]
    assert [file for file in files if not ROOT.joinpath(file).exists()] == []


def test_pages_and_help_texts_of_every_command_are_collected() -> None:
    places = {command.place.partition(":")[0] for command in shown_commands()}
    assert {"README.md", "CONTRIBUTING.md", "docs/ci.md", "docs/zh/tutorial.md"} <= places
    assert {f"diopi-test {name} --help" for name in COMMANDS} <= places


@pytest.mark.parametrize(
    ("language", "block", "commands"),
    [
        ("sh", ["diopi-test doctor  # a comment", "# another"], ["diopi-test doctor"]),
        ("sh", ["python tool.py one \\", "    two"], ["python tool.py one two"]),
        ("indented", ["A=1 pytest -k 'x or y'"], ["A=1 pytest -k 'x or y'"]),
        ("indented", ["for x in 1 2; do", "    y $x &", "done"], ["for x in 1 2; do\n    y $x &\ndone"]),
        ("yaml", ["- run: diopi-test run", "  script:", "    - pytest"], ["diopi-test run", "pytest"]),
        ("python", ["diopi-test run"], []),
        ("indented", ["1 finding; repeat with --seed 3"], []),
    ],
)
def test_commands_of_a_block_are_collected(language: str, block: list[str], commands: list[str]) -> None:
    assert list(commands_of_block(block, language)) == commands

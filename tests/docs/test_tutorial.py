"""The instructions of docs/tutorial.md work, from an empty folder to an operator that passes."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_test.cli import main

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "tutorial.md").read_text("utf-8")

ENDS_IN = {"run --vendor my_vendor:vendor --function diopiSoftmax -n 1": [1, 0]}
"""The exit statuses of each occurrence of a command, if they are not 0."""

OTHER_DIRECTORY = re.compile(
    r"python -m venv .*|pip install \.|diopi-test (doctor|describe .*|run --function diopiSoftmax -n 1)"
)
"""Commands that have separate tests, or with which `.ci/run` begins."""


def steps() -> list[str]:
    """Return the commands and the Python code of the page's blocks, in order."""
    found = re.findall(
        r"^    ((?:\w+=\S+ )?(?:diopi-test|python|pip) [^\n]*)$|^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE
    )
    return [command or block for command, block in found]


@pytest.mark.slow
def test_the_python_operator_of_the_tutorial_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # PYTHONPATH=.
    monkeypatch.setenv("COLUMNS", "200")
    file, statuses, printed = tmp_path / "my_vendor.py", {k: iter(v) for k, v in ENDS_IN.items()}, ""
    command_count = 0
    for step in steps():
        if step.startswith("import"):
            file.write_text(step)
        elif step.startswith("@"):  # in the place of the function that was there
            file.write_text(file.read_text().partition("@vendor")[0] + step)
        elif not OTHER_DIRECTORY.fullmatch(step):
            words = step.removeprefix("PYTHONPATH=. ").removeprefix("diopi-test ")
            done = CliRunner().invoke(main, shlex.split(words))
            assert done.exit_code == next(statuses.get(words, iter([0]))), done.output
            printed, command_count = printed + done.output, command_count + 1
    assert command_count == 4
    expected = re.search(r"<!-- failed -->\n```\n(.*?)```", PAGE, re.DOTALL)
    assert expected and " ".join(expected[1].split()) in " ".join(printed.split())


def test_the_cpp_commands_equal_those_of_the_tested_page() -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    assert block in (DOCS / "compiled_vendors.md").read_text("utf-8")

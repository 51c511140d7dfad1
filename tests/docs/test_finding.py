"""The examples in docs/finding.md are the actual output of the suite.

`python tests/docs/test_finding.py`, with the source tree and tests/helpers in PYTHONPATH, regenerates them.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from click.testing import CliRunner
from faulty import FaultyVendor
from trials import baseline_case, outcome_of

from diopi_test.cli import main
from diopi_test.results.details import outcome_lines
from diopi_test.run.dump import dump

PAGE = Path(__file__).parents[2] / "docs" / "finding.md"
WIDTH = 120


def odd_columns(arguments: dict[str, Any]) -> None:
    """Make every second column of the result wrong."""
    arguments["out"].view()[:, 1::2] *= np.float32(1.001)


def failed_case() -> str:
    """Return the message of a failed case as the page shows it."""
    outcome = outcome_of(FaultyVendor("my_vendor", odd_columns), "diopiAdd", "float32-row")
    return fold_lines("\n".join(outcome_lines("diopiAdd[float32-row]", outcome)))


def shown_case() -> str:
    """Return the output of `diopi-test show` as the page shows it."""
    done = CliRunner().invoke(main, ["show", "diopiSoftmax[negative-dim-after-the-last]"])
    assert done.exit_code == 0, done.output
    return fold_lines(done.output.rstrip())


def fold_lines(text: str) -> str:
    """Return `text` with long lines broken at spaces, as in a terminal."""
    lines = []
    for line in text.splitlines():
        margin = " " * (len(line) - len(line.lstrip()) + 2)
        lines += wrap(line, WIDTH, subsequent_indent=margin, break_on_hyphens=False) if len(line) > WIDTH else [line]
    return "\n".join(lines)


EXAMPLES: Mapping[str, Callable[[], str]] = {"report": failed_case, "show": shown_case}


def regenerate_page(page: str) -> str:
    """Return the page with regenerated examples."""
    for name, make in EXAMPLES.items():
        block = f"<!-- {name} -->\n```\n{make()}\n```\n"
        page, count = re.subn(rf"<!-- {name} -->\n(```\n.*?\n```\n)?", lambda _, new=block: new, page, flags=re.DOTALL)
        assert count == 1, name
    return page


def test_the_examples_equal_the_printed_output() -> None:
    page = PAGE.read_text("utf-8")
    assert regenerate_page(page) == page


def test_the_example_that_reads_a_dump_works(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    case = baseline_case("diopiAdd", "float32-row")
    path = dump(case, {}, tmp_path / "folder")
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    np.savez(path, **arrays, **{"result.first.out": arrays["expected.out"] + np.eye(4, 5)})
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert capsys.readouterr().out == "{'alpha': -0.75} [[0 0]\n [1 1]\n [2 2]\n [3 3]]\n"


if __name__ == "__main__":
    PAGE.write_text(regenerate_page(PAGE.read_text("utf-8")), "utf-8")

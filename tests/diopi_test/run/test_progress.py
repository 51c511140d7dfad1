"""Progress on a terminal and in a file."""

from io import StringIO

import pytest
from rich.console import Console

from diopi_test.run.progress import VisibleProgress


def progress_of_three_steps(*, is_terminal: bool, period: float) -> str:
    file = StringIO()
    with VisibleProgress(Console(file=file, force_terminal=is_terminal, width=100), period) as progress:
        task = progress.add_task("running [all]", total=3)
        for _ in range(2):
            progress.advance(task)
        progress.update(task, advance=1, description="running [all]")
    return file.getvalue()


def test_a_file_gets_a_line_for_each_period() -> None:
    lines = progress_of_three_steps(is_terminal=False, period=0).splitlines()
    assert lines[:2] == ["running [all]: 1 of 3 in 0 s", "running [all]: 2 of 3 in 0 s"]


@pytest.mark.parametrize(("is_terminal", "period"), [(True, 0), (False, 60)])
def test_no_line_comes_early_or_on_a_terminal(is_terminal: bool, period: float) -> None:
    assert "of 3 in" not in progress_of_three_steps(is_terminal=is_terminal, period=period)

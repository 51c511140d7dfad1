"""Progress on a terminal and in a file."""

from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from diopi_test.run import progress
from diopi_test.run.progress import VisibleProgress


def progress_of_three_steps(*, is_terminal: bool, period: float) -> str:
    """Return the output of a progress display for three steps."""
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


def test_line_estimates_the_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MIN_ELAPSED", 0.0)
    first, second, *_ = progress_of_three_steps(is_terminal=False, period=0).splitlines()
    assert first.endswith(", about 0 s left") and second.endswith(", about 0 s left")


@pytest.mark.parametrize(
    ("elapsed", "completed", "text"),
    [(4, 1, ""), (20, 0.1, ""), (20, 2, ", about 80 s left"), (60, 1, ", about 9 minutes left")],
)
def test_estimate_is_the_mean_time_of_the_completed_steps(elapsed: float, completed: int, text: str) -> None:
    task: Any = SimpleNamespace(elapsed=elapsed, total=10, completed=completed)
    assert progress._describe_remaining(task) == text

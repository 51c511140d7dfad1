"""Progress of a command: a bar on a terminal, lines in a file or a pipe."""

from __future__ import annotations

import time
from typing import Any, final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

PERIOD = 10.0
"""Seconds between two lines about the progress."""

MIN_ELAPSED, MIN_SHARE = 5.0, 0.02
"""The seconds and the share of completed steps after which lines contain an estimate of the remaining time."""


@final
class VisibleProgress(Progress):
    """A progress bar, which is replaced by a line every `period` seconds if the console is not a terminal."""

    def __init__(self, console: Console, period: float = PERIOD) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        remaining = (TextColumn("· remaining"), TimeRemainingColumn())
        super().__init__(*columns, *remaining, console=console)
        self._period = period
        self._next_line = time.monotonic() + period

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        """Advance a task, and print lines if `period` seconds have passed since the last ones."""
        super().advance(task_id, advance)
        self._print_lines()

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Update a task, and print lines if `period` seconds have passed since the last ones."""
        super().update(task_id, **changes)
        self._print_lines()

    def _print_lines(self) -> None:
        """Print a line for each task that has begun and not finished, unless the console is a terminal."""
        current_time = time.monotonic()
        if self.console.is_terminal or current_time < self._next_line:
            return
        self._next_line = current_time + self._period
        for task in self.tasks:
            if task.completed and not task.finished:
                count = f"{task.completed:,.0f} of {task.total or 0:,.0f} in {task.elapsed or 0:.0f} s"
                line = f"{task.description}: {count}{_describe_remaining(task)}"
                self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def _describe_remaining(task: Task) -> str:
    """Return an estimate of the remaining time, such as `, about 3 minutes left`, from the mean time of a step so far.

    The text is empty while too little time has passed, or too few steps are complete, for an estimate.
    """
    elapsed = task.elapsed or 0.0
    if elapsed < MIN_ELAPSED or not task.total or task.completed < MIN_SHARE * task.total:
        return ""
    seconds = elapsed * (task.total - task.completed) / task.completed
    return f", about {seconds:.0f} s left" if seconds < 100 else f", about {seconds / 60:.0f} minutes left"

"""The command that a run suggests at its end."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from diopi_test.cli.next_step import suggest_next_step
from diopi_test.run.options import RunOptions
from diopi_test.run.selection import Selection


def suggest(*, collected: int | None = 9, incomplete: bool = False, exit_status: int = 0, **options: Any) -> str:
    """Return the suggested next command after a run with this result."""
    summary = SimpleNamespace(collected=collected, incomplete=incomplete)
    report: Any = SimpleNamespace(summary=summary, exit_status=exit_status)
    return suggest_next_step(report, Path("my log.jsonl"), RunOptions(**{"vendor": "jax_cpu", **options}))


@pytest.mark.parametrize(
    ("state", "command"),
    [
        ({}, "diopi-test gen-data --level full && diopi-test run --level full"),
        ({"vendor": "lib.so"}, "diopi-test gen-data --level full && diopi-test run --level full --vendor lib.so"),
        ({"vendor": "lib.so", "selection": Selection(expression="diopiSin")}, "diopi-test run --vendor lib.so"),
        ({"exit_status": 1}, "diopi-test report 'my log.jsonl' --html report.html"),
        ({"level": "full"}, "diopi-test report 'my log.jsonl' --html report.html"),
        ({"incomplete": True, "exit_status": 3}, "diopi-test run --resume 'my log.jsonl'"),
    ],
)
def test_suggestion_follows_from_the_result(state: dict[str, Any], command: str) -> None:
    assert suggest(**state).endswith(f": {command}")


@pytest.mark.parametrize("collected", [0, None])
def test_run_without_cases_suggests_nothing(collected: int | None) -> None:
    assert suggest(collected=collected, exit_status=3) == ""

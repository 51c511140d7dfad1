"""Prints the seed of the samples that tests draw."""

import os

import pytest
from sampling import SEED


def pytest_report_header() -> str:
    return f"samples: {SEED}={os.environ[SEED]}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"repeat the samples of this run with {SEED}={os.environ[SEED]}")

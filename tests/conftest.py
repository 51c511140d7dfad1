"""Print the seed of the samples that tests draw, and share fork servers between tests."""

import os
import sys
from collections.abc import Iterator

import pytest
from fork_servers import ForkServerPool
from sampling import SEED

# The tests start some hundred Python processes. Without bytecode, each compiles all modules, which takes 4 seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_report_header() -> str:
    return f"samples: {SEED}={os.environ[SEED]}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"repeat the samples of this run with {SEED}={os.environ[SEED]}")


@pytest.fixture(scope="session", autouse=True)
def shared_fork_servers() -> Iterator[None]:
    """Let runs in the process of the tests use the fork server of an earlier run."""
    pool = ForkServerPool()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diopi_test.run.isolation.executor.ForkServer", pool.lease)
        yield
    pool.close()

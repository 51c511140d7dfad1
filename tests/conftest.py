"""Print the seed of the samples that tests draw, and share fork servers and compiled programs between tests."""

import gc
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from fork_servers import ForkServerPool
from sampling import SEED, draw_exhaustive
from shared_folders import session_folder

from diopi_test.run.program_folder import VARIABLE

# The tests start some hundred Python processes. Without bytecode, each compiles all modules, which takes 4 seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    text = f"of the tests marked `exhaustive`, run only this part, drawn with {SEED}; the other tests run as usual"
    parser.addoption("--draw", type=float, metavar="PERCENT", help=text)


@pytest.hookimpl(trylast=True)  # after the option -m has selected the tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    percent = config.getoption("--draw")
    if percent is not None:
        selected = draw_exhaustive(items, percent)
        config.hook.pytest_deselected(items=[item for item in items if item not in selected])
        items[:] = [item for item in items if item in selected]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let idle processes of `-n` take tests from busy ones: else one is idle for minutes while the last tests run."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


def pytest_report_header() -> str:
    return f"samples: {SEED}={os.environ[SEED]}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"repeat the samples of this run with {SEED}={os.environ[SEED]}")


@pytest.fixture(scope="module", autouse=True)
def small_garbage_collections() -> None:
    """Exclude what earlier tests left from garbage collection: some tests collect dozens of times, a second each."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def shared_fork_servers() -> Iterator[None]:
    """Let runs in the process of the tests use the fork server of an earlier run."""
    pool = ForkServerPool()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diopi_test.run.isolation.executor.ForkServer", pool.lease)
        yield
    pool.close()


@pytest.fixture(scope="session", autouse=True)
def shared_programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let all processes of a session share the programs that they compile, and leave those of the user alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(session_folder(tmp_path_factory) / "programs"))
        yield

"""Print the seed of the samples that tests draw, and share fork servers and compiled programs between tests."""

import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from fork_servers import ForkServerPool
from sampling import SEED, draw_marked, find_deselected_markers, omitted_markers
from shared_folders import session_folder

from diopi_impl.program_folder import VARIABLE
from diopi_test.baseline.parallel import map_in_processes

# The tests start some hundred Python processes. Without bytecode, each compiles all modules, which takes 4 seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

DRAW_OPTIONS = {"--draw": "exhaustive", "--draw-slow": "slow"}
"""The options that draw a part of the tests with a marker."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options `--draw` and `--draw-slow`."""
    for option, marker in DRAW_OPTIONS.items():
        text = f"of the tests marked `{marker}`, run only this part, drawn with {SEED}; the other tests run as usual"
        parser.addoption(option, type=float, metavar="PERCENT", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Leave out the parameters of samples that the option `-m` deselects."""
    omitted_markers.update(find_deselected_markers(config.getoption("markexpr"), ("exhaustive", "slow", "sanitizers")))


@pytest.hookimpl(trylast=True)  # after the option -m has selected the tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the exhaustive and the slow tests except the parts that the options draw."""
    options = {marker: config.getoption(option) for option, marker in DRAW_OPTIONS.items()}
    percentages = {marker: percent for marker, percent in options.items() if percent is not None}
    if percentages:
        selected = draw_marked(items, percentages)
        config.hook.pytest_deselected(items=[item for item in items if item not in selected])
        items[:] = [item for item in items if item in selected]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let idle processes of `-n` take tests from busy processes, so that none is idle for minutes at the end."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


def pytest_report_header() -> str:
    """Return the line of pytest's header that states the seed of samples."""
    return f"samples: {SEED}={os.environ[SEED]}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """State how to repeat the samples of a run in which tests failed."""
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
def single_worker_in_this_process() -> Iterator[None]:
    """Let commands with one worker do its work in the process of the tests, because a new one imports for seconds."""

    def map_items(work: Callable[[Any], Any], items: Sequence[Any], workers: int) -> Iterator[tuple[Any, Any]]:
        return map_in_processes(work, items, workers) if workers > 1 else ((item, work(item)) for item in items)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diopi_test.baseline.parallel.map_in_processes", map_items)
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let all processes of a session share the programs that they compile, and leave those of the user alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(session_folder(tmp_path_factory) / "programs"))
        yield

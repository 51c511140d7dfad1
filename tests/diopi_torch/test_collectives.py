"""Two processes exchange tensors through the backend `dicl`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import two_ranks  # noqa: E402  # behind the check for PyTorch

PROGRAM = Path(two_ranks.__file__)

FATAL_TRIAL = "a_rank_that_dies"
"""The last trial, in which the second process ends itself."""

REMOTE_TRIALS = [f"{name} with remote memory" for name in two_ranks.TRIALS_WITH_REMOTE_MEMORY]
"""The trials that are repeated on a device whose memory the host can't address."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str | None]]:
    """Return for each process the traceback of each trial, or None if it passed."""
    store = tmp_path_factory.mktemp("ranks") / "store"
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path), "GLOO_SOCKET_IFNAME": "lo"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", PROGRAM, str(rank), store], stdout=subprocess.PIPE, env=environment
        )
        for rank in (0, 1)
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 3], "the second ends itself"
    lines = [[json.loads(line) for line in output.splitlines()] for output in outputs]
    return [{trial["trial"]: trial["wrong"] for trial in of_rank} for of_rank in lines]


@pytest.mark.parametrize("name", [*(name for name in two_ranks.TRIALS if name != FATAL_TRIAL), *REMOTE_TRIALS])
def test_two_processes_exchange_tensors(found: list[dict[str, str | None]], name: str) -> None:
    assert [of_rank[name] for of_rank in found] == [None, None], "\n".join(str(of_rank[name]) for of_rank in found)


def test_the_death_of_a_rank_is_an_error_on_the_remaining_rank(found: list[dict[str, str | None]]) -> None:
    assert found[0][FATAL_TRIAL] is None, found[0][FATAL_TRIAL]
    assert FATAL_TRIAL not in found[1]

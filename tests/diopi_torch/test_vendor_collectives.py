"""Two processes exchange tensors through the backend `dicl` over the reference's collectives."""

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import two_ranks  # noqa: E402  # behind the check for PyTorch
import two_vendor_ranks  # noqa: E402  # behind the check, too

NAMES = [name for name in two_ranks.TRIALS if name not in two_vendor_ranks.GLOO_TRIALS]
"""The trials of `two_ranks` that also hold for a vendor."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str | None]]:
    """Return for each process the traceback of each trial, or None if it passed."""
    store = tmp_path_factory.mktemp("vendor_ranks") / "store"
    environment = {
        **os.environ,
        "PYTHONPATH": ":".join(sys.path),
        "GLOO_SOCKET_IFNAME": "lo",
        "DIOPI_TORCH_RUNTIME": "reference",
        "DICL_TIMEOUT": "20",
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", two_vendor_ranks.__file__, str(rank), store],
            stdout=subprocess.PIPE,
            env=environment,
        )
        for rank in (0, 1)
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 3], "the second ends itself"
    lines = [[json.loads(line) for line in output.splitlines()] for output in outputs]
    return [{trial["trial"]: trial["wrong"] for trial in of_rank} for of_rank in lines]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, *(trial.__name__ for trial in two_vendor_ranks.VENDOR_TRIALS[:-1])])
def test_two_processes_use_the_collectives_of_the_vendor(results: list[dict[str, str | None]], name: str) -> None:
    assert [of_rank[name] for of_rank in results] == [None, None], "\n".join(str(of_rank[name]) for of_rank in results)


@pytest.mark.slow
def test_the_end_of_a_rank_is_an_error_on_the_remaining_rank(results: list[dict[str, str | None]]) -> None:
    name = two_vendor_ranks.FATAL_TRIAL
    assert results[0][name] is None, results[0][name]
    assert name not in results[1]

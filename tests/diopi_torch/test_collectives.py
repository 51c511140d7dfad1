"""Two threads and two processes exchange tensors through the backend `dicl`."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

import two_ranks  # noqa: E402  # behind the check for PyTorch
from torch_devices import AlteredVendor  # noqa: E402  # behind the check for PyTorch

from diopi_torch.collectives import BACKEND  # noqa: E402  # behind the check for PyTorch

PROGRAM = Path(two_ranks.__file__)

FATAL_TRIAL = "a_rank_that_dies"
"""The last trial, in which the second process ends itself."""

REMOTE_TRIALS = [f"{name} with remote memory" for name in two_ranks.TRIALS_WITH_REMOTE_MEMORY]
"""The trials that are repeated on a device whose memory the host can't address."""


def exchange_tensors(rank: int, store: Any) -> list[Any]:
    """Call each kind of collective as one of two ranks; return the values that the rank then has."""
    dist, on_device = torch.distributed, two_ranks.on_device
    gloo = dist.Backend._plugins[BACKEND.upper()].creator_fn(store, rank, 2, two_ranks.TIMEOUT)
    group = dist.ProcessGroup(store, rank, 2)
    for device in ("cpu", "diopi"):
        group._register_backend(torch.device(device), dist.ProcessGroup.BackendType.GLOO, gloo)

    r = float(rank)
    reduced, broadcast, scattered, received = (on_device(r) for _ in range(4))
    gathered, exchanged = [on_device(0.0), on_device(0.0)], [on_device(0.0), on_device(0.0)]
    from_rank_1 = dist.BroadcastOptions()
    from_rank_1.rootRank = 1
    transfer = group.recv([received], 1, 0) if rank == 0 else group.send([on_device(7.0)], 0, 0)
    for work in (
        group.allreduce([reduced]),
        group.broadcast([broadcast], from_rank_1),
        group.allgather([gathered], [on_device(r + 5)]),
        group.reduce_scatter([scattered], [[on_device(r), on_device(r + 10)]]),
        group.alltoall(exchanged, [on_device(r), on_device(r + 10)]),
        transfer,
    ):
        work.wait()
    return [tensor.item() for tensor in (reduced, broadcast, *gathered, scattered, *exchanged, received)]


def test_two_threads_exchange_tensors(vendor: AlteredVendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    store = torch.distributed.HashStore()
    with ThreadPoolExecutor(2) as pool:
        ranks = list(pool.map(lambda rank: exchange_tensors(rank, store), (0, 1)))
    assert ranks == [[1.0, 1.0, 5.0, 6.0, 1.0, 0.0, 1.0, 7.0], [1.0, 1.0, 5.0, 6.0, 21.0, 10.0, 11.0, 1.0]]


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


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(name for name in two_ranks.TRIALS if name != FATAL_TRIAL), *REMOTE_TRIALS])
def test_two_processes_exchange_tensors(found: list[dict[str, str | None]], name: str) -> None:
    assert [of_rank[name] for of_rank in found] == [None, None], "\n".join(str(of_rank[name]) for of_rank in found)


@pytest.mark.slow
def test_the_death_of_a_rank_is_an_error_on_the_remaining_rank(found: list[dict[str, str | None]]) -> None:
    assert found[0][FATAL_TRIAL] is None, found[0][FATAL_TRIAL]
    assert FATAL_TRIAL not in found[1]

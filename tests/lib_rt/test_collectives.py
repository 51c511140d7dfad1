"""The collectives of the built-in device: their settings, their messages and what they do beyond the interface."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diopi_proto.types import Dtype
from diopi_test.collectives.bench import CollectivesBench, type_code
from diopi_test.collectives.run import run_collective_cases
from diopi_test.device_runtime.worker import start
from diopi_test.execution.verdict import Verdict
from lib_rt.collectives_client import CollectivesClient
from lib_rt.device_runtime import find_device_runtime
from lib_rt.device_runtime_client import RuntimeCallError

FLOAT = type_code(Dtype.float32)

PROGRAM = """
from lib_rt.collectives_client import CollectivesClient
from lib_rt.device_runtime import find_device_runtime
client = CollectivesClient(find_device_runtime())
client.create_communicator(1, client.create_unique_id(), 0, -1)
"""
"""Creates a communicator of one rank."""


@pytest.fixture
def bench() -> CollectivesBench:
    """Return a bench of one rank with the built-in collectives."""

    def exchange(value: Any) -> list[Any]:
        """Return the values of all ranks."""
        return [value]

    return CollectivesBench(
        client=CollectivesClient(find_device_runtime()),
        runtime=start(find_device_runtime()),
        rank=0,
        ranks=1,
        exchange=exchange,
        announce_end=lambda: None,
    )


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("DICL_TIMEOUT", "soon", "DICL_TIMEOUT is soon, expected a positive number of seconds; using 600\n"),
        ("DICL_TIMEOUT", "0", "DICL_TIMEOUT is 0, expected a positive number of seconds; using 600\n"),
        ("DIOPI_COLLECTIVES_ADDRESS", "here", "DIOPI_COLLECTIVES_ADDRESS is here, expected an IPv4 address; using"),
        ("DICL_TIMEOUT", "2.5", ""),
    ],
)
def test_an_invalid_setting_of_collectives_is_reported_and_ignored(variable: str, value: str, message: str) -> None:
    environment = {**os.environ, variable: value}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr.startswith(message) and bool(done.stderr) == bool(message)


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_both_transports_move_elements(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIOPI_COLLECTIVES_TRANSPORT", transport)
    cases = ["diclAllReduce_combines_many_elements", "a_rank_that_has_ended_is_an_error"]
    outcomes = list(run_collective_cases(find_device_runtime(), cases, 2, 120.0))
    assert [(outcome.verdict, outcome.message) for outcome in outcomes] == [(Verdict.passed, "")] * 2


def test_shared_memory_has_no_name_once_all_ranks_use_it() -> None:
    folder = Path("/dev/shm")
    if not folder.is_dir():
        pytest.skip("this system does not list shared memory in /dev/shm")
    before = {path.name for path in folder.glob("diopi-*")}
    [outcome] = run_collective_cases(find_device_runtime(), ["survivors_can_create_a_communicator"], 3, 120.0)
    assert outcome.verdict is Verdict.passed
    assert {path.name for path in folder.glob("diopi-*")} <= before


def test_buffers_must_be_memory_of_the_device_of_the_communicator(bench: CollectivesBench) -> None:
    host = np.zeros(4, np.float32)
    arguments = host.ctypes.data, host.ctypes.data, 4, FLOAT, 0, bench.world, 0
    with pytest.raises(RuntimeCallError, match="16 bytes do not lie in an allocation on device 0 of the communicator"):
        bench.call("diclAllReduce", *arguments)
    with bench.runtime.on_device(1), bench.buffer(Dtype.float32, 4) as buffer:
        arguments = buffer.address, buffer.address, 4, FLOAT, 0, bench.world, 0
        with pytest.raises(RuntimeCallError, match="do not lie in an allocation on device 0"):
            bench.call("diclAllReduce", *arguments)


def test_the_stream_must_belong_to_the_device_of_the_communicator(bench: CollectivesBench) -> None:
    communicator = bench.world
    with bench.buffer(Dtype.float32, 4) as buffer, bench.runtime.on_device(1), bench.runtime.stream() as stream:
        arguments = buffer.address, buffer.address, 4, FLOAT, 0, communicator, stream
        with pytest.raises(RuntimeCallError, match="the stream and the communicator belong to different devices"):
            bench.call("diclAllReduce", *arguments)


def test_memory_that_is_freed_before_a_collective_is_an_asynchronous_error(bench: CollectivesBench) -> None:
    with bench.communicator() as comm, bench.runtime.stream() as stream:
        memory = bench.runtime.call("mallocDevice", 400, True)
        bench.runtime.occupy(stream)
        bench.call("diclAllReduce", memory, memory, 100, FLOAT, 0, comm, stream)
        bench.runtime.call("freeDevice", memory)
        bench.runtime.call("syncStream", stream)
        with pytest.raises(RuntimeCallError, match="memory of diclAllReduce was freed before the stream reached it"):
            bench.call("diclGetCommAsyncError", comm)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("diclAllReduce", (0, 0, 1, 8, 0), "diclAllReduce: there is no element type 8"),
        ("diclAllReduce", (0, 0, 1, FLOAT, 8), "diclAllReduce: there is no operation 8 for type 6"),
        ("diclAllReduce", (0, 0, 1 << 60, FLOAT, 0), "diclAllReduce: 1152921504606846976 elements are too many"),
        ("diclSend", (0, 0, FLOAT, 0), "diclSend: a rank can't send to itself"),
        ("diclRecv", (0, 0, FLOAT, 1), "diclRecv: rank 1 of 1 does not exist"),
    ],
)
def test_a_message_names_the_wrong_argument(
    name: str, arguments: tuple[int, ...], message: str, bench: CollectivesBench
) -> None:
    with pytest.raises(RuntimeCallError, match=message):
        bench.call(name, *arguments, bench.world, 0)


@pytest.mark.parametrize("name", ["diclCommDestroy", "diclGetCommAsyncError"])
def test_unknown_communicators_are_rejected(name: str, bench: CollectivesBench) -> None:
    with pytest.raises(RuntimeCallError, match=f"{name}: there is no communicator with this handle"):
        bench.call(name, 4096)


def test_an_id_serves_for_one_communicator(bench: CollectivesBench) -> None:
    with bench.time_limit(1):
        unique_id = bench.client.create_unique_id()
        comm = bench.client.create_communicator(1, unique_id, 0, -1)
        with pytest.raises(RuntimeCallError, match="the process of the unique id does not answer"):
            bench.client.create_communicator(1, unique_id, 0, -1)
    bench.call("diclCommDestroy", comm)

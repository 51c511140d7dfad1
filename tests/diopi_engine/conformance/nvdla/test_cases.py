"""The reference runtime passes the cases, and each kind of fault that is put into it is caught by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diopi_engine.conformance.nvdla import networks
from diopi_engine.conformance.nvdla.all_cases import CASES
from diopi_engine.conformance.nvdla.bench import NvdlaBench
from diopi_engine.conformance.nvdla.client import NvdlaClient
from diopi_engine.conformance.worker import run_case
from diopi_engine.runtime.handles import Handles
from diopi_engine.runtime.nvdla import driver, kernel, service
from diopi_engine.runtime.nvdla.driver import RUNTIMES, LoadedNetwork, NetworkRuntime
from diopi_engine.runtime.nvdla.memory import HeapSpace, find_heap
from diopi_engine.runtime.nvdla.program import Program

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loadables")
    networks.make(folder)
    assert {path.name for path in folder.iterdir()} == set(networks.NAMES)
    return folder


@pytest.fixture
def bench(nvdla_library: Path, folder: Path) -> Iterator[NvdlaBench]:
    """A bench; what a case that failed left behind is cleared away."""
    yield NvdlaBench(NvdlaClient(nvdla_library), folder)
    RUNTIMES.clear()
    kernel.HANDLES._objects.clear()
    find_heap.cache_clear()


@pytest.mark.parametrize("name", CASES)
def test_the_reference_passes(name: str, bench: NvdlaBench) -> None:
    assert run_case(CASES[name], bench) == ("passed", "")
    assert (RUNTIMES, kernel.HANDLES._objects) == ({}, {})


def memory_of_loadables_not_freed(patch: Patch) -> None:
    patch.setattr(NetworkRuntime, "unload", lambda self: setattr(self, "_loaded", None))


def memory_of_runtimes_not_freed(patch: Patch) -> None:
    patch.setattr(NetworkRuntime, "close", lambda self: None)


def bindings_of_the_earlier_load(patch: Patch) -> None:
    bound: dict[Any, Any] = {}
    patch.setattr(driver, "LoadedNetwork", lambda **fields: LoadedNetwork(**fields, bound=bound))


def a_load_replaces_the_network(patch: Patch) -> None:
    load = NetworkRuntime.load

    def replacing(self: Any, *args: Any) -> None:
        self._loaded = None
        load(self, *args)

    patch.setattr(NetworkRuntime, "load", replacing)


def run_with(patch: Patch, change: Callable[[Any, int, list[Any]], tuple[int, list[Any]]]) -> None:
    """Let programs run with another batch or other memories."""
    run = Program.run
    patch.setattr(Program, "run", lambda self, batch, memories: run(self, *change(self, batch, memories)))


def second_output_dropped(patch: Patch) -> None:
    run_with(patch, lambda _, batch, memories: (batch, [*memories[:-1], memories[-1].copy()]))


def inputs_swapped(patch: Patch) -> None:
    run_with(patch, lambda _, batch, memories: (batch, [memories[1], memories[0], *memories[2:]]))


def earlier_inputs(patch: Patch) -> None:
    cache: dict[Any, list[Any]] = {}

    def first(program: Any, batch: int, memories: list[Any]) -> tuple[int, list[Any]]:
        inputs = cache.setdefault((program, batch), [memory.copy() for memory in memories[:2]])
        return batch, [*inputs, *memories[2:]]

    run_with(patch, first)


def one_sample_of_a_batch(patch: Patch) -> None:
    run_with(patch, lambda _, batch, memories: (1, memories))


def outputs_written_beyond_the_batch(patch: Patch) -> None:
    run = Program.run

    def padded(self: Any, batch: int, memories: list[Any]) -> None:
        run(self, batch, memories)
        memories[-1].view(np.float32)[batch * networks.INPUTS] = 0

    patch.setattr(Program, "run", padded)


def limit_of_a_heap_ignored(patch: Patch) -> None:
    patch.setattr(HeapSpace, "limit", property(lambda self: 1 << 50, lambda self, _: None), raising=False)


def sizes_unchecked(patch: Patch) -> None:
    patch.setattr(driver, "_check_size", lambda *_: None)


def overlap_unchecked(patch: Patch) -> None:
    patch.setattr(kernel, "_check", lambda *_: None)


def memory_of_all_runtimes(patch: Patch) -> None:
    def anywhere(self: Any, handle: Any) -> Any:
        return next(
            memory for runtime in RUNTIMES.values() for memory in runtime.memories.values() if memory.handle == handle
        )

    patch.setattr(NetworkRuntime, "memory", anywhere)


def handles_outlive_what_they_are_of(patch: Patch) -> None:
    patch.setattr(Handles, "remove", lambda self, gone: None)


def memory_that_is_bound_is_freed(patch: Patch) -> None:
    patch.setattr(NetworkRuntime, "bound", {})


def damaged_files_taken(patch: Patch) -> None:
    read_engine = driver.read_engine

    def careless(data: bytes) -> Any:
        try:
            return read_engine(data)
        except Exception as error:
            raise ValueError("who knows") from error

    patch.setattr(driver, "read_engine", careless)


def the_instance_ignored(patch: Patch) -> None:
    allocate = NetworkRuntime.allocate
    patch.setattr(NetworkRuntime, "allocate", lambda self, instance, size: allocate(self, 0, size))


def the_batch_can_not_be_set(patch: Patch) -> None:
    patch.setattr(driver, "_set", lambda *_: None)


def one_runtime_for_all(patch: Patch) -> None:
    patch.setattr(service, "find_runtime", lambda _: next(iter(RUNTIMES.values())))


FAULTS: dict[Callable[[Patch], None], str] = {
    memory_of_loadables_not_freed: "loading_again_and_again",
    memory_of_runtimes_not_freed: "memory_comes_back",
    bindings_of_the_earlier_load: "bindings_end_with_their_network",
    a_load_replaces_the_network: "one_network_at_a_time",
    second_output_dropped: "batches_of_every_size",
    inputs_swapped: "batches_of_every_size",
    earlier_inputs: "inputs_are_read_by_each_submit",
    one_sample_of_a_batch: "batches_of_every_size",
    outputs_written_beyond_the_batch: "batches_of_every_size",
    limit_of_a_heap_ignored: "heaps_have_limits",
    sizes_unchecked: "memory_that_is_too_small",
    overlap_unchecked: "one_memory_for_two_tensors",
    memory_of_all_runtimes: "handles_of_nothing",
    handles_outlive_what_they_are_of: "sessions_and_devices",
    memory_that_is_bound_is_freed: "memory_is_freed_once",
    damaged_files_taken: "damaged_loadables",
    the_instance_ignored: "devices_that_are_not_there",
    the_batch_can_not_be_set: "the_batch_is_that_of_all_tensors",
    one_runtime_for_all: "two_runtimes",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_fails_a_case(fault: Callable[[Patch], None], bench: NvdlaBench, monkeypatch: Patch) -> None:
    with monkeypatch.context() as patch:
        fault(patch)
        verdict, detail = run_case(CASES[f"nvdla.{FAULTS[fault]}"], bench)
    assert verdict == "failed", detail
    assert detail

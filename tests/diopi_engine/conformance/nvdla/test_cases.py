"""The reference runtime passes the cases, and a case detects each kind of injected defect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sampling import sampled

from diopi_engine import Engine
from diopi_engine.cli import main
from diopi_engine.conformance.nvdla import networks
from diopi_engine.conformance.nvdla.all_cases import CASES
from diopi_engine.conformance.nvdla.bench import NvdlaBench
from diopi_engine.conformance.nvdla.client import CREATE, DESTROY, NvdlaClient, RuntimeClient
from diopi_engine.conformance.worker import run_case
from diopi_engine.proto import headers
from diopi_engine.proto.nvdla import FACTORIES, METHODS, PORTABILITY, DataFormat, DataType
from diopi_engine.runtime.execution import CoreLane
from diopi_engine.runtime.handles import Handles
from diopi_engine.runtime.nvdla import driver, kernel, service
from diopi_engine.runtime.nvdla.driver import RUNTIMES, LoadedNetwork, NetworkRuntime
from diopi_engine.runtime.nvdla.memory import HeapSpace, find_heap
from diopi_engine.runtime.nvdla.program import Program
from diopi_engine.runtime.nvdla.tensors import tensor_fields
from diopi_engine.sizes import sample_bytes

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the loadables of all test networks into a new folder and return it."""
    folder = tmp_path_factory.mktemp("loadables")
    networks.compile_loadables(folder)
    assert {path.name for path in folder.iterdir()} == set(networks.NAMES)
    return folder


@pytest.fixture
def bench(nvdla_library: Path, folder: Path) -> Iterator[NvdlaBench]:
    """Yield a bench; remove what a failed case has left."""
    yield NvdlaBench(NvdlaClient(nvdla_library), folder)
    RUNTIMES.clear()
    kernel.HANDLES._objects.clear()
    find_heap.cache_clear()


@pytest.mark.slow
def test_every_function_of_the_header_is_called_by_a_case(bench: NvdlaBench, monkeypatch: Patch) -> None:
    header = (headers.INCLUDE_DIR / "nvdla.h").read_text()
    declaration = r"^NVDLA_EXPORT (?:NVDLA_DOCUMENT_ABI )?[\w*]+ (\w+)\(|^    virtual \w+ (\w+)\(.*= 0;"
    functions = {*re.findall(declaration, header, re.MULTILINE)}
    names = {first or second for first, second in functions}
    assert names == {function.name for function in (*PORTABILITY, *METHODS, *FACTORIES)}
    called: set[str] = set()
    for client in (NvdlaClient, RuntimeClient):

        def record(self: Any, name: str, *arguments: Any, invoke: Any = client.invoke) -> Any:
            called.add({CREATE: "createRuntime", DESTROY: "destroyRuntime"}.get(name, name))
            return invoke(self, name, *arguments)

        monkeypatch.setattr(client, "invoke", record)
    for name in reversed([name for name in CASES if name != SPLIT]):
        if names <= called:
            break
        run_case(CASES[name], bench)
    assert names <= called, f"no case calls {names - called}"


SPLIT = "nvdla.split_weights_are_correct"
"""A case that needs a process in which JAX has not started with the devices of this one."""


def test_split_weights_are_correct(nvdla_library: Path) -> None:
    done = CliRunner().invoke(main, ["check", str(nvdla_library), "-k", SPLIT])
    assert done.output.splitlines() == [f"passed    {SPLIT}", "1 passed, 0 not_run"]


@pytest.mark.parametrize("name", sampled([name for name in CASES if name != SPLIT], 5, slow=10))
def test_the_reference_passes(name: str, bench: NvdlaBench) -> None:
    assert run_case(CASES[name], bench) == ("passed", "")
    assert (RUNTIMES, kernel.HANDLES._objects) == ({}, {})


def memory_of_loadables_not_freed(patch: Patch) -> None:
    """Make a runtime keep the memory of a network that is unloaded."""
    patch.setattr(NetworkRuntime, "unload", lambda self: setattr(self, "_loaded", None))


def memory_of_runtimes_not_freed(patch: Patch) -> None:
    """Make the library keep the memory of a runtime that is destroyed."""
    patch.setattr(NetworkRuntime, "close", lambda self: None)


def bindings_of_the_earlier_load(patch: Patch) -> None:
    """Make a network that is loaded again keep the bindings of its earlier load."""
    bound: dict[Any, Any] = {}
    patch.setattr(driver, "LoadedNetwork", lambda **fields: LoadedNetwork(**fields, bound=bound))


def a_load_replaces_the_network(patch: Patch) -> None:
    """Make a second load replace the network instead of failing."""
    load = NetworkRuntime.load

    def replacing(self: Any, *args: Any) -> None:
        self._loaded = None
        load(self, *args)

    patch.setattr(NetworkRuntime, "load", replacing)


def run_with(patch: Patch, change: Callable[[Any, int, list[Any]], tuple[int, list[Any]]]) -> None:
    """Let programs run with the batch size and the memories that `change` returns."""
    run = Program.run
    patch.setattr(Program, "run", lambda self, batch, memories: run(self, *change(self, batch, memories)))


def second_output_dropped(patch: Patch) -> None:
    """Make networks compute their last output in a copy that the caller does not see."""
    run_with(patch, lambda _, batch, memories: (batch, [*memories[:-1], memories[-1].copy()]))


def inputs_swapped(patch: Patch) -> None:
    """Make networks read their two inputs in the wrong order."""
    run_with(patch, lambda _, batch, memories: (batch, [memories[1], memories[0], *memories[2:]]))


def earlier_inputs(patch: Patch) -> None:
    """Make networks compute with the inputs of their first execution."""
    cache: dict[Any, list[Any]] = {}

    def first(program: Any, batch: int, memories: list[Any]) -> tuple[int, list[Any]]:
        inputs = cache.setdefault((program, batch), [memory.copy() for memory in memories[:2]])
        return batch, [*inputs, *memories[2:]]

    run_with(patch, first)


def one_sample_of_a_batch(patch: Patch) -> None:
    """Make networks compute only the first sample of a batch."""
    run_with(patch, lambda _, batch, memories: (1, memories))


def outputs_written_beyond_the_batch(patch: Patch) -> None:
    """Make networks write behind the last sample of the batch."""
    run = Program.run

    def padded(self: Any, batch: int, memories: list[Any]) -> None:
        run(self, batch, memories)
        memories[-1].view(np.float32)[batch * networks.INPUTS] = 0

    patch.setattr(Program, "run", padded)


def limit_of_a_heap_ignored(patch: Patch) -> None:
    """Make allocations ignore the limit of the heap."""
    patch.setattr(HeapSpace, "limit", property(lambda self: 1 << 50, lambda self, _: None), raising=False)


def sizes_unchecked(patch: Patch) -> None:
    """Make the driver accept memory of the wrong size."""
    patch.setattr(driver, "_check_size", lambda *_: None)


def overlap_unchecked(patch: Patch) -> None:
    """Make the kernel run tasks without validating batch, sizes and overlap."""
    patch.setattr(kernel, "_check_task", lambda *_: None)


def memory_of_all_runtimes(patch: Patch) -> None:
    """Make a runtime accept memory that belongs to another runtime."""

    def anywhere(self: Any, handle: Any) -> Any:
        return next(
            memory for runtime in RUNTIMES.values() for memory in runtime.memories.values() if memory.handle == handle
        )

    patch.setattr(NetworkRuntime, "find_memory", anywhere)


def handles_outlive_what_they_are_of(patch: Patch) -> None:
    """Make handles of destroyed objects stay valid."""
    patch.setattr(Handles, "remove", lambda self, gone: None)


def memory_that_is_bound_is_freed(patch: Patch) -> None:
    """Make the runtime free memory that is still bound to a network."""
    patch.setattr(NetworkRuntime, "bound", {})


def damaged_files_taken(patch: Patch) -> None:
    """Make the driver report damaged files with an error that does not name the damage."""
    read_engine = driver.read_engine

    def careless(data: bytes) -> Any:
        try:
            return read_engine(data)
        except Exception as error:
            raise ValueError("who knows") from error

    patch.setattr(driver, "read_engine", careless)


def the_instance_ignored(patch: Patch) -> None:
    """Make allocations use instance 0 instead of the requested instance."""
    allocate = NetworkRuntime.allocate
    patch.setattr(NetworkRuntime, "allocate", lambda self, instance, size: allocate(self, 0, size))


def the_batch_can_not_be_set(patch: Patch) -> None:
    """Make the driver ignore a new description of a tensor."""
    patch.setattr(driver, "_set_description", lambda *_: None)


def one_runtime_for_all(patch: Patch) -> None:
    """Make every handle refer to the runtime that was created first."""
    patch.setattr(service, "find_runtime", lambda _: next(iter(RUNTIMES.values())))


def outputs_of_one_shape_swapped(patch: Patch) -> None:
    """Make networks write two outputs that have one shape to each other's memory."""

    def swap(program: Any, batch: int, memories: list[Any]) -> tuple[int, list[Any]]:
        first, second = program.manifest.outputs[:2]
        return batch, [*memories[:-2], *memories[:-3:-1]] if first.shape == second.shape else memories

    run_with(patch, swap)


def weights_of_an_earlier_network(patch: Patch) -> None:
    """Make a network use the weights of the first one that had its name."""
    first: dict[str, Any] = {}
    make = CoreLane.__init__

    def cached(self: Any, engine: Engine, cores: Any) -> None:
        weights = first.setdefault(engine.manifest.control.name, engine.weights)
        make(self, Engine(engine.manifest, engine.network, weights), cores)

    patch.setattr(CoreLane, "__init__", cached)


def int8_read_as_unsigned(patch: Patch) -> None:
    """Make networks compute int8 inputs as if they were unsigned, in the int32 outputs."""
    run = Program.run

    def unsigned(self: Any, batch: int, memories: list[Any]) -> None:
        run(self, batch, memories)
        if len(memories) == 7:
            size = batch * 5
            memories[6][: size * 4].view(np.int32)[:] = memories[1][:size].astype(np.int32) * -2

    patch.setattr(Program, "run", unsigned)


def change_descriptions(patch: Patch, **changes: Any) -> None:
    """Make the driver describe all tensors with other fields."""
    patch.setattr(driver, "tensor_fields", lambda *arguments: {**tensor_fields(*arguments), **changes})


def types_reported_as_float(patch: Patch) -> None:
    """Make the driver report another element type."""
    change_descriptions(patch, dataType=DataType.FLOAT.value)


def formats_reported_as_linear(patch: Patch) -> None:
    """Make the driver report no format."""
    change_descriptions(patch, dataFormat=DataFormat.LINEAR.value)


def patch_reported_as_the_largest_batch(patch: Patch) -> None:
    """Make the driver report the patch instead of the largest batch."""
    change_descriptions(patch, maxBatch=networks.PATCH)


def sizes_of_one_sample_reported(patch: Patch) -> None:
    """Make the driver report the bytes of one sample instead of those of the batch."""

    def describe(binding: Any, batch: int, max_batch: int) -> dict[str, Any]:
        return {**tensor_fields(binding, batch, max_batch), "bufferSize": sample_bytes(binding)}

    patch.setattr(driver, "tensor_fields", describe)


def memory_of_networks_kept(patch: Patch) -> None:
    """Make each network leave 64 MiB of memory."""
    memories: list[Any] = []
    make = CoreLane.__init__

    def leaking(self: Any, engine: Engine, cores: Any) -> None:
        make(self, engine, cores)
        memories.append(np.ones(64 << 20, np.uint8))

    patch.setattr(CoreLane, "__init__", leaking)


def second_device_wrong(patch: Patch) -> None:
    """Make the second device compute the outputs in a copy that the caller does not see."""
    make, run, affected = Program.__init__, Program.run, set[Any]()

    def note_device(self: Any, data: bytes, device: Any) -> None:
        make(self, data, device)
        if device.number == 1:
            affected.add(self)

    def misplaced(self: Any, batch: int, memories: list[Any]) -> None:
        run(self, batch, [memory.copy() for memory in memories] if self in affected else memories)

    patch.setattr(Program, "__init__", note_device)
    patch.setattr(Program, "run", misplaced)


def one_wrong_execution_in_a_hundred(patch: Patch) -> None:
    """Make every hundredth execution change one element of the results."""
    run, numbers = Program.run, count(1)

    def flaky(self: Any, batch: int, memories: list[Any]) -> None:
        run(self, batch, memories)
        if next(numbers) % 100 == 0:
            memories[-1].view(np.float32)[0] += 1

    patch.setattr(Program, "run", flaky)


def second_processes_fail(patch: Patch) -> None:
    """Make all calls of further processes fail."""
    patch.setenv("DIOPI_ENGINE_DRAM", "none")


FAULTS: dict[Callable[[Patch], None], str] = {
    memory_of_loadables_not_freed: "repeated_loading_frees_all_memory",
    memory_of_runtimes_not_freed: "unloading_and_destroying_free_memory",
    bindings_of_the_earlier_load: "unloading_a_network_removes_its_bindings",
    a_load_replaces_the_network: "loading_a_second_network_is_rejected",
    second_output_dropped: "batches_of_every_size_are_correct",
    inputs_swapped: "batches_of_every_size_are_correct",
    earlier_inputs: "each_submit_reads_the_inputs_again",
    one_sample_of_a_batch: "batches_of_every_size_are_correct",
    outputs_written_beyond_the_batch: "batches_of_every_size_are_correct",
    limit_of_a_heap_ignored: "heaps_have_limits",
    sizes_unchecked: "memory_that_is_too_small_is_rejected",
    overlap_unchecked: "overlapping_outputs_are_rejected",
    memory_of_all_runtimes: "unknown_memory_handles_are_rejected",
    handles_outlive_what_they_are_of: "ended_sessions_and_unknown_devices_are_rejected",
    memory_that_is_bound_is_freed: "freeing_memory_twice_is_rejected",
    damaged_files_taken: "damaged_loadables_are_rejected",
    the_instance_ignored: "unknown_devices_are_rejected",
    the_batch_can_not_be_set: "the_batch_size_applies_to_all_tensors",
    one_runtime_for_all: "two_runtimes_work_alternately",
    outputs_of_one_shape_swapped: "several_tensors_of_one_shape_are_not_confused",
    weights_of_an_earlier_network: "networks_of_one_name_have_separate_weights",
    int8_read_as_unsigned: "half_and_integer_types_are_correct",
    types_reported_as_float: "every_field_of_a_tensor_is_reported",
    formats_reported_as_linear: "every_field_of_a_tensor_is_reported",
    patch_reported_as_the_largest_batch: "every_field_of_a_tensor_is_reported",
    sizes_of_one_sample_reported: "every_field_of_a_tensor_is_reported",
    memory_of_networks_kept: "destroyed_runtimes_free_the_memory_of_the_process",
    second_device_wrong: "two_devices_compute_alternately",
    one_wrong_execution_in_a_hundred: "hundreds_of_submissions_are_correct",
    second_processes_fail: "two_processes_run_networks",
}


@pytest.mark.parametrize("fault", sampled(FAULTS, 4, slow=6), ids=lambda fault: fault.__name__)
def test_a_fault_fails_a_case(fault: Callable[[Patch], None], bench: NvdlaBench, monkeypatch: Patch) -> None:
    with monkeypatch.context() as patch:
        fault(patch)
        verdict, detail = run_case(CASES[f"nvdla.{FAULTS[fault]}"], bench)
    assert verdict == "failed", detail
    assert detail

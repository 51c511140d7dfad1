"""The reference runtime passes the cases, and a case detects each kind of injected defect."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from c_programs import environment
from sampling import sampled

from diopi_engine import Engine
from diopi_engine.conformance import networks
from diopi_engine.conformance.all_cases import CASES
from diopi_engine.conformance.bench import EngineBench, NotConformingError, check_array, expect_failure
from diopi_engine.conformance.client import EngineClient
from diopi_engine.conformance.worker import run_case
from diopi_engine.proto import headers
from diopi_engine.proto.hgrt import FUNCTIONS, CoreAllocPolicy, Result
from diopi_engine.runtime import bindings, calls, service
from diopi_engine.runtime.allocation import Allocation
from diopi_engine.runtime.cores import Cores
from diopi_engine.runtime.execution import CoreLane, Execution
from diopi_engine.runtime.handles import Handles
from diopi_engine.runtime.objects import RuntimeTensor
from diopi_engine.sizes import numpy_type, sample_bytes

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the engines of all test networks into a new folder and return it."""
    folder = tmp_path_factory.mktemp("engines")
    networks.compile_engines(folder)
    assert {path.name for path in folder.iterdir()} == set(networks.NAMES)
    return folder


NEW_PROCESS_CASES = ("split_weights_are_correct",)
"""Cases that need a process in which JAX has not started with the devices of this one."""


@pytest.mark.parametrize("name", sampled([name for name in CASES if name not in NEW_PROCESS_CASES], 5, slow=10))
def test_the_reference_passes(name: str, bench: EngineBench) -> None:
    assert run_case(CASES[name], bench) == ("passed", "")


SPLIT_CASE = """
import sys
from pathlib import Path
from diopi_engine.conformance.all_cases import CASES
from diopi_engine.conformance.bench import EngineBench
from diopi_engine.conformance.client import EngineClient
from diopi_engine.conformance.worker import run_case
from diopi_engine.runtime.execution import CoreLane
if sys.argv[3] == "faulty":  # the second core has no weights
    make = CoreLane.__init__
    def incomplete(self, engine, cores):
        make(self, engine, cores)
        self._weights = [array.at[: array.shape[0] // 2].set(0) for array in self._weights]
    CoreLane.__init__ = incomplete
bench = EngineBench(EngineClient(Path(sys.argv[1])), Path(sys.argv[2]))
print(run_case(CASES["split_weights_are_correct"], bench)[0])
"""


@pytest.mark.parametrize(("kind", "verdict"), sampled([("correct", "passed"), ("faulty", "failed")], 1))
def test_split_weights_are_checked(kind: str, verdict: str, library: Path, folder: Path, locks: Path) -> None:
    command = [sys.executable, "-c", SPLIT_CASE, str(library), str(folder), kind]
    done = subprocess.run(command, env=environment(locks), capture_output=True, text=True)
    assert (done.stdout.split(), done.returncode) == ([verdict], 0), done.stderr


class RecordingClient(EngineClient):
    """A client that records the names of the functions that it calls."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.called: set[str] = set()

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function and record its name."""
        self.called.add(name)
        super().call(name, *arguments)

    def last_error(self) -> str:
        """Return the reason of the latest failure, and record the function that returns it."""
        self.called.add("hgGetLastErrorString")
        return super().last_error()


@pytest.mark.slow
def test_every_function_of_the_header_is_called_by_a_case(bench: EngineBench) -> None:
    header = (headers.INCLUDE_DIR / "hgrt.h").read_text()
    functions = {*re.findall(r"^HG_EXPORT hgResult (hg\w+)\(", header, re.MULTILINE)}
    assert functions == {function.name for function in FUNCTIONS}
    client = RecordingClient(bench.client.path)
    for name in reversed([name for name in CASES if name not in NEW_PROCESS_CASES]):
        if functions <= client.called:
            break
        run_case(CASES[name], EngineBench(client, bench.folder))
    assert functions <= client.called, f"no case calls {functions - client.called}"


def cores_not_released(patch: Patch) -> None:
    """Make contexts keep their cores after they are destroyed."""
    patch.setattr(Allocation, "release", lambda self: None)


def results_of_the_previous_batch(patch: Patch) -> None:
    """Make an execution return the results of the previous batch of the same size."""
    previous: dict[Any, Any] = {}
    execute = Execution.execute

    def stale(self: Any, batch: int, inputs: Any, outputs: Any) -> None:
        execute(self, batch, inputs, outputs)
        before = previous.get((self, batch))
        previous[self, batch] = [array.copy() for array in outputs]
        for array, old in zip(outputs, before or outputs, strict=True):
            np.copyto(array, old)

    patch.setattr(Execution, "execute", stale)


def last_part_dropped(patch: Patch) -> None:
    """Make executions omit the last part of a batch if it is smaller than the other parts."""
    parts = Execution._split_batch

    def whole(self: Any, batch: int) -> list[slice]:
        result = parts(self, batch)
        return [part for part in result if part.stop - part.start == result[0].stop - result[0].start]

    patch.setattr(Execution, "_split_batch", whole)


def weights_of_another_engine(patch: Patch) -> None:
    """Make every engine of a group use the weights of the first one."""
    first: dict[str, Any] = {}
    make = CoreLane.__init__

    def swapped(self: Any, engine: Engine, devices: Any) -> None:
        weights = first.setdefault(engine.manifest.group, engine.weights)
        make(self, Engine(engine.manifest, engine.network, weights), devices)

    patch.setattr(CoreLane, "__init__", swapped)


def mask_ignored(patch: Patch) -> None:
    """Make the allocation ignore the mask of cores and the policy."""
    allocate = calls.allocate
    patch.setattr(calls, "allocate", lambda *args: allocate(*args[:3], CoreAllocPolicy.MINIMUM, 0))


def overlap_unchecked(patch: Patch) -> None:
    """Make the runtime accept inputs and outputs that overlap."""
    patch.setattr(bindings, "_check_overlap", lambda *_: None)


def handles_outlive_their_objects(patch: Patch) -> None:
    """Make handles of destroyed objects stay valid."""
    patch.setattr(Handles, "remove", lambda self, gone: None)


def damaged_files_taken(patch: Patch) -> None:
    """Make the runtime report damaged files with an error that does not name the damage."""
    from_bytes = Engine.from_bytes

    def careless(data: bytes) -> Engine:
        try:
            return from_bytes(data)
        except Exception as error:
            raise ValueError("who knows") from error

    patch.setattr(Engine, "from_bytes", careless)


def one_current_device_for_all(patch: Patch) -> None:
    """Make all threads share one current device."""
    patch.setattr(calls, "_thread", SimpleNamespace(device=0))


def taken_cores_count_as_free(patch: Patch) -> None:
    """Make the runtime allocate cores that are in use."""
    patch.setattr(Cores, "free", property(lambda self: (1 << self.count) - 1))


def outputs_written_beyond_the_batch(patch: Patch) -> None:
    """Make executions write behind the last sample of the batch."""
    execute = Execution.execute

    def padded(self: Any, batch: int, inputs: Any, outputs: Any) -> None:
        execute(self, batch, inputs, outputs)
        for array in outputs:
            np.lib.stride_tricks.as_strided(array, (batch + 1, *array.shape[1:]), array.strides)[batch] = 0

    patch.setattr(Execution, "execute", padded)


def inputs_overwritten(patch: Patch) -> None:
    """Make executions write to their first input."""
    execute = Execution.execute

    def careless(self: Any, batch: int, inputs: Any, outputs: Any) -> None:
        execute(self, batch, inputs, outputs)
        np.lib.stride_tricks.as_strided(inputs[0], (1,), writeable=True)[0] += 1

    patch.setattr(Execution, "execute", careless)


def outputs_of_one_shape_swapped(patch: Patch) -> None:
    """Make executions write two outputs that have one shape to each other's memory."""
    execute = Execution.execute

    def swapped(self: Any, batch: int, inputs: Any, outputs: Any) -> None:
        equal = len(outputs) == 2 and outputs[0].shape == outputs[1].shape
        execute(self, batch, inputs, outputs[::-1] if equal else outputs)

    patch.setattr(Execution, "execute", swapped)


def weights_of_an_earlier_engine(patch: Patch) -> None:
    """Make an engine use the weights of the first engine that had its name."""
    first: dict[str, Any] = {}
    make = CoreLane.__init__

    def cached(self: Any, engine: Engine, devices: Any) -> None:
        weights = first.setdefault(engine.manifest.control.name, engine.weights)
        make(self, Engine(engine.manifest, engine.network, weights), devices)

    patch.setattr(CoreLane, "__init__", cached)


def int8_read_as_unsigned(patch: Patch) -> None:
    """Make executions compute int8 inputs as if they were unsigned, in the int32 outputs."""
    execute = Execution.execute

    def unsigned(self: Any, batch: int, inputs: Any, outputs: Any) -> None:
        execute(self, batch, inputs, outputs)
        if len(outputs) == 4:
            np.copyto(outputs[3], inputs[1].view(np.uint8).astype(np.int32) * -2)

    patch.setattr(Execution, "execute", unsigned)


def half_rounded_to_bfloat16(patch: Patch) -> None:
    """Make executions round float16 outputs to the precision of bfloat16."""
    execute = Execution.execute

    def rounded(self: Any, batch: int, inputs: Any, outputs: Any) -> None:
        execute(self, batch, inputs, outputs)
        for array in outputs:
            if array.dtype == np.float16:
                np.copyto(array, array.astype(numpy_type("bfloat16")).astype(np.float16))

    patch.setattr(Execution, "execute", rounded)


def texts_of_errors_empty(patch: Patch) -> None:
    """Make failed calls leave no text."""
    patch.setattr(service, "_store_reason", lambda fail, reason: fail(b""))


def texts_of_errors_without_reason(patch: Patch) -> None:
    """Make all failed calls leave the same text."""
    patch.setattr(service, "_store_reason", lambda fail, reason: fail(b"failed"))


def priorities_ignored(patch: Patch) -> None:
    """Make every process retain as many cores as are free."""
    patch.setattr(
        calls.cores, "retain", lambda cores, number, left, retain=calls.cores.retain: retain(cores, number, 0)
    )


def change_bindings(patch: Patch, **changes: Any) -> None:
    """Make the runtime describe all bindings with other properties."""
    find = calls._find_binding
    patch.setattr(calls, "_find_binding", lambda engine, index: replace(find(engine, index), **changes))


def float16_reported_as_float32(patch: Patch) -> None:
    """Make the runtime report another element type."""
    change_bindings(patch, dtype="float32")


def layouts_reported_as_linear(patch: Patch) -> None:
    """Make the runtime report no layout."""
    change_bindings(patch, layout="LINEAR")


def sizes_reported_in_elements(patch: Patch) -> None:
    """Make the runtime report the size of a sample as a number of elements."""
    patch.setattr(calls, "sample_bytes", lambda binding: sample_bytes(replace(binding, dtype="int8")))


def dimensions_reported_reversed(patch: Patch) -> None:
    """Make the runtime report the sizes of samples in the wrong order."""
    fields = calls._dims_fields
    patch.setattr(calls, "_dims_fields", lambda sizes: fields([*sizes[:1], *sizes[:0:-1]]))


def patch_reported_as_the_largest_batch(patch: Patch) -> None:
    """Make the runtime report the patch instead of the largest batch."""
    patch.setitem(calls.CALLS, "hgEngineGetMaxBatchSize", lambda engine, flags: engine.engine.manifest.patch)


def flags_of_the_largest_batch_ignored(patch: Patch) -> None:
    """Make the runtime report the same largest batch for all cores."""
    patch.setitem(calls.CALLS, "hgEngineGetMaxBatchSize", lambda engine, flags: engine.engine.manifest.max_batch)


def size_of_the_host_descriptor_ignored(patch: Patch) -> None:
    """Make executions ignore the size in a descriptor of host memory."""
    binding_array = bindings._binding_array

    def careless(*arguments: Any) -> Any:
        *first, info = arguments
        return binding_array(*first, info and SimpleNamespace(location=info.location, size=0))

    patch.setattr(bindings, "_binding_array", careless)


def update_of_a_description_ignored(patch: Patch) -> None:
    """Make a tensor keep its first description."""
    describe: Any = RuntimeTensor.describe

    def keep_first(self: Any, *description: Any) -> None:
        if not self.described:
            describe(self, *description)

    patch.setattr(RuntimeTensor, "describe", keep_first)


def memory_of_engines_kept(patch: Patch) -> None:
    """Make each engine leave 64 MiB of memory."""
    memories: list[Any] = []
    make = CoreLane.__init__

    def leaking(self: Any, engine: Engine, devices: Any) -> None:
        make(self, engine, devices)
        memories.append(np.ones(64 << 20, np.uint8))

    patch.setattr(CoreLane, "__init__", leaking)


def second_device_wrong(patch: Patch) -> None:
    """Make the second device compute the outputs in a copy that the caller does not see."""
    map_arrays = bindings.map_arrays

    def misplaced(handles: Any, context: Any, *arguments: Any) -> Any:
        inputs, outputs = map_arrays(handles, context, *arguments)
        return inputs, [array.copy() for array in outputs] if context.device.number else outputs

    patch.setattr(calls, "map_arrays", misplaced)


def one_wrong_execution_in_a_hundred(patch: Patch) -> None:
    """Make every hundredth execution change one element of the results."""
    execute, numbers = Execution.execute, count(1)

    def flaky(self: Any, batch: int, inputs: Any, outputs: Any) -> None:
        execute(self, batch, inputs, outputs)
        if next(numbers) % 100 == 0:
            outputs[0].flat[-1] += 1

    patch.setattr(Execution, "execute", flaky)


def cores_of_other_processes_taken(patch: Patch) -> None:
    """Make the runtime take cores that another process has."""
    patch.setattr("diopi_engine.runtime.cores._list_locks", lambda first, end: set())
    patch.setattr(Cores, "_is_locked", lambda self, core: False)


def impossible_sizes_are_internal_errors(patch: Patch) -> None:
    """Make a tensor that does not fit in memory an internal error."""

    def fail(self: Any, size: int) -> Any:
        raise OSError("no memory")

    patch.setattr(RuntimeTensor, "_allocate_aligned", fail)


FAULTS: dict[Callable[[Patch], None], str] = {
    cores_not_released: "destroyed_contexts_release_their_cores",
    results_of_the_previous_batch: "consecutive_batches_are_correct",
    last_part_dropped: "batches_of_every_size_are_correct",
    weights_of_another_engine: "the_first_context_allocates_all_cores_of_a_group",
    mask_ignored: "a_mask_selects_the_cores",
    overlap_unchecked: "invalid_bindings_are_rejected",
    handles_outlive_their_objects: "handles_of_destroyed_objects_are_rejected",
    damaged_files_taken: "damaged_engines_are_rejected",
    one_current_device_for_all: "each_thread_has_a_current_device",
    taken_cores_count_as_free: "retained_cores_can_be_released",
    outputs_written_beyond_the_batch: "batches_of_every_size_are_correct",
    inputs_overwritten: "batches_of_every_size_are_correct",
    outputs_of_one_shape_swapped: "several_tensors_of_one_shape_are_not_confused",
    weights_of_an_earlier_engine: "engines_of_one_name_have_separate_weights",
    int8_read_as_unsigned: "half_and_integer_types_are_correct",
    half_rounded_to_bfloat16: "half_and_integer_types_are_correct",
    texts_of_errors_empty: "failed_calls_have_texts",
    texts_of_errors_without_reason: "failed_calls_have_texts",
    priorities_ignored: "priorities_leave_cores_free",
    float16_reported_as_float32: "every_property_of_a_binding_is_reported",
    layouts_reported_as_linear: "every_property_of_a_binding_is_reported",
    sizes_reported_in_elements: "every_property_of_a_binding_is_reported",
    dimensions_reported_reversed: "every_property_of_a_binding_is_reported",
    patch_reported_as_the_largest_batch: "the_largest_batch_is_reported_and_accepted",
    flags_of_the_largest_batch_ignored: "the_largest_batch_is_reported_and_accepted",
    size_of_the_host_descriptor_ignored: "the_size_of_a_host_descriptor_is_checked",
    update_of_a_description_ignored: "new_descriptions_of_tensors_apply",
    impossible_sizes_are_internal_errors: "tensors_of_impossible_sizes_are_rejected",
    memory_of_engines_kept: "destroyed_engines_free_their_memory",
    second_device_wrong: "every_device_computes_correctly",
    one_wrong_execution_in_a_hundred: "hundreds_of_executions_are_correct",
    cores_of_other_processes_taken: "two_processes_share_the_cores",
}

MESSAGES: dict[Callable[[Patch], None], str] = {
    outputs_written_beyond_the_batch: "the library wrote beyond the output",
    inputs_overwritten: "the library changed the input",
}
"""Complete messages of some defects."""


@pytest.mark.parametrize("fault", sampled(FAULTS, 4, slow=6), ids=lambda fault: fault.__name__)
def test_a_fault_fails_a_case(fault: Callable[[Patch], None], bench: EngineBench, monkeypatch: Patch) -> None:
    with monkeypatch.context() as patch:
        fault(patch)
        verdict, detail = run_case(CASES[FAULTS[fault]], bench)
    assert verdict == "failed", detail
    assert detail
    assert detail == MESSAGES.get(fault, detail)


def test_wrong_elements_are_counted_and_the_first_is_shown() -> None:
    found, expected = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
    found[0, 1] = found[1, 2] = 3
    message = r"^the output has 2 wrong elements out of 6; the first, at \(0, 1\), is 3\.0, expected 0\.0$"
    with pytest.raises(NotConformingError, match=message):
        check_array("the output", found, expected)


def test_a_call_that_should_fail_but_succeeds_is_reported() -> None:
    with (
        pytest.raises(NotConformingError, match=r"^device 9 succeeded, expected ERROR_INVALID_DEVICE or ERROR_IN_USE$"),
        expect_failure("device 9", Result.ERROR_INVALID_DEVICE, Result.ERROR_IN_USE),
    ):
        pass

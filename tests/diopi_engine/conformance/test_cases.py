"""The reference runtime passes the cases, and a case detects each kind of injected defect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from diopi_engine import Engine
from diopi_engine.conformance import networks
from diopi_engine.conformance.bench import EngineBench, NotConformingError, check_array, expect_failure
from diopi_engine.conformance.cases import CASES
from diopi_engine.conformance.worker import run_case
from diopi_engine.proto.hgrt import CoreAllocPolicy, Result
from diopi_engine.runtime import bindings, calls
from diopi_engine.runtime.allocation import Allocation
from diopi_engine.runtime.cores import Cores
from diopi_engine.runtime.execution import CoreLane, Execution
from diopi_engine.runtime.handles import Handles

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the engines of all test networks into a new folder and return it."""
    folder = tmp_path_factory.mktemp("engines")
    networks.compile_engines(folder)
    assert {path.name for path in folder.iterdir()} == set(networks.NAMES)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_the_reference_passes(name: str, bench: EngineBench) -> None:
    assert run_case(CASES[name], bench) == ("passed", "")


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

    def swapped(self: Any, engine: Engine, cores: Any) -> None:
        weights = first.setdefault(engine.manifest.group, engine.weights)
        make(self, Engine(engine.manifest, engine.network, weights), cores)

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
}

MESSAGES: dict[Callable[[Patch], None], str] = {
    outputs_written_beyond_the_batch: "the library wrote beyond the output",
    inputs_overwritten: "the library changed the input",
}
"""Complete messages of some defects."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
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

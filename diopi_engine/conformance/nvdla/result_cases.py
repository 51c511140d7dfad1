"""The cases of IRuntime about results: several tensors and types, devices, processes, endurance and memory."""

from __future__ import annotations

from typing import Any

from diopi_engine.conformance import tensor_networks
from diopi_engine.conformance.bench import NotApplicableError, check
from diopi_engine.conformance.client import FailedCallError
from diopi_engine.conformance.nvdla import networks
from diopi_engine.conformance.nvdla.bench import KINDS, BoundNetwork, BoundTensors, NvdlaBench, case, set_batch
from diopi_engine.conformance.nvdla.client import ffi
from diopi_engine.conformance.process_memory import check_memory_is_freed
from diopi_engine.conformance.processes import second_process
from diopi_engine.proto.nvdla import DataFormat, DataType, Error

SUBMISSIONS = 400
"""Number of submissions that must all be correct."""

_TYPES = {"float16": DataType.HALF, "int8": DataType.INT8, "int32": DataType.INT32}
"""The element types of the network `types`, by their names in NumPy."""


@case
def every_field_of_a_tensor_is_reported(bench: NvdlaBench) -> None:
    """Check all fields that describe tensors of several element types."""
    network = tensor_networks.NETWORKS["types"]
    with bench.loaded("types") as runtime:
        for size in (1, 5):
            set_batch(runtime, size)
            inputs = network.random_inputs(size)
            arrays = {"Input": inputs, "Output": network.expected_outputs(inputs)}
            names = {"Input": [name for name, *_ in network.inputs], "Output": [*network.outputs]}
            formats = {"Input": [layout for *_, layout in network.inputs], "Output": ["LINEAR"] * len(network.outputs)}
            for kind in KINDS:
                descriptions = [_fields(tensor) for tensor in runtime.tensor_descriptions(kind)]
                expected = [
                    {
                        "name": name,
                        "bufferSize": array.nbytes,
                        "dataType": _TYPES[str(array.dtype)].name,
                        "dataFormat": layout,
                        "dims": [*array.shape],
                        "maxBatch": tensor_networks.MAX_BATCH,
                    }
                    for name, array, layout in zip(names[kind], arrays[kind], formats[kind], strict=True)
                ]
                check(f"the description of the {kind} tensors for a batch of {size}", descriptions, expected)


def _fields(tensor: Any) -> dict[str, Any]:
    """Return the fields of an NvDlaTensor, with names for numbers."""
    kind, layout = DataType.find(tensor.dataType), DataFormat.find(tensor.dataFormat)
    return {
        "name": ffi.string(tensor.name).decode(errors="replace"),  # type: ignore[union-attr]  # chars are bytes
        "bufferSize": tensor.bufferSize,
        "dataType": kind.name if kind is not None else tensor.dataType,
        "dataFormat": layout.name if layout is not None else tensor.dataFormat,
        "dims": [*tensor.dims[0 : tensor.numDims]],
        "maxBatch": tensor.maxBatch,
    }


@case
def several_tensors_of_one_shape_are_not_confused(bench: NvdlaBench) -> None:
    """Check a network whose four tensors have the same shape."""
    with bench.loaded("twins") as runtime:
        bound = BoundTensors(runtime, "twins")
        for size in (1, tensor_networks.PATCH + 1, tensor_networks.MAX_BATCH):
            bound.check_batch(size)


@case
def half_and_integer_types_are_correct(bench: NvdlaBench) -> None:
    """Check a network with float16, int8 and int32 tensors."""
    with bench.loaded("types") as runtime:
        bound = BoundTensors(runtime, "types")
        for size in range(1, tensor_networks.MAX_BATCH + 1):
            bound.check_batch(size)


@case
def networks_of_one_name_have_separate_weights(bench: NvdlaBench) -> None:
    """Check that two networks of the same name use their own weights."""
    with bench.runtime() as runtime:
        for name in ("pair", "namesake", "pair"):
            runtime.load(bench.data(name))
            BoundNetwork(runtime, 6).check_batch(6, name)
            runtime.call("unload", 0)
    with bench.loaded() as runtime, bench.loaded("namesake") as second_runtime:
        first, second = BoundNetwork(runtime, 6), BoundNetwork(second_runtime, 6)
        for seed in range(2):
            first.check_batch(6, seed=seed)
            second.check_batch(6, "namesake", seed)


@case
def two_devices_compute_alternately(bench: NvdlaBench) -> None:
    """Check that networks on two devices do not affect each other."""
    with bench.loaded() as runtime:
        if runtime.invoke("getNumDevices") < 2:
            raise NotApplicableError("there is one device")
        with bench.loaded("other", 1) as second_runtime:
            first, second = BoundNetwork(runtime, 5), BoundNetwork(second_runtime, 5)
            for seed in range(3):
                first.check_batch(5, seed=seed)
                second.check_batch(5, "other", seed)


@case
def hundreds_of_submissions_are_correct(bench: NvdlaBench) -> None:
    """Check the results of hundreds of submissions."""
    with bench.loaded() as runtime:
        bound = BoundNetwork(runtime, networks.MAX_BATCH)
        for number in range(SUBMISSIONS):
            bound.check_batch(1 + number % networks.MAX_BATCH, seed=number)


@case
def destroyed_runtimes_free_the_memory_of_the_process(bench: NvdlaBench) -> None:
    """Check that the process does not grow if runtimes are created and destroyed."""

    def load_and_destroy() -> None:
        """Load a network, run a batch, and destroy the runtime."""
        with bench.loaded() as runtime:
            BoundNetwork(runtime, 3).check_batch(3)

    check_memory_is_freed("a runtime that was destroyed", load_and_destroy)


@case
def split_weights_are_correct(bench: NvdlaBench) -> None:
    """Check a network whose weights are split over two cores."""
    with bench.loaded("split") as runtime:
        bound = BoundNetwork(runtime, networks.MAX_BATCH)
        try:
            runtime.call("submit")
        except FailedCallError as error:
            if error.result is not Error.Error_NotSupported:
                raise
            raise NotApplicableError("the library does not split weights") from None
        for size in (1, networks.PATCH + 1, networks.MAX_BATCH):
            bound.check_batch(size, "split")


@case
def two_processes_run_networks(bench: NvdlaBench) -> None:
    """Check that two processes can run networks at the same time."""
    with bench.loaded() as runtime, second_process("nvdla.second_process", bench.client.path, bench.folder) as process:
        bound = BoundNetwork(runtime, 9)
        bound.check_batch(9)
        print("run", file=process.stdin, flush=True)
        for seed in range(10):
            bound.check_batch(9, seed=seed)
        process.wait()
        check("the status of the other process", process.returncode, 0)


@case
def messages_for_debugging_are_accepted(bench: NvdlaBench) -> None:
    """Check that NvDlaDebugPrintf accepts a format with arguments."""
    arguments = ffi.new("char[]", b"text"), ffi.cast("int", 7), ffi.cast("double", 0.5)
    bench.client.invoke("NvDlaDebugPrintf", ffi.new("char[]", b"%s, %d, %g\n"), *arguments)

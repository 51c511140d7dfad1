"""The cases of IRuntime about the order of calls, devices, tensors and the results of networks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from diopi_engine.conformance.bench import GUARD, check, expect_failure
from diopi_engine.conformance.nvdla import networks
from diopi_engine.conformance.nvdla.bench import KINDS, BoundNetwork, NvdlaBench, case, set_batch
from diopi_engine.conformance.nvdla.client import DESTROY, ffi
from diopi_engine.proto.nvdla import DataFormat, DataType, Error

BAD_PARAMETER, NOT_INITIALIZED, BUSY = Error.Error_BadParameter, Error.Error_NotInitialized, Error.Error_Busy
"""Errors for an invalid argument, a missing network or binding, and an object in use."""

NO_DEVICE, UNSUPPORTED = Error.Error_DeviceNotFound, Error.Error_NotSupported
"""Errors for a device that does not exist, and for a change that is not supported."""


@case
def devices_are_counted(bench: NvdlaBench) -> None:
    """Check that there is at least one device, and no more than the maximum."""
    with bench.runtime() as runtime:
        maximum, count = runtime.invoke("getMaxDevices"), runtime.invoke("getNumDevices")
        check("whether there is a device, and no more than are supported", 1 <= count <= maximum, True)


@case
def calls_without_a_loaded_network_are_rejected(bench: NvdlaBench) -> None:
    """Check that calls that need a loaded network fail if none is loaded."""
    with bench.runtime() as runtime:
        for kind in KINDS:
            with expect_failure(f"the number of {kind} tensors", NOT_INITIALIZED):
                runtime.get(f"getNum{kind}Tensors")
            with expect_failure(f"the description of an {kind}", NOT_INITIALIZED):
                runtime.get(f"get{kind}TensorDesc", 0)
        for name, arguments in {"submit": (), "unload": (0,)}.items():
            with expect_failure(name, NOT_INITIALIZED):
                runtime.call(name, *arguments)
        with expect_failure("allocating memory without a device", NOT_INITIALIZED):
            runtime.allocate(100)
    bench.client.invoke(DESTROY, ffi.NULL)  # which has no effect


@case
def null_pointers_are_rejected(bench: NvdlaBench) -> None:
    """Check that NULL as an output, description, handle or loadable is rejected."""
    with bench.loaded() as runtime:
        bound = BoundNetwork(runtime)
        for kind in KINDS:
            for call, arguments in {
                f"getNum{kind}Tensors": (ffi.NULL,),
                f"get{kind}TensorDesc": (0, ffi.NULL),
                f"set{kind}TensorDesc": (0, ffi.NULL),
                f"bind{kind}Tensor": (0, ffi.NULL),
            }.items():
                with expect_failure(f"{call} of NULL", BAD_PARAMETER):
                    runtime.call(call, *arguments)
        with expect_failure("a handle into NULL", BAD_PARAMETER):
            runtime.call("allocateSystemMemory", ffi.NULL, 100, ffi.new("void**"))
        with expect_failure("an address into NULL", BAD_PARAMETER):
            runtime.call("allocateSystemMemory", ffi.new("void**"), 100, ffi.NULL)
        runtime.call("unload", 0)
        with expect_failure("a loadable of NULL", BAD_PARAMETER):
            runtime.call("load", ffi.NULL, 0)
        runtime.load(bench.data())
        for kind in KINDS:
            for number, handle in enumerate(bound.handles[kind]):
                runtime.call(f"bind{kind}Tensor", number, handle)
        bound.check_batch()


@case
def unknown_devices_are_rejected(bench: NvdlaBench) -> None:
    """Check that no network can be loaded on a device that does not exist."""
    with bench.runtime() as runtime:
        for instance in (-1, runtime.invoke("getNumDevices")):
            with expect_failure(f"loading on device {instance}", NO_DEVICE):
                runtime.load(bench.data(), instance)
            with expect_failure("the number of tensors then", NOT_INITIALIZED):
                runtime.get("getNumInputTensors")
        runtime.load(bench.data())
        BoundNetwork(runtime).check_batch()


@case
def every_device_runs_a_network(bench: NvdlaBench) -> None:
    """Check the results of a network on every device."""
    with bench.runtime() as runtime:
        for instance in range(runtime.invoke("getNumDevices")):
            runtime.load(bench.data(), instance)
            with expect_failure("unloading another device", BAD_PARAMETER):
                runtime.call("unload", instance + 1)
            BoundNetwork(runtime, 3).check_batch(3)
            runtime.call("unload", instance)


@case
def loading_a_second_network_is_rejected(bench: NvdlaBench) -> None:
    """Check that a runtime holds only one network, and can load another network after unloading the first."""
    with bench.loaded() as runtime:
        bound = BoundNetwork(runtime)
        with expect_failure("a second network", BUSY):
            runtime.load(bench.data("other"))
        bound.check_batch()
        runtime.call("unload", 0)
        with expect_failure("unloading twice", NOT_INITIALIZED):
            runtime.call("unload", 0)
        runtime.load(bench.data("other"))
        BoundNetwork(runtime).check_batch(1, "other")


@case
def tensors_are_described(bench: NvdlaBench) -> None:
    """Check the names, types and sizes of the inputs and outputs."""
    with bench.loaded() as runtime:
        check(
            "the names of the inputs",
            [ffi.string(tensor.name) for tensor in runtime.tensor_descriptions("Input")],
            [b"x", b"s"],
        )
        check(
            "the names of the outputs",
            [ffi.string(tensor.name) for tensor in runtime.tensor_descriptions("Output")],
            [b"y", b"z"],
        )
        y = runtime.get("getOutputTensorDesc", 0)
        check("the bytes of y", y.bufferSize, networks.OUTPUTS * 4)
        check("type and format of y", (y.dataType, y.dataFormat), (DataType.FLOAT, DataFormat.LINEAR))
        check("the sizes of y", [*y.dims[0 : y.numDims]], [1, networks.OUTPUTS])
        check("the largest batch of y", y.maxBatch, networks.MAX_BATCH)
    with bench.loaded("fixed") as runtime:
        (x,) = runtime.tensor_descriptions("Input")
        check("type and format of x", (x.dataType, x.dataFormat), (DataType.INT32, DataFormat.NHWC))
        check("the sizes of x", [*x.dims[0 : x.numDims]], [1, 2, 2, 3])
        check("the largest batch of a network without a batch axis", x.maxBatch, 0)


@case
def unknown_tensors_are_rejected(bench: NvdlaBench) -> None:
    """Check that describing, setting and binding a tensor fail for numbers that do not exist."""
    with bench.loaded() as runtime:
        handle, _ = runtime.allocate(1000)
        tensor = ffi.new("NvDlaTensor*", runtime.get("getInputTensorDesc", 0))
        for kind in KINDS:
            for number in (-1, 2):
                with expect_failure(f"the description of {kind} {number} of 2", BAD_PARAMETER):
                    runtime.get(f"get{kind}TensorDesc", number)
                with expect_failure(f"setting {kind} {number} of 2", BAD_PARAMETER):
                    runtime.call(f"set{kind}TensorDesc", number, tensor)
                with expect_failure(f"binding {kind} {number} of 2", BAD_PARAMETER):
                    runtime.call(f"bind{kind}Tensor", number, handle)


@case
def the_batch_size_applies_to_all_tensors(bench: NvdlaBench) -> None:
    """Check that a batch size that is set for one tensor applies to all of them."""
    with bench.loaded() as runtime:
        for size, kind, number in ((5, "Input", 1), (networks.MAX_BATCH, "Output", 0), (1, "Input", 0)):
            set_batch(runtime, size, kind, number)
            tensors = [*runtime.tensor_descriptions("Input"), *runtime.tensor_descriptions("Output")]
            check("the batch of all tensors", [tensor.dims[0] for tensor in tensors], [size] * 4)
            widths = (networks.INPUTS, networks.INPUTS, networks.OUTPUTS, networks.INPUTS)
            check("their bytes", [tensor.bufferSize for tensor in tensors], [width * size * 4 for width in widths])


@case
def invalid_descriptions_are_rejected(bench: NvdlaBench) -> None:
    """Check that only the batch size of a tensor can be changed, and only to a valid size."""
    with bench.loaded() as runtime:
        for size in (0, -1, networks.MAX_BATCH + 1):
            with expect_failure(f"a batch of {size}", BAD_PARAMETER):
                set_batch(runtime, size)
        changes: dict[str, Any] = {"name": b"w", "dataType": 0, "dataFormat": 1, "numDims": 1, "dims": [1, 9]}
        for field, value in changes.items():
            tensor = ffi.new("NvDlaTensor*", runtime.get("getInputTensorDesc", 0))
            setattr(tensor, field, value)
            with expect_failure(f"another {field}", UNSUPPORTED):
                runtime.call("setInputTensorDesc", 0, tensor)
        check("the batch after that", runtime.get("getInputTensorDesc", 0).dims[0], 1)
    with (
        bench.loaded("fixed") as runtime,
        expect_failure("a batch size for a network without a batch axis", UNSUPPORTED),
    ):
        set_batch(runtime, 2)


@case
def damaged_loadables_are_rejected(bench: NvdlaBench) -> None:
    """Check that loadables with a flipped bit or missing bytes are rejected."""
    data, margin = bench.data(), bytes(1 << 16)
    with bench.runtime() as runtime:
        for bit in range(5, len(data) * 8, len(data) * 8 // 60):
            changed = bytearray(data)
            changed[bit // 8] ^= 1 << bit % 8
            with expect_failure(f"a loadable with bit {bit} flipped", Error.Error_InvalidFile, Error.Error_FileVersion):
                runtime.load(bytes(changed) + margin)
        for size in (0, 100, len(data) - 1):
            with expect_failure(f"{size} bytes of a loadable, then zeros", Error.Error_InvalidFile):
                runtime.load(data[:size] + margin)
        runtime.load(data + margin)


@case
def loadables_of_another_version_are_rejected(bench: NvdlaBench) -> None:
    """Check that a loadable that another version of the compiler created is rejected."""
    with bench.runtime() as runtime, expect_failure("a loadable of another compiler", Error.Error_FileVersion):
        runtime.load(bench.data("older"))


@case
def batches_of_every_size_are_correct(bench: NvdlaBench) -> None:
    """Check the results for every batch size from 1 to the maximum."""
    with bench.loaded() as runtime:
        bound = BoundNetwork(runtime, networks.MAX_BATCH)
        for size in range(1, networks.MAX_BATCH + 1):
            bound.check_batch(size)


@case
def each_submit_reads_the_inputs_again(bench: NvdlaBench) -> None:
    """Check that each submission uses the inputs that the memory contains at that time."""
    with bench.loaded() as runtime:
        bound = BoundNetwork(runtime, 5)
        for seed in range(4):
            bound.check_batch(5, seed=seed)


@case
def a_network_without_a_batch_is_correct(bench: NvdlaBench) -> None:
    """Check the results of a network whose sizes are fixed."""
    with bench.loaded("fixed") as runtime:
        bound = BoundNetwork(runtime)
        x, y = (bound.arrays[kind][0].view(np.int32) for kind in KINDS)
        x[:12] = np.arange(12)
        runtime.call("submit")
        check("the output", y[:12].tolist(), [*range(1, 13)])


@case
def unbound_tensors_are_rejected(bench: NvdlaBench) -> None:
    """Check that a network can't be submitted until all tensors are bound."""
    with bench.loaded() as runtime:
        handles = [runtime.allocate(100)[0] for _ in range(4)]
        order = [("Input", 0), ("Output", 1), ("Output", 0), ("Input", 1)]
        for handle, (kind, number) in zip(handles, order, strict=True):
            with expect_failure("submitting with tensors that are not bound", NOT_INITIALIZED):
                runtime.call("submit")
            runtime.call(f"bind{kind}Tensor", number, handle)
        runtime.call("submit")


@case
def unloading_a_network_removes_its_bindings(bench: NvdlaBench) -> None:
    """Check that the next network has no bindings."""
    with bench.loaded() as runtime:
        bound = BoundNetwork(runtime)
        bound.check_batch()
        runtime.call("unload", 0)
        runtime.load(bench.data("other"))
        with expect_failure("submitting with the bindings of another network", NOT_INITIALIZED):
            runtime.call("submit")
        for kind in KINDS:
            for number, handle in enumerate(bound.handles[kind]):
                runtime.call(f"bind{kind}Tensor", number, handle)
        bound.check_batch(1, "other")


@case
def a_tensor_can_be_bound_again(bench: NvdlaBench) -> None:
    """Check that only the memory that was bound last is written."""
    with bench.loaded() as runtime:
        first, second = BoundNetwork(runtime), BoundNetwork(runtime)
        second.check_batch()
        second.arrays["Output"][1][:] = GUARD
        runtime.call("bindOutputTensor", 1, first.handles["Output"][1])
        runtime.call("submit")
        check(
            "whether memory that is no longer bound is unchanged",
            bool((second.arrays["Output"][1] == GUARD).all()),
            True,
        )
        check("whether the new memory is written", bool((first.arrays["Output"][1][:-1] != 0).all()), True)


@case
def two_runtimes_work_alternately(bench: NvdlaBench) -> None:
    """Check that two runtimes do not affect each other's networks."""
    with bench.loaded() as runtime, bench.loaded("other") as other_runtime:
        first, second = BoundNetwork(runtime, 6), BoundNetwork(other_runtime, 6)
        for seed in range(2):
            first.check_batch(6, seed=seed)
            second.check_batch(3, "other", seed)
        runtime.call("unload", 0)
        second.check_batch(6, "other")


@case
def threads_can_use_separate_runtimes(bench: NvdlaBench) -> None:
    """Check the results of three threads that use a runtime each at the same time."""

    def run(name: str) -> None:
        with bench.loaded(name) as runtime:
            bound = BoundNetwork(runtime, 8)
            for size in (1, 8, 5):
                bound.check_batch(size, name)

    names = ("pair", "other", "namesake")
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(run, names))  # raises what a thread does

"""The cases of HanGuangRT about what a library reports: results, texts of errors, bindings, limits and tensors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from diopi_engine.conformance import networks, tensor_networks
from diopi_engine.conformance.bench import (
    GUARD,
    EngineBench,
    NotApplicableError,
    case,
    check,
    check_array,
    expect_failure,
    make_batch,
)
from diopi_engine.conformance.client import EngineClient, ffi, tensor_desc
from diopi_engine.proto.hgrt import (
    BatchSizeFlags,
    BindingAttribute,
    CoreAllocPolicy,
    DataType,
    DeviceAttribute,
    DevicePriority,
    ExecuteMode,
    Layout,
    MemFlags,
    Result,
)


@case
def every_result_has_a_name_and_a_description(bench: EngineBench) -> None:
    """Check that each result has its name and a description of its own."""
    names = [bench.client.text("hgGetResultName", result) for result in Result]
    check("the names of the results", names, [f"HG_{result.name}" for result in Result])
    descriptions = [bench.client.text("hgGetResultDescription", result) for result in Result]
    check("whether each result has another description", len({*descriptions, ""}), len(Result) + 1)


@case
def failed_calls_have_texts(bench: EngineBench) -> None:
    """Check that each failed call has its own text, which failed calls of other threads do not change."""

    def fail_and_read_text(name: str, *arguments: Any) -> str:
        """Make a call that fails and return the text of its error."""
        with expect_failure(name, *Result):
            bench.client.get(name, *arguments)
        return bench.client.last_error()

    failures: dict[str, tuple[Any, ...]] = {
        "an attribute of an unknown device": ("hgDeviceGetAttribute", 1 << 20, DeviceAttribute.CORE_COUNT),
        "retaining no cores": ("hgDeviceRetain", 0, 0, DevicePriority.P0),
        "an engine of zeros": ("hgEngineCreate", bytes(100), 100),
        "the size of an unknown tensor": ("hgTensorGetSize", ffi.cast("hgTensor", 8)),
    }
    texts = {subject: fail_and_read_text(*call) for subject, call in failures.items()}
    for subject, text in texts.items():
        check(f"whether the error of {subject} has a text", bool(text.strip()), True)
    check("the number of different texts", len({*texts.values()}), len(texts))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(fail_and_read_text, *next(iter(failures.values()))).result()
    check("the text of this thread's error after another thread's", bench.client.last_error(), [*texts.values()][-1])


@case
def every_property_of_a_binding_is_reported(bench: EngineBench) -> None:
    """Check all attributes of bindings of several element types."""
    network = tensor_networks.NETWORKS["types"]
    inputs = network.random_inputs(1)
    outputs = network.expected_outputs(inputs)
    layouts = [Layout[layout] for *_, layout in network.inputs] + [Layout.LINEAR] * len(outputs)
    names = [name for name, *_ in network.inputs] + [*network.outputs]
    with bench.engine("types") as engine:
        check("the number of bindings", bench.client.get("hgEngineGetNbBindings", engine), len(names))
        for index, (name, array, layout) in enumerate(zip(names, [*inputs, *outputs], layouts, strict=True)):
            expected = {
                "IS_INPUT": int(index < len(inputs)),
                "DATA_TYPE": DataType[str(array.dtype).upper()].value,
                "LAYOUT": layout.value,
                "NB_DIMS": array.ndim,
                "BATCH_DIM": 0,
                "SAMPLE_SIZE": array.nbytes,
            }
            check(f"the index of {name}", bench.client.get("hgEngineGetBindingIndex", engine, name.encode()), index)
            check(f"the name of binding {index}", bench.client.text("hgEngineGetBindingName", engine, index), name)
            for attribute, value in expected.items():
                reported = bench.client.get("hgEngineGetBindingAttribute", engine, index, BindingAttribute[attribute])
                check(f"{attribute} of {name}", reported, value)
            reported = bench.client.get("hgEngineGetBindingType", engine, index)
            check(f"the type of {name}", reported, expected["DATA_TYPE"])
            check(f"the layout of {name}", bench.client.get("hgEngineGetBindingLayout", engine, index), layout)
            dims = bench.client.get("hgEngineGetBindingDimensions", engine, index)
            check(f"the sizes of {name}", [*dims.d[0 : dims.nbDims]], [-1, *array.shape[1:]])


@case
def the_largest_batch_is_reported_and_accepted(bench: EngineBench) -> None:
    """Check that the reported maximum is correct: a batch of this size is accepted, and a larger one is rejected."""
    cores = bench.attribute(DeviceAttribute.CORE_COUNT)
    flags = BatchSizeFlags
    for policy, known, expected in (
        (CoreAllocPolicy.MINIMUM, flags.DEFAULT, networks.MAX_BATCH),
        (CoreAllocPolicy.MAXIMUM, flags.MAX_CORES, networks.MAX_BATCH * cores),
    ):
        with bench.engine() as engine, bench.context(engine, policy) as context:
            largest = bench.client.get("hgEngineGetMaxBatchSize", engine, known)
            check(f"the largest batch with {known.name}", largest, expected)
            bench.check_batch(context, largest)
            x, y = make_batch(largest + 1)
            with expect_failure("a larger batch", Result.ERROR_BATCH_SIZE):
                bench.client.execute(context, largest + 1, [x, y])
    with bench.engine() as engine:
        check("whether host tensors can be used", bench.client.get("hgEngineGetMaxBatchSize", engine, 1) >= 1, True)
        with expect_failure("unknown flags", Result.ERROR_INVALID_ARGUMENT):
            bench.client.get("hgEngineGetMaxBatchSize", engine, 1 << 20)


@case
def schemes_state_modes_and_memory(bench: EngineBench) -> None:
    """Check the mode, the cores and the memory that schemes state."""
    with bench.engine("first") as engine:
        scheme = bench.client.get("hgEngineGetExecutionScheme", engine)
        for number in range(2):
            control = bench.client.get("hgSchemeGetEngineControl", scheme, number)
            fields = (control.engineId, control.virtualDeviceId, control.executeMode, control.coresPerBatch)
            check(f"the control of engine {number}", fields, (number, 0, ExecuteMode.NORMAL, 1))
            required_bytes = networks.weight_matrix("first").nbytes
            local = bench.attribute(DeviceAttribute.LOCAL_MEMORY_SIZE)
            check("whether the memory is possible", required_bytes <= control.memoryConsumption <= local, True)
    with bench.engine("split") as engine:
        scheme = bench.client.get("hgEngineGetExecutionScheme", engine)
        control = bench.client.get("hgSchemeGetEngineControl", scheme, 0)
        reported = (control.executeMode, control.coresPerBatch, control.coreMask)
        check("mode and cores of split weights", reported, (ExecuteMode.WEIGHT_SPLIT, 2, 3))


@case
def priorities_leave_cores_free(bench: EngineBench) -> None:
    """Check that priority k leaves k quarters of a device's cores free."""
    count = bench.attribute(DeviceAttribute.CORE_COUNT)
    if count % 4:
        raise NotApplicableError(f"a quarter of {count} cores is not a whole number")
    for priority in DevicePriority:
        allowed = count - priority * count // 4
        with expect_failure(f"{allowed + 1} cores with {priority.name}", Result.ERROR_CORES_UNAVAILABLE):
            bench.client.get("hgDeviceRetain", 0, allowed + 1, priority)
        mask = bench.client.get("hgDeviceRetain", 0, allowed, priority)
        check(f"the number of cores that are retained with {priority.name}", mask.bit_count(), allowed)
        bench.client.call("hgDeviceRelease", 0, mask)


@case
def the_size_of_a_host_descriptor_is_checked(bench: EngineBench) -> None:
    """Check that a stated size that is too small, and an unknown location, are rejected."""
    x, y = make_batch(5)
    info: Any = ffi.new("hgHostTensorDesc*", (MemFlags.SYSTEM, x.nbytes - 1))
    with bench.engine() as engine, bench.context(engine) as context:
        with expect_failure(f"{info.size} bytes for an input of {x.nbytes}", Result.ERROR_BINDING):
            bench.client.execute(context, 5, [x, y], info)
        check("whether the output is unchanged", bool((y == GUARD).all()), True)
        for size in (x.nbytes, 0):
            info.size = size
            y[:] = GUARD
            bench.client.execute(context, 5, [x, y], info)
            check_array(f"the output with a size of {size}", y[:5], networks.expected_output("layer", x))
        info.location, info.size = 7, 0
        with expect_failure("an unknown location", Result.ERROR_INVALID_ARGUMENT):
            bench.client.execute(context, 5, [x, y], info)


@case
def new_descriptions_of_tensors_apply(bench: EngineBench) -> None:
    """Check that a tensor has the sizes and contents of its latest description."""
    client = bench.client
    tensor = client.get("hgTensorCreate", ffi.NULL, ffi.new("hgMemDesc*", (MemFlags.HOST, 256)), 0)
    for array in (
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.arange(50_000, dtype=np.float32),
        np.zeros(1, np.int8),
    ):
        client.call("hgTensorUpdateDesc", tensor, tensor_desc(array))
        described = client.get("hgTensorGetDesc", tensor)
        dims = [*described.dims.d[0 : described.dims.nbDims]]
        check("type and sizes", (described.type, dims), (DataType[str(array.dtype).upper()], [*array.shape]))
        check("the number of bytes", client.get("hgTensorGetSize", tensor), array.nbytes)
        check("whether they fit", client.get("hgTensorGetAlignedSize", tensor) >= array.nbytes, True)
        client.call("hgTensorData", tensor, ffi.from_buffer(array.data), array.nbytes)
        address = client.get("hgTensorMap", tensor)
        check("the remainder of the address and the alignment", int(ffi.cast("uintptr_t", address)) % 256, 0)
        check("whether the data arrive", bytes(ffi.buffer(address, array.nbytes)) == array.tobytes(), True)
        _check_mapped_tensor(client, tensor, array)
        client.call("hgTensorUnmap", tensor)
    client.call("hgTensorDestroy", tensor)


def _check_mapped_tensor(client: EngineClient, tensor: Any, array: Any) -> None:
    """Check that a mapped tensor can be neither described again nor destroyed."""
    with expect_failure("a description of a mapped tensor", Result.ERROR_IN_USE):
        client.call("hgTensorUpdateDesc", tensor, tensor_desc(array))
    with expect_failure("destroying a mapped tensor", Result.ERROR_IN_USE):
        client.call("hgTensorDestroy", tensor)


@case
def tensors_of_impossible_sizes_are_rejected(bench: EngineBench) -> None:
    """Check that a tensor of 2^62 bytes is rejected."""
    desc = ffi.new("hgTensorDesc*", {"type": DataType.FLOAT32, "dims": {"nbDims": 2, "d": [1 << 40, 1 << 20]}})
    memory = ffi.new("hgMemDesc*", (MemFlags.SYSTEM, 0))
    with expect_failure("a tensor of 2^62 bytes", Result.ERROR_OUT_OF_MEMORY):
        bench.client.get("hgTensorCreate", desc, memory, 0)

"""The cases of HanGuangRT: calls of a program and the results that a library must return.

Each case receives a bench with a library under test. The name of a case states what must be true; the case raises
`NotConformingError` otherwise.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from diopi_engine.conformance import networks
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
from diopi_engine.conformance.client import ffi
from diopi_engine.proto.hgrt import (
    VERSION,
    BindingAttribute,
    CoreAllocPolicy,
    DataType,
    DeviceAttribute,
    DevicePriority,
    MemFlags,
    Result,
)

AS_MASK, MAXIMUM, MINIMUM = CoreAllocPolicy.AS_CORE_MASK, CoreAllocPolicy.MAXIMUM, CoreAllocPolicy.MINIMUM
"""The policies by which a context allocates cores."""


@case
def the_version_and_a_device_are_reported(bench: EngineBench) -> None:
    """Check the version, and that device 0 has at least two cores and is current at first."""
    client = bench.client
    check("the version", client.get("hgRuntimeGetVersion"), VERSION)
    check("whether there is a device", client.get("hgDeviceGetCount") >= 1, True)
    check("whether device 0 has two cores", bench.attribute(DeviceAttribute.CORE_COUNT) >= 2, True)
    check("the current device at first", client.get("hgDeviceGetCurrent"), 0)
    check("the name of a result", client.text("hgGetResultName", Result.ERROR_VERSION), "HG_ERROR_VERSION")


@case
def unknown_devices_are_rejected(bench: EngineBench) -> None:
    """Check that selecting a device and reading its attributes fail for numbers of devices that do not exist."""
    for device in (-1, bench.client.get("hgDeviceGetCount")):
        with expect_failure(f"device {device}", Result.ERROR_INVALID_DEVICE):
            bench.client.call("hgDeviceSetCurrent", device)
        with expect_failure(f"an attribute of device {device}", Result.ERROR_INVALID_DEVICE):
            bench.attribute(DeviceAttribute.CORE_COUNT, device)


@case
def null_pointers_are_rejected(bench: EngineBench) -> None:
    """Check that NULL as an output or as an engine's bytes is rejected, and that no core is allocated."""
    with expect_failure("a count into NULL", Result.ERROR_INVALID_ARGUMENT):
        bench.client.call("hgDeviceGetCount", ffi.NULL)
    with expect_failure("an engine of NULL", Result.ERROR_INVALID_ARGUMENT):
        bench.client.get("hgEngineCreate", ffi.NULL, 100)
    with bench.engine() as engine, expect_failure("a context into NULL", Result.ERROR_INVALID_ARGUMENT):
        bench.client.call("hgEngineCreateExecutionContext", engine, ffi.NULL, MINIMUM, 0)
    check("the number of free cores", bench.free_cores, bench.attribute(DeviceAttribute.CORE_COUNT))


@case
def retained_cores_can_be_released(bench: EngineBench) -> None:
    """Check that retained cores are not free until they are released, and that only these can be released."""
    count = bench.attribute(DeviceAttribute.CORE_COUNT)
    mask = bench.client.get("hgDeviceRetain", 0, count - 1, DevicePriority.P0)
    check("the number of retained cores", mask.bit_count(), count - 1)
    check("the number of free cores", bench.free_cores, 1)
    with expect_failure("more cores than are free", Result.ERROR_CORES_UNAVAILABLE):
        bench.client.get("hgDeviceRetain", 0, 2, DevicePriority.P0)
    check("the cores that are retained", bench.attribute(DeviceAttribute.RETAINED_CORE_MASK), mask)
    with expect_failure("releasing a core that is not retained", Result.ERROR_INVALID_ARGUMENT):
        bench.client.call("hgDeviceRelease", 0, (1 << count) - 1)
    bench.client.call("hgDeviceRelease", 0, mask)
    check("the number of free cores", bench.free_cores, count)


@case
def retaining_zero_cores_is_rejected(bench: EngineBench) -> None:
    """Check that retaining 0 cores and releasing an empty mask are rejected."""
    with expect_failure("retaining 0 cores", Result.ERROR_INVALID_ARGUMENT):
        bench.client.get("hgDeviceRetain", 0, 0, DevicePriority.P0)
    with expect_failure("releasing an empty mask", Result.ERROR_INVALID_ARGUMENT):
        bench.client.call("hgDeviceRelease", 0, 0)


@case
def bindings_are_described(bench: EngineBench) -> None:
    """Check the number, names, sizes and types of an engine's bindings."""
    get = bench.client.get
    with bench.engine() as engine:
        check("the number of bindings", get("hgEngineGetNbBindings", engine), 2)
        check("the name of binding 0", bench.client.text("hgEngineGetBindingName", engine, 0), "x")
        check("the index of y", get("hgEngineGetBindingIndex", engine, b"y"), 1)
        dims = get("hgEngineGetBindingDimensions", engine, 1)
        check("the sizes of y", [*dims.d[0 : dims.nbDims]], [-1, networks.OUTPUTS])
        check("the type of y", get("hgEngineGetBindingType", engine, 1), DataType.FLOAT32)
        is_input = [get("hgEngineGetBindingAttribute", engine, n, BindingAttribute.IS_INPUT) for n in (0, 1)]
        check("which bindings are inputs", is_input, [1, 0])
        with expect_failure("binding 2 of 2", Result.ERROR_INVALID_ARGUMENT):
            bench.client.text("hgEngineGetBindingName", engine, 2)


@case
def the_scheme_is_described(bench: EngineBench) -> None:
    """Check the names and virtual cores of both engines of a group."""
    with bench.engine("second") as engine:
        scheme = bench.client.get("hgEngineGetExecutionScheme", engine)
        check("the engine's number", bench.client.get("hgEngineGetEngineID", engine), 1)
        check("the number of engines", bench.client.get("hgSchemeGetEngineCount", scheme), 2)
        controls = [bench.client.get("hgSchemeGetEngineControl", scheme, n) for n in (0, 1)]
        check("the names", [ffi.string(control.engineName) for control in controls], [b"first", b"second"])
        check("the virtual cores", [control.coreMask for control in controls], [1, 2])
        with expect_failure("engine 2 of 2", Result.ERROR_INVALID_ARGUMENT):
            bench.client.get("hgSchemeGetEngineControl", scheme, 2)


@case
def damaged_engines_are_rejected(bench: EngineBench) -> None:
    """Check that engines with a flipped bit or missing bytes are rejected."""
    data = bench.data("layer")
    for bit in range(5, len(data) * 8, len(data) * 8 // 40):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with expect_failure(f"an engine with bit {bit} flipped", Result.ERROR_INVALID_FILE, Result.ERROR_VERSION):
            bench.client.engine(bytes(changed))
    for size in (0, 100, len(data) - 1):
        with expect_failure(f"{size} bytes of an engine", Result.ERROR_INVALID_FILE):
            bench.client.engine(data[:size])


@case
def engines_of_another_version_are_rejected(bench: EngineBench) -> None:
    """Check that an engine that another version of the compiler created is rejected."""
    with expect_failure("an engine of another compiler", Result.ERROR_VERSION):
        bench.client.engine(bench.data("older"))


@case
def batches_of_every_size_are_correct(bench: EngineBench) -> None:
    """Check the results for every batch size from 1 to the maximum."""
    with bench.engine() as engine, bench.context(engine) as context:
        for size in range(1, networks.MAX_BATCH + 1):
            bench.check_batch(context, size)


@case
def batches_on_all_cores_are_correct(bench: EngineBench) -> None:
    """Check that a context with all cores computes small and large batches correctly."""
    with bench.engine() as engine, bench.context(engine, MAXIMUM) as context:
        check("the number of free cores", bench.free_cores, 0)
        for size in (1, networks.PATCH + 1, networks.MAX_BATCH * bench.attribute(DeviceAttribute.CORE_COUNT)):
            bench.check_batch(context, size)


@case
def consecutive_batches_are_correct(bench: EngineBench) -> None:
    """Check that each execution uses its own inputs."""
    with bench.engine() as engine, bench.context(engine) as context:
        for seed in range(4):
            bench.check_batch(context, 5, seed=seed)


@case
def invalid_batch_sizes_are_rejected(bench: EngineBench) -> None:
    """Check that batches of 0, −1 and more than the maximum are rejected without writing the output."""
    with bench.engine() as engine, bench.context(engine) as context:
        for size in (0, -1, networks.MAX_BATCH + 1):
            x, y = make_batch(networks.MAX_BATCH + 1)
            with expect_failure(f"a batch of {size}", Result.ERROR_BATCH_SIZE):
                bench.client.execute(context, size, [x, y])
            check("whether the output is unchanged", bool((y == GUARD).all()), True)


@case
def invalid_bindings_are_rejected(bench: EngineBench) -> None:
    """Check that missing and overlapping bindings are rejected without writing the output."""
    x, y = make_batch(3)
    with bench.engine() as engine, bench.context(engine) as context:
        invalid: dict[str, list[Any]] = {"no input": [ffi.NULL, y], "no output": [x, ffi.NULL], "one array": [y, y]}
        for subject, bindings in invalid.items():
            with expect_failure(f"bindings with {subject}", Result.ERROR_BINDING):
                bench.client.execute(context, 3, bindings)
        check("whether the output is unchanged", bool((y == GUARD).all()), True)
        bench.check_batch(context, 3)


@case
def tensors_can_be_bindings(bench: EngineBench) -> None:
    """Check an execution on tensors of the library, and that swapped and destroyed tensors are rejected."""
    client, info = bench.client, ffi.new("hgHostTensorDesc*", (MemFlags.HOST, 0))
    x, y = make_batch(6)
    with bench.engine() as engine, bench.context(engine) as context:
        tensors = [client.tensor(x), client.tensor(y)]
        client.execute(context, 6, tensors, info)
        ffi.memmove(ffi.cast("void*", y.ctypes.data), client.get("hgTensorMap", tensors[1]), y.nbytes)
        client.call("hgTensorUnmap", tensors[1])
        check_array("the output in a tensor", y[:6], networks.expected_output("layer", x))
        with expect_failure("bindings that are swapped", Result.ERROR_BINDING):
            client.execute(context, 6, tensors[::-1], info)
        for tensor in tensors:
            client.call("hgTensorDestroy", tensor)
        with expect_failure("destroyed tensors", Result.ERROR_INVALID_HANDLE):
            client.execute(context, 6, tensors, info)


@case
def a_second_context_of_an_engine_is_rejected(bench: EngineBench) -> None:
    """Check that an engine can have only one context, and can't be destroyed while it has one."""
    with bench.engine() as engine, bench.context(engine):
        free_cores = bench.free_cores
        with expect_failure("a second context", Result.ERROR_CONTEXT_EXISTS):
            bench.client.context(engine)
        check("the number of free cores", bench.free_cores, free_cores)
        with expect_failure("destroying an engine that has a context", Result.ERROR_IN_USE):
            bench.client.call("hgEngineDestroy", engine)


@case
def handles_of_destroyed_objects_are_rejected(bench: EngineBench) -> None:
    """Check that calls reject handles of destroyed engines and contexts, and a handle of another type."""
    with bench.engine() as engine, bench.context(engine) as context:
        pass
    x, y = make_batch(1)
    with expect_failure("a destroyed context", Result.ERROR_INVALID_HANDLE):
        bench.client.execute(context, 1, [x, y])
    with expect_failure("a context destroyed twice", Result.ERROR_INVALID_HANDLE):
        bench.client.call("hgExecutionContextDestroy", context)
    with expect_failure("a context of a destroyed engine", Result.ERROR_INVALID_HANDLE):
        bench.client.context(engine)
    with expect_failure("an engine handle passed as a tensor", Result.ERROR_INVALID_HANDLE):
        bench.client.get("hgTensorGetSize", ffi.cast("hgTensor", engine))


@case
def destroyed_contexts_release_their_cores(bench: EngineBench) -> None:
    """Check the number of free cores while a context exists and after it is destroyed."""
    count = bench.free_cores
    with bench.engine() as engine:
        for policy in (MINIMUM, MAXIMUM, MINIMUM):
            with bench.context(engine, policy):
                check("the number of free cores", bench.free_cores, count - 1 if policy is MINIMUM else 0)
            check("the number of free cores", bench.free_cores, count)


@case
def a_mask_selects_the_cores(bench: EngineBench) -> None:
    """Check that a context allocates exactly the cores of a mask, and that invalid masks are rejected."""
    count = bench.attribute(DeviceAttribute.CORE_COUNT)
    last_core = 1 << (count - 1)
    with bench.engine() as engine, bench.engine("other") as second:
        for mask in (0, 1 << count):
            with expect_failure(f"a mask of {mask:#x}", Result.ERROR_INVALID_ARGUMENT):
                bench.client.context(engine, AS_MASK, mask)
        with bench.context(engine, AS_MASK, last_core) as context:
            with expect_failure("cores that another context has", Result.ERROR_CORES_UNAVAILABLE):
                bench.client.context(second, AS_MASK, last_core)
            bench.check_batch(context, 9)
            remaining = bench.client.get("hgDeviceRetain", 0, count - 1, DevicePriority.P0)
            check("the remaining cores", remaining, last_core - 1)
            bench.client.call("hgDeviceRelease", 0, remaining)


@case
def a_context_without_free_cores_is_rejected(bench: EngineBench) -> None:
    """Check that an engine gets no context if another context has all cores."""
    with bench.engine() as engine, bench.engine("other") as second, bench.context(engine, MAXIMUM) as context:
        for policy in (MINIMUM, MAXIMUM):
            with expect_failure("a context without cores", Result.ERROR_CORES_UNAVAILABLE):
                bench.client.context(second, policy)
        bench.check_batch(context, 2)


@case
def the_first_context_allocates_all_cores_of_a_group(bench: EngineBench) -> None:
    """Check that contexts of a group share the cores that the first one allocated."""
    count = bench.free_cores
    with bench.engine("first") as first, bench.engine("second") as second:
        with bench.context(first) as context:
            check("the number of free cores", bench.free_cores, count - 2)
            with bench.context(second) as two:
                check("the number of free cores", bench.free_cores, count - 2)
                for _ in range(2):
                    bench.check_batch(context, 7, "first")
                    bench.check_batch(two, 7, "second")
        check("the number of free cores", bench.free_cores, count)


@case
def threads_can_share_a_context(bench: EngineBench) -> None:
    """Check the results of four threads that use one context at the same time."""

    def execute(seed: int) -> None:
        for size in (1, 7, networks.MAX_BATCH):
            bench.check_batch(context, size, seed=seed)

    with bench.engine() as engine, bench.context(engine, MAXIMUM) as context, ThreadPoolExecutor(4) as pool:
        list(pool.map(execute, range(4)))  # raises what a thread does


@case
def each_thread_has_a_current_device(bench: EngineBench) -> None:
    """Check that the current device of one thread does not apply to another thread."""
    last = bench.client.get("hgDeviceGetCount") - 1
    bench.client.call("hgDeviceSetCurrent", last)
    with ThreadPoolExecutor(1) as pool:
        device_of_thread = pool.submit(bench.client.get, "hgDeviceGetCurrent").result()
    check("the current device of a new thread", device_of_thread, 0)
    bench.client.call("hgDeviceSetCurrent", 0)


@case
def objects_of_another_device_are_rejected(bench: EngineBench) -> None:
    """Check that engines and contexts can be used only while their device is current."""
    if bench.client.get("hgDeviceGetCount") < 2:
        raise NotApplicableError("there is one device")
    x, y = make_batch(1)
    with bench.engine() as engine, bench.context(engine) as context:
        bench.client.call("hgDeviceSetCurrent", 1)
        with expect_failure("an engine of another device", Result.ERROR_WRONG_DEVICE):
            bench.client.get("hgEngineGetNbBindings", engine)
        with expect_failure("a context of another device", Result.ERROR_WRONG_DEVICE):
            bench.client.execute(context, 1, [x, y])
        bench.client.call("hgDeviceSetCurrent", 0)
        bench.check_batch(context, 1)

"""The cases of HanGuangRT about results: several tensors and types, devices, processes, endurance and memory."""

from __future__ import annotations

from diopi_engine.conformance import networks, tensor_networks
from diopi_engine.conformance.bench import EngineBench, NotApplicableError, case, check
from diopi_engine.conformance.client import FailedCallError
from diopi_engine.conformance.process_memory import check_memory_is_freed
from diopi_engine.conformance.processes import second_process
from diopi_engine.proto.hgrt import CoreAllocPolicy, DeviceAttribute, Result

EXECUTIONS = 400
"""Number of executions that must all be correct."""


@case
def several_tensors_of_one_shape_are_not_confused(bench: EngineBench) -> None:
    """Check a network whose four tensors have the same shape."""
    with bench.engine("twins") as engine, bench.context(engine) as context:
        for size in (1, tensor_networks.PATCH + 1, tensor_networks.MAX_BATCH):
            bench.check_tensors(context, "twins", size)
            bench.check_tensors(context, "twins", size, in_tensors=True)


@case
def half_and_integer_types_are_correct(bench: EngineBench) -> None:
    """Check a network with float16, int8 and int32 tensors."""
    with bench.engine("types") as engine, bench.context(engine) as context:
        for size in range(1, tensor_networks.MAX_BATCH + 1):
            bench.check_tensors(context, "types", size)
        bench.check_tensors(context, "types", 3, in_tensors=True)


@case
def engines_of_one_name_have_separate_weights(bench: EngineBench) -> None:
    """Check that two engines of the same name use their own weights."""
    for name in ("layer", "namesake", "layer"):
        with bench.engine(name) as engine, bench.context(engine) as context:
            bench.check_batch(context, 6, name)
    with (
        bench.engine() as engine,
        bench.engine("namesake") as second,
        bench.context(engine) as context,
        bench.context(second) as second_context,
    ):
        for _ in range(2):
            bench.check_batch(context, 6)
            bench.check_batch(second_context, 6, "namesake")


@case
def every_device_computes_correctly(bench: EngineBench) -> None:
    """Check the results of engines on every device."""
    count = bench.client.get("hgDeviceGetCount")
    for device in range(count):
        bench.client.call("hgDeviceSetCurrent", device)
        with bench.engine() as engine, bench.context(engine, CoreAllocPolicy.MAXIMUM) as context:
            for size in (1, networks.MAX_BATCH):
                bench.check_batch(context, size, seed=device)
        with bench.engine("types") as engine, bench.context(engine) as context:
            bench.check_tensors(context, "types", 5)
    bench.client.call("hgDeviceSetCurrent", 0)
    if count < 2:
        raise NotApplicableError("there is one device")


@case
def two_devices_compute_alternately(bench: EngineBench) -> None:
    """Check that engines on two devices do not affect each other, or each other's cores."""
    if bench.client.get("hgDeviceGetCount") < 2:
        raise NotApplicableError("there is one device")
    free_cores = [bench.attribute(DeviceAttribute.FREE_CORE_COUNT, device) for device in (0, 1)]
    with bench.engine() as engine, bench.context(engine) as context:
        bench.client.call("hgDeviceSetCurrent", 1)
        with bench.engine("namesake") as second, bench.context(second) as second_context:
            left = [bench.attribute(DeviceAttribute.FREE_CORE_COUNT, device) for device in (0, 1)]
            check("the free cores of both devices", left, [count - 1 for count in free_cores])
            for seed in range(3):
                bench.check_batch(second_context, 5, "namesake", seed)
                bench.client.call("hgDeviceSetCurrent", 0)
                bench.check_batch(context, 5, seed=seed)
                bench.client.call("hgDeviceSetCurrent", 1)
        bench.client.call("hgDeviceSetCurrent", 0)


@case
def hundreds_of_executions_are_correct(bench: EngineBench) -> None:
    """Check the results of hundreds of executions."""
    with bench.engine() as engine, bench.context(engine) as context:
        for number in range(EXECUTIONS):
            bench.check_batch(context, 1 + number % networks.MAX_BATCH, seed=number)


@case
def destroyed_engines_free_their_memory(bench: EngineBench) -> None:
    """Check that the process does not grow if engines are created and destroyed."""

    def create_and_destroy() -> None:
        """Create an engine, execute a batch, and destroy the engine."""
        with bench.engine() as engine, bench.context(engine) as context:
            bench.check_batch(context, 3)

    check_memory_is_freed("an engine that was destroyed", create_and_destroy)


@case
def split_weights_are_correct(bench: EngineBench) -> None:
    """Check an engine whose weights are split over two cores."""
    with bench.engine("split") as engine:
        try:
            context = bench.client.context(engine)
        except FailedCallError as error:
            if error.result is not Result.ERROR_NOT_SUPPORTED:
                raise
            bench.client.call("hgEngineDestroy", engine)
            raise NotApplicableError(f"the library does not split weights: {error}") from None
        for size in (1, networks.PATCH + 1, networks.MAX_BATCH):
            bench.check_batch(context, size, "split")
        bench.client.call("hgExecutionContextDestroy", context)


@case
def two_processes_share_the_cores(bench: EngineBench) -> None:
    """Check that another process's cores are not free until its context or the process ends."""
    count = bench.free_cores
    with second_process("second_process", bench.client.path, bench.folder) as process:
        check("the free cores while another process has a context", bench.free_cores, count - 1)
        with bench.engine() as engine, bench.context(engine, CoreAllocPolicy.MAXIMUM) as context:
            check("the free cores after all were taken", bench.free_cores, 0)
            bench.check_batch(context, 9)
            print("execute", file=process.stdin, flush=True)
            bench.check_batch(context, 16)
        process.wait()
        check("the status of the other process", process.returncode, 0)
    with second_process("second_process", bench.client.path, bench.folder) as process:
        check("the free cores while another process has a context", bench.free_cores, count - 1)
        process.kill()
        process.wait()
        check("the free cores after the other process was killed", bench.free_cores, count)

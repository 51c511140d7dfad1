"""The functions of HanGuangRT. Each takes the inputs of its prototype and returns its outputs or raises InterfaceError.

Handles arrive as the objects that they represent, and enumerators as members. Structures and memory are pointers of
cffi.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from diopi_engine.container import LARGEST
from diopi_engine.engine import Engine
from diopi_engine.errors import EngineFileError, EngineVersionError
from diopi_engine.proto import hgrt
from diopi_engine.proto.hgrt import (
    MAX_DIMS,
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
from diopi_engine.runtime import cores
from diopi_engine.runtime.allocation import allocate
from diopi_engine.runtime.bindings import map_arrays
from diopi_engine.runtime.devices import DeviceDescription, devices
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.execution import Execution
from diopi_engine.runtime.ffi import ffi, lock_pages, text_of
from diopi_engine.runtime.handles import Handles
from diopi_engine.runtime.objects import ExecutionContext, LoadedEngine, RuntimeTensor, SchemeHandle
from diopi_engine.sizes import sample_bytes

CALLS: dict[str, Callable[..., Any]] = {}
"""All functions by name, except those that need no Python."""

HANDLES = Handles(Result.ERROR_INVALID_HANDLE)
"""The handles of this process."""

_thread = threading.local()
"""The attribute `device` is the number of the current device of a thread."""


def call(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function unchanged, after registering it as the implementation of the function of the same name."""
    CALLS[function.__name__] = function
    return function


def invalid_argument(reason: str) -> InterfaceError:
    """Return the error for an invalid argument."""
    return InterfaceError(Result.ERROR_INVALID_ARGUMENT, reason)


def find_device(number: int) -> DeviceDescription:
    """Return a device by its number; raise HG_ERROR_INVALID_DEVICE if there is none."""
    if not 0 <= number < len(devices()):
        raise InterfaceError(Result.ERROR_INVALID_DEVICE, f"device {number}, expected one of 0 to {len(devices()) - 1}")
    return devices()[number]


def current_device() -> DeviceDescription:
    """Return the current device of this thread."""
    return devices()[getattr(_thread, "device", 0)]


_TEXTS: dict[str, Any] = {}
"""The C strings of names and descriptions of results, by their text."""


def _c_string(text: str, cache: dict[Any, Any] = _TEXTS) -> Any:
    """Return text as a C string, which stays valid as long as `cache` exists."""
    return cache.setdefault(text, ffi.new("char[]", text.encode()))


@call
def hgRuntimeGetVersion() -> int:
    """Return the version of the interface."""
    return hgrt.VERSION


@call
def hgGetResultName(result: Result) -> Any:
    """Return the name of a result as a C string."""
    return _c_string(f"HG_{result.name}")


@call
def hgGetResultDescription(result: Result) -> Any:
    """Return the meaning of a result as a C string."""
    return _c_string(result.meaning)


@call
def hgDeviceGetCount() -> int:
    """Return the number of devices."""
    return len(devices())


@call
def hgDeviceGetCurrent() -> int:
    """Return the number of the current device of this thread."""
    return current_device().number


@call
def hgDeviceSetCurrent(device: int) -> None:
    """Make a device the current device of this thread."""
    _thread.device = find_device(device).number


@call
def hgDeviceGetAttribute(device: int, attribute: DeviceAttribute) -> int:
    """Return the value of an attribute of a device."""
    description = find_device(device)
    values: dict[DeviceAttribute, Callable[[], int]] = {
        DeviceAttribute.CORE_COUNT: lambda: description.cores.count,
        DeviceAttribute.LOCAL_MEMORY_SIZE: lambda: description.local_memory,
        DeviceAttribute.FREE_CORE_COUNT: lambda: description.cores.free.bit_count(),
        DeviceAttribute.RETAINED_CORE_MASK: lambda: description.cores.retained,
    }
    return values[attribute]()


@call
def hgDeviceRetain(device: int, count: int, priority: DevicePriority) -> int:
    """Retain `count` free cores for this process and return their mask.

    A request of priority Pn fails unless n quarters of the device's cores, rounded down, stay free for requests of
    higher priority.
    """
    description = find_device(device)
    if count == 0:
        raise invalid_argument("0 cores are to be retained, expected 1 or more")
    return cores.retain(description.cores, count, priority.value * description.cores.count // 4)


@call
def hgDeviceRelease(device: int, mask: int) -> None:
    """Release retained cores."""
    cores.release(find_device(device).cores, mask)


@call
def hgEngineCreate(serialized: Any, size: int) -> int:
    """Return the handle of an engine that is created on the current device from the bytes of its file."""
    if not serialized:
        raise invalid_argument("serialized is NULL")
    if size > LARGEST:
        raise InterfaceError(Result.ERROR_INVALID_FILE, f"the engine has {size} bytes, expected at most {LARGEST}")
    try:
        engine = Engine.from_bytes(bytes(ffi.buffer(serialized, size)))
    except EngineVersionError as error:
        raise InterfaceError(Result.ERROR_VERSION, str(error)) from error
    except EngineFileError as error:
        raise InterfaceError(Result.ERROR_INVALID_FILE, str(error)) from error
    loaded = LoadedEngine(engine=engine, device=current_device())
    loaded.scheme = HANDLES.enter(SchemeHandle(loaded))
    return HANDLES.enter(loaded)


@call
def hgEngineDestroy(engine: LoadedEngine) -> None:
    """Destroy an engine that has no context."""
    with HANDLES.lock:
        if engine.context is not None:
            raise InterfaceError(Result.ERROR_IN_USE, "the engine has a context")
        HANDLES.remove(HANDLES.find(SchemeHandle, engine.scheme))
        HANDLES.remove(engine)


@call
def hgEngineGetNbBindings(engine: LoadedEngine) -> int:
    """Return the number of inputs and outputs of an engine."""
    return len(engine.engine.manifest.bindings)


def _find_binding(engine: LoadedEngine, index: int) -> Any:
    """Return the binding of an engine with this index; raise HG_ERROR_INVALID_ARGUMENT if there is none."""
    bindings = engine.engine.manifest.bindings
    if not 0 <= index < len(bindings):
        raise invalid_argument(f"binding {index}, expected one of 0 to {len(bindings) - 1}")
    return bindings[index]


@call
def hgEngineGetBindingIndex(engine: LoadedEngine, name: Any) -> int:
    """Return the index of the binding with this name."""
    if not name:
        raise invalid_argument("name is NULL")
    requested = text_of(name)
    names = [binding.name for binding in engine.engine.manifest.bindings]
    if requested not in names:
        raise invalid_argument(f"no binding is called {requested!r}; the bindings are {', '.join(names)}")
    return names.index(requested)


@call
def hgEngineGetBindingName(engine: LoadedEngine, index: int) -> Any:
    """Return the name of the binding `index` as a C string."""
    return _c_string(_find_binding(engine, index).name, engine.c_strings)


@call
def hgEngineGetBindingDimensions(engine: LoadedEngine, index: int) -> Any:
    """Return the fields of an hgDims with the sizes of a binding. The size of the batch axis is −1."""
    return _dims_fields([-1 if size is None else size for size in _find_binding(engine, index).shape])


def _dims_fields(sizes: Any) -> Any:
    """Return the fields of an hgDims structure for these sizes, padded with zeros."""
    return {"nbDims": len(sizes), "d": [*sizes, *[0] * (MAX_DIMS - len(sizes))]}


@call
def hgEngineGetBindingType(engine: LoadedEngine, index: int) -> int:
    """Return the element type of the binding `index`."""
    return DataType[_find_binding(engine, index).dtype.upper()]


@call
def hgEngineGetBindingLayout(engine: LoadedEngine, index: int) -> int:
    """Return the layout of the binding `index`."""
    return Layout[_find_binding(engine, index).layout]


@call
def hgEngineGetBindingAttribute(engine: LoadedEngine, index: int, attribute: BindingAttribute) -> int:
    """Return the value of an attribute of the binding `index`."""
    binding = _find_binding(engine, index)
    values = {
        BindingAttribute.IS_INPUT: int(binding.is_input),
        BindingAttribute.DATA_TYPE: DataType[binding.dtype.upper()].value,
        BindingAttribute.LAYOUT: Layout[binding.layout].value,
        BindingAttribute.NB_DIMS: len(binding.shape),
        BindingAttribute.BATCH_DIM: 0 if None in binding.shape else -1,
        BindingAttribute.SAMPLE_SIZE: sample_bytes(binding),
    }
    return values[attribute]


@call
def hgEngineGetExecutionScheme(engine: LoadedEngine) -> int:
    """Return the handle of the scheme of an engine's group."""
    return engine.scheme


@call
def hgEngineGetEngineID(engine: LoadedEngine) -> int:
    """Return the number of an engine in its group."""
    return engine.engine.manifest.engine


@call
def hgSchemeGetEngineCount(scheme: SchemeHandle) -> int:
    """Return the number of engines in a scheme."""
    return len(scheme.owner.engine.manifest.scheme)


@call
def hgSchemeGetEngineControl(scheme: SchemeHandle, number: int) -> Any:
    """Return a pointer to the entry of a scheme for the engine with this number."""
    controls, cache = scheme.owner.engine.manifest.scheme, scheme.owner.c_strings
    if not 0 <= number < len(controls):
        raise invalid_argument(f"engine {number}, expected one of 0 to {len(controls) - 1}")
    if number not in cache:
        control = controls[number]
        name, mode = _c_string(control.name, cache), ExecuteMode[control.mode.upper()]
        fields = [
            number,
            name,
            control.virtual_device,
            control.memory_group,
            mode,
            control.cores_per_batch,
            control.core_mask,
        ]
        cache[number] = ffi.new("hgEngineControl*", [*fields, control.memory])
    return cache[number]


@call
def hgEngineGetMaxBatchSize(engine: LoadedEngine, flags: int) -> int:
    """Return the largest batch of one execution.

    By default, the context has the cores of one copy of the scheme. With MAX_CORES, it has as many copies as the device
    has cores for, unless the engine has no batch axis. HOST_TENSOR has no effect. Unknown flags are rejected.
    """
    known_flags = BatchSizeFlags.HOST_TENSOR | BatchSizeFlags.MAX_CORES
    if flags & ~known_flags:
        raise invalid_argument(f"flags are {flags:#x}, of which {flags & ~known_flags:#x} is unknown")
    manifest, copies = engine.engine.manifest, 1
    if flags & BatchSizeFlags.MAX_CORES and manifest.has_batch:
        masks = [
            control.core_mask
            for control in manifest.scheme
            if control.virtual_device == manifest.control.virtual_device
        ]
        shared_core_count = len({core for mask in masks for core in cores.core_numbers(mask)})
        copies = max(engine.device.cores.count // shared_core_count, 1)
    return manifest.max_batch * copies


@call
def hgEngineCreateExecutionContext(engine: LoadedEngine, policy: CoreAllocPolicy, mask: int) -> int:
    """Return the handle of a new context, which has the weights of an engine and the cores that execute it.

    An engine has at most one context. The cores of a group of engines are allocated together. If a context of another
    engine of the group has allocated them on the same device, the new context uses this allocation. `mask` names the
    cores of this engine if the policy is AS_CORE_MASK. For other policies, it must be 0.
    """
    is_by_mask = policy is CoreAllocPolicy.AS_CORE_MASK
    manifest, device = engine.engine.manifest, engine.device
    if bool(mask) != is_by_mask or mask >> device.cores.count:
        raise invalid_argument(
            f"the mask is {mask:#x} with policy {policy.name}, of a device of {device.cores.count} cores"
        )
    if is_by_mask and mask.bit_count() % manifest.control.core_mask.bit_count():
        raise invalid_argument(
            f"the mask is {mask:#x}, expected a multiple of {manifest.control.core_mask.bit_count()} cores"
        )
    with HANDLES.lock:
        if engine.context is not None:
            raise InterfaceError(Result.ERROR_CONTEXT_EXISTS, "the engine has a context")
        existing = {id(context.allocation): context.allocation for context in HANDLES.all(ExecutionContext)}.values()
        usable = [allocation for allocation in existing if allocation.can_hold_context(manifest, device)]
        allocation = usable[0] if usable else allocate(manifest, device, devices(), policy, mask)
        try:
            if usable and is_by_mask and allocation.mask(manifest.engine) != mask:
                reason = f"the group of the engine allocated cores {allocation.mask(manifest.engine):#x}, not {mask:#x}"
                raise InterfaceError(Result.ERROR_CORES_UNAVAILABLE, reason)
            lanes = [[device.jax_devices[core] for core in lane] for lane in allocation.lanes[manifest.engine]]
            context = ExecutionContext(engine, allocation, Execution(engine.engine, lanes))
        except BaseException:
            if not usable:
                allocation.release()
            raise
        allocation.contexts.add(manifest.engine)
        engine.context = context
        return HANDLES.enter(context)


@call
def hgExecutionContextDestroy(context: ExecutionContext) -> None:
    """Destroy a context; the last context of a group releases the cores."""
    with HANDLES.lock:
        HANDLES.remove(context)
        context.execution.close()
        context.owner.context = None
        context.allocation.contexts.discard(context.owner.engine.manifest.engine)
        if not context.allocation.contexts:
            context.allocation.release()


@call
def hgExecutionContextExecute(context: ExecutionContext, batch: int, bindings: Any, info: Any) -> None:
    """Execute an engine on a batch and write its outputs.

    `bindings` is a `void**` with an address or the handle of a tensor for each input and output. `info` is a
    `const hgHostTensorDesc*`, which states whether the entries are addresses or handles. NULL stands for addresses in
    system memory.
    """
    manifest = context.owner.engine.manifest
    lanes = len(context.allocation.lanes[manifest.engine])
    copies = lanes * manifest.control.cores_per_batch // manifest.control.core_mask.bit_count()
    limit = manifest.max_batch * copies if manifest.has_batch else 1
    if not 1 <= batch <= limit:
        raise InterfaceError(Result.ERROR_BATCH_SIZE, f"the batch is {batch}, expected 1 to {limit}")
    if not bindings:
        raise InterfaceError(Result.ERROR_BINDING, "bindings is NULL")
    inputs, outputs = map_arrays(HANDLES, context, batch, bindings, info)
    context.execution.execute(batch, inputs, outputs)


@call
def hgTensorCreate(desc: Any, memory: Any, flags: int) -> int:
    """Return the handle of a tensor that is created on the current device.

    If `desc` is NULL, the tensor has no memory until hgTensorUpdateDesc is called. `memory` or `flags` states the kind
    of memory. If both state it, they must agree.
    """
    if not memory and not flags:
        raise invalid_argument("memory is NULL and flags is 0, expected one of them to state the kind of memory")
    described, alignment = (memory.location, memory.alignment) if memory else (0, 0)
    location = MemFlags.find(flags or described)
    if location is None or described not in (0, location) or alignment & (alignment - 1):
        raise invalid_argument(f"memory is at location {described}, aligned to {alignment}, with flags {flags:#x}")
    tensor = RuntimeTensor(current_device(), location, alignment, lock_pages)
    if desc:
        tensor.describe(*_description(desc))
    return HANDLES.enter(tensor)


def _description(desc: Any) -> tuple[DataType, int, tuple[int, ...]]:
    """Return type, layout and sizes from a description in C; raise HG_ERROR_INVALID_ARGUMENT if it is invalid."""
    if not desc:
        raise invalid_argument("desc is NULL")
    sizes = tuple(desc.dims.d[0 : desc.dims.nbDims]) if 0 <= desc.dims.nbDims <= MAX_DIMS else (-1,)
    dtype = DataType.find(desc.type)
    if dtype is None or Layout.find(desc.layout) is None or min(sizes, default=0) < 0:
        raise invalid_argument(
            f"a tensor is described by type {desc.type}, layout {desc.layout}, {desc.dims.nbDims} axes of {sizes}"
        )
    return dtype, desc.layout, sizes


def _check_unmapped(tensor: RuntimeTensor) -> RuntimeTensor:
    """Return the tensor; raise HG_ERROR_IN_USE if it is mapped."""
    if tensor.mapped:
        raise InterfaceError(Result.ERROR_IN_USE, "the tensor is mapped")
    return tensor


@call
def hgTensorDestroy(tensor: RuntimeTensor) -> None:
    """Destroy a tensor that is not mapped."""
    HANDLES.remove(_check_unmapped(tensor))


@call
def hgTensorUpdateDesc(tensor: RuntimeTensor, desc: Any) -> None:
    """Set the description of a tensor that is not mapped."""
    _check_unmapped(tensor).describe(*_description(desc))


@call
def hgTensorData(tensor: RuntimeTensor, data: Any, size: int) -> None:
    """Copy `size` bytes from the address `data` to a tensor's memory; `size` must be the size of its elements."""
    if not data or size != tensor.size:
        raise invalid_argument(f"{size} bytes at {data}, expected {tensor.size}")
    ffi.memmove(ffi.cast("void*", tensor.address), data, size)


@call
def hgTensorMap(tensor: RuntimeTensor) -> Any:
    """Return the address of a tensor, which can't be changed or destroyed until it is unmapped."""
    assert tensor.description  # the property raises InterfaceError if the tensor has no description
    _check_unmapped(tensor).mapped = True
    return ffi.cast("void*", tensor.address)


@call
def hgTensorUnmap(tensor: RuntimeTensor) -> None:
    """End the direct access to a mapped tensor."""
    if not tensor.mapped:
        raise invalid_argument("the tensor is not mapped")
    tensor.mapped = False


@call
def hgTensorGetDesc(tensor: RuntimeTensor) -> Any:
    """Return the fields of an hgTensorDesc that describe a tensor."""
    dtype, layout, sizes = tensor.description
    return {"type": dtype, "layout": layout, "dims": _dims_fields(sizes)}


@call
def hgTensorGetSize(tensor: RuntimeTensor) -> int:
    """Return the number of bytes of a tensor's elements."""
    return tensor.size


@call
def hgTensorGetAlignedSize(tensor: RuntimeTensor) -> int:
    """Return the number of bytes of a tensor's memory."""
    return tensor.aligned_size

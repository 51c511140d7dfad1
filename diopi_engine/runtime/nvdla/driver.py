"""The methods of IRuntime: one loaded network at a time, the memory bound to it, and the device that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

from diopi_engine.manifest import Binding, EngineManifest
from diopi_engine.proto.nvdla import Error
from diopi_engine.runtime.devices import MAX_DEVICES
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.nvdla.ffi import bad_parameter, call, ffi, to_integer
from diopi_engine.runtime.nvdla.loadable import read_loadable
from diopi_engine.runtime.nvdla.portability import PortabilityLayer
from diopi_engine.runtime.nvdla.program import binding_bytes, read_engine
from diopi_engine.runtime.nvdla.tensors import requested_batch, tensor_fields


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LayerMemory:
    """A block of memory that the portability layer allocated, with its handle, host address and size."""

    instance: int
    handle: Any
    address: Any
    size: int


@final
@dataclass(kw_only=True)
class LoadedNetwork:
    """The network that is loaded on device `instance`, with its batch size and bound memory.

    Attributes:
        loadable: memory of its device that contains the bytes of the loadable.
        bound: the bound memory, by input and output, in the order of the loadable; unbound ones are missing.
    """

    instance: int
    manifest: EngineManifest
    loadable: LayerMemory
    batch: int = 1
    bound: dict[Binding, LayerMemory] = field(default_factory=dict)


@final
class NetworkRuntime:
    """The state of an IRuntime object: session, open devices, memory by handle, and the loaded network."""

    def __init__(self, layer: PortabilityLayer) -> None:
        self.layer = layer
        self.session = layer.initialize()
        self.devices: dict[int, Any] = {}
        self.memories: dict[int, LayerMemory] = {}
        self._loaded: LoadedNetwork | None = None

    @property
    def bound(self) -> dict[Binding, LayerMemory]:
        """The memory bound to each input and output of the loaded network; empty if no network is loaded."""
        return self._loaded.bound if self._loaded else {}

    @property
    def loaded(self) -> LoadedNetwork:
        """The loaded network; raises NvError_NotInitialized if there is none."""
        if self._loaded is None:
            raise InterfaceError(Error.Error_NotInitialized, "no network is loaded")
        return self._loaded

    def load(self, instance: int, manifest: EngineManifest, data: bytes) -> None:
        """Copy a loadable to a device, and make it the loaded network; raise NvError_Busy if there is one already."""
        if self._loaded is not None:
            raise InterfaceError(
                Error.Error_Busy, f"a network is loaded on device {self._loaded.instance}: unload it first"
            )
        memory = self.allocate(instance, len(data))
        ffi.memmove(memory.address, data, len(data))
        self._loaded = LoadedNetwork(instance=instance, manifest=manifest, loadable=memory)

    def unload(self) -> None:
        """Free the memory of the loadable."""
        self.free(self.loaded.loadable)
        self._loaded = None

    def allocate(self, instance: int, size: int) -> LayerMemory:
        """Allocate memory of a device, which is opened if necessary."""
        if instance < 0:
            raise InterfaceError(Error.Error_DeviceNotFound, f"device {instance}, expected 0 or more")
        if instance not in self.devices:
            self.devices[instance] = self.layer.open(self.session, instance)
        handle, address = self.layer.allocate(self.session, self.devices[instance], size)
        return LayerMemory(instance=instance, handle=handle, address=address, size=size)

    def free(self, memory: LayerMemory) -> None:
        """Free memory."""
        device = self.devices[memory.instance]
        self.layer.call("NvDlaFreeMem", self.session, device, memory.handle, memory.address, memory.size)

    def find_memory(self, handle: Any) -> LayerMemory:
        """Return memory that this runtime allocated for a program; raise NvError_BadValue for an unknown handle."""
        if not handle:
            raise bad_parameter("hMem is NULL")
        if (number := to_integer(handle)) not in self.memories:
            raise InterfaceError(
                Error.Error_BadValue, f"{number:#x} is not a handle of memory that this runtime allocated"
            )
        return self.memories[number]

    def close(self) -> None:
        """Close all devices, which frees their memory, and end the session."""
        for device in self.devices.values():
            self.layer.call("NvDlaClose", self.session, device)
        self.layer.call("NvDlaDestroy", self.session)


RUNTIMES: dict[int, NetworkRuntime] = {}
"""The runtimes by the address of their C++ objects."""


def find_runtime(address: int) -> NetworkRuntime:
    """Return the runtime of a C++ object; raise NvError_BadValue if there is none at the address."""
    if address not in RUNTIMES:
        raise InterfaceError(Error.Error_BadValue, f"there is no runtime at {address:#x}")
    return RUNTIMES[address]


@call
def create(address: int, layer: PortabilityLayer) -> None:
    RUNTIMES[address] = NetworkRuntime(layer)


@call
def destroy(address: int) -> None:
    find_runtime(address).close()
    del RUNTIMES[address]


@call
def getMaxDevices(runtime: NetworkRuntime) -> int:
    return MAX_DEVICES


@call
def getNumDevices(runtime: NetworkRuntime) -> int:
    for number in range(MAX_DEVICES):
        try:
            device = runtime.layer.open(runtime.session, number)
        except InterfaceError as error:
            if error.result is Error.Error_DeviceNotFound:
                return number
            raise
        runtime.layer.call("NvDlaClose", runtime.session, device)
    return MAX_DEVICES


@call
def load(runtime: NetworkRuntime, buf: Any, instance: int) -> None:
    if not buf:
        raise bad_parameter("buf is NULL")
    data = read_loadable(to_integer(buf))
    runtime.load(instance, read_engine(data).manifest, data)


@call
def unload(runtime: NetworkRuntime, instance: int) -> None:
    if instance != runtime.loaded.instance:
        raise bad_parameter(f"a network is loaded on device {runtime.loaded.instance}, not on {instance}")
    runtime.unload()


@call
def getNumInputTensors(runtime: NetworkRuntime) -> int:
    return len(runtime.loaded.manifest.inputs)


@call
def getNumOutputTensors(runtime: NetworkRuntime) -> int:
    return len(runtime.loaded.manifest.outputs)


@call
def getInputTensorDesc(runtime: NetworkRuntime, number: int) -> Any:
    return _describe_tensor(runtime.loaded, runtime.loaded.manifest.inputs, number)


@call
def getOutputTensorDesc(runtime: NetworkRuntime, number: int) -> Any:
    return _describe_tensor(runtime.loaded, runtime.loaded.manifest.outputs, number)


def _describe_tensor(loaded: LoadedNetwork, bindings: Sequence[Binding], number: int) -> Any:
    """Return the fields of the NvDlaTensor that describes an input or output of the loaded network."""
    return tensor_fields(_find_binding(bindings, number), loaded.batch, loaded.manifest.max_batch)


def _find_binding(bindings: Sequence[Binding], number: int) -> Binding:
    """Return the binding with this number; raise NvError_BadParameter if there is none."""
    if not 0 <= number < len(bindings):
        raise bad_parameter(f"tensor {number}, expected one of 0 to {len(bindings) - 1}")
    return bindings[number]


@call
def setInputTensorDesc(runtime: NetworkRuntime, number: int, tensor: Any) -> None:
    _set_description(runtime.loaded, _find_binding(runtime.loaded.manifest.inputs, number), tensor)


@call
def setOutputTensorDesc(runtime: NetworkRuntime, number: int, tensor: Any) -> None:
    _set_description(runtime.loaded, _find_binding(runtime.loaded.manifest.outputs, number), tensor)


def _set_description(loaded: LoadedNetwork, binding: Binding, tensor: Any) -> None:
    """Set the batch size that a modified NvDlaTensor requests; raise an error if bound memory is too small."""
    if not tensor:
        raise bad_parameter("tensor is NULL")
    batch = requested_batch(tensor, binding, loaded.batch, loaded.manifest.max_batch)
    for bound_tensor, memory in loaded.bound.items():
        _check_size(bound_tensor, memory, batch)
    loaded.batch = batch


def _check_size(binding: Binding, memory: LayerMemory, batch: int) -> None:
    """Raise NvError_BadParameter if memory is too small for a binding with this batch size."""
    if memory.size < binding_bytes(binding, batch):
        needed = f"a batch of {batch} needs {binding_bytes(binding, batch)}"
        raise bad_parameter(f"the memory of {binding.name} has {memory.size} bytes, {needed}")


@call
def allocateSystemMemory(runtime: NetworkRuntime, size: int) -> tuple[Any, Any]:
    memory = runtime.allocate(runtime.loaded.instance, size)
    runtime.memories[to_integer(memory.handle)] = memory
    return memory.handle, memory.address


@call
def freeSystemMemory(runtime: NetworkRuntime, handle: Any, size: int) -> None:
    memory = runtime.find_memory(handle)
    if size != memory.size:
        raise bad_parameter(f"{size} bytes are freed, {memory.size} were allocated")
    if used := [binding.name for binding, bound_memory in runtime.bound.items() if bound_memory is memory]:
        raise InterfaceError(Error.Error_Busy, f"the memory is bound to {', '.join(used)}")
    runtime.free(memory)
    del runtime.memories[to_integer(handle)]


@call
def bindInputTensor(runtime: NetworkRuntime, number: int, handle: Any) -> None:
    _bind_memory(runtime, runtime.loaded.manifest.inputs, number, handle)


@call
def bindOutputTensor(runtime: NetworkRuntime, number: int, handle: Any) -> None:
    _bind_memory(runtime, runtime.loaded.manifest.outputs, number, handle)


def _bind_memory(runtime: NetworkRuntime, bindings: Sequence[Binding], number: int, handle: Any) -> None:
    """Bind memory to an input or output; raise NvError_BadParameter for another device or insufficient size."""
    binding, memory = _find_binding(bindings, number), runtime.find_memory(handle)
    if memory.instance != runtime.loaded.instance:
        raise bad_parameter(f"the memory is of device {memory.instance}, the network is on {runtime.loaded.instance}")
    _check_size(binding, memory, runtime.loaded.batch)
    runtime.loaded.bound[binding] = memory


@call
def submit(runtime: NetworkRuntime) -> None:
    loaded = runtime.loaded
    if missing := [binding.name for binding in loaded.manifest.bindings if binding not in loaded.bound]:
        raise InterfaceError(Error.Error_NotInitialized, f"not bound: {', '.join(missing)}")
    memories = [loaded.loadable, *(loaded.bound[binding] for binding in loaded.manifest.bindings)]
    described = [(memory.handle, memory.size) for memory in memories]
    runtime.layer.submit(runtime.session, runtime.devices[loaded.instance], loaded.batch, described)

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
from diopi_engine.runtime.nvdla.portability import DeviceLayer
from diopi_engine.runtime.nvdla.program import binding_bytes, read_engine
from diopi_engine.runtime.nvdla.tensors import requested_batch, tensor_fields


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class LayerMemory:
    """A block of memory that the portability layer allocated.

    Attributes:
        instance: the number of the device.
        handle: the handle of the block.
        address: the address on the host.
        size: the size in bytes.
    """

    instance: int
    handle: Any
    address: Any
    size: int


@final
@dataclass(kw_only=True)
class LoadedNetwork:
    """The loaded network.

    Attributes:
        instance: the number of the device on which the network is loaded.
        manifest: the description of the network.
        loadable: memory of this device that contains the bytes of the loadable (the compiled network).
        batch: the number of samples that `submit` computes.
        bound: the memory that the program has bound to inputs and outputs; the others are missing.
    """

    instance: int
    manifest: EngineManifest
    loadable: LayerMemory
    batch: int = 1
    bound: dict[Binding, LayerMemory] = field(default_factory=dict)

    def set_batch(self, batch: int) -> None:
        """Set the batch size; raise InterfaceError (`Error_BadParameter`) if bound memory is too small for it."""
        for binding, memory in self.bound.items():
            _check_size(binding, memory, batch)
        self.batch = batch


@final
class NetworkRuntime:
    """The state of an IRuntime object: session, open devices, memory by handle, and the loaded network."""

    def __init__(self, layer: DeviceLayer) -> None:
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
        """The loaded network; raises InterfaceError (`Error_NotInitialized`) if no network is loaded."""
        if self._loaded is None:
            raise InterfaceError(Error.Error_NotInitialized, "no network is loaded")
        return self._loaded

    def load(self, instance: int, manifest: EngineManifest, data: bytes) -> None:
        """Copy a loadable to a device, and make its network the loaded one.

        Args:
            instance: the number of the device.
            manifest: the manifest of the loadable.
            data: the bytes of the loadable.

        Raises:
            InterfaceError: `Error_Busy` if a network is loaded, or the error of the allocation.
        """
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
        """Return newly allocated memory of a device, which this function opens if necessary.

        Args:
            instance: the number of the device.
            size: the number of bytes.

        Returns:
            The memory.

        Raises:
            InterfaceError: The device can't be opened, or has not enough memory.
        """
        if instance < 0:
            raise InterfaceError(Error.Error_DeviceNotFound, f"device {instance}, expected 0 or more")
        if instance not in self.devices:
            self.devices[instance] = self.layer.open(self.session, instance)
        handle, address = self.layer.allocate(self.session, self.devices[instance], size)
        return LayerMemory(instance=instance, handle=handle, address=address, size=size)

    def free(self, memory: LayerMemory) -> None:
        """Free memory that `allocate` returned."""
        device = self.devices[memory.instance]
        self.layer.free(self.session, device, memory.handle, memory.address, memory.size)

    def find_memory(self, handle: Any) -> LayerMemory:
        """Return the memory that this runtime allocated under a handle; raise InterfaceError if there is none."""
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
            self.layer.close(self.session, device)
        self.layer.destroy(self.session)


RUNTIMES: dict[int, NetworkRuntime] = {}
"""The runtimes by the address of their C++ objects."""


def find_runtime(address: int) -> NetworkRuntime:
    """Return the runtime of the C++ object at an address; raise InterfaceError (`Error_BadValue`) if there is none."""
    if address not in RUNTIMES:
        raise InterfaceError(Error.Error_BadValue, f"there is no runtime at {address:#x}")
    return RUNTIMES[address]


@call
def create(address: int, layer: DeviceLayer) -> None:
    """Create the runtime of the C++ object at an address."""
    RUNTIMES[address] = NetworkRuntime(layer)


@call
def destroy(address: int) -> None:
    """Destroy the runtime of the C++ object at an address."""
    find_runtime(address).close()
    del RUNTIMES[address]


@call
def getMaxDevices(runtime: NetworkRuntime) -> int:
    """Return the largest number of devices that the configuration supports."""
    return MAX_DEVICES


@call
def getNumDevices(runtime: NetworkRuntime) -> int:
    """Return the number of devices: the smallest number of a device that the portability layer can't open."""
    for number in range(MAX_DEVICES):
        try:
            device = runtime.layer.open(runtime.session, number)
        except InterfaceError as error:
            if error.result is Error.Error_DeviceNotFound:
                return number
            raise
        runtime.layer.close(runtime.session, device)
    return MAX_DEVICES


@call
def load(runtime: NetworkRuntime, buf: Any, instance: int) -> None:
    """Load the loadable at an address on the device `instance`."""
    if not buf:
        raise bad_parameter("buf is NULL")
    data = read_loadable(to_integer(buf))
    runtime.load(instance, read_engine(data).manifest, data)


@call
def unload(runtime: NetworkRuntime, instance: int) -> None:
    """Unload the network, which must be on the device `instance`."""
    if instance != runtime.loaded.instance:
        raise bad_parameter(f"a network is loaded on device {runtime.loaded.instance}, not on {instance}")
    runtime.unload()


@call
def getNumInputTensors(runtime: NetworkRuntime) -> int:
    """Return the number of inputs of the loaded network."""
    return len(runtime.loaded.manifest.inputs)


@call
def getNumOutputTensors(runtime: NetworkRuntime) -> int:
    """Return the number of outputs of the loaded network."""
    return len(runtime.loaded.manifest.outputs)


@call
def getInputTensorDesc(runtime: NetworkRuntime, number: int) -> Any:
    """Return the fields of the NvDlaTensor that describes an input."""
    return _describe_tensor(runtime.loaded, runtime.loaded.manifest.inputs, number)


@call
def getOutputTensorDesc(runtime: NetworkRuntime, number: int) -> Any:
    """Return the fields of the NvDlaTensor that describes an output."""
    return _describe_tensor(runtime.loaded, runtime.loaded.manifest.outputs, number)


def _describe_tensor(loaded: LoadedNetwork, bindings: Sequence[Binding], number: int) -> Any:
    """Return the fields of the NvDlaTensor that describes an input or output of the loaded network."""
    return tensor_fields(find_binding(bindings, number), loaded.batch, loaded.manifest.max_batch)


def find_binding(bindings: Sequence[Binding], number: int) -> Binding:
    """Return the binding with this number; raise InterfaceError (`Error_BadParameter`) if there is none."""
    if not 0 <= number < len(bindings):
        raise bad_parameter(f"tensor {number}, expected one of 0 to {len(bindings) - 1}")
    return bindings[number]


@call
def setInputTensorDesc(runtime: NetworkRuntime, number: int, tensor: Any) -> None:
    """Set the batch size that the modified description of an input requests."""
    _set_description(runtime.loaded, find_binding(runtime.loaded.manifest.inputs, number), tensor)


@call
def setOutputTensorDesc(runtime: NetworkRuntime, number: int, tensor: Any) -> None:
    """Set the batch size that the modified description of an output requests."""
    _set_description(runtime.loaded, find_binding(runtime.loaded.manifest.outputs, number), tensor)


def _set_description(loaded: LoadedNetwork, binding: Binding, tensor: Any) -> None:
    """Set the batch size that a modified NvDlaTensor requests; raise an error if bound memory is too small."""
    if not tensor:
        raise bad_parameter("tensor is NULL")
    loaded.set_batch(requested_batch(tensor, binding, loaded.batch, loaded.manifest.max_batch))


def _check_size(binding: Binding, memory: LayerMemory, batch: int) -> None:
    """Raise InterfaceError (`Error_BadParameter`) if memory is too small for a binding with this batch size."""
    if memory.size < binding_bytes(binding, batch):
        requirement = f"a batch of {batch} needs {binding_bytes(binding, batch)}"
        raise bad_parameter(f"the memory of {binding.name} has {memory.size} bytes, {requirement}")


@call
def allocateSystemMemory(runtime: NetworkRuntime, size: int) -> tuple[Any, Any]:
    """Allocate memory of the loaded network's device, and return the handle and the address of the memory."""
    memory = runtime.allocate(runtime.loaded.instance, size)
    runtime.memories[to_integer(memory.handle)] = memory
    return memory.handle, memory.address


@call
def freeSystemMemory(runtime: NetworkRuntime, handle: Any, size: int) -> None:
    """Free memory that is not bound; `size` must be the size of its allocation."""
    memory = runtime.find_memory(handle)
    if size != memory.size:
        raise bad_parameter(f"can't free {size} bytes: the allocation has {memory.size}")
    if bindings := [binding.name for binding, bound_memory in runtime.bound.items() if bound_memory is memory]:
        raise InterfaceError(Error.Error_Busy, f"the memory is bound to {', '.join(bindings)}")
    runtime.free(memory)
    del runtime.memories[to_integer(handle)]


@call
def bindInputTensor(runtime: NetworkRuntime, number: int, handle: Any) -> None:
    """Bind the input with this number to memory, which must be large enough."""
    _bind_memory(runtime, runtime.loaded.manifest.inputs, number, handle)


@call
def bindOutputTensor(runtime: NetworkRuntime, number: int, handle: Any) -> None:
    """Bind the output with this number to memory, which must be large enough."""
    _bind_memory(runtime, runtime.loaded.manifest.outputs, number, handle)


def _bind_memory(runtime: NetworkRuntime, bindings: Sequence[Binding], number: int, handle: Any) -> None:
    """Bind memory to the input or output with this number.

    Raises:
        bad_parameter: if there is no such binding, or if the memory is on another device or too small.
        InterfaceError: if there is no memory with this handle.
    """
    binding, memory = find_binding(bindings, number), runtime.find_memory(handle)
    if memory.instance != runtime.loaded.instance:
        raise bad_parameter(f"the memory is of device {memory.instance}, the network is on {runtime.loaded.instance}")
    _check_size(binding, memory, runtime.loaded.batch)
    runtime.loaded.bound[binding] = memory


@call
def submit(runtime: NetworkRuntime) -> None:
    """Run the loaded network with its bound memory."""
    loaded = runtime.loaded
    if unbound := [binding.name for binding in loaded.manifest.bindings if binding not in loaded.bound]:
        raise InterfaceError(Error.Error_NotInitialized, f"not bound: {', '.join(unbound)}")
    memories = [loaded.loadable, *(loaded.bound[binding] for binding in loaded.manifest.bindings)]
    described = [(memory.handle, memory.size) for memory in memories]
    runtime.layer.submit(runtime.session, runtime.devices[loaded.instance], loaded.batch, described)

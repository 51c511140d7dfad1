"""A loadable that a device can run, on the cores of its scheme."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import final

from diopi_engine.engine import Engine
from diopi_engine.errors import EngineFileError, EngineVersionError
from diopi_engine.manifest import Binding
from diopi_engine.proto.declarations import Enumeration
from diopi_engine.proto.hgrt import Result
from diopi_engine.proto.nvdla import Error
from diopi_engine.runtime.allocation import Lane, split_lanes
from diopi_engine.runtime.cores import core_numbers
from diopi_engine.runtime.devices import DeviceDescription
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.execution import Execution, binding_shape
from diopi_engine.sizes import Array, numpy_type, sample_bytes

_ERRORS: Mapping[Enumeration, Error] = {
    Result.ERROR_NOT_SUPPORTED: Error.Error_NotSupported,
    Result.ERROR_INVALID_HANDLE: Error.Error_BadValue,
}
"""The errors of this interface that correspond to the results of an execution."""


def read_engine(data: bytes) -> Engine:
    """Return the engine of a loadable.

    Raises:
        InterfaceError: `Error_FileVersion` for another version of the compiler, `Error_InvalidFile` for other bytes.
    """
    try:
        return Engine.from_bytes(data)
    except EngineVersionError as error:
        raise InterfaceError(Error.Error_FileVersion, str(error)) from error
    except EngineFileError as error:
        raise InterfaceError(Error.Error_InvalidFile, str(error)) from error


def binding_bytes(binding: Binding, batch: int) -> int:
    """Return the number of bytes of an input or output for a batch."""
    return sample_bytes(binding) * (batch if None in binding.shape else 1)


@final
class Program:
    """A loadable that is ready to run on a device."""

    def __init__(self, data: bytes, device: DeviceDescription) -> None:
        """Read a loadable and put the weights on the cores of a device.

        Raises:
            InterfaceError: if the loadable is invalid, or if the device lacks cores or memory.
        """
        engine = read_engine(data)
        self.manifest = engine.manifest
        lanes = [[device.jax_devices[core] for core in lane] for lane in _select_lanes(engine, device)]
        with _translate_errors():
            self._execution = Execution(engine, lanes)

    def run(self, batch: int, memories: Sequence[Array]) -> None:
        """Run the program with `batch` samples; `memories` are the inputs and outputs in the order of the bindings.

        The caller has checked that they are large enough.
        """
        bindings = self.manifest.bindings
        arrays = [_binding_array(memory, binding, batch) for memory, binding in zip(memories, bindings, strict=True)]
        inputs = len(self.manifest.inputs)
        with _translate_errors():
            self._execution.execute(batch, arrays[:inputs], arrays[inputs:])

    def close(self) -> None:
        """Wait for running executions and release the weights."""
        self._execution.close()


def _binding_array(memory: Array, binding: Binding, batch: int) -> Array:
    """Return the beginning of a memory as an array with the type and shape of a binding."""
    shape, dtype = binding_shape(binding, batch), numpy_type(binding.dtype)
    return memory[: prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


def _select_lanes(engine: Engine, device: DeviceDescription) -> list[Lane]:
    """Return the lanes of an engine on a device; raise InterfaceError if the device lacks cores or local memory."""
    control = engine.manifest.control
    cores = core_numbers(control.core_mask)
    if cores[-1] >= device.cores.count:
        reason = f"the network needs core {cores[-1]}, device {device.number} has {device.cores.count}"
        raise InterfaceError(Error.Error_NotSupported, reason)
    if control.memory > device.local_memory:
        reason = f"the network needs {control.memory} bytes of a core's memory, a core has {device.local_memory}"
        raise InterfaceError(Error.Error_InsufficientMemory, reason)
    return split_lanes(control, [{core: core for core in cores}])


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Return a context manager that gives each InterfaceError NVDLA's error code in place of HanGuangRT's result."""
    try:
        yield
    except InterfaceError as error:
        raise InterfaceError(_ERRORS[error.result], str(error)) from error

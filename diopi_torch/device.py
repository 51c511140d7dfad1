"""The module `torch.diopi`, with the functions that PyTorch's other accelerators have.

There is one device, number 0, because the runtime of the standard has no concept of several devices.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, final

import torch

from diopi_torch import pinned, streams
from diopi_torch.backend import backend, is_forked, is_open
from diopi_torch.layout import DTYPES
from diopi_torch.memory import MemoryUsage
from diopi_torch.settings import NAME


def is_available() -> bool:
    """Return True; errors of a vendor are raised when the device is used."""
    return True


def is_initialized() -> bool:
    """Return whether the device has been used."""
    return is_open() and not is_forked()


def __getattr__(name: str) -> Any:
    """Return `_initialized`, which checkpoints read to find out whether the generator has a state.

    Raises:
        AttributeError: Another attribute is read.
    """
    if name == "_initialized":
        return is_initialized()
    raise AttributeError(f"module 'torch.{NAME}' has no attribute {name!r}")


def _lazy_init() -> None:
    """Open the device; PyTorch calls this function before the first use."""
    backend()


def _is_in_bad_fork() -> bool:
    """Return whether this process was forked after the device was used; PyTorch calls this function."""
    return is_forked()


def device_count() -> int:
    """Return 1, the number of devices."""
    return 1


def current_device() -> int:
    """Return 0, the number of the only device."""
    return 0


def _device_index(device: Any) -> int:
    """Return 0, the number of the only device.

    Args:
        device: None, a number, a text such as `diopi:0`, or a `torch.device`.

    Raises:
        RuntimeError: `device` is another device, or no device.
    """
    if device is None or isinstance(device, int):
        index, kind = device or 0, NAME
    else:
        named = torch.device(device)
        index, kind = named.index or 0, named.type
    if kind != NAME or index != 0:
        raise RuntimeError(f"there is no device {device!r}: the only one is {NAME}:0")
    return index


def set_device(device: Any) -> None:
    """Select a device; raise RuntimeError for any number except 0."""
    _device_index(device)


@final
class device:  # noqa: N801  # the module of every accelerator has a class with this name
    """A context manager that selects a device; the only valid number is 0."""

    def __init__(self, device: Any) -> None:
        self.idx = _device_index(device)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


@final
class DeviceProperties:
    """The properties of the device, as `torch.diopi.get_device_properties` returns them.

    Attributes:
        name: the name of the vendor.
        version: the version of its implementation.
        total_memory: the size of the memory in bytes; None if the runtime does not know it.
        host_addressable: whether the host can read and write the device's memory directly.
    """

    def __init__(self) -> None:
        vendor = backend().vendor
        self.name = vendor.name
        self.version = vendor.version
        self.host_addressable = backend().device.host_addressable
        self.total_memory = _physical_memory()[1] if self.host_addressable else None

    def __repr__(self) -> str:
        named = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"DeviceProperties({named})"


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Return the properties of the device."""
    _device_index(device)
    return DeviceProperties()


def get_device_name(device: Any = None) -> str:
    """Return the vendor's name and version."""
    _device_index(device)
    return f"{backend().vendor.name} {backend().vendor.version}"


def get_device_capability(device: Any = None) -> Mapping[str, set[torch.dtype]]:
    """Return the supported element types, as `torch.accelerator.get_device_capability` does."""
    _device_index(device)
    return {"supported_dtypes": set(DTYPES)}


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return True: the standard has bfloat16, and an operator that the vendor lacks for it runs on the CPU."""
    return True


def synchronize(device: Any = None) -> None:
    """Wait until the work on all streams is complete."""
    _device_index(device)
    backend().synchronize()


class Stream(streams.DeviceStream):
    """A queue of work on the device; all streams have the same priority."""

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        _device_index(device)
        super().__init__(backend().device)
        backend().register_stream(self)
        self._chosen: list[AbstractContextManager[streams.DeviceStream]] = []

    def __enter__(self) -> streams.DeviceStream:
        """Select the stream for this thread until the context ends."""
        self._chosen.append(stream(self))
        return self._chosen[-1].__enter__()

    def __exit__(self, *error: Any) -> None:
        self._chosen.pop().__exit__(*error)


class Event(streams.DeviceEvent):
    """A point in the work of a stream; the methods use the current stream if no stream is passed."""

    def record(self, stream: streams.DeviceStream | None = None) -> None:
        """Record the event on a stream."""
        super().record(stream or backend().stream)

    def wait(self, stream: streams.DeviceStream | None = None) -> None:
        """Let later work on a stream start after the event."""
        super().wait(stream or backend().stream)


def current_stream(device: Any = None) -> streams.DeviceStream:
    """Return the stream that this thread uses."""
    _device_index(device)
    return backend().stream


def default_stream(device: Any = None) -> streams.DeviceStream:
    """Return the stream of threads that have not selected one; gradients are computed on it, too."""
    _device_index(device)
    return backend().default_stream


def set_stream(stream: streams.DeviceStream | None) -> None:
    """Use this stream in this thread; None changes nothing."""
    if stream is not None:
        backend().streams.current = _check_stream(stream)


def stream(stream: streams.DeviceStream | None) -> AbstractContextManager[streams.DeviceStream]:
    """Return a context manager that uses this stream in this thread; None changes nothing."""
    return backend().streams.use_stream(backend().stream if stream is None else _check_stream(stream))


def _check_stream(stream: streams.DeviceStream) -> streams.DeviceStream:
    """Return the stream; raise TypeError if it does not belong to the device, such as PyTorch's compiled stream."""
    if not isinstance(stream, streams.DeviceStream):
        raise TypeError(f"expected a torch.{NAME}.Stream, found {stream!r}")
    return stream


def _record_stream(original: Callable[..., None]) -> Callable[..., None]:
    """Return an implementation of `Tensor.record_stream` that calls `original` for tensors of other devices."""

    def record_stream(self: torch.Tensor, stream: Any) -> None:
        """Keep the memory of this tensor until the program has waited for a stream that uses the memory."""
        if self.device.type != NAME:
            original(self, stream)
        else:
            _check_stream(stream).retain(self)

    return record_stream


def _dlpack_device(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return an implementation of `Tensor.__dlpack_device__` that calls `original` for tensors of other devices."""

    def dlpack_device(self: torch.Tensor) -> tuple[Any, int]:
        """Return DLPack's type and number of the device: the type for extensions, as for every `PrivateUse1` device."""
        if self.device.type != NAME:
            return original(self)
        return torch.utils.dlpack.DLDeviceType.kDLExtDev, 0

    return dlpack_device


def install() -> None:
    """Replace `Tensor.record_stream` and `Tensor.__dlpack_device__`, which do not support the device."""
    torch.Tensor.record_stream = _record_stream(torch.Tensor.record_stream)  # type: ignore[method-assign]  # as said
    torch.Tensor.__dlpack_device__ = _dlpack_device(torch.Tensor.__dlpack_device__)  # type: ignore[method-assign]  # as said


def manual_seed(seed: int) -> None:
    """Seed the device's generator with this number."""
    generator = backend().generator
    generator.seed, generator.offset = int(seed) % 2**64, 0


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices; `torch.manual_seed` calls this function."""
    manual_seed(seed)


def seed() -> None:
    """Seed the device's generator with a random number."""
    manual_seed(secrets.randbits(63))


def initial_seed() -> int:
    """Return the seed of the device's generator."""
    return backend().generator.seed


def get_rng_state(device: Any = None) -> torch.Tensor:
    """Return the state of the generator: 16 bytes with the seed and the number of values drawn."""
    _device_index(device)
    generator = backend().generator
    state = generator.seed.to_bytes(8, "little") + generator.offset.to_bytes(8, "little")
    return torch.tensor(list(state), dtype=torch.uint8)


def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
    """Restore a state from `get_rng_state`; raise ValueError for any other tensor."""
    _device_index(device)
    if new_state.dtype is not torch.uint8 or new_state.numel() != 16:
        raise ValueError(f"a state has 16 elements of torch.uint8, this has {new_state.numel()} of {new_state.dtype}")
    state = bytes(new_state.tolist())
    generator = backend().generator
    generator.seed, generator.offset = int.from_bytes(state[:8], "little"), int.from_bytes(state[8:], "little")


def get_rng_state_all() -> list[torch.Tensor]:
    """Return the states of all devices."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Sequence[torch.Tensor]) -> None:
    """Restore these states, one per device."""
    for state in new_states:
        set_rng_state(state)


def _read_usage(device: Any, read: Callable[[Any], MemoryUsage]) -> MemoryUsage:
    """Update the counters of the allocator and return the one that `read` selects from the allocator."""
    _device_index(device)
    allocator = backend().allocator
    allocator.collect()
    return read(allocator)


def memory_allocated(device: Any = None) -> int:
    """Return the number of bytes that tensors occupy, including rounding of allocations."""
    return _read_usage(device, lambda allocator: allocator.allocated).current


def max_memory_allocated(device: Any = None) -> int:
    """Return the maximum number of bytes that tensors occupied since the peak was reset."""
    return _read_usage(device, lambda allocator: allocator.allocated).peak


def memory_reserved(device: Any = None) -> int:
    """Return the number of bytes allocated from the vendor, for tensors and in the cache."""
    return _read_usage(device, lambda allocator: allocator.reserved).current


def max_memory_reserved(device: Any = None) -> int:
    """Return the maximum number of bytes that were reserved since the peak was reset."""
    return _read_usage(device, lambda allocator: allocator.reserved).peak


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset the peaks to the current usage."""
    _read_usage(device, lambda allocator: allocator.allocated).reset_peak()
    _read_usage(device, lambda allocator: allocator.reserved).reset_peak()


def memory_stats(device: Any = None) -> Mapping[str, int]:
    """Return the current and maximum numbers of bytes, by the keys that `torch.cuda.memory_stats` uses."""
    return {
        "allocated_bytes.all.current": memory_allocated(device),
        "allocated_bytes.all.peak": max_memory_allocated(device),
        "reserved_bytes.all.current": memory_reserved(device),
        "reserved_bytes.all.peak": max_memory_reserved(device),
    }


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Do nothing: no statistic of the device accumulates over time."""
    _device_index(device)


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return the statistics of the memory as a table with one line per statistic."""
    return "\n".join(f"{name:<30}{value:>20,} bytes" for name, value in memory_stats(device).items())


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limit the memory of this process: an allocation beyond the limit raises `torch.OutOfMemoryError`.

    Args:
        fraction: the part of the memory that the process may use, from 0 to 1.
        device: the device.

    Raises:
        ValueError: if the fraction is not between 0 and 1.
        RuntimeError: if the size of the memory is unknown, as `mem_get_info` says.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"expected a fraction from 0 to 1, found {fraction}")
    backend().allocator.limit = int(fraction * mem_get_info(device)[1])


def empty_cache() -> None:
    """Wait for all streams and return cached memory to the vendor."""
    backend().allocator.empty_cache()


def empty_host_cache() -> None:
    """Free all pinned memory that is cached."""
    pinned.host_allocator().empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total size of the host's memory, which the device uses, in bytes.

    Args:
        device: the device.

    Returns:
        The number of free bytes and of all bytes.

    Raises:
        RuntimeError: if the device has its own memory, because the runtime of the standard can't query its size.
    """
    _device_index(device)
    if not backend().device.host_addressable:
        raise RuntimeError(f"the runtime of {backend().vendor.name} has no way to ask how much memory there is")
    return _physical_memory()


def _physical_memory() -> tuple[int, int]:
    """Return the number of free bytes and of all bytes of the host's memory."""
    page = os.sysconf("SC_PAGE_SIZE")
    return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the element types of autocast."""
    return [torch.bfloat16, torch.float16]

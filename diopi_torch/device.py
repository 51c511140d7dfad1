"""The module `torch.diopi`, with the functions that PyTorch's other accelerators have.

There are as many devices as the vendor's device runtime has. Without a device runtime there is one, number 0.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, wraps
from typing import Any, final

import torch

from diopi_torch import streams
from diopi_torch.backend import Backend, backend, describe_devices, is_forked, is_open
from diopi_torch.backend import device_count as count_devices
from diopi_torch.layout import DTYPES
from diopi_torch.memory import MemoryUsage
from diopi_torch.runtime import current_device as thread_device
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
    """Return the number of devices."""
    return count_devices()


def current_device() -> int:
    """Return the number of the device that this thread has selected."""
    return thread_device.index


def _device_index(device: Any) -> int:
    """Return the number of a device.

    Args:
        device: None or a device without a number for the current device of this thread; a number, a text such as
            `diopi:0`, or a `torch.device`.

    Raises:
        RuntimeError: `device` is not one of the devices.
    """
    index, kind = (device, NAME) if device is None or isinstance(device, int) else _parse_device(device)
    index = thread_device.index if index is None else index
    if kind != NAME or (index != 0 and not 0 < index < device_count()):
        raise RuntimeError(f"there is no device {device!r}: {describe_devices(device_count())}")
    return index


def _parse_device(device: Any) -> tuple[int | None, str]:
    """Return the number and the type of a device."""
    named = torch.device(device)
    return named.index, named.type


def _device_at(device: Any) -> Backend:
    """Return the open device; raise RuntimeError if there is no such device, as `_device_index` does."""
    return backend().device_at(_device_index(device))


def set_device(device: Any) -> None:
    """Select a device for this thread; raise RuntimeError if there is no such device."""
    index = _device_index(device)
    if index != thread_device.index:
        _replace_conversions()
        backend().runtime.set_device(index)


@cache
def _replace_conversions() -> None:
    """Let `to("diopi")` and the like mean the current device; PyTorch's compiled code takes it for device 0."""
    owners: list[tuple[Any, str]] = [(torch.Tensor, "to"), (torch, "tensor"), (torch, "as_tensor"), (torch, "asarray")]
    for owner, name in owners:
        setattr(owner, name, _on_current_device(getattr(owner, name)))


def _on_current_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes a device without a number for the current device of the thread."""

    @wraps(function)
    def convert(*args: Any, **kwargs: Any) -> Any:
        """Call the function with numbered devices, unless the current device is device 0."""
        if not thread_device.index or torch.compiler.is_compiling():
            return function(*args, **kwargs)
        return function(*map(_numbered, args), **{name: _numbered(value) for name, value in kwargs.items()})

    return convert


def _numbered(value: Any) -> Any:
    """Return the current device for the device without a number; return any other value unchanged."""
    if isinstance(value, str | torch.device) and str(value) == NAME:
        return torch.device(NAME, thread_device.index)
    return value


def exchange_device(device: int) -> int:
    """Select a device for this thread and return the number of the previous one; a negative number changes nothing."""
    previous = current_device()
    if device >= 0:
        set_device(device)
    return previous


_exchange_device = maybe_exchange_device = _maybe_exchange_device = exchange_device
"""The names by which PyTorch calls `exchange_device`."""


@final
class device:  # noqa: N801  # the module of every accelerator has a class with this name
    """A context manager that selects a device for this thread, and the previous one again at its end."""

    def __init__(self, device: Any) -> None:
        self.idx = _device_index(device)
        self._before = self.idx

    def __enter__(self) -> None:
        self._before = exchange_device(self.idx)

    def __exit__(self, *_: object) -> None:
        set_device(self._before)


@final
class device_of:  # noqa: N801  # the module of every accelerator has a class with this name
    """A context manager that selects the device of a tensor; a tensor that is not on the device changes nothing."""

    def __init__(self, obj: torch.Tensor) -> None:
        self._choice = device(obj.device if obj.device.type == NAME else None)

    def __enter__(self) -> None:
        self._choice.__enter__()

    def __exit__(self, *error: object) -> None:
        self._choice.__exit__(*error)


@final
class DeviceProperties:
    """The properties of a device, as `torch.diopi.get_device_properties` returns them.

    Args:
        owner: the device.

    Attributes:
        name: the name that the vendor's device runtime reports, otherwise the name of the vendor.
        version: the version of the vendor's implementation of the operators.
        total_memory: the size of the memory in bytes; None if the runtime does not know it.
        host_addressable: whether the host can read and write the device's memory directly.
        major, minor: the version of the hardware; 0 if it is unknown.
        multi_processor_count: the number of processors; 0 if it is unknown.
    """

    def __init__(self, owner: Backend) -> None:
        properties = owner.runtime.properties(owner.index)
        self.name = properties.name or owner.vendor.name
        self.version = owner.vendor.version
        self.host_addressable = owner.device.host_addressable
        self.total_memory = properties.total_memory
        if properties.total_memory is None and self.host_addressable:
            self.total_memory = _physical_memory()[1]
        self.major, self.minor = properties.major, properties.minor
        self.multi_processor_count = properties.multi_processor_count

    def __repr__(self) -> str:
        named = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"DeviceProperties({named})"


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Return the properties of a device."""
    return DeviceProperties(_device_at(device))


def get_device_name(device: Any = None) -> str:
    """Return the name that the vendor's device runtime reports, otherwise the vendor's name and version."""
    owner = _device_at(device)
    return owner.runtime.properties(owner.index).name or f"{owner.vendor.name} {owner.vendor.version}"


def get_device_capability(device: Any = None) -> Mapping[str, set[torch.dtype]]:
    """Return the supported element types, as `torch.accelerator.get_device_capability` does."""
    _device_index(device)
    return {"supported_dtypes": set(DTYPES)}


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return True: the standard has bfloat16, and an operator that the vendor lacks for it runs on the CPU."""
    return True


def synchronize(device: Any = None) -> None:
    """Wait until the work on all streams of a device is complete."""
    _device_at(device).synchronize()


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Return whether memory can be copied directly between two devices: between all, if they differ."""
    return _device_index(device) != _device_index(peer_device)


class Stream(streams.DeviceStream):
    """A queue of work on a device.

    Args:
        device: the device; None for the current one.
        priority: a negative number if the device shall prefer the work of this stream. Without a device runtime of the
            vendor, all streams have the same priority.
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        owner = _device_at(device)
        super().__init__(owner, priority)
        owner.register_stream(self)
        self._chosen: list[AbstractContextManager[streams.DeviceStream]] = []

    def __enter__(self) -> streams.DeviceStream:
        """Select the stream for this thread until the context ends."""
        self._chosen.append(stream(self))
        return self._chosen[-1].__enter__()

    def __exit__(self, *error: Any) -> None:
        self._chosen.pop().__exit__(*error)


class Event(streams.DeviceEvent):
    """A point in the work of a stream; the methods use the current stream if no stream is passed.

    Args:
        enable_timing: whether the event records the time for `elapsed_time`.
        blocking: has no effect; waiting never spins.
        interprocess: must be False.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise NotImplementedError("events of the device can't be shared between processes")
        super().__init__(backend().runtime, enable_timing, blocking)

    def record(self, stream: streams.DeviceStream | None = None) -> None:
        """Record the event on a stream."""
        super().record(stream or backend().stream)

    def wait(self, stream: streams.DeviceStream | None = None) -> None:
        """Let later work on a stream start after the event."""
        super().wait(stream or backend().stream)


def current_stream(device: Any = None) -> streams.DeviceStream:
    """Return the stream of a device that this thread uses."""
    return _device_at(device).stream


def default_stream(device: Any = None) -> streams.DeviceStream:
    """Return the stream of threads that have not selected one; gradients are computed on it, too."""
    return _device_at(device).default_stream


def set_stream(stream: streams.DeviceStream | None) -> None:
    """Use this stream and its device in this thread; None changes nothing."""
    if stream is not None:
        set_device(_check_stream(stream).device_index)
        backend().streams.current = stream


@contextmanager
def stream(stream: streams.DeviceStream | None) -> Iterator[streams.DeviceStream]:
    """Return a context manager that uses this stream and its device in this thread; None changes nothing."""
    chosen = backend().stream if stream is None else _check_stream(stream)
    owner = backend().device_at(chosen.device_index)
    with owner.runtime.on_device(owner.index), owner.streams.use_stream(chosen):
        yield chosen


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
            with device(self.device):
                _check_stream(stream).retain(self)

    return record_stream


def _dlpack_device(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return an implementation of `Tensor.__dlpack_device__` that calls `original` for tensors of other devices."""

    def dlpack_device(self: torch.Tensor) -> tuple[Any, int]:
        """Return DLPack's type and number of the device: the type for extensions, as for every `PrivateUse1` device."""
        if self.device.type != NAME:
            return original(self)
        return torch.utils.dlpack.DLDeviceType.kDLExtDev, self.device.index

    return dlpack_device


def install() -> None:
    """Replace `Tensor.record_stream` and `Tensor.__dlpack_device__`, which do not support the device."""
    torch.Tensor.record_stream = _record_stream(torch.Tensor.record_stream)  # type: ignore[method-assign]  # as said
    torch.Tensor.__dlpack_device__ = _dlpack_device(torch.Tensor.__dlpack_device__)  # type: ignore[method-assign]  # as said


def manual_seed(seed: int) -> None:
    """Seed the generator of the current device with this number."""
    _seed_generator(backend(), seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices; `torch.manual_seed` calls this function."""
    for index in range(device_count()):
        _seed_generator(_device_at(index), seed)


def _seed_generator(owner: Backend, seed: int) -> None:
    """Seed the generator of a device."""
    owner.generator.seed, owner.generator.offset = int(seed) % 2**64, 0


def seed_all() -> None:
    """Seed the generators of all devices with one random number."""
    manual_seed_all(secrets.randbits(63))


def seed() -> None:
    """Seed the device's generator with a random number."""
    manual_seed(secrets.randbits(63))


def initial_seed() -> int:
    """Return the seed of the device's generator."""
    return backend().generator.seed


def get_rng_state(device: Any = None) -> torch.Tensor:
    """Return the state of the generator: 16 bytes with the seed and the number of values drawn."""
    generator = _device_at(device).generator
    state = generator.seed.to_bytes(8, "little") + generator.offset.to_bytes(8, "little")
    return torch.tensor(list(state), dtype=torch.uint8)


def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
    """Restore a state from `get_rng_state`; raise ValueError for any other tensor."""
    if new_state.dtype is not torch.uint8 or new_state.numel() != 16:
        raise ValueError(f"a state has 16 elements of torch.uint8, this has {new_state.numel()} of {new_state.dtype}")
    state = bytes(new_state.tolist())
    generator = _device_at(device).generator
    generator.seed, generator.offset = int.from_bytes(state[:8], "little"), int.from_bytes(state[8:], "little")


def get_rng_state_all() -> list[torch.Tensor]:
    """Return the states of all devices."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Sequence[torch.Tensor]) -> None:
    """Restore these states, one per device."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def _read_usage(device: Any, read: Callable[[Any], MemoryUsage]) -> MemoryUsage:
    """Update the counters of the allocator and return the one that `read` selects from the allocator."""
    allocator = _device_at(device).allocator
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
    _device_at(device).allocator.limit = int(fraction * mem_get_info(device)[1])


def empty_cache() -> None:
    """Wait for all streams and return the cached memory of all devices to the vendor."""
    for owner in backend().open_devices():
        owner.allocator.empty_cache()


def empty_host_cache() -> None:
    """Free all pinned memory that is cached."""
    backend().host_allocator.empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total size of a device's memory in bytes.

    Without a device runtime of the vendor, this is the host's memory if the device uses it.

    Args:
        device: the device.

    Returns:
        The number of free bytes and of all bytes.

    Raises:
        RuntimeError: if the device has its own memory, because the runtime of the standard can't query its size.
    """
    owner = _device_at(device)
    memory = owner.runtime.memory_info(owner.index)
    if memory is None and not owner.device.host_addressable:
        raise RuntimeError(f"the runtime of {owner.vendor.name} has no way to ask how much memory there is")
    return memory or _physical_memory()


def _physical_memory() -> tuple[int, int]:
    """Return the number of free bytes and of all bytes of the host's memory."""
    page = os.sysconf("SC_PAGE_SIZE")
    return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the element types of autocast."""
    return [torch.bfloat16, torch.float16]

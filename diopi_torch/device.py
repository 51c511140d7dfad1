"""`torch.diopi`: the device as PyTorch's other accelerators show themselves, by functions of the same names.

There is one device, number 0: the runtime of the standard knows no others.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, final

import torch

from diopi_torch import streams
from diopi_torch.backend import backend, is_forked, is_open
from diopi_torch.memory import Usage
from diopi_torch.settings import NAME


def is_available() -> bool:
    """True: what is wrong with a vendor is said when it is used."""
    return True


def is_initialized() -> bool:
    """Whether the device was used."""
    return is_open() and not is_forked()


def __getattr__(name: str) -> Any:
    """`_initialized`, by which checkpoints ask whether the generator has a state."""
    if name == "_initialized":
        return is_initialized()
    raise AttributeError(f"module 'torch.{NAME}' has no attribute {name!r}")


def _lazy_init() -> None:
    backend()


def _is_in_bad_fork() -> bool:
    return is_forked()


def device_count() -> int:
    """1."""
    return 1


def current_device() -> int:
    """0, the number of the only device."""
    return 0


def _index(device: Any) -> int:
    """The number of a device, named in any way; RuntimeError if there is none of it."""
    if device is None or isinstance(device, int):
        index, kind = device or 0, NAME
    else:
        named = torch.device(device)
        index, kind = named.index or 0, named.type
    if kind != NAME or index != 0:
        raise RuntimeError(f"there is no device {device!r}: the only one is {NAME}:0")
    return index


def set_device(device: Any) -> None:
    """Choose a device: number 0. RuntimeError for any other."""
    _index(device)


@final
class device:  # noqa: N801  # so it is called for every accelerator
    """A context manager that chooses a device: number 0."""

    def __init__(self, device: Any) -> None:
        self.idx = _index(device)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


@final
class DeviceProperties:
    """What is known of the device.

    Attributes:
        name: of the vendor.
        version: of its implementation.
        total_memory: bytes, None where the runtime can't say.
        host_addressable: whether the host reads and writes the device's memory itself.
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
    """What is known of the device."""
    _index(device)
    return DeviceProperties()


def get_device_name(device: Any = None) -> str:
    """The vendor's name and version."""
    _index(device)
    return f"{backend().vendor.name} {backend().vendor.version}"


def synchronize(device: Any = None) -> None:
    """Wait until all streams are done."""
    _index(device)
    backend().synchronize()


class Stream(streams.Stream):
    """A queue of the device; all have one priority."""

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        _index(device)
        super().__init__(backend().device)
        backend().include(self)
        self._chosen: list[AbstractContextManager[streams.Stream]] = []

    def __enter__(self) -> streams.Stream:
        """Work on it in this thread until the context ends."""
        self._chosen.append(stream(self))
        return self._chosen[-1].__enter__()

    def __exit__(self, *error: Any) -> None:
        self._chosen.pop().__exit__(*error)


class Event(streams.Event):
    """A point in the work of a stream, the current one unless another is named."""

    def record(self, stream: streams.Stream | None = None) -> None:
        super().record(stream or backend().stream)

    def wait(self, stream: streams.Stream | None = None) -> None:
        super().wait(stream or backend().stream)


def current_stream(device: Any = None) -> streams.Stream:
    """The stream that this thread works on."""
    _index(device)
    return backend().stream


def default_stream(device: Any = None) -> streams.Stream:
    """The stream that threads work on which chose none; gradients are computed on it too."""
    _index(device)
    return backend().default_stream


def set_stream(stream: streams.Stream | None) -> None:
    """Work on this stream in this thread; None changes nothing."""
    if stream is not None:
        backend().streams.current = _ours(stream)


def stream(stream: streams.Stream | None) -> AbstractContextManager[streams.Stream]:
    """A context manager: work on this stream meanwhile; None changes nothing."""
    return backend().streams.choosing(backend().stream if stream is None else _ours(stream))


def _ours(stream: streams.Stream) -> streams.Stream:
    """A stream; TypeError for what is none of the device, such as PyTorch's compiled one."""
    if not isinstance(stream, streams.Stream):
        raise TypeError(f"expected a torch.{NAME}.Stream, found {stream!r}")
    return stream


def _record_stream(original: Callable[..., None]) -> Callable[..., None]:
    def record_stream(self: torch.Tensor, stream: Any) -> None:
        """Keep the memory of this tensor until a stream that uses it was waited for."""
        if self.device.type != NAME:
            original(self, stream)
        else:
            _ours(stream).retain(self)

    return record_stream


def install() -> None:
    """Let tensors record streams of the device, which PyTorch's compiled method does not take."""
    torch.Tensor.record_stream = _record_stream(torch.Tensor.record_stream)  # type: ignore[method-assign]  # as said


def manual_seed(seed: int) -> None:
    """Seed the device's generator."""
    generator = backend().generator
    generator.seed, generator.offset = int(seed) % 2**64, 0


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices. `torch.manual_seed` calls it."""
    manual_seed(seed)


def seed() -> None:
    """Seed the device's generator with a random number."""
    manual_seed(secrets.randbits(63))


def initial_seed() -> int:
    """The seed of the device's generator."""
    return backend().generator.seed


def get_rng_state(device: Any = None) -> torch.Tensor:
    """The seed and how many numbers were drawn: 16 bytes."""
    _index(device)
    generator = backend().generator
    state = generator.seed.to_bytes(8, "little") + generator.offset.to_bytes(8, "little")
    return torch.tensor(list(state), dtype=torch.uint8)


def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
    """Go on from a state that `get_rng_state` gave; ValueError for anything else."""
    _index(device)
    if new_state.dtype is not torch.uint8 or new_state.numel() != 16:
        raise ValueError(f"a state has 16 elements of torch.uint8, this has {new_state.numel()} of {new_state.dtype}")
    state = bytes(new_state.tolist())
    generator = backend().generator
    generator.seed, generator.offset = int.from_bytes(state[:8], "little"), int.from_bytes(state[8:], "little")


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Sequence[torch.Tensor]) -> None:
    """Go on from these states, one a device."""
    for state in new_states:
        set_rng_state(state)


def _usage(device: Any, read: Callable[[Any], Usage]) -> Usage:
    _index(device)
    allocator = backend().allocator
    allocator.collect()
    return read(allocator)


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors have, rounded up as they are allocated."""
    return _usage(device, lambda allocator: allocator.allocated).current


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors ever had since the peak was reset."""
    return _usage(device, lambda allocator: allocator.allocated).peak


def memory_reserved(device: Any = None) -> int:
    """Bytes asked of the vendor and not given back: those of tensors, and cached ones."""
    return _usage(device, lambda allocator: allocator.reserved).current


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that were ever reserved since the peak was reset."""
    return _usage(device, lambda allocator: allocator.reserved).peak


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks begin anew, with what is in use now."""
    _usage(device, lambda allocator: allocator.allocated).reset_peak()
    _usage(device, lambda allocator: allocator.reserved).reset_peak()


def memory_stats(device: Any = None) -> Mapping[str, int]:
    """What the functions above give, by the names that PyTorch has for them."""
    return {
        "allocated_bytes.all.current": memory_allocated(device),
        "allocated_bytes.all.peak": max_memory_allocated(device),
        "reserved_bytes.all.current": memory_reserved(device),
        "reserved_bytes.all.peak": max_memory_reserved(device),
    }


def empty_cache() -> None:
    """Give memory that no tensor has back to the vendor, after waiting for all streams."""
    backend().allocator.empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free bytes and all bytes of memory. RuntimeError where the device's memory is not the host's: no function of the
    standard's runtime tells."""
    _index(device)
    if not backend().device.host_addressable:
        raise RuntimeError(f"the runtime of {backend().vendor.name} has no way to ask how much memory there is")
    return _physical_memory()


def _physical_memory() -> tuple[int, int]:
    """Free and all bytes of the host's memory."""
    page = os.sysconf("SC_PAGE_SIZE")
    return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The element types of autocast."""
    return [torch.bfloat16, torch.float16]

"""Generators: the state (seed and offset) of random operators."""

from __future__ import annotations

from typing import Any

from lib_rt.device import Device, OnDevice
from lib_rt.library import call_for_output, check, ffi, lib
from lib_rt.owner import Owner


class Generator(Owner):
    """A random generator on a device.

    Args:
        place: A device, or a context or tensor whose device is used.
        seed: Unsigned 64-bit integer.
        offset: Count of numbers drawn since the generator was seeded, unsigned 64-bit.
    """

    __slots__ = ("device",)

    api: Any = lib
    """The functions of `diopirt.h` that understand the generator."""

    def __init__(self, place: Device | OnDevice, seed: int, offset: int = 0) -> None:
        self._handle = None
        self.device = place if isinstance(place, Device) else place.device
        self._handle = call_for_output(lib.diopirt_generator_create, "diopiGeneratorHandle_t", seed, offset)

    @property
    def seed(self) -> int:
        """The seed. Setting it does not change the offset."""
        return self._seed_and_offset()[0]

    @seed.setter
    def seed(self, seed: int) -> None:
        check(self.api.diopiGeneratorSetSeedAndOffset(self.handle, seed, self.offset))

    @property
    def offset(self) -> int:
        """Count of numbers drawn since the generator was seeded."""
        return self._seed_and_offset()[1]

    @offset.setter
    def offset(self, offset: int) -> None:
        check(self.api.diopiGeneratorSetSeedAndOffset(self.handle, self.seed, offset))

    def _seed_and_offset(self) -> tuple[int, int]:
        """Return the seed and the offset."""
        pair = ffi.new("uint64_t[2]")
        check(self.api.diopiGeneratorGetSeedAndOffset(self.handle, pair, pair + 1))
        return pair[0], pair[1]

    def _release(self, handle: Any) -> None:
        """Destroy the generator."""
        check(lib.diopirt_generator_destroy(handle))

"""Map the virtual devices and cores of a group's scheme to physical ones, for all engines of the group at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from itertools import permutations
from operator import or_
from typing import final

from diopi_engine.manifest import Control, EngineManifest
from diopi_engine.proto.hgrt import CoreAllocPolicy, Result
from diopi_engine.runtime.cores import core_numbers, cores_mask
from diopi_engine.runtime.devices import DeviceDescription
from diopi_engine.runtime.errors import InterfaceError

Lane = tuple[int, ...]
"""The cores that compute a batch together."""


@final
@dataclass(kw_only=True)
class Allocation:
    """The cores that are allocated for a group.

    Attributes:
        group: the name of the group.
        devices: the physical device of each virtual device.
        lanes: the lanes of each engine of the group.
        core_masks: masks of the allocated cores, by physical device.
        contexts: the numbers of the engines of the group that have an execution context.
    """

    group: str
    devices: Mapping[int, DeviceDescription]
    lanes: Sequence[Sequence[Lane]]
    core_masks: Mapping[int, int]
    contexts: set[int]

    def can_hold_context(self, manifest: EngineManifest, device: DeviceDescription) -> bool:
        """Return whether an engine of a device, which has no context yet, can use these cores for its context."""
        mapped = self.devices.get(manifest.control.virtual_device)
        return self.group == manifest.group and mapped is device and manifest.engine not in self.contexts

    def mask(self, engine: int) -> int:
        """Return the mask of the physical cores that are allocated for the engine with this number."""
        return cores_mask([core for lane in self.lanes[engine] for core in lane])

    def release(self) -> None:
        """Release all cores of the allocation."""
        for device in self.devices.values():
            with device.cores.exclusive_access():
                device.cores.end_use(self.core_masks[device.number])


def allocate(
    manifest: EngineManifest,
    device: DeviceDescription,
    devices: Sequence[DeviceDescription],
    policy: CoreAllocPolicy,
    mask: int,
) -> Allocation:
    """Allocate cores for the group of an engine of `device`.

    Args:
        manifest: the manifest of the engine.
        device: the device of the engine.
        devices: all devices.
        policy: which cores to allocate.
        mask: the cores for this engine, if the policy uses a mask.

    Returns:
        The allocated cores.

    Raises:
        InterfaceError: HG_ERROR_CORES_UNAVAILABLE or HG_ERROR_OUT_OF_MEMORY; then nothing is allocated.
    """
    _check_memory(manifest, device)
    virtual_device = manifest.control.virtual_device
    virtual_others = sorted({control.virtual_device for control in manifest.scheme} - {virtual_device})
    free = [mapped_device for mapped_device in devices if mapped_device is not device]
    reason = f"the scheme needs {len(virtual_others) + 1} devices, there are {len(devices)}"
    for chosen in permutations(free, len(virtual_others)):
        mapped = {virtual_device: device, **dict(zip(virtual_others, chosen, strict=True))}
        with ExitStack() as stack:
            for mapped_device in sorted(
                mapped.values(), key=lambda candidate: candidate.number
            ):  # in the same order in all processes, which avoids deadlocks
                stack.enter_context(mapped_device.cores.exclusive_access())
            try:
                return _reserve_cores(manifest, mapped, policy, mask)
            except InterfaceError as error:
                reason = str(error)
    raise InterfaceError(Result.ERROR_CORES_UNAVAILABLE, reason)


def _check_memory(manifest: EngineManifest, device: DeviceDescription) -> None:
    """Raise InterfaceError if an engine of the group needs more memory than a core of the device has."""
    for control in manifest.scheme:
        if control.memory > device.local_memory:
            requirement = f"engine {control.name!r} needs {control.memory} bytes of local memory"
            raise InterfaceError(Result.ERROR_OUT_OF_MEMORY, f"{requirement}, a core has {device.local_memory}")


def _reserve_cores(
    manifest: EngineManifest, mapped: Mapping[int, DeviceDescription], policy: CoreAllocPolicy, mask: int
) -> Allocation:
    """Return the cores of a group, after reserving them on the devices.

    Args:
        manifest: The manifest of an engine of the group.
        mapped: The device for each virtual device of the group.
        policy: How the cores are chosen.
        mask: The cores of this engine, one bit each; 0 unless the policy is to use a mask.

    Raises:
        InterfaceError: Too few cores are free (HG_ERROR_CORES_UNAVAILABLE).
    """
    copies = {
        virtual: _map_copies(
            manifest, virtual, device, policy, mask if virtual == manifest.control.virtual_device else 0
        )
        for virtual, device in mapped.items()
    }
    lanes = [split_lanes(control, copies[control.virtual_device]) for control in manifest.scheme]
    if mask:
        lanes[manifest.engine] = _group_cores(core_numbers(mask), manifest.control.cores_per_batch)
    masks = {
        device.number: cores_mask([*{core for copy in copies[virtual] for core in copy.values()}])
        for virtual, device in mapped.items()
    }
    masks[mapped[manifest.control.virtual_device].number] |= mask
    for device in mapped.values():
        device.cores.use(masks[device.number])
    return Allocation(group=manifest.group, devices=mapped, lanes=lanes, core_masks=masks, contexts=set())


def _map_copies(
    manifest: EngineManifest, virtual: int, device: DeviceDescription, policy: CoreAllocPolicy, mask: int
) -> list[dict[int, int]]:
    """Return a map from virtual to physical cores of a device for each copy of the scheme.

    Args:
        manifest: the manifest of the engine.
        virtual: the virtual device.
        device: the physical device.
        policy: which cores to use.
        mask: the physical cores for this engine; 0 for any cores.

    Returns:
        The maps, one per copy.

    Raises:
        InterfaceError: HG_ERROR_CORES_UNAVAILABLE if too few cores are free.
    """
    masks = (control.core_mask for control in manifest.scheme if control.virtual_device == virtual)
    required_cores = core_numbers(reduce(or_, masks))
    fixed: dict[int, int] = {}
    available = device.cores.available
    if mask:
        virtual_cores = core_numbers(manifest.control.core_mask)
        usable = available | device.cores.free
        if mask & ~usable:
            raise InterfaceError(Result.ERROR_CORES_UNAVAILABLE, f"of cores {mask:#x} only {mask & usable:#x} are free")
        fixed = dict(zip(virtual_cores, core_numbers(mask), strict=False))
        available &= ~mask
    left = [core for core in required_cores if core not in fixed]
    cores = core_numbers(available)
    if len(cores) < len(left):
        raise InterfaceError(
            Result.ERROR_CORES_UNAVAILABLE,
            f"the scheme needs {len(left)} cores of device {device.number}, {len(cores)} are free",
        )
    count = len(cores) // len(left) if policy is CoreAllocPolicy.MAXIMUM else 1
    return [fixed | dict(zip(left, cores[n * len(left) : (n + 1) * len(left)], strict=True)) for n in range(count)]


def split_lanes(control: Control, copies: Sequence[Mapping[int, int]]) -> list[Lane]:
    """Return the lanes of an engine, as physical cores, on each copy of its group's scheme.

    Args:
        control: the cores that the engine needs.
        copies: for each copy of the scheme, the physical core of each virtual core.
    """
    cores = core_numbers(control.core_mask)
    return [lane for copy in copies for lane in _group_cores([copy[core] for core in cores], control.cores_per_batch)]


def _group_cores(cores: Sequence[int], size: int) -> list[Lane]:
    """Return a sequence of cores as lanes of `size` cores."""
    return [tuple(cores[n : n + size]) for n in range(0, len(cores), size)]

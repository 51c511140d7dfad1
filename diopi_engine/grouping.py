"""`link`: combine engines to a group, with a plan of cores and local memory for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

from diopi_engine.container import sha256
from diopi_engine.engine import Engine
from diopi_engine.errors import LinkError
from diopi_engine.manifest import MAX_CORES, Control

LOCAL_MEMORY = 256 << 20
"""Default size of a core's local memory in bytes."""


@final
@dataclass(kw_only=True)
class _PlannedCore:
    """A core of a virtual device, and the engines that are planned for it.

    Attributes:
        device: the number of the virtual device.
        number: the number of the core.
        memory: the size of its local memory in bytes.
        engines: the numbers of the engines that run on the core.
        weights: the bytes of the weights of all these engines.
        largest: the bytes of the largest patch of these engines; only one patch is in memory at a time.
    """

    device: int
    number: int
    memory: int
    engines: list[int] = field(default_factory=list)
    weights: int = 0
    largest: int = 0

    def fits(self, weights: int, patch: int) -> bool:
        """Return whether the weights of an engine fit next to all assigned weights and the largest patch."""
        return self.weights + weights + max(self.largest, patch) <= self.memory

    def assign(self, engine: int, weights: int, patch: int) -> None:
        """Assign an engine with this number to the core and reserve memory for its weights and its patch."""
        self.engines.append(engine)
        self.weights += weights
        self.largest = max(self.largest, patch)


def link(
    engines: Sequence[Engine], *, devices: int = 1, cores: int = MAX_CORES, local_memory: int = LOCAL_MEMORY
) -> list[Engine]:
    """Link engines to a group; the execution context of one of them allocates cores for all.

    Each engine is assigned to cores of one virtual device. Engines have separate cores if there are enough cores.
    Engines on the same cores share their memory: the weights of all engines stay there, and their intermediate data
    alternates.

    Args:
        engines: the engines.
        devices: the number of virtual devices.
        cores: the number of cores of each device, 1 to 32.
        local_memory: the local memory of a core in bytes.

    Returns:
        The linked engines in the same order.

    Raises:
        LinkError: if an engine does not fit, each device already runs another mode, or a number is out of range.
    """
    if not engines or devices < 1 or not 1 <= cores <= MAX_CORES:
        raise LinkError(f"{len(engines)} engines on {devices} devices of {cores} cores, expected 1 or more of each")
    plan = [
        [_PlannedCore(device=device, number=number, memory=local_memory) for number in range(cores)]
        for device in range(devices)
    ]
    modes: dict[int, str] = {}
    placed = {
        n: _place_engine(n, engines, plan, modes)
        for n in sorted(range(len(engines)), key=lambda n: -_core_count(engines[n]))
    }
    scheme = _control_scheme(engines, [placed[n] for n in range(len(engines))])
    group = sha256("".join([*(engine.manifest.group for engine in engines), repr(scheme)]).encode())
    return [
        replace(engine, manifest=replace(engine.manifest, group=group, engine=n, scheme=scheme))
        for n, engine in enumerate(engines)
    ]


def _control_scheme(engines: Sequence[Engine], placed: Sequence[Sequence[_PlannedCore]]) -> tuple[Control, ...]:
    """Return the control data of all engines of a group.

    Args:
        engines: the engines.
        placed: the cores of each engine.
    """
    groups = _memory_groups(placed)
    return tuple(
        replace(
            engine.manifest.control,
            virtual_device=placed[n][0].device,
            memory_group=groups[n],
            core_mask=sum(1 << core.number for core in placed[n]),
        )
        for n, engine in enumerate(engines)
    )


def _core_count(engine: Engine) -> int:
    """Return the number of cores that an engine runs on."""
    return engine.manifest.control.core_mask.bit_count()


def _memory_per_core(engine: Engine) -> tuple[int, int]:
    """Return the number of bytes that an engine needs on each core for weights and for a patch."""
    control: Control = engine.manifest.control
    parts = control.cores_per_batch if control.mode == "weight_split" else 1
    weights = -(-sum(array.nbytes for array in engine.weights) // parts)
    return weights, control.memory - weights


def _place_engine(
    number: int, engines: Sequence[Engine], plan: Sequence[Sequence[_PlannedCore]], modes: dict[int, str]
) -> list[_PlannedCore]:
    """Return the cores of one device to which an engine is assigned: the cores with the fewest engines.

    Args:
        number: The number of the engine in `engines`.
        engines: The engines of the group.
        plan: The cores of each device, to which the engine is added.
        modes: The mode of each device that has an engine; the mode of the chosen device is entered.

    Raises:
        LinkError: No device has enough cores with enough memory in the mode of the engine.
    """
    engine, control, needs = engines[number], engines[number].manifest.control, _memory_per_core(engines[number])
    choices = []
    for device, cores in enumerate(plan):
        fitting = sorted(
            (core for core in cores if core.fits(*needs)), key=lambda core: (len(core.engines), core.number)
        )
        if len(fitting) >= _core_count(engine) and modes.get(device, control.mode) == control.mode:
            chosen = fitting[: _core_count(engine)]
            choices.append((sum(len(core.engines) for core in chosen), device, chosen))
    if not choices:
        raise LinkError(
            f"engine {control.name!r} needs {_core_count(engine)} cores of one device in mode {control.mode} with "
            f"{sum(needs)} bytes of local memory each: no device has so many left"
        )
    _, device, chosen = min(choices, key=lambda choice: choice[:2])
    modes[device] = control.mode
    for core in chosen:
        core.assign(number, *needs)
    return chosen


def _memory_groups(placed: Sequence[Sequence[_PlannedCore]]) -> list[int]:
    """Return a number per engine that is equal for engines that share a core, directly or through others."""
    groups = list(range(len(placed)))
    for cores in placed:
        for core in cores:
            joined = {groups[engine] for engine in core.engines}
            groups = [min(joined) if group in joined else group for group in groups]
    numbers = {group: n for n, group in enumerate(dict.fromkeys(groups))}
    return [numbers[group] for group in groups]

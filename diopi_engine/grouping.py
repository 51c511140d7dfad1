"""`link`: engines become a group, with cores and local memory planned for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

from diopi_engine.container import sha256
from diopi_engine.engine import Engine
from diopi_engine.errors import LinkError
from diopi_engine.manifest import MAX_CORES, Control

LOCAL_MEMORY = 256 << 20
"""Bytes of local memory that a core has if nothing else is said."""


@final
@dataclass
class _Core:
    """A core of a virtual device: the engines it is to run, by number, and the memory they need."""

    device: int
    number: int
    memory: int
    engines: list[int] = field(default_factory=list)
    weights: int = 0
    largest: int = 0

    def fits(self, weights: int, patch: int) -> bool:
        """Whether an engine's weights have room beside the others', and the largest patch of them all."""
        return self.weights + weights + max(self.largest, patch) <= self.memory

    def take(self, engine: int, weights: int, patch: int) -> None:
        """Plan an engine for this core."""
        self.engines.append(engine)
        self.weights += weights
        self.largest = max(self.largest, patch)


def link(
    engines: Sequence[Engine], *, devices: int = 1, cores: int = MAX_CORES, local_memory: int = LOCAL_MEMORY
) -> list[Engine]:
    """The engines as one group, in the same order: contexts of one of them allocate for all.

    Each gets cores of one virtual device, of its own as long as there are enough. Engines that get the same cores share
    their memory: the weights of all stay there, and what they compute is there one after the other.

    Args:
        devices, cores: virtual devices, and cores of each, 1 to 32.
        local_memory: of a core, in bytes.

    LinkError if an engine does not fit, or another mode runs on each device.
    """
    if not engines or devices < 1 or not 1 <= cores <= MAX_CORES:
        raise LinkError(f"{len(engines)} engines on {devices} devices of {cores} cores, expected 1 or more of each")
    plan = [[_Core(device, number, local_memory) for number in range(cores)] for device in range(devices)]
    modes: dict[int, str] = {}
    placed = {
        n: _place(n, engines, plan, modes) for n in sorted(range(len(engines)), key=lambda n: -_wanted(engines[n]))
    }
    groups = _memory_groups([placed[n] for n in range(len(engines))])
    scheme = tuple(
        replace(
            engine.manifest.control,
            virtual_device=placed[n][0].device,
            memory_group=groups[n],
            core_mask=sum(1 << core.number for core in placed[n]),
        )
        for n, engine in enumerate(engines)
    )
    group = sha256("".join([*(engine.manifest.group for engine in engines), repr(scheme)]).encode())
    return [
        replace(engine, manifest=replace(engine.manifest, group=group, engine=n, scheme=scheme))
        for n, engine in enumerate(engines)
    ]


def _wanted(engine: Engine) -> int:
    return engine.manifest.control.core_mask.bit_count()


def _needs(engine: Engine) -> tuple[int, int]:
    """Bytes on each core: of weights, and of a patch."""
    control: Control = engine.manifest.control
    parts = control.cores_per_batch if control.mode == "weight_split" else 1
    weights = -(-sum(array.nbytes for array in engine.weights) // parts)
    return weights, control.memory - weights


def _place(
    number: int, engines: Sequence[Engine], plan: Sequence[Sequence[_Core]], modes: dict[int, str]
) -> list[_Core]:
    """The cores for an engine: those with the fewest engines, of the device where these are fewest."""
    engine, control, needs = engines[number], engines[number].manifest.control, _needs(engines[number])
    choices = []
    for device, cores in enumerate(plan):
        fitting = sorted(
            (core for core in cores if core.fits(*needs)), key=lambda core: (len(core.engines), core.number)
        )
        if len(fitting) >= _wanted(engine) and modes.get(device, control.mode) == control.mode:
            chosen = fitting[: _wanted(engine)]
            choices.append((sum(len(core.engines) for core in chosen), device, chosen))
    if not choices:
        raise LinkError(
            f"engine {control.name!r} needs {_wanted(engine)} cores of one device in mode {control.mode} with "
            f"{sum(needs)} bytes of local memory each: no device has so many left"
        )
    _, device, chosen = min(choices, key=lambda choice: choice[:2])
    modes[device] = control.mode
    for core in chosen:
        core.take(number, *needs)
    return chosen


def _memory_groups(placed: Sequence[Sequence[_Core]]) -> list[int]:
    """A number an engine, which those have in common that share a core, perhaps through others."""
    groups = list(range(len(placed)))
    for cores in placed:
        for core in cores:
            joined = {groups[engine] for engine in core.engines}
            groups = [min(joined) if group in joined else group for group in groups]
    numbers = {group: n for n, group in enumerate(dict.fromkeys(groups))}
    return [numbers[group] for group in groups]

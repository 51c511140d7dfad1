"""The devices: how many there are, with which cores, and which devices of JAX these are.

Environment variables say what the machine has, before the first call: `DIOPI_ENGINE_DEVICES` (2), `DIOPI_ENGINE_CORES`
of each (4), `DIOPI_ENGINE_LOCAL_MEMORY` of a core in MiB (256), and `DIOPI_ENGINE_LOCKS`, the folder by which processes
tell one another which cores they have.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, final

import jax

from diopi_engine.manifest import MAX_CORES
from diopi_engine.runtime.cores import Cores

MAX_DEVICES = 64
"""Devices that there may be."""

LOCKS = Path("/tmp/diopi-engine")
"""The folder of the core files if the environment names none: one that all users of the machine see."""


@final
@dataclass(frozen=True)
class Device:
    """A device: its cores, their local memory in bytes, and what JAX has for each."""

    number: int
    cores: Cores
    local_memory: int
    jax_devices: tuple[Any, ...]


@cache
def devices() -> tuple[Device, ...]:
    """All devices; ValueError if the environment says what can't be."""
    count, cores = setting("DIOPI_ENGINE_DEVICES", 2, MAX_DEVICES), setting("DIOPI_ENGINE_CORES", 4, MAX_CORES)
    memory = setting("DIOPI_ENGINE_LOCAL_MEMORY", 256, 1 << 10) << 20
    folder = Path(os.environ.get("DIOPI_ENGINE_LOCKS", LOCKS))
    with suppress(RuntimeError):  # JAX has started in this process, with the devices it has
        jax.config.update("jax_num_cpu_devices", count * cores)
    found = jax.local_devices(backend="cpu")
    return tuple(
        Device(
            *(number, Cores(folder, number, cores), memory),
            tuple(found[(number * cores + core) % len(found)] for core in range(cores)),
        )
        for number in range(count)
    )


def setting(name: str, default: int, maximum: int) -> int:
    """A number from 1 to `most` that the environment may say; ValueError if it says what can't be."""
    text = os.environ.get(name, str(default))
    if not text.isdigit() or not 1 <= int(text) <= maximum:
        raise ValueError(f"{name} is {text!r}, expected a number from 1 to {maximum}")
    return int(text)

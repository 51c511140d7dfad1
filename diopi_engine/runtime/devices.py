"""The devices: their number, their cores, and the JAX devices that they correspond to.

Environment variables, which `devices` reads once, describe the machine: `DIOPI_ENGINE_DEVICES` (default 2),
`DIOPI_ENGINE_CORES` per device (4), `DIOPI_ENGINE_LOCAL_MEMORY` per core in MiB (256), and `DIOPI_ENGINE_LOCKS`, the
folder in which processes reserve cores.
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
"""Maximum number of devices."""

LOCKS = Path("/tmp/diopi-engine")
"""The default folder of the core files, which all users of the machine share."""


@final
@dataclass(frozen=True, kw_only=True)
class DeviceDescription:
    """A device.

    Attributes:
        number: the number of the device.
        cores: the cores.
        local_memory: the local memory of each core in bytes.
        jax_devices: the JAX device of each core.
    """

    number: int
    cores: Cores
    local_memory: int
    jax_devices: tuple[Any, ...]


@cache
def devices() -> tuple[DeviceDescription, ...]:
    """Return all devices; raise ValueError if an environment variable is invalid."""
    count, cores = (
        read_setting("DIOPI_ENGINE_DEVICES", 2, MAX_DEVICES),
        read_setting("DIOPI_ENGINE_CORES", 4, MAX_CORES),
    )
    memory = read_setting("DIOPI_ENGINE_LOCAL_MEMORY", 256, 1 << 10) << 20
    folder = Path(os.environ.get("DIOPI_ENGINE_LOCKS", LOCKS))
    with suppress(RuntimeError):  # JAX has started in this process, with the devices it has
        jax.config.update("jax_num_cpu_devices", count * cores)
    cpu_devices = jax.local_devices(backend="cpu")
    return tuple(
        DeviceDescription(
            number=number,
            cores=Cores(folder, number, cores),
            local_memory=memory,
            jax_devices=tuple(cpu_devices[(number * cores + core) % len(cpu_devices)] for core in range(cores)),
        )
        for number in range(count)
    )


def read_setting(name: str, default: int, maximum: int) -> int:
    """Return the number from 1 to `maximum` in an environment variable; raise ValueError for other values."""
    text = os.environ.get(name, str(default))
    if not text.isdigit() or not 1 <= int(text) <= maximum:
        raise ValueError(f"{name} is {text!r}, expected a number from 1 to {maximum}")
    return int(text)

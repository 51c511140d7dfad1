"""The origin of a run: when, where and on which device it takes place."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path

from diopi_test.results.records import RunOrigin

CPU_INFO = Path("/proc/cpuinfo")
"""The file in which Linux states the model of the processor."""


def describe_origin(workers: int, *, device: str = "", driver: str = "", commit: str = "") -> RunOrigin:
    """Return the origin of a run that begins now.

    Args:
        workers: The number of worker processes.
        device: The device under test, as the user named it; empty if unknown.
        driver: The version of its driver; empty if unknown.
        commit: The revision of the vendor's sources; empty if unknown.
    """
    return RunOrigin(
        started=datetime.now(UTC).isoformat(timespec="microseconds"),
        host=platform.node(),
        processor=processor_name(),
        workers=workers,
        device=device,
        driver=driver,
        commit=commit,
    )


def processor_name(source: Path = CPU_INFO) -> str:
    """Return the model of the host's processor, or its architecture if the system does not state the model."""
    try:
        lines = source.read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    fields = (line.partition(":") for line in lines)
    models = (value.strip() for name, _, value in fields if name.strip() == "model name")
    return next(filter(None, models), platform.machine())

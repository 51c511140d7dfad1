"""A digest of what compiled programs depend on and what does not change in a process: sources, libraries, settings."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import jax

_PACKAGES = ("diopi_proto", "lib_rt", "diopi_impl")
"""The packages whose sources decide what a program of jax_cpu computes."""

_LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "ml_dtypes")
"""The packages whose versions decide what a program computes."""

_VARIABLES = ("XLA_", "JAX_", "TF_", "OMP_", "NPROC", "DIOPI_JAX_")
"""The prefixes of the names of environment variables that may change programs."""


def digest_environment(since: float) -> str | None:
    """Return a digest of the sources, the versions of libraries, the processor, and the settings.

    Args:
        since: a time before the process imported its first module of this project, as `time.time` returns it.

    Returns:
        The digest. None if a source file has changed since then: the process may have imported its previous content.
    """
    content = hashlib.sha256(repr([*_settings()]).encode())
    for path in _sources():
        status = path.stat()
        if max(status.st_mtime, status.st_ctime) >= since:
            return None
        content.update(f"{path.name} {status.st_size}\n".encode() + path.read_bytes())
    return content.hexdigest()[:32]


def _settings() -> Iterator[object]:
    """Yield the properties of the machine and of the process that programs depend on."""
    yield sys.version
    yield platform.uname().machine
    yield _processor()
    yield len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield [(name, version(name)) for name in _LIBRARIES]
    yield sorted((name, value) for name, value in os.environ.items() if name.startswith(_VARIABLES))
    yield sorted((name, repr(value)) for name, value in jax.config.values.items())


def _processor() -> str:
    """Return the model of the processor and its features, for which XLA generates code."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU "))}))


def _sources() -> Iterator[Path]:
    """Yield the source files of the packages that programs depend on, in a fixed order."""
    root = Path(__file__).parents[2]
    for package in _PACKAGES:
        yield from sorted((root / package).rglob("*.py"))

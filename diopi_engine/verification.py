"""Verify a network before this process reads it: a damaged one can crash the reader of StableHLO or the compiler.

Another process, `verification_process`, reads the network and compiles it. That takes seconds, so it is done only once
per network and user: `compile` records the networks that it creates, and `verify_network` those that it verifies. A
record is an empty file whose name is a digest, in the folder `DIOPI_ENGINE_CACHE` or in the user's cache.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path

import platformdirs

from diopi_engine.container import sha256
from diopi_engine.errors import EngineFileError
from diopi_engine.manifest import EngineManifest

PROCESS = "diopi_engine.verification_process"
"""The module that the other process runs."""

_verified: set[str] = set()
"""The digests of the networks that are known to be harmless to this process."""


def verify_network(manifest: EngineManifest, network: bytes) -> None:
    """Raise EngineFileError unless a network can be read and compiled.

    Args:
        manifest: the manifest of the engine.
        network: the serialized network.
    """
    digest = _digest(manifest, network)
    if digest in _verified:
        return
    if not _is_recorded(digest):
        _run_verification(manifest, network)
    _record(digest)


def record_network(manifest: EngineManifest, network: bytes) -> None:
    """Record that a network, which this process has compiled, needs no verification."""
    _record(_digest(manifest, network))


def _digest(manifest: EngineManifest, network: bytes) -> str:
    """Return a digest of everything that decides the outcome of a verification."""
    bindings = [asdict(binding) for binding in manifest.bindings]
    weights = [(weight.dtype, weight.shape) for weight in manifest.weights]
    values = [*_versions(), bindings, weights, manifest.patch, manifest.platforms, sha256(network)]
    return sha256(json.dumps(values).encode())


@cache
def _versions() -> list[str]:
    """Return the versions of the packages that read and compile networks."""
    return [version(package) for package in ("jax", "jaxlib", "flatbuffers")]


def _folder() -> Path:
    """Return the folder of the records."""
    configured = os.environ.get("DIOPI_ENGINE_CACHE")
    return (
        Path(configured) if configured else platformdirs.user_cache_path("diopi", appauthor=False) / "verified_networks"
    )


def _is_recorded(digest: str) -> bool:
    """Return whether a process of this user has recorded a network."""
    try:
        return (_folder() / digest).exists()
    except OSError:
        return False


def _record(digest: str) -> None:
    """Record a network for this process, and if possible for later ones."""
    _verified.add(digest)
    with suppress(OSError):  # without a folder, the network is verified again in the next process
        _folder().mkdir(parents=True, exist_ok=True)
        (_folder() / digest).touch()


def _run_verification(manifest: EngineManifest, network: bytes) -> None:
    """Verify a network in another process; raise EngineFileError if that fails, or ends without a verdict."""
    description = manifest.encode()
    command = [_python(), "-m", PROCESS, str(len(description))]
    paths = os.pathsep.join(os.path.abspath(path) for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1", "JAX_PLATFORMS": "cpu"}
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    reply, _ = process.communicate(description + network)
    if not reply:  # the reply decides and not the exit status, which the host process may have collected
        reason = f"signal {signal.Signals(-process.returncode).name}" if process.returncode < 0 else "no verdict"
        raise EngineFileError(f"the network can't be compiled: the process that tried it ended with {reason}")
    if problem := json.loads(reply):
        raise EngineFileError(problem)


def _python() -> str:
    """Return the path of the interpreter, which `sys.executable` does not name if a program embeds Python."""
    interpreter = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    return str(interpreter) if interpreter.exists() else sys.executable

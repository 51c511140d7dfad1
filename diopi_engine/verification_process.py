"""Read and compile a network: `python -m diopi_engine.verification_process LENGTH`.

Standard input contains the manifest, which has LENGTH bytes, and the network. The process writes a line of JSON to
standard output: null, or the reason why the network is invalid. It ends without a reply if the network crashes it or
exceeds a limit of CPU time.
"""

from __future__ import annotations

import json
import os
import resource
import sys

import jax

from diopi_engine.errors import EngineFileError
from diopi_engine.manifest import EngineManifest
from diopi_engine.network import input_types, read_network
from diopi_engine.sizes import numpy_type

READING_SECONDS = 60
"""CPU time in which the network must be read. Damaged lengths can make the reader loop."""

COMPILING_SECONDS = 3600
"""CPU time in which the network must be compiled."""


def find_problem(manifest: EngineManifest, network: bytes) -> str | None:
    """Return why a network can't be read or compiled, or None.

    The network is lowered for the smallest batch and compiled for the usual one.

    Args:
        manifest: the manifest of the engine.
        network: the serialized network.

    Returns:
        The reason.
    """
    try:
        exported = read_network(manifest, network)
    except EngineFileError as error:
        return str(error)
    if "cpu" not in manifest.platforms:
        return None  # which no device can run here
    _limit_cpu_time(COMPILING_SECONDS)
    weights = [jax.ShapeDtypeStruct(weight.shape, numpy_type(weight.dtype)) for weight in manifest.weights]
    try:
        with jax.enable_x64(True):
            for size in dict.fromkeys([1, manifest.patch]):
                lowered = jax.jit(exported.call).lower(*weights, *input_types(manifest.inputs, size))
            lowered.compile()
    except Exception as error:  # whatever JAX raises for invalid operations
        return f"the network can't be compiled: {type(error).__name__}: {error}"
    return None


def _limit_cpu_time(seconds: int) -> None:
    """Let the system end the process after this CPU time."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def main() -> None:
    """Verify the network on standard input. Other output is discarded."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    _limit_cpu_time(READING_SECONDS)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    manifest = EngineManifest.decode(sys.stdin.buffer.read(int(sys.argv[1])))
    print(json.dumps(find_problem(manifest, sys.stdin.buffer.read())), file=replies, flush=True)
    os._exit(0)  # without the shutdown of JAX


if __name__ == "__main__":
    main()

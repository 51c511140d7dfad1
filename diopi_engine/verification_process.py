"""Read and compile the network of an engine: `python -m diopi_engine.verification_process LENGTH`.

An engine is a compiled network with a manifest, which describes the inputs, outputs and weights. Standard input
contains the encoded manifest, which has LENGTH bytes, followed by the serialized network. The process writes one line
of JSON to standard output: null if the network is valid, or the reason why it is invalid. There is no reply if the
manifest is invalid, if the network crashes the process, or if the process exceeds a limit of CPU time.
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
"""CPU time in which the process must start and read the network. A damaged network can keep the reader busy forever."""

COMPILING_SECONDS = 3600
"""CPU time in which the process must start, and read and compile the network."""


def find_problem(manifest: EngineManifest, network: bytes) -> str | None:
    """Return why a network can't be read or compiled on the CPU, or None if it can.

    The network is lowered for batches of 1 and of `manifest.patch` samples (the number that a core computes at once).
    Only the second one is also compiled. A network that is not for the CPU is only read. The limit of CPU time of this
    process becomes COMPILING_SECONDS.

    Args:
        manifest: the manifest of the engine.
        network: the serialized network.

    Returns:
        The reason, or None if the network is valid.
    """
    try:
        exported = read_network(manifest, network)
    except EngineFileError as error:
        return str(error)
    if "cpu" not in manifest.platforms:
        return None  # this process has only the CPU
    _limit_cpu_time(COMPILING_SECONDS)
    weights = [jax.ShapeDtypeStruct(weight.shape, numpy_type(weight.dtype)) for weight in manifest.weights]
    try:
        with jax.enable_x64(True):
            for batch in dict.fromkeys([1, manifest.patch]):
                lowered = jax.jit(exported.call).lower(*weights, *input_types(manifest.inputs, batch))
            lowered.compile()  # for the last batch: a patch
    except Exception as error:  # whatever JAX raises for invalid operations
        return f"the network can't be compiled: {type(error).__name__}: {error}"
    return None


def _limit_cpu_time(seconds: int) -> None:
    """Let the system end this process when it has used this CPU time since its start."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def main() -> None:
    """Verify the network on standard input and reply on standard output.

    Whatever else this process writes to standard output goes to standard error, which the parent process discards.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    _limit_cpu_time(READING_SECONDS)
    reply_file = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    manifest = EngineManifest.decode(sys.stdin.buffer.read(int(sys.argv[1])))
    print(json.dumps(find_problem(manifest, sys.stdin.buffer.read())), file=reply_file, flush=True)
    os._exit(0)  # without the shutdown of JAX


if __name__ == "__main__":
    main()

"""Use a library while another process uses it.

The arguments are the path of the library, the folder of the loadables, and a file descriptor.

The process loads a network, runs a batch and writes a line to the file descriptor. After it has received a line on
standard input, it runs more batches and ends. Any error ends it with a status other than 0.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from diopi_engine.conformance.nvdla.bench import BoundNetwork, NvdlaBench
from diopi_engine.conformance.nvdla.client import NvdlaClient


def main() -> None:
    """Run the batches."""
    bench = NvdlaBench(NvdlaClient(Path(sys.argv[1])), Path(sys.argv[2]))
    with os.fdopen(int(sys.argv[3]), "w") as replies, bench.loaded("other") as runtime:
        bound = BoundNetwork(runtime, 7)
        bound.check_batch(5, "other")
        print("ready", file=replies, flush=True)
        if not sys.stdin.readline():
            sys.exit("the other process ended")
        for seed in range(10):
            bound.check_batch(7, "other", seed)


if __name__ == "__main__":
    main()

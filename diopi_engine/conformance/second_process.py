"""Use a library while another process uses it: `python -m diopi_engine.conformance.second_process LIBRARY FOLDER FD`.

The process creates a context, executes a batch and writes a line to the file descriptor. After it has received a line
on standard input, it executes more batches and ends. Any error ends it with a status other than 0.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from diopi_engine.conformance.bench import EngineBench
from diopi_engine.conformance.client import EngineClient


def main() -> None:
    """Execute the batches."""
    bench = EngineBench(EngineClient(Path(sys.argv[1])), Path(sys.argv[2]))
    with os.fdopen(int(sys.argv[3]), "w") as replies, bench.engine() as engine, bench.context(engine) as context:
        bench.check_batch(context, 5)
        print("ready", file=replies, flush=True)
        if not sys.stdin.readline():
            sys.exit("the other process ended")
        for seed in range(10):
            bench.check_batch(context, 7, seed=seed)


if __name__ == "__main__":
    main()

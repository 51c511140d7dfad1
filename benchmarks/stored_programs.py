"""Measure what stored programs save: a run of `jax_cpu` that compiles everything, and a run that loads the programs.

python benchmarks/stored_programs.py -k diopiSoftmax
python benchmarks/stored_programs.py --shuffle 77 --sample 90      # any options of `diopi-test run`

The figures depend on the machine; compare only figures of one run.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def measure(programs: str, options: list[str]) -> tuple[float, float, str]:
    """Run the suite with stored programs in a folder; return the elapsed and CPU seconds, and the last lines."""
    usage_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    command = [sys.executable, "-m", "diopi_test", "run", *options]
    process = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "DIOPI_PROGRAMS": programs})
    wall = time.monotonic() - start
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode not in (0, 1):
        sys.exit(process.stdout + process.stderr)
    cpu = usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime
    summary = next((line for line in process.stdout.splitlines() if line.startswith("jax_cpu ")), "")
    return wall, cpu, summary


def main() -> None:
    """Print a line for a run without stored programs, one that stores them, and one that loads them."""
    with tempfile.TemporaryDirectory() as folder:
        for title, programs in (("not stored", "off"), ("stored", folder), ("loaded", folder)):
            wall, cpu, summary = measure(programs, sys.argv[1:])
            print(f"{title:12} {wall:8.1f} s, {cpu:8.1f} s of CPU    {summary}", flush=True)
        files = [path.stat().st_size for path in Path(folder).rglob("*.program")]
    print(f"{len(files):,} programs, {sum(files) / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()

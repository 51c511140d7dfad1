"""Measure the cost of targets: the time and the size of a bundle, and what `diopi-runner` adds to each call.

    python benchmarks/target_runner.py                # a twelfth of the smoke cases
    python benchmarks/target_runner.py --shard 1/1    # all smoke cases

The vendor returns success at once, so that the time of a run is that of the runner, of copies in memory and of the
system. A second runner, whose sources are compiled with counters in place of the functions that allocate, counts the
allocations of the runner and those of the runtime that it contains. The vendor's device memory does not count.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import null_vendor

from diopi_proto import headers

ROOT = Path(__file__).parents[1]

PARTS = {"runner": ROOT / "runner", "runtime": ROOT / "lib_rt" / "src"}
"""The folders of the sources, by the part of the program whose allocations are counted."""

FLAGS = ("-std=c11", "-O2", "-D_DEFAULT_SOURCE", "-fvisibility=hidden", f"-I{headers.INCLUDE_DIR}")
"""The options of the C compiler."""

ALLOCATORS = {
    "malloc": ("void*", "size_t size", "size"),
    "calloc": ("void*", "size_t count, size_t size", "count, size"),
    "realloc": ("void*", "void* previous, size_t size", "previous, size"),
    "aligned_alloc": ("void*", "size_t alignment, size_t size", "alignment, size"),
    "posix_memalign": ("int", "void** memory, size_t alignment, size_t size", "memory, alignment, size"),
}
"""The functions that allocate: result, parameters and arguments."""

REPETITIONS = 5
"""The number of runs, of which the fastest counts."""


def counting_source() -> str:
    """Return the C source of functions that count allocations, and print the numbers when the process ends."""
    lines = ["#include <stdio.h>", "#include <stdlib.h>", "#include <unistd.h>"]
    for part in PARTS:
        lines.append(f"static long {part}_count;")
        for name, (result, parameters, arguments) in ALLOCATORS.items():
            lines.append(f"{result} {part}_{name}({parameters});")
            lines.append(f"{result} {part}_{name}({parameters}) {{ {part}_count++; return {name}({arguments}); }}")
    counts_text = " ".join(f"{part}=%ld" for part in PARTS)
    numbers = ", ".join(f"{part}_count" for part in PARTS)
    return "\n".join(
        [
            *lines,
            "void show_counts(void);",
            f'void show_counts(void) {{ fprintf(stderr, "{counts_text}\\n", {numbers}); }}',
            "__attribute__((destructor)) static void end(void) { show_counts(); }",
            "",
        ]
    )


def build_runner(folder: Path, *, counts: bool = False) -> Path:
    """Build the runner in a folder, with or without counters of allocations, and return the path of the program."""
    objects: list[str] = []
    for part, sources in PARTS.items():
        renamed = [f"-D{name}={part}_{name}" for name in ALLOCATORS] if counts else []
        words = ["cc", *FLAGS, f"-I{PARTS['runtime']}", *renamed]
        for source in sorted(sources.glob("*.c")):
            objects.append(str(folder / f"{part}_{source.stem}_{counts}.o"))
            subprocess.run([*words, "-c", str(source), "-o", objects[-1]], check=True)
    if counts:
        (folder / "counting.c").write_text(counting_source())
        objects.append(str(folder / "counting.c"))
    program = folder / f"diopi-runner-{counts}"
    subprocess.run(["cc", "-rdynamic", *objects, "-o", str(program), "-ldl", "-pthread"], check=True)
    return program


def write_bundle(path: Path, shard: str) -> int:
    """Write a bundle, print what this costs, and return the number of calls."""
    usage_before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    words = [sys.executable, "-m", "diopi_test", "bundle", "--shard", shard, "--output", str(path)]
    output = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    usage_after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    cpu = usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime
    cases, calls = (int(number.replace(",", "")) for number in re.findall(r"([\d,]+) (?:case|call)s?,", output)[:2])
    size = path.stat().st_size / 1e6
    print(f"bundle: {cases} cases, {calls} calls, {size:.1f} MB, {seconds:.1f} s, {cpu:.1f} s of CPU time")
    return calls


def measure_seconds(command: Sequence[str]) -> tuple[float, float]:
    """Return the elapsed time and the CPU time of a command in seconds."""
    usage_before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    usage_after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    return seconds, usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shard", default="1/12", help="the part of the smoke cases (default: 1/12)")
    shard = parser.parse_args().shard
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases, library = folder / "cases.diopi", null_vendor.build(folder)
        calls = write_bundle(cases, shard)
        words = [str(cases), str(library), "-o", str(folder / "results.diopi")]
        program = str(build_runner(folder))
        times = [measure_seconds([program, *words]) for _ in range(REPETITIONS)]
        elapsed, cpu = (1e6 * min(values) / calls for values in zip(*times, strict=True))
        print(f"runner: {elapsed:.1f} µs per call, {cpu:.1f} µs of CPU time")
        counter = [str(build_runner(folder, counts=True)), *words, "--in-process"]
        counts_text = subprocess.run(counter, check=True, capture_output=True, text=True).stderr
        for part, count in re.findall(r"(\w+)=(\d+)", counts_text):
            print(f"allocations of the {part}: {count}, {int(count) / calls:.3f} per call")


if __name__ == "__main__":
    main()

"""The worker process of the conformance command: it runs groups of samples and prints an outcome for each sample.

It writes a JSON array per line. The first line is `["ready"]`. It then reads a JSON object per line from the standard
input: a group, and the numbers that select its samples. For each group it writes `["samples", count]`, then
`["start", position]` before and `["end", position, outcome]` after each sample, and finally `["done"]`. If the process
ends in between, the parent knows which sample has ended it.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from diopi_torch.backend import backend
from diopi_torch.conformance.comparison import compare_with_cpu
from diopi_torch.conformance.samples import SampleGroup, databases, samples_of

Report = Callable[..., None]
"""A function that writes its arguments as a JSON array, which the parent process reads."""


def choose_positions(group: SampleGroup, count: int, limit: int, seed: int) -> Sequence[int]:
    """Return the positions of the samples to run: all of them, or `limit` of them drawn with the seed."""
    if not limit or count <= limit:
        return range(count)
    return sorted(random.Random(f"{seed} {group}").sample(range(count), limit))


def run_group(group: SampleGroup, limit: int, seed: int, first: int, report: Report) -> None:
    """Run the samples of a group.

    Args:
        group: the group.
        limit: maximum number of samples; 0 for all of them.
        seed: the seed with which samples are drawn.
        first: the first position to run; samples at lower positions are skipped, because they have been run.
        report: writes a line for the parent process.
    """
    samples = samples_of(group)
    report("samples", len(samples))
    for position in choose_positions(group, len(samples), limit, seed):
        if position >= first:
            report("start", position)
            report("end", position, compare_with_cpu(group, samples[position]))
    report("done")


def main() -> None:
    """Run groups until the standard input ends."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what PyTorch prints must not get between the lines for the parent

    def report(*entries: Any) -> None:
        output.write(json.dumps(entries) + "\n")
        output.flush()

    backend()  # raises an error if there is no such vendor
    databases()
    report("ready")
    for line in sys.stdin:
        task = json.loads(line)
        run_group(SampleGroup(**task["group"]), task["limit"], task["seed"], task["first"], report)


if __name__ == "__main__":
    main()

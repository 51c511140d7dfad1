"""Run PyTorch's samples of operators, modules and optimizers on the device, and compare with the CPU.

The samples are those of PyTorch's own tests: valid arguments, the same arguments as noncontiguous and as lazily
conjugated tensors, and invalid arguments. The command compares results, gradients and exceptions. It prints each
difference, the share of samples that agree for each element type, and the reasons of known differences. The exit status
is 1 if there is a difference that is not known.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

from diopi_torch.conformance.known import find_reason
from diopi_torch.conformance.pool import GroupOutcome, WorkerPool
from diopi_torch.conformance.samples import CHANGES, DATABASES, DTYPES, ERRORS, SampleGroup, sample_groups
from diopi_torch.settings import VENDOR

FORMS = (*CHANGES, ERRORS)
"""The forms of samples."""

INVALID_SAMPLES = "invalid"
"""The name of the row of the summary for invalid samples, which must raise exceptions; other rows are element types."""


class SampleSummary:
    """The number of samples and of differences by element type, and the differences without a known reason.

    Attributes:
        unknown: a description of each difference for which no reason is known.
    """

    def __init__(self) -> None:
        self._samples: Counter[str] = Counter()
        self._different: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self.unknown: list[str] = []

    def add(self, outcome: GroupOutcome) -> None:
        """Add the outcomes of the samples of a group."""
        group = outcome.group
        row = INVALID_SAMPLES if group.form == ERRORS else group.dtype
        self._samples[row] += outcome.samples
        self._different[row] += len(outcome.differences)
        for position, difference in outcome.differences.items():
            reason = find_reason(group, difference)
            if reason is None:
                self.unknown.append(f"{group} {position}: {difference}")
            else:
                self._reasons[reason] += 1

    def lines(self) -> Sequence[str]:
        """Return the lines of the summary."""
        table = [
            f"{row:10} {count:8} {self._different[row]:8} {1 - self._different[row] / max(count, 1):9.2%}"
            for row, count in self._samples.items()
        ]
        known_differences = [f"{count:8} known: {reason}" for reason, count in self._reasons.most_common()]
        return [f"{'samples':10} {'compared':>8} {'differ':>8} {'agree':>9}", *table, *known_differences]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a command line; None stands for that of the process."""
    parser = argparse.ArgumentParser(
        prog="python -m diopi_torch.conformance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--vendor", help=f"the vendor, as in {VENDOR}")
    parser.add_argument("--dtype", action="append", choices=DTYPES, help="only this element type; can be repeated")
    parser.add_argument("--database", action="append", choices=DATABASES, help="only this database")
    parser.add_argument("--form", action="append", choices=FORMS, help="only samples of this form")
    parser.add_argument("-k", default="*", metavar="PATTERN", help="only entries whose name matches, such as 'nn.*'")
    parser.add_argument("--sample", type=int, metavar="N", help="draw N groups; a group has one entry, form and type")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="draw at most N samples of each group")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw; the default is 0")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="number of worker processes")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the outcomes to a file, a line per group")
    return parser.parse_args(arguments)


def choose_groups(options: argparse.Namespace) -> list[SampleGroup]:
    """Return the groups of samples that the options select, in random order."""
    groups = [
        group
        for group in sample_groups(options.dtype or DTYPES)
        if fnmatchcase(group.entry, options.k)
        and group.database in (options.database or DATABASES)
        and group.form in (options.form or FORMS)
    ]
    generator = random.Random(options.seed)
    return generator.sample(groups, min(len(groups), options.sample or len(groups)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    options = parse_arguments(arguments)
    groups = choose_groups(options)
    print(f"{len(groups)} groups of samples, seed {options.seed}", flush=True)
    variables: Mapping[str, str] = {VENDOR: options.vendor} if options.vendor else {}
    pool = WorkerPool(groups, limit=options.limit, seed=options.seed, variables=variables)
    summary = SampleSummary()
    for outcome in pool.run(options.processes):
        reported = len(summary.unknown)
        summary.add(outcome)
        for line in summary.unknown[reported:]:
            print(line, flush=True)
        if options.output is not None:
            with options.output.open("a") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")
    print("\n".join(summary.lines()))
    if summary.unknown:
        print(f"{len(summary.unknown)} differences are not known")
    return bool(summary.unknown)

"""Estimate how often the test of the root mean square (RMS) of errors rejects a correct vendor, and an upper bound.

    diopi-test gen-data --level full --data build/data
    python benchmarks/rms_significance.py --level full --data build/data --runs 200

The errors of the simulated vendor are uniformly distributed within ±2 ulps, and within ±4 ulps for powers. These are
the errors that CUDA documents for its float32 functions. Half-precision results are computed in float32 and rounded
once. Errors are measured in units of the error budget, and `rms_limit` gives the largest RMS that the suite accepts.

Each simulated run applies the test to every result. It also pools the errors of each function and element type over
all cases, and applies the test to every pool. The upper bound is the number of tests that can fail at all, multiplied
by the probability that a single test fails. For comparison, the script also counts the failures of a test of results
whose limit is always 1 unit.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from diopi_proto.types import Dtype
from diopi_test.baseline.level import open_level
from diopi_test.baseline.location import folder_to_read
from diopi_test.oracle.records import Expected, expected_arrays
from diopi_test.oracle.rms_limit import FALSE_FAILURE, MIN_ELEMENTS, rms_limit
from lib_rt.formats import format_of, is_inexact, ulp

Array = NDArray[Any]

ULPS, ULPS_OF_POWERS = 2.0, 4.0
"""The largest errors of the simulated vendor in ulps: of most functions, and of powers."""

POWER_PREFIX = "diopiPow"
"""The beginning of the names of functions that compute powers."""

FLOAT32_PRECISION = format_of(Dtype.float32).precision
"""The number of significant bits of float32."""

MAX_PROBABILITY = 1e-6
"""The largest acceptable probability that a run of a correct vendor has a failure."""


@dataclass(frozen=True)
class SimulatedErrors:
    """The simulated errors of a set of elements, in units of the error budget.

    Attributes:
        dtype: the element type.
        elements: the number of distinct elements.
        squares: the sum of the squared errors of all elements, one number per simulated run.
        largest: the largest RMS that is possible.
    """

    dtype: Dtype
    elements: int
    squares: Array
    largest: float

    @property
    def can_fail(self) -> bool:
        """Return whether the elements are tested and can exceed the limit."""
        return self.elements >= MIN_ELEMENTS and self.largest > rms_limit(self.dtype, self.elements)

    def failures(self, limit: float) -> int:
        """Return in how many runs the RMS exceeds a limit; 0 if there are too few elements for a test."""
        is_tested = self.elements >= MIN_ELEMENTS
        return int(np.sum(np.sqrt(self.squares / self.elements) > limit)) if is_tested else 0


def simulate(expected: Expected, ulps: float, runs: int, generator: np.random.Generator) -> SimulatedErrors | None:
    """Simulate the errors of a result.

    Args:
        expected: The expected values and their error budget.
        ulps: The largest error of the vendor, in ulps of the result, or of float32 if the result is half precision.
        runs: The number of simulated runs.
        generator: The source of the random errors.

    Returns:
        The errors of the distinct values among the rounded elements, because a vendor makes the same error for equal
        values; None if the result has no rounded elements.
    """
    if expected.budget is None or not is_inexact(expected.dtype):
        return None
    is_rounded = ~expected.budget.is_exact(expected.values, expected.dtype) & np.isfinite(expected.values)
    if expected.specified is not None:
        is_rounded &= expected.specified
    values, first = np.unique(expected.values[is_rounded], return_index=True)
    if not values.size:
        return None
    is_half = format_of(expected.dtype).precision < FLOAT32_PRECISION
    steps = ulp(values, expected.dtype) / expected.budget.unit[is_rounded][first]
    # An ulp of float32 is at most 2⁻⁸ ulps of a half-precision result, which adds 0.5 ulps when it is rounded.
    bound = steps * (0.5 + 2.0**-8 * ulps if is_half else ulps)
    squares = np.array([np.sum((bound * generator.uniform(-1, 1, bound.shape)) ** 2) for _ in range(runs)])
    return SimulatedErrors(expected.dtype, values.size, squares, float(np.sqrt(np.mean(bound**2))))


def pool(parts: Sequence[SimulatedErrors]) -> SimulatedErrors:
    """Return the errors of several results of one element type as those of one result."""
    elements = sum(part.elements for part in parts)
    largest = np.sqrt(sum(part.elements * part.largest**2 for part in parts) / elements)
    return SimulatedErrors(parts[0].dtype, elements, np.sum([part.squares for part in parts], 0), float(largest))


def read_expected_arrays(folder: Path) -> Iterator[tuple[str, Expected]]:
    """Yield the function and an array of expected values, for each result of each demanded case of a level."""
    level = open_level(folder)
    for function in level.functions:
        for case in level.open(function):
            if case.case_class.is_demanded:
                for value in case.expected.values():
                    yield from ((function, result) for result in expected_arrays(value))


@click.command()
@click.option("--level", default="smoke", show_default=True, help="Level whose expected values are used.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder with the data of levels.")
@click.option("--runs", default=100, show_default=True, help="Number of simulated runs.")
@click.option("--seed", default=0, show_default=True, help="Seed of the random errors.")
def main(level: str, data: Path | None, runs: int, seed: int) -> None:
    """Simulate runs of a correct vendor and print how often a test fails.

    The exit status is 1 if a simulated run has a failure, or if the upper bound of the probability exceeds 1e-6.
    """
    generator = np.random.default_rng(seed)
    pools: dict[tuple[str, Dtype], list[SimulatedErrors]] = defaultdict(list)
    for function, expected in read_expected_arrays(data / level if data else folder_to_read(level)):
        ulps = ULPS_OF_POWERS if function.startswith(POWER_PREFIX) else ULPS
        if (errors := simulate(expected, ulps, runs, generator)) is not None:
            pools[function, errors.dtype].append(errors)
    results = [errors for parts in pools.values() for errors in parts if errors.elements >= MIN_ELEMENTS]
    tests = [*results, *(pooled for parts in pools.values() if (pooled := pool(parts)).elements >= MIN_ELEMENTS)]
    failures = sum(test.failures(rms_limit(test.dtype, test.elements)) for test in tests)
    bound = sum(test.can_fail for test in tests) * FALSE_FAILURE
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{len(tests):,} tests: {len(results):,} results, {len(tests) - len(results):,} pools of functions")
    console.print(f"tests that the errors can fail at all: {sum(test.can_fail for test in tests):,}")
    console.print(f"simulated failures in {runs:,} runs: {failures:,}")
    console.print(f"upper bound of the probability that a run has a failure: {bound:.2g}")
    console.print(f"failures per run if the limit were 1: {sum(test.failures(1.0) for test in results) / runs:.1f}")
    sys.exit(1 if failures or bound > MAX_PROBABILITY else 0)


if __name__ == "__main__":
    main()

"""Measure the suite's own CPU time per call of a soak test in milliseconds.

    python benchmarks/soak.py [--data DIR] [--level smoke] [--every 30] [--calls 2000]

The vendor is compiled and computes nothing. The script writes the expected results in its place, so that all checks
pass, and subtracts the time for this, as `suite_cost.py` does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import process_time

import click
from null_vendor import ReplayingVendor, build

from diopi_test.baseline.location import folder_to_read
from diopi_test.baseline.store import SUFFIX, BaselineFile
from diopi_test.execution.soak import SoakTest, choose_soak_cases
from diopi_test.execution.verdict import Verdict
from diopi_test.run.run_soak import run_soak


@click.command(help=__doc__)
@click.option("--data", type=click.Path(path_type=Path), default=None)
@click.option("--level", default="smoke", type=click.Choice(["smoke", "full"]))
@click.option("--every", "stride", default=30, help="Measure every N-th function.")
@click.option("--calls", default=2000, help="Call each function this often.")
def main(data: Path | None, level: str, stride: int, calls: int) -> None:
    """Print the figures."""
    seconds, functions = 0.0, 0
    paths = sorted((data / level if data else folder_to_read(level)).glob(f"*{SUFFIX}"))
    with tempfile.TemporaryDirectory() as folder:
        vendor = ReplayingVendor(build(Path(folder)))
        with vendor.open_device() as device:
            for path in paths[::stride]:
                if not (cases := choose_soak_cases(BaselineFile(path))):
                    continue
                start, replaying = process_time(), vendor.seconds
                outcome = run_soak(vendor, device, SoakTest(cases=cases, count=calls, seconds=3600))
                seconds += process_time() - start - (vendor.seconds - replaying)
                functions += 1
                if outcome.verdict is not Verdict.passed:
                    print(f"{path.stem}: {outcome.verdict.value}: {outcome.message}")
    per_call = seconds / vendor.calls
    print(f"{functions} functions, {vendor.calls} calls: {1000 * per_call:.3f} ms of CPU per call")
    print(
        f"all {len(paths)} functions with {calls} calls each: {len(paths) * calls * per_call / 60:.1f} minutes of CPU"
    )


if __name__ == "__main__":
    main()

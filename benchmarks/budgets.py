"""How near the error budgets correct vendors come, and how blunt the budgets are.

    diopi-test run --vendor torch_cpu --level full --json torch.json
    python benchmarks/budgets.py torch.json [jax.json …] [--data DIR] [--level full]

For each report: of the functions with floating results of a type, the share whose largest error stays within 1, 2, 4
and 8 units (a unit is s + ulp + eps·m; the limit is K units), and whose root mean square stays within 0.25, 0.5 and
R. Then the
functions nearest the limit, and from the baseline the bluntest budgets: results whose median unit is over 100 eps of
the root mean square of their values.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from diopi_test.baseline import Expected
from diopi_test.budget import K, R
from diopi_test.formats import format_of, ulp
from diopi_test.store import SUFFIX, BaselineFile

console = Console()

FLOATS = ("bfloat16", "float16", "float32", "float64")


def measured(report: dict[str, Any], name: str) -> dict[tuple[str, str], float]:
    """The largest `name` (ratio or rms) a passed case of each (function, dtype) reached."""
    largest: dict[tuple[str, str], float] = defaultdict(float)
    for case in report["cases"]:
        for check in case["checks"]:
            if case["verdict"] == "passed" and check.get(name) is not None:
                key = case["function"], case["dtype"]
                largest[key] = max(largest[key], check[name])
    return largest


def show_report(path: Path) -> None:
    """Print the table of one report."""
    report = json.loads(path.read_text())
    ratios, means = measured(report, "ratio"), measured(report, "rms")
    units, squares = (1, 2, 4, K), (0.25, 0.5, R)
    table = Table("type", "functions", *(f"≤ {u:g} units" for u in units), *(f"rms ≤ {s:g}" for s in squares), box=None)
    for dtype in FLOATS:
        of_type = [K * value for (_, its), value in ratios.items() if its == dtype]
        rms_of_type = [value for (_, its), value in means.items() if its == dtype]
        shares = [*(share(of_type, limit) for limit in units), *(share(rms_of_type, limit) for limit in squares)]
        table.add_row(dtype, str(len(of_type)), *shares)
    console.print(
        f"{report['vendor']['name']} {report['vendor']['version']}: {report['summary']['passed']} cases passed"
    )
    console.print(table)
    nearest = sorted(ratios.items(), key=lambda item: -item[1])[:12]
    console.print("nearest the limit: " + ", ".join(f"{f} {d} {r:.2f}" for (f, d), r in nearest), highlight=False)


def share(values: list[float], limit: float) -> str:
    """The share of values up to a limit."""
    return f"{100 * np.mean(np.array(values) <= limit):.1f} %" if values else "-"


def show_bluntest(folder: Path) -> None:
    """Print the cases with the bluntest budgets, and the median over all."""
    bluntness = dict(median_units(sorted(folder.glob(f"*{SUFFIX}"))))
    console.print(f"median unit: {np.median(list(bluntness.values())):.2f} eps over {len(bluntness)} rounded results")
    for name, blunt in sorted(bluntness.items(), key=lambda item: -item[1]):
        if blunt > 100:
            console.print(f"  {blunt:10.0f} eps  {name}", markup=False, highlight=False)


def median_units(paths: Iterable[Path]) -> Iterable[tuple[str, float]]:
    """Of every rounded result its id and median unit, in eps of the root mean square of its finite values."""
    for path in paths:
        for case in BaselineFile(path):
            for name, expected in case.expected.items():
                for one in expected if isinstance(expected, list) else [expected]:
                    if isinstance(one, Expected) and one.blur is not None and np.isfinite(one.values).any():
                        yield f"{case.id} {name}", median_unit(one)


def median_unit(expected: Expected) -> float:
    """The median of s + ulp + eps·m over the finite elements, in eps of their root mean square."""
    finite = np.isfinite(expected.values)
    values, blur = expected.values[finite], np.asarray(expected.blur)[finite]
    scale = max(float(np.sqrt(np.mean(np.abs(values.astype(complex)) ** 2))), format_of(expected.dtype).tiny)
    return float(np.median(blur * ulp(values, expected.dtype))) / (format_of(expected.dtype).epsilon * scale)


@click.command(help=__doc__)
@click.argument("reports", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--data", type=click.Path(exists=True, path_type=Path), help="Also the bluntest budgets here.")
@click.option("--level", default="full")
def main(reports: tuple[Path, ...], data: Path | None, level: str) -> None:
    """Print the tables."""
    for path in reports:
        show_report(path)
    if data is not None:
        show_bluntest(data / level)


if __name__ == "__main__":
    main()

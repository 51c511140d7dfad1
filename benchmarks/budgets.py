"""Measure how close correct vendors come to the error budgets, and how blunt the budgets are.

    diopi-test run --vendor torch_cpu --level full --json torch.json
    python benchmarks/budgets.py torch.json [jax.json …] [--data DIR] [--level full] [--markdown docs/margins.md]

For each report and floating-point type, the script prints these shares of the functions:

- largest error at most 1, 2, 4 and 8 units (a unit is s + ulp + eps·m; the limit is K units)
- root mean square of the errors at most 0.25, 0.5 and 1 units

Then it prints the functions closest to the limit. With `--data`, it also prints the bluntest budgets: results whose
median unit exceeds 100 eps of the root mean square of their values, with the cause. The exit status is 1 if a cause is
unknown, or a report has failures.

`--markdown` writes a page with the largest error / budget of each function in each report.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from diopi_test.baseline.level import open_level_of_file
from diopi_test.baseline.store import SUFFIX
from diopi_test.oracle.budget import K
from diopi_test.oracle.records import Expected
from lib_rt.formats import format_of

console = Console()

FLOATS = ("bfloat16", "float16", "float32", "float64")
"""The element types in the tables."""

COARSE_FACTOR = 100
"""A median unit above this number of eps makes a budget blunt."""

UNKNOWN = "the cause is unknown"

ZERO_RESULT = "the result is 0, and the budget covers the rounding errors of terms that cancel"

CAUSES = {
    r"(Log)?Softmax(Backward)?\[.*(length-one|scalar)": ZERO_RESULT,
    r"CrossEntropyLoss(Backward)?\[.*one-class": ZERO_RESULT,
    r"NormalizeBackward\[.*length-one": ZERO_RESULT,
    r"ClipGradNorm\[.*mixed": "gradients of several types share a norm, which has the narrowest type",
    r"Gelu(Backward)?\[": "the tail, where 1 + erf and 1 + tanh cancel",
    r"UpsampleLinear(Backward)?\[.*(wide|line)": "coordinates of a wide axis, rounded before they become weights",
    r"(ConvTranspose3d|InstanceNorm)Backward\[.* grad_(bias|scale)": "few sums of many terms that cancel",
    r"(Batch|Group|Instance|Layer)Norm(GB|Backward)?\[.*far": "a mean far from 0 that is subtracted",
    r"(Riroi|RotatedFeature|(Modulated)?DeformConv|PrroiPool)": "positions of samples, moved by rounding within a cell",
    r"DeformRoiPool(Backward)?Mmcv\[.*adaptive": "bins of integral size, where the number of samples jumps",
    r"(Convex(Gi|I)ou|BoxIouRotated)Mmcv\[.*far": "corners far from the origin, whose differences cancel",
    r"ChamferDistance(Backward)?Mmcv\[.*(equal-points|far)": "points whose differences cancel",
    r"(.*Attention.*|TokenSoftmaxReduceVInference)\[.*far": "scores far from 0, which become exponents",
    r"CustomizedFlashAttention(VarLen)?\[.*exact\] softmax_sum": "scores far from 0, which become exponents",
    r"CustomizedFlashAttentionBackward\[.*mask-all-but-first": ZERO_RESULT,
    r"Top[KP]Sampling\[.*output_log_probs": "logarithms of probabilities near 1",
    r"MaskedSelectBackward\[.*equal-sum": "equal numbers that are added and rounded in the same direction",
    r"FusedSiluFfnInp\[.*nearly-closed": "subnormal gates, which may be flushed to 0",
    r"Div\[int64-with-complex128": "integers are perturbed as if they were converted to float32",
}
"""The causes of blunt budgets, by a regular expression for the beginning of `function[label] result` without
"diopi"."""

# The texts of the page docs/margins.md, in order
MARGINS = """# Margins

This page is for readers who want to judge the suite's tolerances. Afterwards you know how accurate two correct
implementations are, relative to the errors that the suite accepts. It accepts an error in an element if the error is at
most its [error budget](budgets.md).

The figures are from two runs of all cases at level full. One is with the built-in vendor (`jax_cpu`), and one is with
PyTorch's kernels for the CPU (`torch_cpu`). `python benchmarks/budgets.py … --markdown docs/margins.md` generates the
page from the reports of these runs; [error budgets](budgets.md#how-the-limits-were-tested) shows all commands. Each row
of the first table is a vendor and its version, with the number of its cases that passed and failed:
"""

BY_TYPE = """
## By element type

This section is about rounded results: floating-point results that a correct vendor may round. The unit of an element is
the error that rounding causes in a correct implementation. An error may be at most 8 units. The root mean square of the
errors of a result has another limit. It is 1 unit in half precision, and about 2.3 units or more in other types. [Error
budgets](budgets.md) defines the unit and the limits.

Each row is a vendor and an element type. The column *functions* is the number of functions with rounded results of this
type. The next four columns show the share of these functions whose largest error is at most 1, 2, 4 and 8 units. The
last three columns show the share whose largest root mean square (*rms*) is at most 0.25, 0.5 and 1 units.
"""

BY_FUNCTION = """
## By function

Each row is a function, and each column is a vendor. The number is the largest error divided by its budget, over all
passed cases of the function. It is at most 1. `-` means that the vendor has no rounded result of this function.
"""

COARSEST_TABLE = """
## The bluntest budgets

A budget is blunt if it is large relative to the result, because it then accepts large errors. The measure is the median
unit of a result, divided by the root mean square of its values. It is stated in eps, the distance from 1 to the next
number of the result's type. If all values of a result are 0, the smallest normal number takes the place of the root
mean square, which gives very large numbers.

The median over {count:,} rounded results is {median:.2f} eps. The table lists all results with more than 100 eps. Each
row names the case and the result, the measure, and the reason why the unit is large:
"""


def find_largest(report: dict[str, Any], name: str) -> dict[tuple[str, str], float]:
    """Return the largest `name` (`ratio` or `rms`) among the passed cases of each (function, dtype)."""
    largest: dict[tuple[str, str], float] = defaultdict(float)
    for case in report["cases"]:
        for check in case["checks"]:
            if case["verdict"] == "passed" and check.get(name) is not None:
                key = case["function"], case["dtype"]
                largest[key] = max(largest[key], check[name])
    return largest


SHARE_TITLES = ("≤ 1 unit", "≤ 2", "≤ 4", "≤ 8", "rms ≤ 0.25", "≤ 0.5", "≤ 1")
"""The titles of the columns of `list_shares`."""


def list_shares(report: dict[str, Any]) -> Iterator[list[str]]:
    """Yield a row per type: the type, the number of functions, and the share of functions within each limit."""
    ratios, means = find_largest(report, "ratio"), find_largest(report, "rms")
    for dtype in FLOATS:
        of_type = [K * value for (_, result_dtype), value in ratios.items() if result_dtype == dtype]
        rms_of_type = [value for (_, result_dtype), value in means.items() if result_dtype == dtype]
        units = [format_share(of_type, limit) for limit in (1, 2, 4, K)]
        yield [dtype, str(len(of_type)), *units, *(format_share(rms_of_type, limit) for limit in (0.25, 0.5, 1))]


def show_report(name: str, report: dict[str, Any]) -> None:
    """Print the table of one report."""
    table = Table("type", "functions", *SHARE_TITLES, box=None)
    for cells in list_shares(report):
        table.add_row(*cells)
    console.print(f"{name}: {report['summary']['passed']} cases passed")
    console.print(table)
    nearest = sorted(find_largest(report, "ratio").items(), key=lambda item: -item[1])[:12]
    console.print("nearest the limit: " + ", ".join(f"{f} {d} {r:.2f}" for (f, d), r in nearest), highlight=False)


def format_share(values: list[float], limit: float) -> str:
    """Return the share of values up to a limit, in percent."""
    return f"{100 * np.mean(np.array(values) <= limit):.1f} %" if values else "-"


def list_bluntest(units: Mapping[str, float]) -> list[tuple[str, float, str]]:
    """Return the results with blunt budgets, the bluntest first: case ID and result, median unit, cause."""
    blunt = sorted(((name, unit) for name, unit in units.items() if unit > COARSE_FACTOR), key=lambda item: -item[1])
    return [(name, unit, cause_of(name)) for name, unit in blunt]


def cause_of(name: str) -> str:
    """Return the cause of a blunt budget."""
    return next((cause for pattern, cause in CAUSES.items() if re.match(f"diopi(?:{pattern})", name)), UNKNOWN)


def show_bluntest(units: Mapping[str, float]) -> None:
    """Print the cases with the bluntest budgets, and the median over all."""
    console.print(f"median unit: {np.median(list(units.values())):.2f} eps over {len(units)} rounded results")
    for name, unit, cause in list_bluntest(units):
        console.print(f"  {unit:8.3g} eps  {name}: {cause}", markup=False, highlight=False, soft_wrap=True)


def median_units(paths: Iterable[Path]) -> Iterable[tuple[str, float]]:
    """Yield the case ID and name of every rounded result, and its median unit in eps of its root mean square."""
    for path in paths:
        for case in open_level_of_file(path).open(path.stem):
            for name, expected in case.expected.items():
                for result in expected if isinstance(expected, list) else [expected]:
                    if isinstance(result, Expected) and result.budget is not None and np.isfinite(result.values).any():
                        yield f"{case.id} {name}", median_unit(result)


def median_unit(expected: Expected) -> float:
    """Return the median of s + ulp + eps·m over the finite elements, in eps of their root mean square.

    If the unit is below the normal numbers, as for sums of zeros, it is returned in eps, whatever the values are.
    """
    finite, form = np.isfinite(expected.values), format_of(expected.dtype)
    values = expected.values[finite]
    with np.errstate(over="ignore"):
        scale = max(float(np.sqrt(np.mean(np.abs(values.astype(complex)) ** 2))), form.tiny)
    assert expected.budget is not None
    unit = float(np.median(expected.budget.unit[finite]))
    return unit / (form.epsilon * (scale if unit > form.tiny else 1))


def render_page(reports: Mapping[str, dict[str, Any]], units: Mapping[str, float]) -> str:
    """Return a page in Markdown: the shares by type, the margins of all functions, and the bluntest budgets."""
    by_function = {name: largest_by_function(report) for name, report in reports.items()}
    functions = list(dict.fromkeys(case["function"] for report in reports.values() for case in report["cases"]))
    lines = [MARGINS, row("", "passed", "failed"), row("---", "---:", "---:")]
    for name, report in reports.items():
        version, summary = report["vendor"]["version"], report["summary"]
        lines.append(row(f"{name} {version}", f"{summary['passed']:,}", f"{summary['failed']:,}"))
    lines += [BY_TYPE, row("", "functions", *SHARE_TITLES), row("---", *["---:"] * (1 + len(SHARE_TITLES)))]
    lines += [
        row(f"{name} {cells[0]}", *cells[1:]) for name, report in reports.items() for cells in list_shares(report)
    ]
    lines += [BY_FUNCTION, row("", *reports), row("---", *["---:"] * len(reports))]
    lines += [row("all", *(f"{max(ratios.values()):.2f}" for ratios in by_function.values()))]
    for function in functions:
        ratios = [ratios_of_dtype.get(function) for ratios_of_dtype in by_function.values()]
        if any(ratio is not None for ratio in ratios):
            lines.append(row(f"`{function}`", *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)))
    median = np.median(list(units.values()))
    lines += [
        COARSEST_TABLE.format(count=len(units), median=median),
        row("result", "eps", "cause"),
        row("---", "---:", "---"),
    ]
    lines += [row(f"`{name}`", f"{unit:.3g}", cause) for name, unit, cause in list_bluntest(units)]
    return "\n".join([*lines, ""])


def largest_by_function(report: dict[str, Any]) -> dict[str, float]:
    """Return the largest error / budget among the passed cases of each function."""
    largest: dict[str, float] = {}
    for (function, _), ratio in find_largest(report, "ratio").items():
        largest[function] = max(ratio, largest.get(function, 0.0))
    return largest


def row(*cells: str) -> str:
    """Return a row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


@click.command(help=__doc__)
@click.argument("reports", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--data", type=click.Path(exists=True, path_type=Path), help="List the bluntest budgets of this baseline."
)
@click.option("--level", default="full")
@click.option("--markdown", type=click.Path(path_type=Path, dir_okay=False), help="Write the page to this file.")
def main(reports: tuple[Path, ...], data: Path | None, level: str, markdown: Path | None) -> None:
    """Print the tables."""
    contents = {path.stem: json.loads(path.read_text()) for path in reports}
    for name, report in contents.items():
        show_report(name, report)
    units = dict(median_units(sorted((data / level).glob(f"*{SUFFIX}")))) if data is not None else {}
    if units:
        show_bluntest(units)
    if markdown is not None:
        markdown.write_text(render_page(contents, units), "utf-8")
    failed = sum(report["summary"].get("failed", 0) for report in contents.values())
    sys.exit(1 if failed or any(cause == UNKNOWN for *_, cause in list_bluntest(units)) else 0)


if __name__ == "__main__":
    main()

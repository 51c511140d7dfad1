"""The beginning of a report: what was run, when and where, and how far the vendor conforms."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from diopi_proto.messages import pluralize
from diopi_test.results.declaration_check import describe_check
from diopi_test.results.records import FamilyConformance, Report, RunOrigin

MAX_NAMES = 4
"""The maximum number of functions of a family that the terminal names."""


def describe_run(report: Report) -> Iterator[tuple[str, str]]:
    """Yield what identifies a run, as pairs of a key of `texts.json` and a text."""
    origin = report.origin
    yield "vendor", report.vendor.title
    if origin is not None:
        yield "date", f"{origin.started[:16].replace('T', ' ')} UTC"
        yield "host", origin.host
        yield "device", describe_device(origin)
        yield "commit", origin.commit
        yield "workers", str(origin.workers)
    yield "numerics", report.numerics.title
    yield "declaration", describe_check(report.declaration_check, is_declared=not report.numerics.declaration.is_ieee)
    yield "baseline", f"{report.baseline.level} {report.baseline.digest[:12]}".strip()
    yield "duration", f"{report.summary.seconds:.1f} s"
    yield "options", describe_options(report)
    yield "command", report.command


def describe_options(report: Report) -> str:
    """Return the command-line options of a run except for vendor, level and number of workers.

    Returns:
        The options; "default" if there are none; an empty string if the command of the run is unknown.
    """
    try:
        words = shlex.split(report.command)[2:]
    except ValueError:  # a report that another program has written
        return ""
    options = list(words)
    for option in ("--vendor", "--level", "-n"):
        if option in options:
            position = options.index(option)
            del options[position : position + 2]
    return shlex.join(options) or ("default" if words else "")


def describe_device(origin: RunOrigin) -> str:
    """Return the device with its driver; without a stated device, the host's processor."""
    return f"{origin.device or origin.processor}{f' (driver {origin.driver})' if origin.driver else ''}"


def describe_conformance(report: Report) -> str:
    """Return how many functions are implemented, and how many of them conform.

    Args:
        report: The report of a run.

    Returns:
        A text such as "531 of 541 functions implemented, 498 conform". If the declared arithmetic is not IEEE 754, the
        version of the standard and the arithmetic follow. The text is empty if no function was tested.
    """
    functions, implemented, conforming = (
        sum(getattr(family, name) for family in report.families) for name in ("functions", "implemented", "conforming")
    )
    if not functions:
        return ""
    verb = "conforms" if conforming == 1 else "conform"
    qualifier = report.numerics.qualifier
    standard = f" to DIOPI {report.proto_version}{qualifier}" if qualifier else ""
    check = report.declaration_check
    contradicted = ", which measurements contradict" if check and check.contradictions else ""
    numbers = f"{implemented:,} of {pluralize(functions, 'function')} implemented, {conforming:,} {verb}"
    return f"{numbers}{standard}{contradicted}"


def show_overview(report: Report, console: Console) -> None:
    """Print what identifies the run, then the conformance by family."""
    for name, text in describe_run(report):
        if text:
            console.print(f"{name}: {text}", highlight=False, markup=False, soft_wrap=True)
    if not report.families:
        return
    console.print(describe_conformance(report), highlight=False, soft_wrap=True)
    _show_declaration_check(report, console)
    complete = [family.family for family in report.families if family.conforming == family.functions]
    if complete and len(complete) < len(report.families):
        console.print(f"  complete: {', '.join(complete)}", highlight=False, soft_wrap=True)
    if len(complete) < len(report.families):
        _show_families([family for family in report.families if family.family not in complete], console)


def _show_declaration_check(report: Report, console: Console) -> None:
    """Print where the declared arithmetic and measurements contradict each other, and what could not be measured."""
    for line in report.declaration_check.lines if report.declaration_check else ():
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)


def _show_families(families: list[FamilyConformance], console: Console) -> None:
    """Print a table of the conformance of each family."""
    table = Table("family", "functions", "implemented", "conform", "failing", "missing", box=None)
    for family in families:
        numbers = (family.functions, family.implemented, family.conforming)
        names = (_first_names(family.not_conforming), _first_names(family.not_implemented))
        table.add_row(escape(family.family), *map(str, numbers), *names)
    console.print(table)


def _first_names(names: tuple[str, ...]) -> str:
    """Return the first names as text, with the number of all others."""
    suffix = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + suffix

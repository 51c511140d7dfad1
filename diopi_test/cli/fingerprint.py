"""`diopi-test fingerprint`: probe a vendor's arithmetic, declare it, and check its declaration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.progress import Progress

from diopi_impl import BaseVendor, VendorError, find_numerics, find_vendor
from diopi_test.cli.console import COLUMNS, console, write_report
from diopi_test.cli.numerics import numerics_option
from diopi_test.cli.options import output_option, vendor_option

if TYPE_CHECKING:
    from diopi_test.fingerprint.numerics import MeasuredNumerics


@click.command()
@vendor_option
@output_option("--json", "json_file", "Write the fingerprint to this file.")
@click.option("--declare", is_flag=True, help="Print the narrowest declaration that fits, as TOML, and nothing else.")
@click.option("--check", is_flag=True, help="Compare the vendor's declaration with what probes measure.")
@numerics_option
def fingerprint(vendor: str, json_file: Path | None, declare: bool, check: bool, numerics: str | None) -> None:
    """Probe a vendor's arithmetic: accumulation order and width, subnormals, rounding, fused operations.

    The fingerprint also reports type conversions, NaN handling, and the errors of elementary functions.

    With --check, the exit status is 1 if the vendor uses an arithmetic that it does not declare.
    """
    if declare and check:
        raise click.UsageError("--declare and --check exclude each other")
    if json_file is not None and (declare or check):
        raise click.UsageError("--json writes the fingerprint: use it without --declare and --check")
    if numerics is not None and not check:
        raise click.UsageError("--numerics names the declaration that --check checks: use it with --check")
    found_vendor = _find_vendor(vendor)
    if declare:
        click.echo(_measure(found_vendor).to_toml(), nl=False)
    elif check:
        _check(found_vendor, numerics)
    else:
        _print_fingerprint(found_vendor, json_file)


def _print_fingerprint(vendor: BaseVendor, json_file: Path | None) -> None:
    """Print the fingerprint of a vendor, and write it to a file if there is one."""
    from diopi_test.fingerprint import Fingerprint
    from diopi_test.fingerprint.report import print_fingerprint
    from diopi_test.fingerprint.table import FAMILIES

    with Progress(*COLUMNS, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("probing", total=sum(map(len, FAMILIES.values())))
        measured = Fingerprint.measure(
            vendor, progress=lambda function: progress.update(task, advance=1, description=function)
        )
    print_fingerprint(measured, console)
    if json_file is not None:
        write_report(json_file, measured.to_json())


def _measure(vendor: BaseVendor) -> MeasuredNumerics:
    """Return the measured fields of a declaration; `_print_fingerprint` probes single functions instead."""
    from diopi_test.fingerprint.numerics import measure_numerics
    from diopi_test.fingerprint.numerics.measurement import MEASUREMENTS

    with Progress(*COLUMNS, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("probing", total=len(MEASUREMENTS))
        return measure_numerics(vendor, progress=lambda name: progress.update(task, advance=1, description=name))


def _check(vendor: BaseVendor, numerics: str | None) -> None:
    """Print how a vendor contradicts a declaration, and exit.

    The exit status is 1 if the vendor uses arithmetic that the declaration does not contain, otherwise 0. `numerics`
    names the declaration. None stands for the vendor's own declaration.
    """
    from diopi_test.fingerprint.numerics import find_contradictions

    declared = vendor.numerics if numerics is None else find_numerics(numerics)
    contradictions = find_contradictions(_measure(vendor), declared)
    for contradiction in contradictions:
        click.echo(contradiction)
    if not contradictions:
        click.echo(f"{vendor.name} {vendor.version} computes as declared: numerics {declared.name}")
    sys.exit(1 if any(entry.is_undeclared for entry in contradictions) else 0)


def _find_vendor(name: str) -> BaseVendor:
    """Return the vendor of this name; raise click.UsageError if there is none."""
    try:
        return find_vendor(name)
    except VendorError as error:
        raise click.UsageError(str(error)) from error

"""`diopi-test fingerprint`: what a vendor's arithmetic is like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.progress import Progress

from diopi_impl import BaseVendor, VendorError, find_vendor
from diopi_test.cli.options import COLUMNS, console, output_option, vendor_option, write_report

if TYPE_CHECKING:
    pass


@click.command()
@vendor_option
@output_option("--json", "json_file", "Write the fingerprint to this file.")
def fingerprint(vendor: str, json_file: Path | None) -> None:
    """Show what a vendor's arithmetic is like, found by probing its operators.

    Order and width of sums, subnormal numbers, conversions, multiply-add, NaN, errors of elementary functions.
    """
    from diopi_test.fingerprint import Fingerprint
    from diopi_test.fingerprint.report import show
    from diopi_test.fingerprint.table import FAMILIES

    found = _vendor(vendor)
    with Progress(*COLUMNS, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("probing", total=sum(map(len, FAMILIES.values())))
        taken = Fingerprint.of(found, progress=lambda function: progress.update(task, advance=1, description=function))
    show(taken, console)
    if json_file is not None:
        write_report(json_file, taken.to_json())


def _vendor(name: str) -> BaseVendor:
    """The vendor called `name`; a usage error if there is none."""
    try:
        return find_vendor(name)
    except VendorError as error:
        raise click.UsageError(str(error)) from error

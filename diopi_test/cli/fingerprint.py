"""`diopi-test fingerprint`: probe a vendor's arithmetic."""

from __future__ import annotations

from pathlib import Path

import click
from rich.progress import Progress

from diopi_impl import BaseVendor, VendorError, find_vendor
from diopi_test.cli.console import COLUMNS, console, write_report
from diopi_test.cli.options import output_option, vendor_option


@click.command()
@vendor_option
@output_option("--json", "json_file", "Write the fingerprint to this file.")
def fingerprint(vendor: str, json_file: Path | None) -> None:
    """Probe a vendor's arithmetic: accumulation order and width, subnormals, rounding, fused operations.

    The fingerprint also reports type conversions, NaN handling, and the errors of elementary functions.
    """
    from diopi_test.fingerprint import Fingerprint
    from diopi_test.fingerprint.report import print_fingerprint
    from diopi_test.fingerprint.table import FAMILIES

    found = _find_vendor(vendor)
    with Progress(*COLUMNS, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("probing", total=sum(map(len, FAMILIES.values())))
        measured = Fingerprint.measure(
            found, progress=lambda function: progress.update(task, advance=1, description=function)
        )
    print_fingerprint(measured, console)
    if json_file is not None:
        write_report(json_file, measured.to_json())


def _find_vendor(name: str) -> BaseVendor:
    """Return the vendor of this name; raise click.UsageError if there is none."""
    try:
        return find_vendor(name)
    except VendorError as error:
        raise click.UsageError(str(error)) from error

"""The command line: `python -m diopi_torch ops` lists what a vendor serves."""

from __future__ import annotations

from collections import Counter

import click

from diopi_impl.errors import VendorError
from diopi_impl.plugins import find_vendor
from diopi_torch.listing import FALLBACK, SERVED, UNSUPPORTED, entries
from diopi_torch.settings import vendor_name


@click.group()
def main() -> None:
    """Vendors of the standard as a device of PyTorch."""


@main.command()
@click.option("--vendor", default=vendor_name, show_default="of the environment", help="A name, module:attribute, .so")
@click.option("--status", type=click.Choice([SERVED, FALLBACK, UNSUPPORTED]), help="Only these.")
def ops(vendor: str, status: str | None) -> None:
    """List operators of ATen: name, function of the standard, and what becomes of a call."""
    try:
        found = list(entries(find_vendor(vendor)))
    except VendorError as error:
        raise click.UsageError(str(error)) from None
    for entry in found:
        if status in (None, entry.status):
            click.echo(f"{entry.operator}\t{entry.function}\t{entry.status}")
    counts = Counter(entry.status for entry in found)
    click.echo(", ".join(f"{counts[state]} {state}" for state in (SERVED, FALLBACK, UNSUPPORTED)), err=True)


if __name__ == "__main__":
    main(prog_name="python -m diopi_torch")

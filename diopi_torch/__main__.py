"""The command line: `python -m diopi_torch ops` lists ATen operators and whether a vendor supports them."""

from __future__ import annotations

from collections import Counter

import click

from diopi_impl.errors import VendorError
from diopi_impl.plugins import find_vendor
from diopi_torch.listing import FALLBACK, SERVED, UNSUPPORTED, list_operators
from diopi_torch.settings import vendor_name


@click.group()
def main() -> None:
    """Use a vendor of the standard as a PyTorch device."""


@main.command()
@click.option(
    "--vendor",
    default=vendor_name,
    show_default="the environment's vendor",
    help="Vendor: a name, module:attribute, or the path of a .so.",
)
@click.option("--status", type=click.Choice([SERVED, FALLBACK, UNSUPPORTED]), help="Only operators of this status.")
def ops(vendor: str, status: str | None) -> None:
    """List ATen operators with their functions and status.

    Each line has the name of an operator, the functions of the standard that implement it, and the status: `served`
    (the vendor runs it), `fallback` (the CPU runs it) or `unsupported`.
    """
    try:
        operators = list(list_operators(find_vendor(vendor)))
    except VendorError as error:
        raise click.UsageError(str(error)) from None
    for entry in operators:
        if status in (None, entry.status):
            click.echo(f"{entry.operator}\t{entry.function}\t{entry.status}")
    counts = Counter(entry.status for entry in operators)
    click.echo(", ".join(f"{counts[state]} {state}" for state in (SERVED, FALLBACK, UNSUPPORTED)), err=True)


if __name__ == "__main__":
    main(prog_name="python -m diopi_torch")

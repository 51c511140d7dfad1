"""`diopi-test export`: a library whose functions call a Python vendor."""

from __future__ import annotations

from pathlib import Path

import click

from diopi_impl import VendorError


@click.command()
@click.option("--vendor", default="jax_cpu", show_default=True, help="Name or module:attribute of a Python vendor.")
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder of the library.")
def export(vendor: str, out: Path) -> None:
    """Build a libdiopi_impl.so whose functions call a Python vendor."""
    from diopi_impl.export import ExportError
    from diopi_impl.export import export as build

    try:
        click.echo(build(vendor, out))
    except VendorError as error:
        raise click.UsageError(str(error)) from error
    except (ExportError, OSError) as error:
        raise click.ClickException(str(error)) from error

"""`diopi-test export`: build a library whose functions call a Python vendor."""

from __future__ import annotations

from pathlib import Path

import click

from diopi_impl import VendorError
from diopi_impl.deprecated_options import renamed_option
from diopi_test.cli.options import torch_setup_option


@click.command()
@click.option(
    "--vendor",
    default="jax_cpu",
    show_default=True,
    help="Vendor in Python: a name, torch:DEVICE, jax:PLATFORM, or module:attribute.",
)
@torch_setup_option
@renamed_option(
    "-o",
    "--output",
    deprecated_names=["--out"],
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the library to this folder.",
)
def export(vendor: str, output: Path) -> None:
    """Build a library whose functions call a Python vendor.

    The library is libdiopi_impl.so in the folder of --output.
    """
    from diopi_impl.export import ExportError
    from diopi_impl.export import export as build

    try:
        click.echo(build(vendor, output))
    except VendorError as error:
        raise click.UsageError(str(error)) from error
    except (ExportError, OSError) as error:
        raise click.ClickException(str(error)) from error

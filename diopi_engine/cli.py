"""`diopi-engine`: show engine files, export the reference runtime, and check libraries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from diopi_engine import container
from diopi_engine.engine import Engine
from diopi_engine.errors import EngineFileError
from diopi_engine.manifest import Binding, EngineManifest
from diopi_impl.deprecated_options import renamed_option
from diopi_proto.messages import pluralize


@click.group()
def main() -> None:
    """Work with compiled networks."""


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--network", is_flag=True, help="Also print the network as StableHLO.")
def show(file: Path, network: bool) -> None:
    """Show the contents of an engine file.

    The command verifies the file and runs nothing of it.
    """
    try:
        data = file.read_bytes()
        engine = Engine.from_bytes(data)
    except (OSError, EngineFileError) as error:
        raise click.ClickException(f"{file}: {error}") from error
    click.echo("\n".join(describe(engine.manifest, container.unpack(data))))
    if network:
        click.echo(engine.exported.mlir_module())


def describe(manifest: EngineManifest, members: dict[str, bytes]) -> list[str]:
    """Return the lines that describe an engine file for the command `show`.

    Args:
        manifest: the manifest of the engine.
        members: the contents of the file's members, by name.

    Returns:
        The lines.
    """
    return [
        f"engine {manifest.name}, format {manifest.format}, compiler {manifest.compiler}, "
        f"for {', '.join(manifest.platforms)}",
        _describe_batches(manifest),
        "bindings",
        *(_format_binding(n, binding) for n, binding in enumerate(manifest.bindings)),
        f"engine {manifest.engine} of group {manifest.group[:16]}, whose scheme is:",
        *(
            f"  {n} {control.name}: device {control.virtual_device}, cores {control.core_mask:#x}, {control.mode}, "
            f"{control.cores_per_batch} per batch, {control.memory} bytes of memory in group {control.memory_group}"
            for n, control in enumerate(manifest.scheme)
        ),
        "weights",
        *(f"  {n} {weight.name}: {weight.dtype} {list(weight.shape)}" for n, weight in enumerate(manifest.weights)),
        "members",
        *(
            f"  {name}: {pluralize(len(data), 'byte')}, sha256 {container.sha256(data)}"
            for name, data in members.items()
        ),
    ]


def _describe_batches(manifest: EngineManifest) -> str:
    """Return the largest batch, and whether a runtime may split it into parts; `fixed sizes` without a batch axis."""
    if not manifest.has_batch:
        return "fixed sizes"
    parts = f"in parts of {manifest.patch}" if manifest.is_divisible else "as a whole"
    return f"batches of up to {manifest.max_batch} {parts}"


def _format_binding(number: int, binding: Binding) -> str:
    """Return the line of the command `show` for a binding with this number."""
    sizes = ", ".join("batch" if size is None else str(size) for size in binding.shape)
    kind = "input" if binding.is_input else "output"
    return f"  {number} {kind} {binding.name}: {binding.dtype} [{sizes}] {binding.layout}"


@main.command()
@renamed_option(
    "-o",
    "--output",
    deprecated_names=["--out"],
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the libraries to this folder.",
)
@click.option(
    "--interface",
    "chosen",
    type=click.Choice(["hgrt", "nvdla", "nvdla-released"]),
    help="Only the library of this interface. nvdla-released has the binary interface of NVDLA's released headers.",
)
def export(output: Path, chosen: str | None) -> None:
    """Build the reference runtime for C and C++ programs.

    The command builds libhgrt.so and libnvdla_runtime.so. With --interface nvdla-released it builds another
    libnvdla_runtime.so, whose name is the same because programs that exist look for it; give it a folder of its own.
    """
    from diopi_engine.runtime.build import build as build_hgrt
    from diopi_engine.runtime.nvdla.build import RELEASED
    from diopi_engine.runtime.nvdla.build import build as build_nvdla
    from diopi_impl.export import ExportError

    if chosen == "nvdla-released":
        builders: dict[str, Callable[[Path], Path]] = {chosen: partial(build_nvdla, kind=RELEASED)}
    else:
        builders = {"hgrt": build_hgrt, "nvdla": build_nvdla}

    try:
        for interface, build in builders.items():
            if chosen in (None, interface):
                click.echo(build(output))
    except (ExportError, OSError) as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.argument("library", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-k", "chosen", metavar="TEXT", default="", help="Only cases whose names contain this text.")
@click.option(
    "--vendor", default="jax_cpu", show_default=True, help="Vendor that computes the expected results of the networks."
)
@click.option("--timeout", default=120.0, show_default=True, help="Time limit of a case in seconds.")
def check(library: Path, chosen: str, vendor: str, timeout: float) -> None:
    """Run the conformance cases against a library.

    The command detects from the symbols of LIBRARY whether it implements HanGuangRT, NVDLA's driver, or both.

    Exit status: 0 no case failed; 1 a case failed; 2 wrong usage; 3 no case was run.
    """
    from diopi_engine.conformance.interfaces import NoInterfaceError, find_cases
    from diopi_engine.conformance.run import run_cases
    from diopi_impl.errors import VendorError
    from diopi_impl.plugins import find_vendor

    try:
        find_vendor(vendor)
    except VendorError as error:
        raise click.BadParameter(str(error), param_hint="--vendor") from error
    try:
        cases = [name for name in find_cases(library) if chosen in name]
    except NoInterfaceError as error:
        raise click.ClickException(str(error)) from error
    count = {"passed": 0, "not_run": 0}
    for verdict in run_cases(library.resolve(), cases, timeout, vendor):
        count[verdict.verdict] = count.get(verdict.verdict, 0) + 1
        click.echo(f"{verdict.verdict:9} {verdict.case}{f': {verdict.detail}' if verdict.detail else ''}")
    click.echo(", ".join(f"{number} {verdict}" for verdict, number in count.items()))
    raise SystemExit(1 if set(count) > {"passed", "not_run"} else 3 * (not count["passed"]))

"""`diopi-engine`: what an engine file is."""

from __future__ import annotations

from pathlib import Path

import click

from diopi_engine import container
from diopi_engine.engine import Engine
from diopi_engine.errors import EngineFileError
from diopi_engine.manifest import Binding, Manifest


@click.group()
def main() -> None:
    """Compiled networks."""


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--network", is_flag=True, help="Also print the network, as StableHLO.")
def show(file: Path, network: bool) -> None:
    """Print what an engine file is. It is checked, and nothing of it is run."""
    try:
        data = file.read_bytes()
        engine = Engine.from_bytes(data)
    except (OSError, EngineFileError) as error:
        raise click.ClickException(f"{file}: {error}") from error
    click.echo("\n".join(described(engine.manifest, container.unpack(data))))
    if network:
        click.echo(engine.exported.mlir_module())


def described(manifest: Manifest, members: dict[str, bytes]) -> list[str]:
    """The lines that say what an engine is, whose file has these members."""
    return [
        f"engine {manifest.name}, format {manifest.format}, compiler {manifest.compiler}, "
        f"for {', '.join(manifest.platforms)}",
        f"batches of up to {manifest.max_batch} in parts of {manifest.patch}"
        if manifest.has_batch
        else "sizes are fixed",
        "bindings",
        *(_binding(n, binding) for n, binding in enumerate(manifest.bindings)),
        f"scheme of group {manifest.group[:16]}, of which this is engine {manifest.engine}",
        *(
            f"  {n} {control.name}: device {control.virtual_device}, cores {control.core_mask:#x}, {control.mode}, "
            f"{control.cores_per_batch} a batch, memory {control.memory} bytes, shared in group {control.memory_group}"
            for n, control in enumerate(manifest.scheme)
        ),
        "weights",
        *(f"  {n} {weight.name}: {weight.dtype} {list(weight.shape)}" for n, weight in enumerate(manifest.weights)),
        "members",
        *(f"  {name}: {len(data)} bytes, sha256 {container.sha256(data)}" for name, data in members.items()),
    ]


def _binding(number: int, binding: Binding) -> str:
    sizes = ", ".join("batch" if size is None else str(size) for size in binding.shape)
    kind = "input" if binding.is_input else "output"
    return f"  {number} {kind} {binding.name}: {binding.dtype} [{sizes}] {binding.layout}"


@main.command()
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder of the library.")
@click.option("--interface", "chosen", type=click.Choice(["hgrt", "nvdla"]), help="Only the library of this interface.")
def export(out: Path, chosen: str | None) -> None:
    """Build the reference runtime for programs in C and C++: libhgrt.so and libnvdla_runtime.so."""
    from diopi_engine.runtime.build import build as build_hgrt
    from diopi_engine.runtime.nvdla.build import build as build_nvdla
    from diopi_impl.export import ExportError

    try:
        for interface, build in {"hgrt": build_hgrt, "nvdla": build_nvdla}.items():
            if chosen in (None, interface):
                click.echo(build(out))
    except (ExportError, OSError) as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.argument("library", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-k", "chosen", default="", help="Only cases whose name has this in it.")
@click.option("--vendor", default="jax_cpu", show_default=True, help="That runs networks operator by operator.")
@click.option("--timeout", default=120.0, show_default=True, help="Seconds a case may take.")
def check(library: Path, chosen: str, vendor: str, timeout: float) -> None:
    """Run the conformance cases of its interface on a library: status 1 if one failed, 3 if none was run.

    The library has HanGuangRT, or NVDLA's driver, or both: its symbols tell.
    """
    from diopi_engine.conformance.interfaces import NoInterfaceError, cases_of
    from diopi_engine.conformance.run import run
    from diopi_impl.errors import VendorError
    from diopi_impl.plugins import find_vendor

    try:
        find_vendor(vendor)
    except VendorError as error:
        raise click.BadParameter(str(error), param_hint="--vendor") from error
    try:
        cases = [name for name in cases_of(library) if chosen in name]
    except NoInterfaceError as error:
        raise click.ClickException(str(error)) from error
    count = {"passed": 0, "not_run": 0}
    for verdict in run(library.resolve(), cases, timeout, vendor):
        count[verdict.verdict] = count.get(verdict.verdict, 0) + 1
        click.echo(f"{verdict.verdict:9} {verdict.case}{f': {verdict.detail}' if verdict.detail else ''}")
    click.echo(", ".join(f"{number} {verdict}" for verdict, number in count.items()))
    raise SystemExit(1 if set(count) > {"passed", "not_run"} else 3 * (not count["passed"]))

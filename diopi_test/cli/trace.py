"""`diopi-test trace`: record the functions that a PyTorch program calls."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from diopi_proto.messages import pluralize
from diopi_test.cli.console import console
from diopi_test.cli.options import OutputFile


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "-o", "--output", type=OutputFile(), required=True, metavar="FILE", help="Write the calls to this JSON file."
)
@click.option("--name", help="Name of the model; by default the name of the output file.")
@click.argument("script", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def trace(script: Path, arguments: tuple[str, ...], output: Path, name: str | None) -> None:
    """Record the functions that a PyTorch program calls.

    The command runs SCRIPT on the CPU and writes which functions it would call on a device. ARGUMENTS are passed to
    SCRIPT, including options that are not listed below; everything after -- is passed to SCRIPT. Requires PyTorch: pip
    install 'diopi[torch]'.
    """
    if find_spec("torch") is None:
        raise click.ClickException("PyTorch is not installed: pip install 'diopi[torch]'")
    from diopi_test.traces.files import write_trace
    from diopi_test.traces.trace import trace_script

    model = trace_script(script, arguments, name or output.stem)
    write_trace(output, model)
    functions, calls = model.functions, sum(call.count for call in model.calls)
    totals = f"{pluralize(calls, 'call')} of {pluralize(len(functions), 'function')}"
    console.print(f"{model.name}: {totals}, {len(model.calls)} of them different", highlight=False, markup=False)
    for operator, count in sorted(model.not_mapped.items()):
        line = f"not mapped: {operator}, {pluralize(count, 'call')}"
        console.print(line, highlight=False, markup=False)

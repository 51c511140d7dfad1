"""`diopi-test trace`: which functions a program in PyTorch calls, written to a file of calls."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from diopi_test.cli.options import OutputFile, console


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "-o", "--output", type=OutputFile(), required=True, metavar="FILE.json", help="Write the calls to this file."
)
@click.option("--name", help="What the model is called; without it as the file.")
@click.argument("script", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def trace(script: Path, arguments: tuple[str, ...], output: Path, name: str | None) -> None:
    """Run SCRIPT, a program in PyTorch, on the CPU and write which functions a device would be called for.

    ARGUMENTS are those of SCRIPT, also options that are not the ones below; behind -- all are. Needs PyTorch: pip
    install 'diopi[torch]'.
    """
    if find_spec("torch") is None:
        raise click.ClickException("tracing needs PyTorch, which is not installed: pip install 'diopi[torch]'")
    from diopi_test.models.files import write_model
    from diopi_test.models.trace import trace_script

    model = trace_script(script, arguments, name or output.stem)
    write_model(output, model)
    functions, calls = model.functions, sum(call.count for call in model.calls)
    console.print(f"{model.name}: {calls} calls of {len(functions)} functions, {len(model.calls)} of them different")
    for operator, count in sorted(model.not_mapped.items()):
        console.print(f"not mapped: {operator}, called {count} times", highlight=False, markup=False)

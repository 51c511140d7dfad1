"""`diopi-test new-operator`: add the scaffold of an operator to the source tree."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("name")
@click.option("--family", required=True, help="The family of the operator: a module of diopi_proto/functions.")
@click.option("--module", help="The module of the family, where the family is a package.")
@click.option("--like", metavar="FUNCTION", help="Copy parameters and facts from this function of the family.")
@click.option("--aten", metavar="OPERATOR", help="The operator of PyTorch that computes the same, such as hardsigmoid.")
@click.option("--no-gradient", metavar="REASON", help="The operator has no gradient function, for this reason.")
@click.option(
    "--tree",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="The source tree to change. Default: the working directory.",
)
def new_operator(
    name: str,
    family: str,
    module: str | None,
    like: str | None,
    aten: str | None,
    no_gradient: str | None,
    tree: Path,
) -> None:
    """Add a new operator's prototype, reference, implementation and cases to a clone of the repository.

    NAME is the function's name in C, such as diopiHardsigmoid. The command writes what follows from the name and from
    the options, and lists the places that you fill in.
    """
    from diopi_test.quality.scaffold import ScaffoldRequest, places_to_fill_in, scaffold

    request = ScaffoldRequest(name=name, family=family, module=module, like=like, aten=aten, no_gradient=no_gradient)
    try:
        contents = scaffold(tree, request)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    for path, text in contents.items():
        path.write_text(text, "utf-8")
    click.echo(f"{name} was added to {len(contents)} files. Fill in:")
    for path, number, text in places_to_fill_in(contents):
        click.echo(f"  {path.relative_to(tree)}:{number}: {text}")
    click.echo("Then regenerate the derived files and check the operator:")
    click.echo(f"  python -m diopi_test refresh && python -m diopi_test gen-data -k {name}")
    click.echo(f"  python -m diopi_test run -k {name} && python -m diopi_test mutation-test -k {name}")

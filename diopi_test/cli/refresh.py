"""`diopi-test refresh`: regenerate the generated files of the source tree."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
def refresh() -> None:
    """Regenerate the files of a clone that follow from the prototypes and the cases.

    The files are the C headers, the golden interface in tests/diopi_proto/golden, the counts in the README, the
    dependencies between functions in diopi_test/run, and the JSON Schemas of reports in diopi_test/results. Run it as
    `python -m diopi_test refresh` in the root of the clone.
    """
    from diopi_proto.messages import pluralize
    from diopi_test.quality.generated_files import refresh as regenerate

    try:
        changed = regenerate(Path.cwd())
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    for path in changed:
        click.echo(f"changed: {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    click.echo(f"{pluralize(len(changed), 'generated file')} changed")

"""`diopi-test submit`: pack a run into an archive of evidence."""

from __future__ import annotations

from pathlib import Path

import click

from diopi_proto.messages import pluralize
from diopi_test.cli.console import UnusableError, console
from diopi_test.cli.options import OutputFile, data_option


@click.command()
@click.argument("log", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("archive", type=OutputFile())
@data_option
@click.option(
    "--sign",
    "key",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="KEY",
    help="Sign the archive with this OpenSSH private key.",
)
def submit(log: Path, archive: Path, data: Path | None, key: Path | None) -> None:
    """Pack a run into an archive of evidence.

    ARCHIVE contains LOG, the reports generated from LOG, the manifest of the baseline, and their digests. Everyone who
    has the archive can derive the result again with `diopi-test verify`.

    Exit status: 0 the archive is written, whatever the result of the run; 2 wrong usage; 3 the log or the baseline
    can't be used, or the archive can't be written.
    """
    from diopi_test.baseline.location import folder_to_read
    from diopi_test.baseline.manifest import MANIFEST_NAME
    from diopi_test.reporting import evidence
    from diopi_test.reporting.signature import SignatureError, sign
    from diopi_test.results.log import LogError
    from diopi_test.run import output
    from diopi_test.run.recorder import LogContent

    try:
        level = LogContent.read(log).header.baseline.level
        folder = folder_to_read(level) if data is None else data / level
        members = dict(evidence.pack(log.read_bytes(), (folder / MANIFEST_NAME).read_bytes(), signed=key is not None))
        if key is not None:
            members[evidence.SIGNATURE] = sign(members[evidence.INDEX], key)
        output.write_bytes(archive, evidence.build_archive(members))
    except (LogError, evidence.EvidenceError, SignatureError, OSError, ValueError) as error:
        raise UnusableError(f"{log} can't be packed: {error}") from error
    line = f"{archive}: {pluralize(len(members), 'member')}"
    console.print(line, highlight=False, markup=False, soft_wrap=True)

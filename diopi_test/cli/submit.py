"""`diopi-test submit`: a run as evidence, in one archive."""

from __future__ import annotations

from pathlib import Path

import click

from diopi_test.cli.options import OutputFile, Unusable, console, data_option


@click.command()
@click.argument("log", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("archive", type=OutputFile())
@data_option
@click.option(
    "--sign",
    "key",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="KEY",
    help="Sign with this private key of OpenSSH.",
)
def submit(log: Path, archive: Path, data: Path | None, key: Path | None) -> None:
    """Pack the run of LOG into ARCHIVE: the log, the reports made of it, the baseline's manifest, and their digests.

    Whoever has the archive can derive the result anew: `diopi-test verify`. Exit status: 0 it is packed, whatever the
    run ended in; 2 usage, 3 the log or the baseline can't be used, or the archive can't be written.
    """
    from diopi_test.baseline.location import folder_to_read
    from diopi_test.baseline.manifest import NAME
    from diopi_test.harness import output
    from diopi_test.harness.log import LogError
    from diopi_test.harness.recorder import LogContent
    from diopi_test.reporting import evidence
    from diopi_test.reporting.signature import SignatureError, sign

    try:
        level = LogContent.read(log).header.baseline.level
        folder = folder_to_read(level) if data is None else data / level
        members = dict(evidence.pack(log.read_bytes(), (folder / NAME).read_bytes(), signed=key is not None))
        if key is not None:
            members[evidence.SIGNATURE] = sign(members[evidence.INDEX], key)
        output.write_bytes(archive, evidence.archive(members))
    except (LogError, evidence.EvidenceError, SignatureError, OSError, ValueError) as error:
        raise Unusable(f"{log} can't be packed: {error}") from error
    console.print(f"{archive}: {len(members)} members", highlight=False, markup=False, soft_wrap=True)

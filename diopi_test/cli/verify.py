"""`diopi-test verify`: verify an archive of evidence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from diopi_test.cli.console import console

if TYPE_CHECKING:
    from diopi_test.reporting.evidence import Archive

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
"""The type of an argument that is the path of an existing file."""

UNCHECKED = "no identity was checked: anyone could have written this archive; pass --signers and --signer"
"""The warning about an archive that is consistent, but whose author was not checked."""

UNCHECKED_STATUS = 4
"""The exit status of an archive that is consistent, but whose author was not checked."""


@click.command()
@click.argument("archive", type=_FILE)
@click.option("--signers", type=_FILE, help="File of trusted keys, see ALLOWED SIGNERS in ssh-keygen(1).")
@click.option("--signer", help="Required signer, by the name in --signers.")
def verify(archive: Path, signers: Path | None, signer: str | None) -> None:
    """Verify an archive of evidence.

    ARCHIVE is a file that `diopi-test submit` has written. The command checks that nothing is missing or changed, that
    the reports follow from the log, and that the required signer has signed.

    Exit status: 0 the archive is valid evidence of its run, whatever the run's result, and the required signer has
    signed it; 1 the archive is not valid; 2 wrong usage; 4 the archive is valid, but no identity was checked because
    you did not pass --signers and --signer.
    """
    from diopi_test.reporting.evidence import Archive, EvidenceError

    if (signers is None) != (signer is None):
        raise click.UsageError("--signers and --signer must be passed together")
    try:
        content = Archive.read(archive)
        problems = list(content.problems())
        signature = "" if problems else _describe_signature(content, signers, signer)
    except EvidenceError as error:
        problems = [str(error)]
    for problem in problems:
        console.print(f"{archive}: {problem}", style="red", highlight=False, markup=False, soft_wrap=True)
    if problems:
        sys.exit(1)
    evidence = content.evidence
    run = f"a run{evidence.numerics.qualifier}, with status {evidence.exit_status}"
    conclusion = f"{archive}: evidence of {run}: {evidence.command}"
    for line in (
        *([UNCHECKED] if signers is None else []),
        content.members["summary.md"].decode(),
        signature,
        conclusion,
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    sys.exit(UNCHECKED_STATUS if signers is None else 0)


def _describe_signature(content: Archive, signers: Path | None, signer: str | None) -> str:
    """Return a sentence about the signature; raise EvidenceError if it is missing or invalid."""
    from diopi_test.reporting.evidence import INDEX, SIGNATURE, EvidenceError
    from diopi_test.reporting.signature import SignatureError, check

    if not content.evidence.signed:
        if signers is not None:
            raise EvidenceError(f"the archive is not signed; expected a signature of {signer}")
        return "not signed: the archive shows that nothing was changed, but not who wrote it"
    try:
        return check(content.members[INDEX], content.members[SIGNATURE], signers, signer)
    except SignatureError as error:
        raise EvidenceError(f"the signature is not valid: {error}") from error

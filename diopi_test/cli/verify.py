"""`diopi-test verify`: whether an archive is evidence of what it says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from diopi_test.cli.options import console

if TYPE_CHECKING:
    from diopi_test.reporting.evidence import Archive

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

UNCHECKED = "nobody's identity was checked: anyone may have made this archive; pass --signers and --signer"

UNCHECKED_STATUS = 4
"""The exit status of an archive that is consistent, but may be anybody's."""


@click.command()
@click.argument("archive", type=_FILE)
@click.option("--signers", type=_FILE, help="Keys that are trusted, as in ssh-keygen(1) under ALLOWED SIGNERS.")
@click.option("--signer", help="Who must have signed, as --signers names them.")
def verify(archive: Path, signers: Path | None, signer: str | None) -> None:
    """Check ARCHIVE, which `diopi-test submit` has written: nothing is missing or changed, and the log says the same.

    Exit status: 0 it is evidence of the run it shows, whatever that ended in, and SIGNER has signed it; 1 it is no
    evidence; 2 usage; 4 it is evidence, but without --signers and --signer nobody's identity was checked.
    """
    from diopi_test.reporting.evidence import Archive, EvidenceError

    if (signers is None) != (signer is None):
        raise click.UsageError("--signers and --signer need each other")
    try:
        content = Archive.read(archive)
        problems = list(content.problems())
        signature = "" if problems else _signature(content, signers, signer)
    except EvidenceError as error:
        problems = [str(error)]
    for problem in problems:
        console.print(f"{archive}: {problem}", style="red", highlight=False, markup=False, soft_wrap=True)
    if problems:
        sys.exit(1)
    evidence = content.evidence
    said = f"{archive}: evidence of a run of status {evidence.exit_status}, made by {evidence.command}"
    for line in (*([UNCHECKED] if signers is None else []), content.members["summary.md"].decode(), signature, said):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    sys.exit(UNCHECKED_STATUS if signers is None else 0)


def _signature(content: Archive, signers: Path | None, signer: str | None) -> str:
    """What is to be said of the signature; EvidenceError if there is none but must be, or it is not right."""
    from diopi_test.reporting.evidence import INDEX, SIGNATURE, EvidenceError
    from diopi_test.reporting.signature import SignatureError, check

    if not content.evidence.signed:
        if signers is not None:
            raise EvidenceError(f"it is not signed; expected a signature of {signer}")
        return "not signed: it shows that nothing was changed, but not who made it"
    try:
        return check(content.members[INDEX], content.members[SIGNATURE], signers, signer)
    except SignatureError as error:
        raise EvidenceError(f"its signature is not right: {error}") from error

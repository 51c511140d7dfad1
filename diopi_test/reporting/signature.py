"""Signatures of evidence by keys that people have: those of OpenSSH (`ssh-keygen -Y`, from 8.2 on).

Source: the manual page ssh-keygen(1), and PROTOCOL.sshsig of OpenSSH.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

NAMESPACE = "diopi-evidence"
"""What a signature is for: one that was made for something else is not accepted."""


class SignatureError(Exception):
    """A signature that can't be made, or is not right; the message says why."""


def sign(content: bytes, key: Path) -> bytes:
    """The signature of `content` by the private key in the file `key`; one with a passphrase asks for it."""
    with tempfile.TemporaryDirectory(prefix="diopi-sign-") as folder:
        file = Path(folder) / "content"
        file.write_bytes(content)
        _ssh_keygen("-Y", "sign", "-f", key, "-n", NAMESPACE, file)
        return file.with_name("content.sig").read_bytes()


def check(content: bytes, signature: bytes, signers: Path | None, signer: str | None) -> str:
    """Who signed `content`, in words; SignatureError if nobody did, or not the `signer`.

    Args:
        signers: the file of the keys that are trusted, as ssh-keygen(1) describes under ALLOWED SIGNERS; None if the
            signature only has to be that of some key.
        signer: who must have signed, as `signers` names them.
    """
    with tempfile.TemporaryDirectory(prefix="diopi-sign-") as folder:
        file = Path(folder) / "content.sig"
        file.write_bytes(signature)
        trusted = ("verify", "-f", signers, "-I", signer) if signers is not None else ("check-novalidate",)
        return _ssh_keygen("-Y", *trusted, "-n", NAMESPACE, "-s", file, content=content)


def _ssh_keygen(*words: object, content: bytes | None = None) -> str:
    """What ssh-keygen prints; SignatureError if it fails, or is not there."""
    command = ["ssh-keygen", *map(str, words)]
    try:
        done = subprocess.run(command, input=content, capture_output=True, check=False)
    except OSError as error:
        raise SignatureError(f"signatures need OpenSSH's ssh-keygen: {error}") from error
    output = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
    if done.returncode:
        raise SignatureError(f"ssh-keygen ended with {done.returncode}: {output}")
    return output

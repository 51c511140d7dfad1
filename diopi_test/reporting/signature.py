"""Signatures of evidence with OpenSSH keys (`ssh-keygen -Y`, from version 8.2).

Source: the manual page ssh-keygen(1), and PROTOCOL.sshsig of OpenSSH.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

NAMESPACE = "diopi-evidence"
"""The namespace of a signature in OpenSSH, which states its purpose. Signatures in another namespace are rejected."""


class SignatureError(Exception):
    """A signature that can't be created or verified; the message gives the reason."""


def sign(content: bytes, key: Path) -> bytes:
    """Return the signature of `content` in the format of OpenSSH.

    If the key has a passphrase, ssh-keygen asks the user for it.

    Args:
        content: The bytes to sign.
        key: The file of an OpenSSH private key.

    Raises:
        SignatureError: ssh-keygen is not installed, or can't sign with this key.
    """
    with tempfile.TemporaryDirectory(prefix="diopi-sign-") as folder:
        file = Path(folder) / "content"
        file.write_bytes(content)
        _ssh_keygen("-Y", "sign", "-f", key, "-n", NAMESPACE, file)
        return file.with_name("content.sig").read_bytes()


def check(content: bytes, signature: bytes, signers: Path | None, signer: str | None) -> str:
    """Verify the signature of `content` and return the text that names the signer.

    Args:
        content: The signed bytes.
        signature: The signature.
        signers: The file of trusted keys (see ALLOWED SIGNERS in ssh-keygen(1)); None to accept any key.
        signer: The required signer, as named in `signers`; ignored if `signers` is None.

    Returns:
        The output of ssh-keygen.

    Raises:
        SignatureError: The signature is invalid, or `signer` did not sign.
    """
    with tempfile.TemporaryDirectory(prefix="diopi-sign-") as folder:
        file = Path(folder) / "content.sig"
        file.write_bytes(signature)
        trusted = ("verify", "-f", signers, "-I", signer) if signers is not None else ("check-novalidate",)
        return _ssh_keygen("-Y", *trusted, "-n", NAMESPACE, "-s", file, content=content)


def _ssh_keygen(*words: object, content: bytes | None = None) -> str:
    """Run ssh-keygen.

    Args:
        *words: The arguments of the command line.
        content: The bytes that the process reads from its standard input.

    Returns:
        What the process wrote to stdout and stderr.

    Raises:
        SignatureError: ssh-keygen is not installed, or ends with an error.
    """
    command = ["ssh-keygen", *map(str, words)]
    try:
        process = subprocess.run(command, input=content, capture_output=True, check=False)
    except OSError as error:
        raise SignatureError(f"signatures need OpenSSH's ssh-keygen: {error}") from error
    output = (process.stdout + process.stderr).decode("utf-8", "replace").strip()
    if process.returncode:
        raise SignatureError(f"ssh-keygen ended with {process.returncode}: {output}")
    return output

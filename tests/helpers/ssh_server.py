"""A server of ssh on this machine, for tests that need a remote target."""

from __future__ import annotations

import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SERVER_FOLDERS = "/usr/sbin:/usr/local/sbin:/usr/bin"
"""Where systems install the server, which is not always in the search path of users."""


@contextmanager
def start_ssh_server(folder: Path) -> Iterator[str]:
    """Start a server that accepts a new key; skip the test without ssh.

    Args:
        folder: The folder of keys and settings.

    Yields:
        The command that executes a command line through the server.
    """
    server = shutil.which("sshd", path=SERVER_FOLDERS)
    if server is None or shutil.which("ssh") is None:
        pytest.skip("there is no ssh with a server here (Debian: apt-get install openssh-server)")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    settings = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "user.pub",
        "StrictModes": "no",
        "UsePAM": "no",
        "PidFile": "none",
        "PermitRootLogin": "yes",
    }
    (folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()), "utf-8")
    Path("/run/sshd").mkdir(exist_ok=True)
    log = (folder / "sshd.log").open("wb")
    process = subprocess.Popen([server, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log)
    options = ["BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
    command = ["ssh", "-p", str(port), "-i", str(folder / "user"), *(f"-o{option}" for option in options), "127.0.0.1"]
    try:
        _require_login(command, folder / "sshd.log")
        yield shlex.join(command)
    finally:
        process.terminate()
        process.wait()
        log.close()


def _require_login(command: list[str], log: Path) -> None:
    """Wait until the server accepts a login; skip the test if it does not."""
    deadline = time.monotonic() + 20
    while subprocess.run([*command, "true"], capture_output=True).returncode:
        if time.monotonic() > deadline:
            pytest.skip(f"the server of ssh accepts no login: {log.read_text('utf-8', 'replace')[-300:]}")
        time.sleep(0.2)

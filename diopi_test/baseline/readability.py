"""Check in a process with a time limit that HDF5 can read baseline files.

A damaged or malicious file can make HDF5 loop forever in C, where Python can't interrupt it. If this process reads the
files completely, other processes can read them too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.store import BaselineFile

START_TIMEOUT, READ_TIMEOUT = 60.0, 5.0
"""Seconds allowed to start the process and to read each file: about a hundred times the usual durations."""

_BOOTSTRAP = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {module} import main; main()"
"""The program of the process: it takes over the import path, which is its argument, and calls `main` of this module."""


def check_readable(files: Mapping[Path, str]) -> None:
    """Check that baseline files can be read completely.

    Args:
        files: The SHA-256 that each file must have, by path.

    Raises:
        BaselineError: A file can't be read or has another digest, or reading takes too long.
    """
    limit = START_TIMEOUT + READ_TIMEOUT * len(files)
    command = [sys.executable, "-c", _BOOTSTRAP.format(module=__name__), json.dumps(sys.path)]
    request = json.dumps({str(path): sha256 for path, sha256 in files.items()})
    try:
        process = subprocess.run(command, input=request, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as error:
        names = ", ".join(path.name for path in files)
        raise BaselineError(f"HDF5 did not read {names} within {limit:g} s: a file is damaged or malicious") from error
    if process.returncode:
        reason = process.stdout.strip() or process.stderr.strip() or f"the reader ended with {process.returncode}"
        raise BaselineError(reason)


def main() -> None:
    """Read the files named on standard input; print the reason and exit with status 1 if one can't be read."""
    try:
        for path, sha256 in json.load(sys.stdin).items():
            BaselineFile(Path(path), sha256).verify()
    except BaselineError as error:
        print(error)
        sys.exit(1)

"""Whether HDF5 can read baseline files, found out in a process that has a time limit.

A file that is damaged, or made for it, can have HDF5 loop for ever in C, where nothing interrupts it. What one process
has read to its end can be read by another as well: so the files are read here first.
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
"""Seconds the process has to start, and for each file: a hundred times what both take."""

_BOOTSTRAP = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {module} import main; main()"


def check_readable(files: Mapping[Path, str]) -> None:
    """Read baseline files to their ends, given their digests; BaselineError if that fails or takes too long."""
    limit = START_TIMEOUT + READ_TIMEOUT * len(files)
    command = [sys.executable, "-c", _BOOTSTRAP.format(module=__name__), json.dumps(sys.path)]
    request = json.dumps({str(path): sha256 for path, sha256 in files.items()})
    try:
        done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as error:
        names = ", ".join(path.name for path in files)
        raise BaselineError(f"HDF5 did not read {names} in {limit:g} s: a file is damaged, or made to hang") from error
    if done.returncode:
        reason = done.stdout.strip() or done.stderr.strip() or f"the reader ended with {done.returncode}"
        raise BaselineError(reason)


def main() -> None:
    """Read the files that standard input names; print the reason and end with 1 if one can't be read."""
    try:
        for path, sha256 in json.load(sys.stdin).items():
            BaselineFile(Path(path), sha256).verify()
    except BaselineError as error:
        print(error)
        sys.exit(1)

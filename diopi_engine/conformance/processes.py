"""Start a process that uses the library under test at the same time as the process that runs the cases."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diopi_engine.conformance.bench import NotConformingError


@contextmanager
def second_process(module: str, library: Path, folder: Path) -> Iterator[Any]:
    """Start a process; yield it when it has executed a batch, and end it afterwards.

    Args:
        module: the module below `diopi_engine.conformance` that the process runs.
        library: the path of the library.
        folder: the folder of the compiled networks.

    Yields:
        The process. A line on its standard input lets it execute more batches and end.

    Raises:
        NotConformingError: if the process ends before it has executed a batch.
    """
    reading, writing = os.pipe()
    command = [sys.executable, "-m", f"diopi_engine.conformance.{module}", str(library), str(folder), str(writing)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[writing], text=True) as process:
        os.close(writing)
        with os.fdopen(reading) as replies:
            try:
                if not replies.readline():
                    raise NotConformingError("a second process can't run an engine while this one uses the library")
                yield process
            finally:
                process.kill()

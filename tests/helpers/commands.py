"""Run `diopi-test` in the process of the tests, for tests that do not need a separate process."""

from __future__ import annotations

import os
import tempfile
from subprocess import CompletedProcess

from click.testing import CliRunner

from diopi_test.cli import main


def run_here(*arguments: object, **environment: str) -> CompletedProcess[str]:
    """Run `diopi-test` with these arguments and environment variables in this process.

    Returns:
        The exit status and the output, as if the command had run in a process of its own.

    Raises:
        Exception: An exception that the command does not report as a message.
    """
    words = list(map(str, arguments))
    folder = os.getcwd()
    try:
        result = CliRunner().invoke(main, words, env={"XDG_STATE_HOME": tempfile.gettempdir(), **environment})
    finally:
        os.chdir(folder)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return CompletedProcess(words, result.exit_code, result.stdout, result.stderr)

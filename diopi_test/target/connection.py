"""A connection to a target: a command that passes a shell command line to the target."""

from __future__ import annotations

import re
import secrets
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, final

from diopi_impl import VendorError

PLACEHOLDER = "{}"
"""The word of a template that stands for the command line. Without this word, the command line is the last argument."""

STATUS = re.compile(r"^diopi-status (\d+)\r?$", re.MULTILINE)
"""The line on standard error with which each command line reports its exit status."""

COPY_ATTEMPTS = 5
"""The maximum number of attempts to copy a file if the connection is lost."""

CANNOT_EXECUTE = frozenset({126, 127})
"""The exit statuses with which a shell reports that it can't execute a program."""


class TargetError(VendorError):
    """The target can't be used; the message says what the target reported."""


@final
@dataclass(frozen=True, kw_only=True)
class RemoteResult:
    """The result of a command line on the target.

    Attributes:
        status: the exit status; None if the connection was lost.
        output: what the command line wrote to standard output.
        errors: what it wrote to standard error.
    """

    status: int | None
    output: str
    errors: str


@final
class TargetConnection:
    """A connection to a target, and a new folder there.

    Args:
        template: The command that passes a shell command line to the target, such as `ssh board` or `sh -c`. It must
            pass standard input, output and error unchanged.
        parent: The folder on the target in which the new folder is created.

    Attributes:
        folder: the new folder.
    """

    def __init__(self, template: str, parent: str) -> None:
        self._words = _split_template(template)
        self.folder = f"{parent.rstrip('/')}/diopi-{secrets.token_hex(8)}"

    def start(self, script: str) -> subprocess.Popen[bytes]:
        """Start a command line in the folder on the target.

        Args:
            script: The command line. Its exit status is written to standard error, as `STATUS` describes.

        Returns:
            The process of the command of the template.

        Raises:
            TargetError: The command of the template is missing.
        """
        script = f"cd {shlex.quote(self.folder)} && {{ {script}; }}; echo diopi-status $? >&2"
        return self._open(script, subprocess.DEVNULL)

    def _open(self, script: str, stdin: int | IO[Any]) -> subprocess.Popen[bytes]:
        """Return the process that runs a command line on the target.

        Args:
            script: the command line.
            stdin: the standard input of the process.

        Returns:
            The process.

        Raises:
            TargetError: The command of the template is missing.
        """
        words = [word.replace(PLACEHOLDER, script) for word in self._words]
        try:
            return subprocess.Popen(words, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except OSError as error:
            raise TargetError(f"--target: the command {words[0]} can't be started: {error.strerror}") from error

    def execute(self, script: str, source: Path | None = None) -> RemoteResult:
        """Execute a command line on the target.

        Args:
            script: The command line.
            source: The file that becomes the standard input of the command line; None for no input.

        Returns:
            The exit status and the output.

        Raises:
            TargetError: The command of the template is missing.
        """
        script = f"{{ {script}; }}; echo diopi-status $? >&2"
        if source is None:
            process = self._open(script, subprocess.DEVNULL)
            output, errors = process.communicate()
        else:
            with source.open("rb") as file:
                process = self._open(script, file)
                output, errors = process.communicate()
        return RemoteResult(
            status=read_status(errors),
            output=output.decode("utf-8", "replace"),
            errors=describe_errors(errors, process.returncode),
        )

    def create_folder(self) -> None:
        """Create the folder; raise TargetError if this fails."""
        result = self.execute(f"mkdir -p {shlex.quote(self.folder)}")
        if result.status is None:
            raise TargetError(f"--target: {shlex.join(self._words[:2])} does not reach the target: {result.errors}")
        if result.status != 0:
            raise TargetError(f"{self.folder} can't be created on the target: {result.errors}")

    def copy(self, source: Path, name: str) -> None:
        """Copy a file to the folder through standard input.

        Args:
            source: The file.
            name: The name of the copy.

        Raises:
            TargetError: The target has no space, or the connection is lost repeatedly.
        """
        size, path = source.stat().st_size, shlex.quote(f"{self.folder}/{name}")
        for _ in range(COPY_ATTEMPTS):
            result = self.execute(f"cat > {path} && wc -c < {path}", source)
            if result.status is None:
                continue
            if result.status == 0 and result.output.strip() == str(size):
                return
            stored = f"{result.output.strip() or 'not all'} of {size} bytes were stored"
            raise TargetError(f"{source} can't be copied to the target: {result.errors or stored}")
        raise TargetError(f"{source} can't be copied to the target: the connection was lost {COPY_ATTEMPTS} times")

    def require_runner(self, runner: Path, name: str) -> str:
        """Make the copy of the runner executable, and check that the target can execute it.

        Args:
            runner: The runner on this machine.
            name: The name of the copy.

        Returns:
            The output of the runner with the option `--version`.

        Raises:
            TargetError: The target can't execute the runner.
        """
        path = shlex.quote(f"{self.folder}/{name}")
        result = self.execute(f"chmod 755 {path} && {path} --version")
        if result.status != 0:
            hint = "; build the runner for the processor and the C library of the target"
            reason = result.errors or f"its exit status is {result.status}"
            raise TargetError(
                f"{runner} can't be executed on the target: {reason}{hint if result.status in CANNOT_EXECUTE else ''}"
            )
        return result.output

    def remove_folder(self) -> None:
        """End the runner and delete the folder. A target that can't be reached keeps its folder."""
        folder = shlex.quote(self.folder)
        self.execute(f"if [ -f {folder}/pid ]; then kill $(cat {folder}/pid) 2>/dev/null; fi; rm -rf {folder}")


def read_status(errors: bytes) -> int | None:
    """Return the exit status that a command line wrote to standard error; None if the connection was lost before."""
    statuses = STATUS.findall(errors.decode("utf-8", "replace"))
    return int(statuses[-1]) if statuses else None


def describe_errors(errors: bytes, exit_status: int) -> str:
    """Return the text on standard error in one line, or the exit status of the command if there is no text."""
    text = errors.decode("utf-8", "replace")
    described = "; ".join(line.strip() for line in STATUS.sub("", text).splitlines() if line.strip())
    return described or (f"the command ended with exit status {exit_status}" if exit_status else "")


def _split_template(template: str) -> Sequence[str]:
    """Return the words of a template, which contain the placeholder; raise TargetError if the template is invalid."""
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise TargetError(f"--target: {template!r} can't be split into words: {error}") from error
    if not words:
        raise TargetError("--target: the command is empty; expected a command such as 'ssh board'")
    return words if any(PLACEHOLDER in word for word in words) else [*words, PLACEHOLDER]

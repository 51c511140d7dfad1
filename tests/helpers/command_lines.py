"""Command lines parsed as `diopi-test` does before it runs a command, with the files they name."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from diopi_test.cli import main

FILE = re.compile(r"[\w./]+\.(json|jsonl|toml|py|zip)|key|signers|LOG|BEFORE|AFTER")

CONTENT = {".json": '{"cases": []}'}
"""What a file has that an option reads at once, by suffix."""


def parse(words: str) -> None:
    """Parse the words after `diopi-test`, files in the working directory; click.UsageError if they mean nothing."""
    command, *given = shlex.split(words)
    for word in filter(FILE.fullmatch, given):
        Path(word).parent.mkdir(exist_ok=True)
        Path(word).write_text(CONTENT.get(Path(word).suffix, ""))
    found = main.get_command(click.Context(main), command)
    if found is None:
        raise click.UsageError(f"no such command: {command}")
    try:
        found.make_context(command, given)
    except click.exceptions.Exit as ended:  # --help
        assert ended.exit_code == 0

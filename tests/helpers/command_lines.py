"""Parse command lines of a shell and of `diopi-test` without running them, for tests of the documentation."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import dropwhile, groupby, takewhile
from pathlib import Path

import click

from diopi_test.cli import main

FILE = re.compile(r"[\w./]+\.(json|jsonl|toml|py|zip)|[\w./]*id_ed25519|key|signers|trusted_keys|LOG|BEFORE|AFTER")

"""Matches words of documented commands that name a file, which must exist when the command line is parsed."""

CONTENT = {".json": '{"cases": []}'}
"""The content of files by suffix, for options that read a file during parsing. Other files are empty."""

_SEPARATORS = {"&&", "||", "|", ";", "&"}
"""The operators of a shell between two commands."""


def simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each program that a shell command runs, without assignments and redirections.

    Quoted words are not split, so the command in `eval "$(command)"` is an argument of `eval`.
    """
    words = shlex.shlex(line, posix=True, punctuation_chars="&|;")
    words.whitespace_split, words.commenters = True, ""
    for is_separator, group in groupby(words, _SEPARATORS.__contains__):
        if not is_separator:
            command = dropwhile(re.compile(r"\w+=").match, group)
            yield list(takewhile(lambda word: word != ">", command))


def parse(words: str) -> None:
    """Parse the words after `diopi-test` and raise click.UsageError if they are invalid.

    The files that the words name are created in the working directory.
    """
    command, *options = shlex.split(words)
    for word in filter(FILE.fullmatch, options):
        Path(word).parent.mkdir(parents=True, exist_ok=True)
        Path(word).write_text(CONTENT.get(Path(word).suffix, ""))
    subcommand = main.get_command(click.Context(main), command)
    if subcommand is None:
        raise click.UsageError(f"no such command: {command}")
    try:
        subcommand.make_context(command, options)
    except click.exceptions.Exit as ended:  # --help
        assert ended.exit_code == 0

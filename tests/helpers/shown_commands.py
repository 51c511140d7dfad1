"""The commands that pages and help texts show, and the reasons why some of them can't run as shown.

tests/docs/test_shown_commands.py runs every command that is not marked. A mark is an entry of shown_commands.toml that
excludes or shortens commands, or states their exit status.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import final

from diopi_test.cli.examples import EXAMPLES

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
)
"""The pages whose commands are run."""

MARKS = ROOT / "tests" / "docs" / "shown_commands.toml"
"""The file with the marks."""

_PROGRAMS = (
    r"diopi-\w+|pytest|python|pip|cmake|cc|c\+\+|ruff|mypy|vulture|mkdocs"
    r"|apt-get|dask|gdb|lldb|torchrun|eval|for|\./\w+"
)
"""The first words of lines that are commands; other lines of a code block are output or text."""

# A command line; a command within a sentence; what precedes a command in a workflow; and a comment at the end of a
# line.
_COMMAND = re.compile(rf"(?:\w+=\S+ +)*(?:{_PROGRAMS})(?: .*)?", re.DOTALL)
_INLINE = re.compile(r"`((?:\w+=\S+ )*(?:diopi-\w+|pytest|python|pip) [^`\n]* [^`\n]*)`")
_YAML = re.compile(r"\s*(?:- )?(?:run: )?")
_COMMENT = re.compile(r"(?:^|\s+)#(?: .*)?$")


@final
@dataclass(frozen=True)
class ShownCommand:
    """A command line and its origin: a file and a line, or the name of a help text."""

    text: str
    place: str


@final
@dataclass(frozen=True, kw_only=True)
class Mark:
    """An exception for the commands that match a pattern of `fnmatch`.

    Attributes:
        pattern: matches the whole text of a command.
        reason: why the command can't run as shown; empty if it runs with another status than 0.
        instead: a shorter command that runs in its place; empty for none.
        status: the expected exit status.
    """

    pattern: str
    reason: str = ""
    instead: str = ""
    status: int = 0

    def matches(self, command: str) -> bool:
        """Return whether the mark applies to this command. Brackets in a pattern match literally."""
        return fnmatchcase(command, self.pattern.replace("[", "[[]"))


@cache
def marks() -> tuple[Mark, ...]:
    """Return the marks of the data file, in order."""
    return tuple(Mark(**table) for table in tomllib.loads(MARKS.read_text("utf-8"))["command"])


def mark_of(command: str) -> Mark | None:
    """Return the first mark that matches a command; None if the command runs as shown."""
    return next((mark for mark in marks() if mark.matches(command)), None)


@cache
def shown_commands() -> tuple[ShownCommand, ...]:
    """Return every command that is shown, pages first. A command that is shown twice occurs twice."""
    pages = [command for page in sorted(PAGES) for command in commands_of_page(page)]
    helps = [
        ShownCommand(f"diopi-test {words}", f"diopi-test {name} --help")
        for name, examples in EXAMPLES.items()
        for words, _ in examples
    ]
    return (*pages, *helps)


def commands_of_page(page: Path) -> Iterator[ShownCommand]:
    """Yield the commands in the code blocks of a page, and those in its text that have arguments."""
    text = page.read_text("utf-8")
    for number, language, block in code_blocks(text):
        for command in commands_of_block(block, language):
            yield ShownCommand(command, f"{page.relative_to(ROOT)}:{number}")
    for match in _INLINE.finditer(text):
        yield ShownCommand(match[1], f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}")


def code_blocks(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the code blocks of Markdown: the number of the first line, the language, and the lines.

    A block that is indented has the language `indented`.
    """
    language, block, is_fenced = "", list[str](), False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = re.match(r"\s*```(\w*)", line)
        is_indented = not is_fenced and line.startswith("    ") and not fence
        if (is_fenced and not fence) or is_indented:
            language = language if is_fenced else "indented"
            block.append(line if is_fenced else line[4:])
            continue
        if block:
            yield number - len(block), language, block
            block = []
        if fence:
            is_fenced, language = not is_fenced, fence[1]


def commands_of_block(block: list[str], language: str) -> Iterator[str]:
    """Yield the commands of a block, with lines that belong together joined, without comments."""
    if language not in ("indented", "sh", "", "yaml"):
        return
    text = "\n".join(_COMMENT.sub("", line) for line in block)
    text = re.sub(r"\\\n\s*", "", text)
    text = re.sub(r"^for .*?^done", lambda loop: loop[0].replace("\n", "\0"), text, flags=re.DOTALL | re.MULTILINE)
    for line in text.splitlines():
        command = (_YAML.sub("", line, count=1) if language == "yaml" else line).rstrip().replace("\0", "\n")
        if _COMMAND.fullmatch(command):
            yield command

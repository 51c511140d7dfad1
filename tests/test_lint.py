"""Every exception from a lint rule or from the type checker states its reason."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = (
    *("diopi_proto", "lib_rt", "diopi_impl", "diopi_torch", "diopi_engine", "diopi_test"),
    *("benchmarks", "examples", "tests"),
)
EXCEPTION = re.compile(r"#\s*(noqa|type:\s*ignore|pragma:|mypy:|ruff:)")
REASONED = re.compile(
    r"# (noqa: [A-Z]+\d+(, [A-Z]+\d+)*|type: ignore\[[a-z-]+(, [a-z-]+)*\]|pragma: no cover)\s+(#|-)\s+\w+\W+\w+"
)
SETTING = re.compile(r"(disable_error_code|disallow_\w+|ignore\w*|exclude\w*|omit|\"[^\"]+\") = ")
"""The settings of pyproject.toml that accept violations of a rule; patterns of files are settings of the linter."""


def exceptions() -> Iterator[tuple[str, str]]:
    """Yield the place and the comment of each exception."""
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))):
        source = path.read_text("utf-8")
        for token in tokenize.generate_tokens(io.StringIO(source).readline) if EXCEPTION.search(source) else ():
            if token.type == tokenize.COMMENT and EXCEPTION.search(token.string):
                yield f"{path.relative_to(ROOT)}:{token.start[0]}", token.string


def test_every_exception_in_the_sources_has_its_reason() -> None:
    found = list(exceptions())
    assert found
    assert [(location, comment) for location, comment in found if not REASONED.match(comment)] == []


@pytest.mark.parametrize(
    ("comment", "is_reasoned"),
    [
        ("# noqa: B018 - reading it is the check", True),
        ("# type: ignore[arg-type]  # the refusal is the point", True),
        ("# noqa: B018", False),
        ("# noqa", False),
        ("# type: ignore[arg-type]", False),
        ("# type: ignore  # whatever it is", False),
    ],
)
def test_a_comment_with_words_is_a_reason(comment: str, is_reasoned: bool) -> None:
    assert EXCEPTION.search(comment)
    assert bool(REASONED.match(comment)) is is_reasoned


def unreasoned_settings(text: str) -> Iterator[str]:
    """Yield the lines of exceptions without a comment at their end or above their paragraph."""
    commented = listed = False
    for line in map(str.strip, text.splitlines()):
        excepts = listed or bool(SETTING.match(line))
        commented = line.startswith("#") or (commented and bool(line) and not listed)
        if excepts and not (commented or "#" in line or line in ("", "]") or line.endswith(" = [")):
            yield line
        listed = excepts and (line.endswith("[") or (listed and line != "]"))


def test_every_exception_in_the_configuration_has_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert list(unreasoned_settings(text[text.index("[tool.pytest") :])) == []


def test_settings_that_only_select_need_no_reason() -> None:
    lines = 'ignore = ["A"] # because\nomit = ["B"]\nignore_names = [\n"C", # why\n"D",\n]\n\n# so\nexclude = ["E"]'
    assert list(unreasoned_settings(lines)) == ['omit = ["B"]', '"D",']


def test_no_text_contains_a_marker_of_an_unresolved_merge() -> None:
    marker = re.compile("^(<{7}|>{7}) ", re.MULTILINE)
    suffixes = {".py", ".c", ".h", ".cpp", ".md", ".toml", ".yml", ".json", ".txt"}
    texts = [
        path
        for folder in (*FOLDERS, "docs", "runner", ".")
        for path in (ROOT / folder).glob("*" if folder == "." else "**/*")
        if path.suffix in suffixes and path.is_file()
    ]
    assert ROOT / "docs" / "mutation_testing.md" in texts
    assert [str(path.relative_to(ROOT)) for path in texts if marker.search(path.read_text("utf-8"))] == []

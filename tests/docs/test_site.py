"""The navigation of the site contains all pages, and translations have the structure of the original pages."""

import re
import tomllib
from pathlib import Path

import pytest
from command_lines import parse

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = {"index.md", "contributing.md", "changelog.md", "security.md"}
"""Pages that the build generates from files in the root. The build also adds the pages of the functions."""

TRANSLATED = {
    "README.md": "docs/zh/README.md",
    "docs/tutorial.md": "docs/zh/tutorial.md",
    "docs/guide.md": "docs/zh/guide.md",
    "docs/running.md": "docs/zh/running.md",
    "docs/verdicts.md": "docs/zh/verdicts.md",
}


def navigation() -> list[str]:
    """Return the pages that the navigation of the site lists."""
    _, _, nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")
    return re.findall(r"^ +- (?:[^:\n]+: )?([\w/]+\.md)$", nav, re.MULTILINE)


def test_the_navigation_has_every_page_once() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(navigation()) == sorted(pages | GENERATED)


def test_every_label_of_the_navigation_has_a_chinese_translation() -> None:
    _, _, nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")
    labels = {label for label in re.findall(r"^ +- ([^:\n]+):", nav, re.MULTILINE) if label.isascii()}
    chinese = tomllib.loads((DOCS / "hooks" / "chinese.toml").read_text("utf-8"))
    assert set(chinese["titles"]) == labels


def test_every_picture_has_an_alternative_text() -> None:
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    pictures = [(page.name, text) for page in pages for text in re.findall(r"!\[([^\]]*)\]", page.read_text("utf-8"))]
    assert len(pictures) >= 4
    assert [(page, text) for page, text in pictures if len(text.split()) < 2 and text.isascii()] == []


def test_links_of_the_translations_point_to_existing_pages() -> None:
    pages = list((DOCS / "zh").glob("*.md"))
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))]
    assert links
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []


def headings(text: str) -> list[int]:
    """Return the levels of the headings, in order."""
    return [len(marks) for marks in re.findall(r"^(#+) ", without_blocks(text), re.MULTILINE)]


def without_blocks(text: str) -> str:
    """Return a page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def code(text: str) -> list[str]:
    """Return the lines of commands and code blocks without comments, because comments are translated."""
    indented = re.findall(r"^    (\S.*)$", without_blocks(text), re.MULTILINE)
    blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [re.sub(r"\s+# .*$", "", line) for line in (*indented, *"".join(blocks).splitlines())]


def commands(text: str) -> set[str]:
    """Return the commands within sentences."""
    return {" ".join(span.split()) for span in re.findall(r"`(diopi-test [^`]+)`", without_blocks(text))}


@pytest.mark.parametrize(("original", "translation"), TRANSLATED.items())
def test_a_translation_has_the_structure_of_its_original(original: str, translation: str) -> None:
    original_text, translated_text = ((ROOT / name).read_text("utf-8") for name in (original, translation))
    assert headings(translated_text) == headings(original_text)
    assert code(translated_text) == code(original_text)
    assert commands(translated_text) == commands(original_text)


@pytest.mark.parametrize(("original", "translation"), TRANSLATED.items())
def test_a_translation_has_the_numbers_of_its_original(original: str, translation: str) -> None:
    numbers = [
        set(re.findall(r"\b\d{3,}\b", without_blocks((ROOT / n).read_text("utf-8")))) for n in (original, translation)
    ]
    assert numbers[0] == numbers[1]


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{name}.md" for name in ("tutorial", "guide", "ci", "original", "command_line"))]
)
def test_commands_on_a_page_parse(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line for line in code((ROOT / page).read_text("utf-8")) if re.search(r"\bdiopi-test [^-|]", line)]
    assert lines
    for line in lines:
        parse(re.sub(r" && .*|\s+#.*|: .*$", "", line.partition("diopi-test ")[2]))

"""The README and the documentation state current numbers, list every page and contain no dead links."""

import re
from pathlib import Path

import pytest

from diopi_test.quality.inventory import list_functions

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
CONTENTS = (ROOT / "docs" / "contents.md").read_text("utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


@pytest.mark.exhaustive  # selects all cases
def test_readme_states_how_many_functions_have_references_cases_and_implementations() -> None:
    rows = list_functions()
    referenced, tried, implemented = (
        sum(map(bool, column))
        for column in zip(
            *((row["reference"], row["cases"]["full"], row["vendors"]["jax_cpu"]) for row in rows), strict=True
        )
    )
    assert (
        f"Of the {len(rows)} functions, {referenced} have a reference, {tried} have cases and {implemented} have an "
        "implementation in `jax_cpu`.\n"
    ) in README


def test_readme_has_at_most_100_lines() -> None:
    assert len(README.splitlines()) <= 100


def test_architecture_page_describes_every_chapter() -> None:
    chapters = {path.parent.name for path in (ROOT / "diopi_test").glob("*/__init__.py")}
    assert {chapter for chapter in chapters if f"`{chapter}/`" not in ARCHITECTURE} == set()


def test_contents_page_lists_every_page() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} | {"CONTRIBUTING.md", "CHANGELOG.md"}
    assert {page for page in pages if f"{page})" not in CONTENTS} == {"contents.md"}


def test_relative_links_point_to_files() -> None:
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))]
    files = [(page.name, link) for page, link in links if not link.startswith("http")]
    assert files
    assert [
        (page, link) for page, link in links if not link.startswith("http") and not (page.parent / link).exists()
    ] == []

"""The README says what is true of the functions, and links to what is there."""

import re
from pathlib import Path

from diopi_test.quality.inventory import inventory

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def test_how_many_functions_have_what() -> None:
    rows = inventory()
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


def test_every_chapter_and_every_page_is_named() -> None:
    chapters = {path.parent.name for path in (ROOT / "diopi_test").glob("*/__init__.py")}
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} | {"CONTRIBUTING.md", "CHANGELOG.md"}
    assert {chapter for chapter in chapters if f"`{chapter}/`" not in README} == set()
    assert {page for page in pages if f"{page})" not in README} == set()


def test_links_lead_somewhere() -> None:
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))]
    files = [(page.name, link) for page, link in links if not link.startswith("http")]
    assert files
    assert [
        (page, link) for page, link in links if not link.startswith("http") and not (page.parent / link).exists()
    ] == []

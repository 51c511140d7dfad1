"""The facts on the pages of the functions agree with the pages and the cases that they are read from."""

from pathlib import Path
from typing import Any

import pytest
from scripts import load_script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def facts() -> Any:
    """Return the module that reads the facts, which is no part of a package."""
    return load_script(ROOT / "docs" / "hooks" / "facts.py")


def test_every_defect_that_the_page_lists_belongs_to_a_function(facts: Any) -> None:
    text = (ROOT / "docs" / "found.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith(("| call", "| ---"))]
    assert sum(map(len, facts._defects().values())) == len(rows)
    assert facts.defects("diopiSoftmax") == [("oneDNN", "softmax of float32 [∞, 1]", "NaN, 0", "NaN, NaN")]
    assert facts.defects("diopiReluInp") == facts.defects("diopiRelu")


def test_margins_are_those_of_the_page(facts: Any) -> None:
    row = next(line for line in (ROOT / "docs" / "margins.md").read_text("utf-8").splitlines() if "`diopiGelu`" in line)
    assert list(facts.margins("diopiGelu").values()) == [cell.strip() for cell in row.strip("|").split("|")][1:]
    assert facts.margins("diopiEq") == {}


def test_cases_are_counted_by_class(facts: Any) -> None:
    counts = facts.count_cases("diopiSoftmax")
    assert counts["negative"] == len(facts.rejected_calls("diopiSoftmax")) > 0
    assert counts["basic"] > 0
    assert facts.count_cases("diopiGetVendorName") == {}
    assert "input-null" in facts.rejected_calls("diopiSoftmax")

"""Generate the list of diagnoses in the documentation: python -m diopi_test.results.causes.page docs/diagnoses.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from diopi_test.results.causes.diagnosis import Diagnosis, catalog

MARKER = "<!-- The rest of this page is generated: python -m diopi_test.results.causes.page docs/diagnoses.md -->\n"
"""The line of the page after which the diagnoses are listed."""


def update_page(page: str) -> str:
    """Return the page with the diagnoses of the catalog after the marker.

    Args:
        page: the present text of the page.

    Raises:
        ValueError: if the page has no marker.
    """
    head, marker, _ = page.partition(MARKER)
    if not marker:
        raise ValueError(f"the page has no line {MARKER!r}, after which the diagnoses are listed")
    return "\n".join([head + marker, *(line for diagnosis in catalog() for line in _section(diagnosis))])


def _section(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the lines of the section about a diagnosis, in Markdown."""
    yield f"## {diagnosis.id}"
    yield ""
    yield f"**Probable defect:** {diagnosis.likely}."
    yield ""
    yield diagnosis.explanation
    yield ""
    yield f"**Where to look:** {diagnosis.look_at}"
    yield ""


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(update_page(file.read_text("utf-8")), "utf-8")

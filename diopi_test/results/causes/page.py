"""The documentation page of the diagnoses: python -m diopi_test.results.causes.page docs/diagnoses.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from diopi_test.results.causes.diagnosis import Diagnosis, catalogue

HEAD = """\
# Diagnoses

This page is for people who look for the defect behind [a cause](causes.md). Afterwards you know what a diagnosis of the
report means, and where to look for the defect. The page lists all diagnoses.

A diagnosis is the most probable defect for typical symptoms, not a proof. The report shows the first diagnosis of the
catalogue whose conditions hold for the cases of a cause. The catalogue is the file
`diopi_test/results/causes/diagnoses.toml`. Generate this page with
`python -m diopi_test.results.causes.page docs/diagnoses.md`.
"""


def render_page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *(line for diagnosis in catalogue() for line in _section(diagnosis))])


def _section(diagnosis: Diagnosis) -> Iterator[str]:
    yield f"## {diagnosis.id}"
    yield ""
    yield f"**Probable defect:** {diagnosis.likely}."
    yield ""
    yield diagnosis.explanation
    yield ""
    yield f"**Where to look:** {diagnosis.look_at}"
    yield ""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render_page(), "utf-8")

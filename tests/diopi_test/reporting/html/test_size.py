"""The page of a large run stays small enough for a mail or a build server."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_runs import log_lines

from diopi_test.execution.verdict import UNSUCCESSFUL
from diopi_test.reporting import html
from diopi_test.reporting.reading import read_report

LIMIT = 12 * 10**6
"""The maximum number of bytes of the page."""


@pytest.mark.exhaustive
def test_the_page_of_25000_cases_with_2000_failures_has_at_most_12_megabytes(tmp_path: Path) -> None:
    log = tmp_path / "run.log.jsonl"
    log.write_bytes(b"".join(log_lines(25_000, 0.08)))
    report = read_report(log)
    assert sum(case.verdict in UNSUCCESSFUL for case in report.cases) > 1_900
    assert 10**6 < len(html.render_report(report, "zh").encode()) < LIMIT

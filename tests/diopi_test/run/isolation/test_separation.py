"""A vendor can't touch the evaluation: whatever it does in its process, wrong results are not accepted."""

import json
from pathlib import Path

import pytest
from cheating import WAYS
from click.testing import CliRunner

from diopi_test.cli import main


def run_cases(vendor: str, folder: Path) -> list[dict[str, str]]:
    """Return the records of the basic cases of the square root."""
    report = folder / "report.json"
    words = [
        "--function",
        "diopiSqrt",
        "--class",
        "basic",
        "-n",
        1,
        "--json",
        report,
        "--log",
        folder / "run.log.jsonl",
    ]
    CliRunner().invoke(main, ["run", "--vendor", vendor, *map(str, words)])
    records: list[dict[str, str]] = json.loads(report.read_text())["cases"]
    return records


@pytest.mark.parametrize("way", WAYS)
def test_no_interference_gets_a_wrong_result_accepted(way: str, tmp_path: Path) -> None:
    records = run_cases(f"cheating:vendor_{way}", tmp_path)
    assert records
    assert {record["verdict"] for record in records} <= {"failed", "crashed", "not_run"}

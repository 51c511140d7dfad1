"""A log states when, where and on which device its run took place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_test.baseline.codec import from_json, to_json
from diopi_test.cli import main
from diopi_test.results.records import Report
from diopi_test.run.options import RunOptions
from diopi_test.run.origin import describe_origin, processor_name
from diopi_test.run.recorder import Header, LogContent


def test_the_origin_states_time_and_place() -> None:
    origin = describe_origin(3, device="chip", driver="7", commit="abc")
    assert datetime.now(UTC) - datetime.fromisoformat(origin.started) < timedelta(minutes=5)
    assert (origin.workers, origin.device, origin.driver, origin.commit) == (3, "chip", "7", "abc")
    assert origin.host and origin.processor


def test_the_processor_is_the_model_or_the_architecture(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Fast CPU\n")
    assert processor_name(tmp_path / "cpuinfo") == "Fast CPU"
    assert processor_name(tmp_path / "missing")


def test_a_header_without_origin_is_read() -> None:
    content = to_json(RunOptions(vendor="small").header(""))
    del content["origin"]
    assert from_json(Header, content).origin is None


@pytest.mark.parametrize("variable", ["DIOPI_COMMIT", "GITHUB_SHA"])
def test_run_takes_the_device_and_the_commit_from_the_environment(variable: str, tmp_path: Path) -> None:
    words = [
        "run",
        "--vendor",
        "diopi_test.quality.stub_vendor:vendor",
        "-n",
        "1",
        "--case",
        "diopiNeg[float32-matrix]",
    ]
    log, report_file = tmp_path / "log", tmp_path / "report.json"
    environment = {variable: "abc", "DIOPI_DEVICE": "chip"}
    CliRunner().invoke(main, [*words, "--log", str(log), "--json", str(report_file)], env=environment)
    content = LogContent.read(log)
    report: Report = content.report()
    assert report.origin is not None and (report.origin.device, report.origin.commit) == ("chip", "abc")
    assert report.command == content.header.command

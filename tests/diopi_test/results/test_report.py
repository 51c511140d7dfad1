"""The report: its schema is committed and documented, and the commands in it lose no option."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from case_records import case_record, report_of
from click.testing import CliRunner
from reports import read_report
from rich.console import Console

from diopi_impl import Waiver
from diopi_test.baseline.codec import to_json
from diopi_test.cases.case import CaseClass
from diopi_test.cli.run import run as run_command
from diopi_test.execution.verdict import Verdict
from diopi_test.reporting.reading import with_causes
from diopi_test.results.records import SCHEMA_VERSION, Counts, Report
from diopi_test.results.report import show
from diopi_test.results.schema import FILE, PLAN_FILE, plan_schema, render_schemas, report_schema
from diopi_test.run.options import RunOptions
from diopi_test.run.selection import Selection
from diopi_test.waivers.rules import WaiverRule, Waivers

PAGE = Path(__file__).parents[3] / "docs" / "report.md"


SCHEMAS = [(FILE, report_schema()), (PLAN_FILE, plan_schema())]


def test_the_committed_schemas_are_those_of_the_dataclasses() -> None:
    committed = {file.name: file.read_text("utf-8") for file, _ in SCHEMAS}
    assert committed == render_schemas(), "run python -m diopi_test refresh"


@pytest.mark.parametrize("schema", [schema for _, schema in SCHEMAS], ids=["report", "plan"])
def test_the_schemas_are_valid(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)


def test_every_key_is_documented() -> None:
    documented = set(re.findall(r"`([a-z_0-9]+)`", PAGE.read_text("utf-8")))
    keys = {key for definition in plan_schema()["$defs"].values() for key in definition["properties"]}
    assert keys - documented == set()
    assert f"version {SCHEMA_VERSION}" in PAGE.read_text("utf-8")


def test_every_verdict_is_counted() -> None:
    assert [field.name for field in fields(Counts)] == [
        "total",
        *(item.value for item in Verdict if item is not Verdict.not_run),
    ]


WAIVERS = Waivers(
    tuple(
        WaiverRule(waiver, "waivers.toml")
        for waiver in (
            Waiver("diopiAdd[*]", "half an adder", verdict="crashed"),
            Waiver("diopiSub[*]", "no borrowing", expires=date(2026, 1, 31)),
            Waiver("diopiMul[*]", "no carrying", link="https://example.org"),
            Waiver("diopiSub[*-b]", "a slip", max_ratio=3.0),
        )
    ),
    today=date(2026, 2, 1),
)


@pytest.fixture
def waived_report() -> Report:
    """Return a report with waived cases."""
    ended = [case_record("diopiAdd[a]", "failed"), case_record("diopiSub[a]", "failed", "off by one")]
    ended += [case_record(f"diopiMul[{number}]", "passed") for number in range(6)]
    report = report_of([WAIVERS.apply(record) for record in ended])
    return replace(report, waivers=WAIVERS.report(ended))


def test_the_report_describes_the_state_of_waivers(waived_report: Report) -> None:
    text = StringIO()
    show(waived_report, Console(file=text, width=120))
    lines = text.getvalue().splitlines()
    begin = lines.index("failed diopiSub[a]")
    assert lines[begin : begin + 2] == [
        "failed diopiSub[a]",
        "  off by one; the waiver of this case expired on 2026-01-31 (no borrowing)",
    ]
    assert [line for line in lines if "waivers" in line or "improved" in line] == [
        "improved: diopiAdd[*]: crashed → failed (1: diopiAdd[a])",
        "improved: diopiMul[*]: failed → passed (6: "
        "diopiMul[0], diopiMul[1], diopiMul[2], diopiMul[3], diopiMul[4], …)",
        "expired waivers: 1 (diopiSub[*])",
        "waivers that are not needed: 1 (diopiMul[*])",
        "waivers that match no case of this run: 1 (diopiSub[*-b])",
    ]
    assert lines[-1].startswith("small 1.0: 6 passed, 1 failed, 1 waived in ")


def test_waivers_are_part_of_the_report(waived_report: Report, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(to_json(waived_report)), "utf-8")
    content = read_report(path)
    assert [use["state"] for use in content["waivers"]["entries"]] == [
        "used",
        "expired",
        "not_needed",
        "matched_nothing",
    ]
    assert content["waivers"]["entries"][1]["waiver"]["expires"] == "2026-01-31"
    assert [case.get("waived_verdict") for case in content["cases"] if case["verdict"] == "waived"] == ["failed"]


def printed_lines(report: Report) -> list[str]:
    """Return the lines that the command prints for a report."""
    text = StringIO()
    show(report, Console(file=text, width=120))
    return text.getvalue().splitlines()


def test_each_class_has_a_line() -> None:
    ended = [
        case_record("diopiAdd[a]", "passed"),
        replace(case_record("diopiAdd[b]", "failed"), class_=CaseClass.open),
        *(replace(case_record(f"diopiAdd[{verdict}]", verdict), class_=CaseClass.negative) for verdict in REFUSED),
    ]
    report = report_of(ended)
    assert printed_lines(report)[-5:-1] == [
        "  basic: 1 passed",
        "  open: 1 failed (does not count without --strict)",
        "  negative: 1 passed, 1 failed, 1 not implemented, 1 crashed (does not count without --strict)",
        "negative tests: 1 of 3 invalid calls rejected, 1 ended or hung the process",
    ]
    assert not [line for line in printed_lines(report) if line.startswith(("failed", "crashed"))]
    strict = printed_lines(with_causes(replace(report, strict=True)))
    assert [line for line in strict if line.startswith(("failed", "crashed"))] == [
        "crashed diopiAdd[crashed]",
        "failed diopiAdd[b]",
    ]
    assert not [line for line in strict if "--strict" in line]


REFUSED = ("passed", "failed", "not_implemented", "crashed")


def test_a_report_without_waivers_does_not_mention_them() -> None:
    assert "waivers" not in to_json(report_of([case_record("diopiAdd[a]", "passed")]))


ALL = RunOptions(
    vendor="a vendor",
    level="full",
    data=Path("some data"),
    selection=Selection(dtypes=("no-bool",), classes=("no-negative",), expression="sin or cos", seed=7, sample=30),
    workers=4,
    timeout=2.5,
    memory=500,
    max_lost=2,
    max_failures=9,
    stop_after_identical=30,
    checks=("values",),
    nhwc=True,
    int32_indices=True,
    waivers=(Path(__file__),),
    strict=True,
)


def parse_options(command: str, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """Return the options that the command line parses from a command."""
    words = shlex.split(command)
    assert words[:2] == ["diopi-test", "run"]
    parsed_options: dict[str, Any] = {}

    def take(**options: Any) -> None:
        parsed_options.update(options)
        raise SystemExit(0)

    monkeypatch.setattr(sys.modules["diopi_test.cli.run"], "RunOptions", take)
    done = CliRunner().invoke(run_command, words[2:])
    assert done.exit_code == 0, done.output
    return parsed_options


OF_A_RUN = {field.name for field in fields(RunOptions)} - {"workers", "dump", "device", "driver", "commit"}


def test_the_command_of_a_run_repeats_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    options = parse_options(ALL.command(), monkeypatch)
    assert options["workers"] == 1  # which repeats the order
    assert RunOptions(workers=4, **{name: options[name] for name in OF_A_RUN}) == ALL


def test_the_command_of_a_case_has_every_option_that_affects_it(monkeypatch: pytest.MonkeyPatch) -> None:
    options = parse_options(ALL.command_of("diopiSin[float32-a b]"), monkeypatch)
    selection = Selection(cases=("diopiSin[float32-a b]",), seed=7)
    expected = replace(ALL, selection=selection, max_failures=None, stop_after_identical=None)
    assert RunOptions(workers=4, **{name: options[name] for name in OF_A_RUN}) == expected


def test_defaults_are_not_repeated() -> None:
    command = RunOptions(vendor="jax_cpu").command_of("diopiSin[a]")
    assert command == "diopi-test run --vendor jax_cpu --level smoke --case 'diopiSin[a]'"

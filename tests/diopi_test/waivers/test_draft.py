"""A draft of waivers covers exactly the failed cases, and takes effect only with reasons."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from case_records import case_record, report_of

from diopi_test.execution.verdict import CheckResult, Verdict
from diopi_test.results.records import CaseRecord
from diopi_test.waivers.draft import draft
from diopi_test.waivers.rules import Waivers
from diopi_test.waivers.tables import TableError

CASES = [
    case_record("diopiAdd[float16-a]", "failed", "values: out: 2 of 3"),
    case_record("diopiAdd[float16-b]", "failed"),
    case_record("diopiAdd[float32-a]", "failed"),
    case_record("diopiAdd[float32-b]", "passed"),
    case_record("diopiAdd[float64-a]", "crashed"),
    case_record("diopiAddInp[float16-c]", "passed"),
    case_record("diopiExp[float16-a]", "timed_out"),
    case_record("diopiExp[callers-a]", "timed_out"),
    case_record("diopiSin[float16-a]", "not_implemented"),
    case_record("diopiSub[float16-a]", "flaky", 'a "race"\n\x1b[31m'),
]


def uncommented_draft(*cases: CaseRecord) -> str:
    """Return the drafted waivers of these cases, with their entries uncommented."""
    return uncommented_entries(write_draft(*cases))


def write_draft(*cases: CaseRecord) -> str:
    """Return the draft of waivers for these cases."""
    return draft(report_of(sorted(cases, key=lambda case: case.id)))


def uncommented_entries(text: str) -> str:
    """Return a draft as a person edits it: without the comment signs of the entries."""
    beginning, *entries = text.split("\n\n")
    return "\n\n".join((beginning, *(re.sub(r"^# ", "", entry, flags=re.MULTILINE) for entry in entries)))


def test_patterns_are_narrow_and_readable() -> None:
    content = tomllib.loads(uncommented_draft(*CASES))
    assert [(entry["pattern"], entry["verdict"]) for entry in content["waiver"]] == [
        ("diopiAdd[float64-a]", "crashed"),
        ("diopiAdd[float16-*]", "failed"),
        ("diopiAdd[float32-a]", "failed"),
        ("diopiExp[*]", "timed_out"),
    ]
    assert [(entry["pattern"], entry["retries"]) for entry in content["flaky"]] == [("diopiSub[float16-a]", 2)]


def test_the_message_of_the_first_case_precedes_the_waiver() -> None:
    text = uncommented_draft(*CASES)
    assert "# 2 cases, the first is diopiAdd[float16-a]: values: out: 2 of 3\n[[waiver]]\n" in text
    assert '# a "race" �[31m\n[[flaky]]\n' in text
    assert write_draft(*CASES).startswith("# Waivers for small 1.0, generated from a report at level smoke.\n")


def test_a_long_message_is_shortened() -> None:
    lines = uncommented_draft(case_record("diopiAdd[a]", "failed", "x" * 10_000)).splitlines()
    assert max(map(len, lines)) <= 160


def test_a_draft_with_reasons_waives_exactly_the_failures(tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    path.write_text(write_draft(*CASES), "utf-8")
    assert Waivers.read([path]).entries == (), "entries without a reason are comments"
    text = uncommented_entries(write_draft(*CASES))
    path.write_text(text, "utf-8")
    with pytest.raises(TableError, match="reason") as caught:
        Waivers.read([path])
    assert len(str(caught.value).splitlines()) == 5
    path.write_text(text.replace('reason = ""', 'reason = "known"'), "utf-8")
    waivers = Waivers.read([path])
    verdicts = {case.id: waivers.apply(case).verdict for case in CASES}
    remaining = {"diopiAdd[float32-b]", "diopiAddInp[float16-c]", "diopiSin[float16-a]"}
    assert {case for case, verdict in verdicts.items() if verdict is not Verdict.waived} == remaining
    assert all(waivers.apply(replace(case, verdict=Verdict.crashed)).verdict is Verdict.crashed for case in CASES[:4])


@pytest.mark.parametrize(("ratios", "advice"), [((2.0, 12.34), "max_ratio = 13"), ((2.0, math.inf), "")])
def test_a_draft_states_the_largest_ratio(ratios: tuple[float, ...], advice: str) -> None:
    cases = [
        case_record(
            f"diopiAdd[float16-{ratio}]",
            "failed",
            "",
            CheckResult(check="values", passed=False, message="wrong", ratio=ratio),
        )
        for ratio in ratios
    ]
    assert (f"# error / budget up to 12.3: `{advice}`" in uncommented_draft(*cases)) is bool(advice)
    assert ("max_ratio" in uncommented_draft(*cases)) is bool(advice)


def test_a_run_without_failures_has_an_empty_draft() -> None:
    assert uncommented_draft(case_record("diopiAdd[a]", "passed"), case_record("diopiAdd[b]", "unsupported")) == ""

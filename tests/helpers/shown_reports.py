"""A report that has something for every part of a page to show."""

from __future__ import annotations

from dataclasses import replace

from case_records import case_record, report_of

from diopi_impl import Claim, Waiver
from diopi_proto.types import Dtype
from diopi_test.cases.model import CaseClass
from diopi_test.execution.difference import Difference, ErrorMap, Pattern, PatternKind
from diopi_test.execution.timing import Timing
from diopi_test.execution.verdict import CheckResult, Verdict
from diopi_test.results.records import (
    CaseRecord,
    ClaimsReport,
    Draw,
    Improvement,
    ModelReport,
    Report,
    Use,
    WaiverReport,
    WaiverState,
    WaiverUse,
)

HOSTILE = "</script><script>window.stolen = 1</script><img src=x onerror='window.stolen = 1'><!-- ${1} $data"

PLACE = Difference(
    "out",
    "are wrong",
    2,
    6,
    (1, 2),
    "1.5",
    "1.25",
    0.25,
    0.125,
    (Pattern(PatternKind.slice, "exactly [1, 1:]"),),
    {"input": "0.5"},
    {"out": "float32 (2, 3), strides (3, 1)", "alpha": "2"},
    map=ErrorMap((0, 1), (2, 3), ("000", "019")),
)

FAILED_CASE = replace(
    case_record(
        "diopiAdd[float32-row]",
        "failed",
        "values: out: 2 of 6 elements are wrong",
        CheckResult("form", True),
        CheckResult("values", False, "out: 2 of 6 elements are wrong", 2.0, differences=(PLACE,)),
    ),
    command="diopi-test run --vendor small --case 'diopiAdd[float32-row]'",
)

PASSED_CASE = case_record(
    "diopiMul[float32-row]", "passed", "", CheckResult("form", True), CheckResult("values", True, ratio=0.3)
)


def cases() -> list[CaseRecord]:
    """Passed and failed ones of three functions, of which one is as hostile as a message can be."""
    return [
        FAILED_CASE,
        case_record("diopiAdd[float16-row]", "not_implemented", "small does not implement diopiAdd"),
        replace(PASSED_CASE, timing=Timing(2e-5, 20, 4096, 512, 1e10)),
        case_record("diopiMul[int32-row]", "passed", "", CheckResult("form", True)),
        replace(case_record("diopiMul[negative-out-null]", "failed", "accepted"), class_=CaseClass.negative, dtype=""),
        case_record("diopiSqrt[float32-hostile]", "crashed", HOSTILE),
    ]


def shown_report(more: int = 0) -> Report:
    """Their report, with so many cases besides, and with networks."""
    additional = [case_record(f"diopiSub[float32-{number:04}]", "passed") for number in range(more)]
    models = (
        ModelReport("resnet", 2, 2, 0, {}, ()),
        ModelReport("llama", 3, 1, 1, {"diopiAdd": Verdict.failed}, ("aten.cumsum",)),
    )
    return replace(report_of([*cases(), *additional]), models=models)


def troubled_report() -> Report:
    """The report of a run that was shuffled, and cut short, of a vendor with claims and waivers."""
    report = shown_report()
    waiver = WaiverUse(Waiver("diopiErf[*]", "no erf yet"), "waivers.toml", 0, WaiverState.not_needed, 2, 0)
    claims = (Claim("diopi*", dtypes=frozenset({Dtype.float32})),)
    use = Use("diopiAdd", Dtype.float32, ("contiguous",), {"failed": 1})
    return replace(
        report,
        shuffle=Draw(7, None, "diopi-test run --shuffle 7"),
        errors=("the vendor was rude",),
        summary=replace(
            report.summary, incomplete=True, not_run=9, reason="interrupted", first_not_run=("diopiAbs[x]",)
        ),
        claims=ClaimsReport(claims, (use,), ()),
        waivers=WaiverReport((waiver,), (Improvement("diopiErf[*]", "crashed", Verdict.passed, 2, ("diopiErf[a]",)),)),
    )

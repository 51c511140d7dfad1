"""Reports with something to show in every part of the HTML page that `diopi-test report` writes."""

from __future__ import annotations

from dataclasses import replace

from case_records import case_record, report_of

from diopi_impl import Claim, Waiver
from diopi_proto.types import Dtype
from diopi_test.cases.case import CaseClass
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
"""A message that would run as a script if the page did not escape it."""

CRASH = """the vendor was ended by SIGSEGV (segmentation fault); its output: Fatal Python error: Segmentation fault

Current thread 0x00007fe927c71b80 (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/home/me/chip/pooling.py", line 11 in launch_kernel
  File "/home/me/chip/pooling.py", line 9 in adaptive_max_pool2d_backward
  File "/usr/lib/python3.11/site-packages/diopi_impl/functional.py", line 75 in adapted

Extension modules: numpy._core._multiarray_umath (total: 1)"""
"""The message of a crash, with the stack that Python prints."""

DIFFERENCE = Difference(
    tensor="out",
    problem="are wrong",
    wrong_count=2,
    total=6,
    index=(1, 2),
    actual="1.5",
    expected="1.25",
    error=0.25,
    budget=0.125,
    patterns=(Pattern(PatternKind.slice, "exactly [1, 1:]"),),
    inputs={"input": "0.5"},
    arguments={"out": "float32 (2, 3), strides (3, 1)", "alpha": "2"},
    map=ErrorMap((0, 1), (2, 3), ("000", "019")),
)
"""The difference of `FAILED_CASE`: the last two of 2 × 3 elements are wrong."""

FAILED_CASE = replace(
    case_record(
        "diopiAdd[float32-row]",
        "failed",
        "values: out: 2 of 6 elements are wrong",
        CheckResult(check="form", passed=True),
        CheckResult(
            check="values", passed=False, message="out: 2 of 6 elements are wrong", ratio=2.0, differences=(DIFFERENCE,)
        ),
    ),
    command="diopi-test run --vendor small --case 'diopiAdd[float32-row]'",
)
"""The record of a case with wrong values."""

PASSED_CASE = case_record(
    "diopiMul[float32-row]",
    "passed",
    "",
    CheckResult(check="form", passed=True),
    CheckResult(check="values", passed=True, ratio=0.3),
)
"""The record of a case whose largest error is 0.3 of its budget, the permitted error."""


def cases() -> list[CaseRecord]:
    """Return passed and failed cases of three functions. One message contains markup and control characters."""
    return [
        FAILED_CASE,
        case_record("diopiAdd[float16-row]", "not_implemented", "small does not implement diopiAdd"),
        replace(PASSED_CASE, timing=Timing(seconds=2e-5, repeats=20, bytes=4096, operations=512, bandwidth=1e10)),
        case_record("diopiMul[int32-row]", "passed", "", CheckResult(check="form", passed=True)),
        replace(case_record("diopiMul[negative-out-null]", "failed", "accepted"), class_=CaseClass.negative, dtype=""),
        case_record("diopiSqrt[float32-hostile]", "crashed", HOSTILE),
    ]


def shown_report(more: int = 0) -> Report:
    """Return the report of `cases` with two networks, and with as many additional passed cases as `more` says."""
    additional = [case_record(f"diopiSub[float32-{number:04}]", "passed") for number in range(more)]
    models = (
        ModelReport(name="resnet", calls=2, passed=2, not_run=0, failures={}, not_mapped=()),
        ModelReport(
            name="llama",
            calls=3,
            passed=1,
            not_run=1,
            failures={"diopiAdd": Verdict.failed},
            not_mapped=("aten.cumsum",),
        ),
    )
    return replace(report_of([*cases(), *additional]), models=models)


def crash_report(more: int = 0) -> Report:
    """Return the report of `shown_report` with a crash of a function with a long name, whose message has a stack."""
    crash = case_record("diopiAdaptiveMaxPool2dBackward[float32-crash]", "crashed", CRASH)
    report = shown_report(more)
    return replace(report_of([*report.cases, crash]), models=report.models)


def incomplete_report() -> Report:
    """Return the report of an incomplete, shuffled run of a vendor with claims and waivers."""
    report = shown_report()
    waiver = WaiverUse(
        waiver=Waiver("diopiErf[*]", "no erf yet"),
        source="waivers.toml",
        retries=0,
        state=WaiverState.not_needed,
        matched=2,
        waived=0,
    )
    claims = (Claim("diopi*", dtypes=frozenset({Dtype.float32})),)
    use = Use(function="diopiAdd", dtype=Dtype.float32, layouts=("contiguous",), verdicts={"failed": 1})
    return replace(
        report,
        shuffle=Draw(7, None, "diopi-test run --shuffle 7"),
        errors=("the vendor was rude",),
        summary=replace(
            report.summary, incomplete=True, not_run=9, reason="interrupted", first_not_run=("diopiAbs[x]",)
        ),
        claims=ClaimsReport(claims, (use,), ()),
        waivers=WaiverReport(
            (waiver,),
            (Improvement(pattern="diopiErf[*]", was="crashed", now=Verdict.passed, number=2, first=("diopiErf[a]",)),),
        ),
    )

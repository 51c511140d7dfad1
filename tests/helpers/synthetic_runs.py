"""Logs of large synthetic runs: cases of all functions, some of which fail in many ways.

Benchmarks and tests measure with them the time and the size of reports; nothing is executed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from diopi_proto.interface import prototypes
from diopi_test.baseline.codec import to_json
from diopi_test.cases.case import CaseClass
from diopi_test.execution.deviation import Deviation, DeviationKind, Region, ValueRelation
from diopi_test.execution.difference import Difference, ErrorMap, Pattern, PatternKind
from diopi_test.execution.timing import Timing
from diopi_test.execution.verdict import CheckResult, Verdict
from diopi_test.results.log import LogRecord, seal
from diopi_test.results.records import CaseRecord, VendorInfo
from diopi_test.run.options import RunOptions

DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "complex64", "bool")
"""The element types of the cases."""

CHECKS = ("form", "written", "inputs", "gaps", "guards", "repeat", "order", "layout", "leaks")
"""The names of the checks that pass; a case has the first 5 to 9 of them."""


def log_lines(cases: int, failing: float) -> Iterator[bytes]:
    """Yield the lines of the log of a run.

    Args:
        cases: The number of cases.
        failing: The share of the cases that fail.

    Yields:
        The lines, each with the checksum that makes it a valid line of a log.
    """
    options, draw = RunOptions(vendor="synthetic"), random.Random(0)
    yield seal(LogRecord("run", to_json(options.header("0" * 64))))
    yield seal(LogRecord("vendor", to_json(VendorInfo(name="synthetic", version="1.0"))))
    records = [random_record(number, draw, draw.random() < failing, options) for number in range(cases)]
    yield seal(LogRecord("due", [record.id for record in records]))
    yield from (seal(LogRecord("case", to_json(record))) for record in records)
    yield seal(LogRecord("end", 1234.5))


def random_record(number: int, draw: random.Random, fails: bool, options: RunOptions) -> CaseRecord:
    """Return the record of a case whose properties are drawn, except its number and whether it fails."""
    functions = sorted(prototypes())
    function, dtype = functions[number % len(functions)], draw.choice(DTYPES)
    label = f"{dtype}-all-attributes-{number:05}"
    case_id = f"{function}[{label}]"
    values = (
        random_failure(draw)
        if fails
        else CheckResult(check="values", passed=True, ratio=draw.random() ** 3, rms=draw.random())
    )
    checks = (*(CheckResult(check=name, passed=True) for name in CHECKS[: draw.randrange(5, 10)]), values)
    message = f"values: {values.message}" if fails else ""
    timing = (
        None if fails else Timing(seconds=draw.random() * 1e-4, repeats=20, bytes=draw.randrange(10**6), bandwidth=1e10)
    )
    return CaseRecord(
        id=case_id,
        function=function,
        label=label,
        base="",
        dtype=dtype,
        class_=draw.choice(list(CaseClass)),
        verdict=Verdict.failed if fails else Verdict.passed,
        checks=checks,
        message=message,
        seconds=draw.random() / 10,
        command=options.command_of(case_id),
        timing=timing,
    )


def random_failure(draw: random.Random) -> CheckResult:
    """Return a failed check in which every field is set."""
    rows = tuple("".join(draw.choice("0123456789") for _ in range(32)) for _ in range(32))
    place = Difference(
        tensor="out",
        problem="are wrong",
        wrong_count=draw.randrange(1, 4096),
        total=4096,
        index=(3, draw.randrange(64), draw.randrange(64)),
        actual=str(draw.random()),
        expected=str(draw.random()),
        error=draw.random(),
        budget=1e-6,
        patterns=(Pattern(PatternKind.slice, "all in [:, 3:], which has 4032"),),
        inputs={"input": str(draw.random()), "other": str(draw.random())},
        arguments={name: "float32 (8, 64, 64), strides (4096, 64, 1)" for name in ("out", "input", "other")},
        map=ErrorMap((1, 2), (64, 64), rows),
        deviation=Deviation(
            kinds={draw.choice(list(DeviationKind)).value: 9},
            relation=draw.choice([None, *ValueRelation]),
            regions=(Region(parameter="input", condition=draw.choice(["NaN", "infinite", "below", "0"])),),
        ),
    )
    message = f"out: {place.wrong_count} of 4096 elements are wrong, the worst at {place.index}: {place.actual}, "
    return CheckResult(
        check="values",
        passed=False,
        message=f"{message}expected {place.expected} ± 1e-06",
        ratio=2 * draw.random() * 1e6,
        differences=(place,),
    )

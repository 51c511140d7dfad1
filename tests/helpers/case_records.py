"""Create the records of cases, and the report of a run with these records, without running anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diopi_impl import IEEE, Numerics
from diopi_test.baseline.codec import to_json
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import CheckResult, Verdict
from diopi_test.results.log import LogRecord
from diopi_test.results.numerics import NumericsInfo
from diopi_test.results.records import CaseRecord, Report, VendorInfo
from diopi_test.run.options import RunOptions
from diopi_test.run.recorder import LogContent


def case_record(case_id: str, verdict: Verdict | str, message: str = "", *checks: CheckResult) -> CaseRecord:
    """Return the record of a case of class `basic`.

    Args:
        case_id: the ID of the form `function[label]`; the label begins with the element type.
        verdict: the verdict.
        message: the message of the verdict.
        checks: the results of the checks.
    """
    function, _, label = case_id.removesuffix("]").partition("[")
    dtype = label.partition("-")[0]
    return CaseRecord(
        id=case_id,
        function=function,
        label=label,
        base="",
        dtype=dtype,
        class_=CaseClass.basic,
        verdict=Verdict(verdict),
        checks=checks,
        message=message,
        seconds=0.5,
        command="",
    )


def report_of(records: Sequence[CaseRecord], vendor: str = "small", numerics: Numerics = IEEE) -> Report:
    """Return the report of a complete run of these cases.

    Args:
        records: the records of the cases.
        vendor: the name of the vendor.
        numerics: the arithmetic for which the results were evaluated.
    """
    entries = [
        LogRecord("run", to_json(RunOptions(vendor=vendor).header(""))),
        LogRecord("vendor", to_json(VendorInfo(name=vendor, version="1.0"))),
        LogRecord("numerics", to_json(NumericsInfo.from_declaration(numerics))),
        LogRecord("due", [record.id for record in records]),
        *(LogRecord("case", to_json(record)) for record in records),
        LogRecord("end", 0.0),
    ]
    return LogContent.from_records(entries, Path("log")).report()

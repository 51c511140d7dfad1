"""The session of a worker with a vendor, and timed calls."""

from __future__ import annotations

from pathlib import Path

from baselines import make_level
from faulty import FaultyVendor

from diopi_impl import Numerics
from diopi_proto.types import Error
from diopi_test.execution.verdict import Verdict
from diopi_test.run.collection import collect_file
from diopi_test.run.limits import CaseOptions
from diopi_test.run.session import Session
from diopi_test.run.target import LocalTarget

CALLS = 6
"""The number of calls after which a vendor rejects calls: enough for a case, but not for timing it."""


def test_a_vendor_that_rejects_a_call_it_accepted_before_fails(tmp_path: Path) -> None:
    file = make_level(tmp_path / "smoke", "diopiSqrt") / "diopiSqrt.h5"
    calls: list[None] = []

    def tire(arguments: object) -> Error | None:
        calls.append(None)
        return Error.ErrorOccurred if len(calls) > CALLS else None

    vendor = FaultyVendor("tired", tire)
    session = Session(LocalTarget(vendor, vendor.open_device()), CaseOptions(perf=True))
    case = next(case for case in collect_file(file) if case.label == "float32-matrix")
    outcome = session.run(file, case)
    session.close()
    assert outcome.verdict is Verdict.failed
    assert outcome.message == "ErrorOccurred when the call was repeated to time it: corrupted"
    assert outcome.timing is None


def test_cases_of_float64_are_not_called_if_the_declared_arithmetic_has_none(tmp_path: Path) -> None:
    file = make_level(tmp_path / "smoke", "diopiSqrt") / "diopiSqrt.h5"
    calls: list[None] = []
    vendor = FaultyVendor("without float64", lambda arguments: calls.append(None))
    options = CaseOptions(numerics=Numerics(name="without float64", float64="absent"))
    session = Session(LocalTarget(vendor, vendor.open_device()), options)
    case = next(case for case in collect_file(file) if case.dtype == "float64")
    outcome = session.run(file, case)
    session.close()
    assert outcome.verdict is Verdict.unsupported
    assert outcome.message == "the declared arithmetic 'without float64' has no float64"
    assert calls == []

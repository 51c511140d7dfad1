"""The check that calls in flight at the same time have the results that they have on their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from diopi_proto.types import Error
from diopi_test.checks import form, gaps, inputs, location, validity, values, written
from diopi_test.checks.repeat import describe_bits, find_bit_differences
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.difference import Difference, assign_call
from diopi_test.execution.verdict import CheckResult

CHECKS_OF_RECORD: tuple[Callable[[CallRecord], CheckResult | None], ...] = (
    form.check,
    written.check,
    values.check,
    validity.check,
    inputs.check,
    gaps.check,
)
"""The checks of a single call that need no repetition of the call."""


def find_failures(record: CallRecord) -> list[CheckResult]:
    """Return the failed checks of the record of a call."""
    results = (check(record) for check in CHECKS_OF_RECORD)
    return [result for result in results if result is not None and not result.passed]


def check(serial: Sequence[CallRecord], in_flight: Sequence[CallRecord | Error], last_error: str = "") -> CheckResult:
    """Check that every call of a chain has correct results.

    If the function must repeat its bits, the results must also equal those of the same call on its own bit for bit.

    Args:
        serial: the records of the same calls, each on its own. Every check of them passed.
        in_flight: for each call of the chain, its record or the error code that it returned.
        last_error: the vendor's last error, for the message about calls that returned an error code.

    Returns:
        The result of the check.
    """
    problems: list[str] = []
    places: list[Difference] = []
    for number, (serial_record, record) in enumerate(zip(serial, in_flight, strict=True), 1):
        call = f"call {number} of {len(serial)} in flight, {serial_record.case.id}"
        if isinstance(record, Error):
            problems.append(f"{call}: {record.name}: {last_error}")
            continue
        for message, differences in find_problems(serial_record, record):
            problems.append(f"{call}: {message}")
            places += assign_call(differences, call)
    return CheckResult(
        check="in_flight",
        passed=not problems,
        message="; ".join(problems),
        differences=tuple(places[: location.MAX_LOCATIONS]),
    )


def find_problems(serial: CallRecord, record: CallRecord) -> Iterator[tuple[str, Sequence[Difference]]]:
    """Yield the description and the differences of each problem of a call in flight.

    Args:
        serial: the record of the same call on its own, which is correct.
        record: the record of the call in flight.
    """
    failures = find_failures(record)
    yield from ((f"{failure.check}: {failure.message}", failure.differences) for failure in failures)
    if failures or not (serial.prototype.repeats_bits or serial.generators):
        return
    differences = find_bit_differences(serial, record)
    yield from ((describe_bits(difference), [difference]) for difference in differences)

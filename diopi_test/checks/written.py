"""The check that a call writes every specified element of every result, so that no poison remains."""

from __future__ import annotations

from diopi_proto.parameters import Role
from diopi_test.checks import location
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.verdict import CheckResult
from lib_rt import is_poison


def check(run: CallRecord) -> CheckResult:
    """Check that no specified result element still has the poison, the bits that filled the tensor before the call.

    An integer element may have these bits if they are the expected value. The check `validity` covers integers that
    need a validator.

    Args:
        run: the record of the call.

    Returns:
        The result of the check.
    """
    problems, places = [], []
    for record, expected in run.results():
        if record.role is not Role.output or record.before is None:
            continue
        left = is_poison(record.values)
        if expected.values.dtype == record.values.dtype and record.values.dtype.kind in "iu":
            left &= record.values != expected.values
            left &= not expected.needs_validator
        if expected.specified is not None:
            left &= expected.specified
        if left.any():
            place = location.locate_in_record(run, record, "were not written", left, expected.values)
            count = f"{place.wrong_count} of {place.total} elements"
            problems.append(
                f"{count} of {record.name} {place.problem}, the first at {place.index}{place.pattern_suffix}"
            )
            places.append(place)
    return CheckResult(
        check="written",
        passed=not problems,
        message=", ".join(problems),
        differences=tuple(places[: location.MAX_LOCATIONS]),
    )

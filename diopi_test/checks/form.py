"""The check that results exist, and have the expected element type, shape and (in some functions) strides."""

from __future__ import annotations

from diopi_proto.types import MemoryFormat
from diopi_test.cases.layouts import layout_named
from diopi_test.execution.call_record import CallRecord, TensorRecord
from diopi_test.execution.verdict import CheckResult
from diopi_test.oracle.records import Expected


def check(run: CallRecord) -> CheckResult:
    """Check that every result exists, with the expected element type and shape.

    In a result that the callee allocates, axes of length 1 may be missing or added. The callee may omit such a result
    if it has no elements and the standard does not specify it. Strides are checked only if the function has a parameter
    for the memory format. A queried workspace size must not be negative.

    Args:
        run: the record of the call.

    Returns:
        The result of the check.
    """
    order_matters = any(parameter.annotation is MemoryFormat for parameter in run.prototype.parameters)
    missing_names = [name for name, expected in run.missing.items() if not _is_unspecified_empty(expected)]
    problems = [("missing", f"{name} was not allocated") for name in missing_names]
    problems += [
        ("negative_size", f"the queried size {value.name} is negative: {value.actual}")
        for value in run.values
        if value.before and value.actual < 0
    ]
    for record, expected in run.results():
        if record.dtype is not expected.dtype:
            problems.append(("dtype", f"{record.name} is {record.dtype.name}, expected {expected.dtype.name}"))
        if record.before is None and _without_unit_axes(record.shape) != _without_unit_axes(expected.values.shape):
            problems.append(("shape", f"{record.name} has shape {record.shape}, expected {expected.values.shape}"))
        elif order_matters and (expected_strides := _expected_strides_if_wrong(record, expected)):
            problems.append(("strides", f"{record.name} has strides {record.strides}, expected {expected_strides}"))
    kinds = tuple(dict.fromkeys(kind for kind, _ in problems))
    return CheckResult(
        check="form",
        passed=not problems,
        message=", ".join(message for _, message in problems),
        problems=kinds,
    )


def _is_unspecified_empty(expected: Expected) -> bool:
    """Return whether a result has no elements and the standard does not specify it, so that it may be missing."""
    return expected.specified is not None and not expected.values.size


def _without_unit_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without the axes of length 1."""
    return tuple(length for length in shape if length != 1)


def _expected_strides_if_wrong(record: TensorRecord, expected: Expected) -> tuple[int, ...] | None:
    """Return the expected strides if the actual strides differ along an axis longer than 1; else None."""
    expected_strides = layout_named(expected.layout)(record.shape).strides
    differ = any(
        n > 1 and actual != expected_stride
        for n, actual, expected_stride in zip(record.shape, record.strides, expected_strides, strict=True)
    )
    return expected_strides if differ and 0 not in record.shape else None

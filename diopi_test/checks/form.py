"""Result form: element type, shape and order in memory, and that the callee made, or told, what it had to."""

from __future__ import annotations

from diopi_proto.types import MemoryFormat
from diopi_test.baseline.records import Expected
from diopi_test.cases.layouts import layout_named
from diopi_test.execution.call_record import CallRecord, TensorRecord
from diopi_test.execution.verdict import CheckResult


def check(run: CallRecord) -> CheckResult:
    """Every result exists, with the expected dtype and, but for axes of length 1, the expected shape.

    One that the callee makes for itself, and has no use for, may be left unmade. A size that was asked for is none
    below 0. Where a result the callee makes lies in memory is its own affair, unless the caller asks for a memory
    format.
    """
    order_matters = any(parameter.annotation is MemoryFormat for parameter in run.prototype.parameters)
    problems = [f"{name} was not made" for name, expected in run.missing.items() if not _is_of_no_use(expected)]
    problems += [f"{one.name} is asked for, and {one.actual}" for one in run.values if one.before and one.actual < 0]
    for record, expected in run.results():
        if record.dtype is not expected.dtype:
            problems.append(f"{record.name} is {record.dtype.name}, expected {expected.dtype.name}")
        if record.before is None and _without_ones(record.shape) != _without_ones(expected.values.shape):
            problems.append(f"{record.name} has shape {record.shape}, expected {expected.values.shape}")
        elif order_matters and (wanted := _wrong_order(record, expected)):
            problems.append(f"{record.name} has strides {record.strides}, expected {wanted}")
    return CheckResult("form", not problems, ", ".join(problems))


def _is_of_no_use(expected: Expected) -> bool:
    return expected.specified is not None and not expected.values.size


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(length for length in shape if length != 1)


def _wrong_order(record: TensorRecord, expected: Expected) -> tuple[int, ...] | None:
    """The strides a result should have and, in axes of length above 1, does not."""
    wanted = layout_named(expected.layout)(record.shape).strides
    differ = any(n > 1 and given != want for n, given, want in zip(record.shape, record.strides, wanted, strict=True))
    return wanted if differ and 0 not in record.shape else None

"""The check of functions with several valid results: the actual result must be one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from diopi_proto.parameters import Role
from diopi_test.execution.call_record import CallRecord, TensorRecord, are_bits_equal
from diopi_test.execution.verdict import CheckResult
from diopi_test.oracle.arithmetic.elementary import DeclaredErrors
from diopi_test.oracle.data import widen
from diopi_test.oracle.validators import CompletedCall, Problems, Validator, find_validator


def check(run: CallRecord) -> CheckResult | None:
    """Check that the function's validator accepts the results; return None if each result has only one valid value."""
    results = list(run.results())
    if not any(expected.needs_validator for _, expected in results):
        return None
    problems = [
        f"{record.name} has shape {record.shape}, expected {expected.values.shape}"
        for record, expected in results
        if record.values.size != expected.values.size
    ]
    with np.errstate(all="ignore"):  # wrong results may have any values
        problems = problems or list(_problems_of_draws(find_validator(run.prototype), _completed_call(run)))
        names = tuple(_name_trivial_results(run)) if problems else ()
    return CheckResult(check="validity", passed=not problems, message="; ".join(problems), problems=names)


MIN_ELEMENTS = 8
"""The minimum number of elements for which it is not considered chance that all of them are 0."""


def _name_trivial_results(run: CallRecord) -> Iterator[str]:
    """Yield `unchanged` if all updated results are as before the call; else yield `zeros` if all results are 0."""
    records = [record for record, expected in run.results() if expected.needs_validator]
    if sum(record.values.size for record in records) < MIN_ELEMENTS:
        return
    if all(_is_unchanged(record) for record in records):
        yield "unchanged"
    elif not any(record.values.any() for record in records):
        yield "zeros"


def _is_unchanged(record: TensorRecord) -> bool:
    """Return whether a tensor that the call has to update has the same bits as before the call."""
    earlier = record.earlier if record.role is Role.inout else None
    return earlier is not None and are_bits_equal(earlier, record.values)


def _problems_of_draws(validator: Validator, call: CompletedCall) -> Problems:
    """Yield the problems of a call's results, and of the results of its repetitions with other random numbers."""
    yield from validator(call)
    for description, redraw in call.redraws.items():
        yield from (f"{description}: {problem}" for problem in validator(redraw))


def _completed_call(run: CallRecord) -> CompletedCall:
    """Return a call for the validator, with arguments and results in the types in which the reference computes."""
    results, expected = {}, {}
    has_signed_zeros = True
    for record, expected_result in run.results():
        with np.errstate(invalid="ignore"):  # poison is a signaling NaN
            results[record.name] = widen(record.values, record.dtype).reshape(expected_result.values.shape)
        expected[record.name] = widen(expected_result.values, expected_result.dtype)
        has_signed_zeros &= expected_result.has_signed_zeros
    prepare: Callable[[Any], Any] = dict if has_signed_zeros else _without_signed_zeros
    return CompletedCall(
        arguments=prepare(run.case.plain_arguments()),
        results=prepare(results),
        expected=prepare(expected),
        dtypes={record.name: record.dtype for record, _ in run.results()},
        changes={
            record.name: expected_result.change
            for record, expected_result in run.results()
            if expected_result.change is not None
        },
        errors=DeclaredErrors(run.case.precision.elementary),
        sum_epsilon=run.case.precision.sum_epsilon,
        redraws={name: _completed_call(other_draw) for name, other_draw in run.other_draws.items()},
    )


def _without_signed_zeros(value: Any) -> Any:
    """Return a value in which all zeros of floating-point and complex arrays are positive, also inside containers."""
    if isinstance(value, dict):
        return {name: _without_signed_zeros(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_without_signed_zeros(entry) for entry in value]
    return value + 0.0 if isinstance(value, np.ndarray) and value.dtype.kind in "fc" else value

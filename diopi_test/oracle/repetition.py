"""Large cases whose tensors repeat the same values: the reference evaluates one period, and its results are repeated.

The *period* of such a case is the number of elements after which the values repeat (`Case.period`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from diopi_test.cases.case import Case
from diopi_test.cases.layouts import contiguous
from diopi_test.oracle.records import BaselineCase, Expected, tensors_in


def shorten(case: Case) -> Case:
    """Return `case` with each tensor replaced by one period of it: a contiguous tensor of shape `(case.period,)`."""
    shape = (case.period,)
    arguments = case.map_tensors(lambda _, spec: replace(spec, shape=shape, layout=contiguous))
    results = {
        name: result if result is None or result.shape is None else replace(result, shape=shape)
        for name, result in case.results.items()
    }
    return replace(case, arguments=arguments, results=results, period=0)


def repeat_results(period: BaselineCase, arguments: Mapping[str, Any]) -> BaselineCase:
    """Return the case of full size: its arguments, and the expected results of one period repeated to their shape.

    Args:
        period: The computed case with one period of each tensor (`shorten`).
        arguments: The arguments of the case of full size, by name. All tensors have the same shape.

    Returns:
        The case of full size.

    Raises:
        StopIteration: No argument is a tensor.
    """
    shape = next(tensor.values.shape for value in arguments.values() for tensor in tensors_in(value))
    expected = {
        name: value.repeat(shape) if isinstance(value, Expected) else value for name, value in period.expected.items()
    }
    return replace(period, arguments=arguments, expected=expected)

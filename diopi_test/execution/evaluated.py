"""Evaluate the reference for a stored case with other arguments, for cases that are derived when they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from diopi_proto.interface import lookup
from diopi_proto.parameters import Role
from diopi_proto.prototype import Prototype
from diopi_test.baseline.stability import UnstableError, restrict_to_stable
from diopi_test.cases.case import Case, ResultOverride, TensorSpec
from diopi_test.cases.layouts import layout_named
from diopi_test.cases.tensors import Literal
from diopi_test.oracle.data import widen
from diopi_test.oracle.evaluation import Evaluation, compute_baseline_case
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected
from diopi_test.oracle.reference import find_reference


class DerivationError(ValueError):
    """The reference has no result for the arguments of a derived case."""


def evaluate_with_arguments(case: BaselineCase, arguments: Mapping[str, Any]) -> BaselineCase:
    """Return a case with other arguments and the results that the reference has for them.

    Args:
        case: The case, whose results determine the element types, shapes and layouts of the new results.
        arguments: The changed arguments by name.

    Returns:
        The case with the arguments and their results.

    Raises:
        DerivationError: There is no reference, it rejects the arguments, or the shape of a result depends on rounding.
    """
    prototype, function = lookup(case.function), find_reference(case.function)
    if function is None:
        raise DerivationError(f"{case.function} has no reference")
    described = _describe(replace(case, arguments={**case.arguments, **arguments}))
    try:
        computed = compute_baseline_case(prototype, described)
        expected = _restrict_to_stable_results(prototype, computed, Evaluation(prototype, function, described))
    except (ValueError, IndexError, ArithmeticError, TypeError, UnstableError) as error:
        raise DerivationError(f"the reference rejects the arguments of {case.id}: {error}") from error
    return replace(case, arguments=computed.arguments, expected=expected)


def _restrict_to_stable_results(
    prototype: Prototype, computed: BaselineCase, evaluation: Evaluation
) -> Mapping[str, Any]:
    """Return the expected results. Where a rounded input changes the result abruptly, leave an element unspecified.

    This restriction applies only to results that may be rounded. Exact results, such as truth values and positions,
    stay completely specified.
    """
    exact = {name: value for name, value in computed.expected.items() if _is_exact(prototype, name, value)}
    if len(exact) == len(computed.expected):
        return exact
    return {**restrict_to_stable(computed, evaluation, computed).expected, **exact}


def _is_exact(prototype: Prototype, name: str, value: Any) -> bool:
    """Return whether a result, or every entry of an array of results, must be exact."""
    numbers = range(len(value)) if isinstance(value, list) else [None]
    return all(prototype.guarantee_of(name, number) == "exact" for number in numbers)


def _describe(case: BaselineCase) -> Case:
    """Return the description of a case with fixed values for all tensors."""
    parameters = {parameter.name: parameter for parameter in lookup(case.function).parameters}
    return Case(
        case.label,
        case.dtype,
        {name: _describe_argument(value) for name, value in case.arguments.items()},
        results={
            name: _describe_result(value)
            for name, value in case.expected.items()
            if parameters[name].role is Role.output and not isinstance(value, list)
        },
        case_class=case.case_class,
    )


def _describe_argument(value: Any) -> Any:
    """Return the description of an argument: a specification with fixed values for each tensor."""
    if isinstance(value, list):
        return [_describe_argument(entry) for entry in value]
    if not isinstance(value, BaselineTensor):
        return value
    array = widen(value.values, value.dtype)
    return TensorSpec(array.shape, value.dtype, layout=layout_named(value.layout), compute=Literal(array))


def _describe_result(expected: Expected | None) -> ResultOverride | None:
    """Return the caller's choices for a result; None if the caller omits it."""
    if expected is None:
        return None
    layout = layout_named(expected.layout)
    return ResultOverride(expected.dtype, layout=layout, shape=expected.values.shape)

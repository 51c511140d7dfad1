"""Evaluate the reference for a stored case whose arguments were changed.

A derived case is a variation of a stored case that is created when it runs, for example with one tensor passed for two
parameters. Its expected results are not stored, so the reference computes them.
"""

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
    """A derived case has no expected results: the reference is missing or rejects it, or the results are unstable."""


def evaluate_with_arguments(case: BaselineCase, arguments: Mapping[str, Any]) -> BaselineCase:
    """Replace arguments of a case, and replace its expected results by those of the reference for the new arguments.

    Args:
        case: The case. A result that the caller allocates keeps its element type, shape and layout, unless the call
            also reads it, or it is an array of results.
        arguments: The changed arguments by name; the case keeps all other arguments.

    Returns:
        The case with the changed arguments and their expected results. Elements of rounded results that change abruptly
        if an input is rounded are unspecified.

    Raises:
        DerivationError: There is no reference, it rejects the arguments, or the shape of a result changes if an input
            is moved by a rounding error.
    """
    prototype, reference = lookup(case.function), find_reference(case.function)
    if reference is None:
        raise DerivationError(f"{case.function} has no reference")
    described = _describe(replace(case, arguments={**case.arguments, **arguments}))
    try:
        computed = compute_baseline_case(prototype, described)
        expected = _restrict_to_stable_results(prototype, computed, Evaluation(prototype, reference, described))
    except UnstableError as error:
        raise DerivationError(f"{case.id} with other arguments has no stable results: {error}") from error
    except (ValueError, IndexError, ArithmeticError, TypeError) as error:
        raise DerivationError(f"the reference rejects the arguments of {case.id}: {error}") from error
    return replace(case, arguments=computed.arguments, expected=expected)


def _restrict_to_stable_results(
    prototype: Prototype, computed: BaselineCase, evaluation: Evaluation
) -> Mapping[str, Any]:
    """Return the expected results of a computed case, restricted where rounding of an input changes them abruptly.

    The restriction widens the budget of such an element, or marks the element as unspecified if it is an integer or
    becomes infinite (see `restrict_to_stable`). It applies only to results that may be rounded. Exact results, such as
    truth values and positions, stay completely specified.
    """
    exact = {name: value for name, value in computed.expected.items() if _is_exact(prototype, name, value)}
    if len(exact) == len(computed.expected):
        return exact
    return {**restrict_to_stable(computed, evaluation).expected, **exact}


def _is_exact(prototype: Prototype, name: str, value: Any) -> bool:
    """Return whether a result, or every entry of an array of results, must be exact."""
    numbers = range(len(value)) if isinstance(value, list) else [None]
    return all(prototype.guarantee_of(name, number) == "exact" for number in numbers)


def _describe(case: BaselineCase) -> Case:
    """Return a `Case`, the form in which the reference is evaluated, with the values of the tensors as literals."""
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
    """Return an argument in the form of a `Case`: literal values for each tensor, and other values unchanged."""
    if isinstance(value, list):
        return [_describe_argument(entry) for entry in value]
    if not isinstance(value, BaselineTensor):
        return value
    array = widen(value.values, value.dtype)
    return TensorSpec(array.shape, value.dtype, layout=layout_named(value.layout), compute=Literal(array))


def _describe_result(expected: Expected | None) -> ResultOverride | None:
    """Return the element type, layout and shape of the tensor that the caller passes for a result; None for NULL."""
    if expected is None:
        return None
    layout = layout_named(expected.layout)
    return ResultOverride(expected.dtype, layout=layout, shape=expected.values.shape)

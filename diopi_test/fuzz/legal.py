"""Compute the expected results of a random call; raise `IllegalError` with the reason if the call is invalid.

A random call is valid if the reference computes it. There are two exceptions: calls that PyTorch rejects or whose
results it leaves unspecified, and calls of gradients with tensors that don't fit the forward function.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from diopi_proto import facts
from diopi_proto import parameters as kinds
from diopi_proto.dtypes import category
from diopi_proto.parameters import Parameter, Role
from diopi_proto.prototype import Prototype
from diopi_test.baseline.stability import UnstableError, restrict_to_stable
from diopi_test.cases.case import Case, ResultOverride, TensorSpec
from diopi_test.cases.domains import random_generator
from diopi_test.cases.selection.open_calls import reason_open
from diopi_test.cases.tensors import Literal
from diopi_test.fuzz.bounds import MAX_SECONDS, limit_resources
from diopi_test.fuzz.knowledge import ValidCallKnowledge, as_tuple, count_elements, is_choice
from diopi_test.fuzz.rejected_numbers import is_rejected
from diopi_test.fuzz.relations import FAILURES, relations_of
from diopi_test.oracle.evaluation import Evaluation, compute_baseline_case
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.oracle.reference import Reference, find_reference
from lib_rt.formats import is_inexact

MAX_TOTAL_ELEMENTS = 200_000
"""Maximum number of elements of all tensors of a call, including results.

A call with larger arguments may have up to twice as many elements as its arguments.
"""

SECONDS_OF_LARGE_CALLS = 60.0
"""Time limit in seconds of the reference for a call whose arguments have more than `MAX_TOTAL_ELEMENTS` elements."""

OUT_OF_RANGE = "a number is out of the range of the element type"
"""The reason for rejecting a call with a number that an element type of its tensors cannot represent.

It is also the reason for a truth value as a factor of numbers, which PyTorch rejects.
"""

UNRELATED = "a relation that holds in all cases of the function is violated"
"""The reason for rejecting a call that violates a relation of `diopi_test.fuzz.relations`."""

NUMBER_KINDS = (kinds.Scalar, kinds.f64, kinds.f32)
"""The kinds of numeric parameters that are combined with the elements of tensors."""


class IllegalError(Exception):
    """A random call is invalid, or has no reference result; the message is the reason, equal for similar calls."""


def compute_legal_case(knowledge: ValidCallKnowledge, case: Case) -> BaselineCase:
    """Return a random call with its data and expected results.

    Near a discontinuity of the function, the results on both sides are accepted: their budgets are wider, or they are
    unspecified (`restrict_to_stable`).

    Raises:
        IllegalError: The call is invalid, or has no reference result.
    """
    if reason_open(knowledge.prototype, case):
        raise IllegalError("PyTorch leaves the results of the call open")
    _check_arguments(knowledge, case)
    function = find_reference(knowledge.prototype.name)
    if function is None:
        raise IllegalError("the function has no reference")
    try:
        with limit_resources(SECONDS_OF_LARGE_CALLS if count_elements(case) > MAX_TOTAL_ELEMENTS else MAX_SECONDS):
            computed = compute_baseline_case(knowledge.prototype, case)
            _check_elements(knowledge, case, computed)
            _check_results(knowledge, case, computed)
            if computed.draws and knowledge.prototype.guarantee != "random":
                raise IllegalError("validators of random numbers apply only to the data of the cases")
            return restrict_to_stable(computed, Evaluation(knowledge.prototype, function, case))
    except IllegalError:
        raise
    except UnstableError as error:
        raise IllegalError(str(error)) from error
    except TimeoutError as error:
        raise IllegalError("the reference takes too long") from error
    except (*FAILURES, MemoryError) as error:
        raise IllegalError(f"the reference rejects the call: {type(error).__name__}") from error


def _check_arguments(knowledge: ValidCallKnowledge, case: Case) -> None:
    """Check the arguments of a call before the reference is computed.

    Raises:
        IllegalError: The arguments violate a relation, PyTorch rejects a number, a type can't represent a number, or no
            case makes the same choice (`is_choice`).
    """
    if not knowledge.prototype.elementwise and not relations_of(knowledge).are_satisfied(case.arguments, []):
        raise IllegalError(UNRELATED)
    if is_rejected(knowledge.prototype, case):
        raise IllegalError(OUT_OF_RANGE)
    for p in knowledge.attributes:
        value = case.arguments[p.name]
        if is_choice(p) and (p.name, str(value), category(case.dtype)) not in knowledge.observed_choices:
            raise IllegalError("no case has this choice for a type of this kind")
        if (
            issubclass(p.annotation, NUMBER_KINDS)
            and value is not None
            and not knowledge.is_number_allowed(p.name, case)
        ):
            raise IllegalError(OUT_OF_RANGE)


def _check_elements(knowledge: ValidCallKnowledge, case: Case, computed: BaselineCase) -> None:
    """Raise IllegalError if a finite value of a domain becomes infinite in the tensor's element type.

    Args:
        knowledge: the valid calls of the function.
        case: the case, whose tensors have domains.
        computed: the case with elements.

    Raises:
        IllegalError: A finite value becomes infinite.
    """
    for name, value in case.arguments.items():
        tensors = tensors_in(computed.arguments[name]) if name in computed.arguments else []
        for number, (spec, tensor) in enumerate(zip(TensorSpec.all_in(value), tensors, strict=False)):
            if spec.compute is None and is_inexact(spec.dtype):
                word = f"{name}.{number}" if isinstance(value, list) else name
                values = spec.domain(
                    random_generator(knowledge.prototype.base, case.label, word), tensor.values.size, spec.dtype
                )
                if np.isfinite(values).sum() > np.isfinite(tensor.values).sum():
                    raise IllegalError(OUT_OF_RANGE)


def _check_results(knowledge: ValidCallKnowledge, case: Case, computed: BaselineCase) -> None:
    """Raise IllegalError if the call has too many elements, or violates a fact or relation of the function."""
    results = [entry.values for value in computed.expected.values() for entry in expected_arrays(value)]
    tensors = [tensor.values for value in computed.arguments.values() for tensor in tensors_in(value)]
    if sum(array.size for array in (*tensors, *results)) > max(MAX_TOTAL_ELEMENTS, 2 * count_elements(case)):
        raise IllegalError("the call has too many elements")
    max_rank = max((array.ndim for array in (*tensors, *results)), default=0)
    if not all(_satisfies_facts(p, case, max(max_rank, 1)) for p in knowledge.prototype.arguments):
        raise IllegalError("a fact of the prototype does not hold")
    for p in knowledge.prototype.parameters:
        if p.role is Role.inout and (p.is_tensor or p.is_tensor_array):
            actual_shapes = [tensor.values.shape for tensor in tensors_in(computed.arguments[p.name])]
            if actual_shapes != [entry.values.shape for entry in expected_arrays(computed.expected[p.name])]:
                raise IllegalError("a tensor that the call updates would get another shape")
    shapes = [array.shape for array in results]
    if not knowledge.prototype.elementwise and not relations_of(knowledge).are_satisfied(case.arguments, shapes):
        raise IllegalError(UNRELATED)


def _satisfies_facts(parameter: Parameter, case: Case, max_rank: int) -> bool:
    """Return whether an argument satisfies the prototype's facts.

    An axis must exist in a tensor of the rank `max_rank`. An argument must be present if another argument needs it.
    """
    value = case.arguments[parameter.name]
    if parameter.fact(facts.NamesAxis) and value is not None:
        return all(-max_rank <= axis < max_rank for axis in as_tuple(value))
    condition = parameter.fact(facts.NeededWhere)
    return condition is None or value is not None or not case.arguments[condition.argument]


def with_forward_shapes(knowledge: ValidCallKnowledge, case: Case) -> Case:
    """Give the argument `grad_output` of a gradient's call the shape of the forward function's result.

    Returns:
        The call with the shape. The call is unchanged if the function is no gradient or has no `grad_output`, or if the
        shape can't be determined: the forward function has no reference, needs an argument that the call lacks, or
        allocates its result.

    Raises:
        IllegalError: The forward function rejects the arguments, or takes too much time or memory.
    """
    gradient = case.arguments.get("grad_output")
    forward, function = (
        knowledge.forward_function,
        find_reference(knowledge.forward_function.name) if knowledge.forward_function else None,
    )
    if forward is None or function is None or gradient is None or forward.results[0].is_callee_allocated:
        return case
    arguments = {p.name: case.arguments.get(p.name) for p in forward.arguments}
    missing = [p for p in forward.arguments if p.name not in case.arguments and not p.optional]
    if any(forward.has_effect(p.name, arguments) for p in missing):
        return case
    try:
        with limit_resources():
            shape = _forward_shape(forward, function, replace(case, arguments=arguments))
    except (*FAILURES, TimeoutError, MemoryError) as error:
        raise IllegalError(f"the forward function rejects the call: {type(error).__name__}") from error
    return replace(case, arguments={**case.arguments, "grad_output": replace(gradient, shape=shape)})


def _forward_shape(forward: Prototype, function: Reference, case: Case) -> tuple[int, ...]:
    """Return the shape of the forward function's first result.

    The result is computed with tensors of ones (floating-point and complex types) or zeros (other types). Tensors with
    literal numbers keep these numbers.

    Returns:
        The shape.
    """
    undecided = {p.name: ResultOverride() for p in forward.results}
    evaluation = Evaluation(forward, function, replace(case, results=undecided))
    with np.errstate(all="ignore"):
        result = evaluation.arrays({name: _constant_argument(value) for name, value in case.arguments.items()})[0]
    return tuple(int(size) for size in result.shape)


def _constant_argument(value: Any) -> Any:
    """Return an argument with each tensor replaced by ones or zeros, except for tensors with literal numbers."""
    if isinstance(value, list):
        return [_constant_argument(entry) for entry in value]
    if not isinstance(value, TensorSpec):
        return value
    if isinstance(value.compute, Literal) and value.compute.array.shape == value.shape:
        return value.compute.array
    return np.ones(value.shape) if is_inexact(value.dtype) else np.zeros(value.shape, np.int64)

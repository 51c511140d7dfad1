"""Compute the expected results of a random call; raise `IllegalError` with the reason if the call is invalid.

A random call is valid if the reference computes it. Calls that PyTorch rejects or leaves unspecified are not tried, nor
are gradients whose tensors don't match their forward function.
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
from diopi_test.cases.data import random_generator
from diopi_test.cases.open_calls import reason_open
from diopi_test.cases.tensors import Literal
from diopi_test.fuzz.bounds import bounded
from diopi_test.fuzz.known import Known, as_tuple, is_choice
from diopi_test.fuzz.relations import FAILURES, relations
from diopi_test.fuzz.unheld import is_refused
from diopi_test.oracle.evaluation import Evaluation, compute_baseline_case
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.oracle.reference import Reference, find_reference
from lib_rt.formats import is_inexact

MOST_ELEMENTS = 200_000
"""Elements of all tensors of a call, results included."""

OUT_OF_RANGE = "a number is out of the range of the element type"
UNRELATED = "a relation does not hold that does in all cases of the function"

NUMBERS = (kinds.Scalar, kinds.f64, kinds.f32)
"""The kinds of attributes that meet the elements of tensors."""


class IllegalError(Exception):
    """A random call is invalid, or has no reference result; the message is the reason, equal for similar calls."""


def compute_legal_case(known: Known, case: Case) -> BaselineCase:
    """A drawn call with its data and what must come of it; IllegalError if it is none."""
    if reason_open(known.prototype, case):
        raise IllegalError("PyTorch leaves it open")
    _check_arguments(known, case)
    function = find_reference(known.prototype.name)
    if function is None:
        raise IllegalError("there is no reference")
    try:
        with bounded():
            computed = compute_baseline_case(known.prototype, case)
            _check_elements(known, case, computed)
            _check_results(known, case, computed)
            if computed.draws and known.prototype.guarantee != "random":
                raise IllegalError("validators of random numbers apply only to the data of the cases")
            return restrict_to_stable(computed, Evaluation(known.prototype, function, case), computed)
    except IllegalError:
        raise
    except UnstableError as error:
        raise IllegalError(str(error)) from error
    except TimeoutError as error:
        raise IllegalError("the reference takes too long") from error
    except (*FAILURES, MemoryError) as error:
        raise IllegalError(f"the reference refuses it: {type(error).__name__}") from error


def _check_arguments(known: Known, case: Case) -> None:
    if not known.prototype.elementwise and not relations(known).hold(case.arguments, []):
        raise IllegalError(UNRELATED)
    if is_refused(known.prototype, case):
        raise IllegalError(OUT_OF_RANGE)
    for p in known.attributes:
        value = case.arguments[p.name]
        if is_choice(p) and (p.name, str(value), category(case.dtype)) not in known.choices:
            raise IllegalError("a choice that no case makes for a type of this kind")
        if issubclass(p.annotation, NUMBERS) and value is not None and not known.is_fixed_for(p.name, case):
            raise IllegalError(OUT_OF_RANGE)


def _check_elements(known: Known, case: Case, computed: BaselineCase) -> None:
    """Raise IllegalError if a value becomes infinite in the type of the call but not in the original case's type."""
    for name, value in case.arguments.items():
        tensors = tensors_in(computed.arguments[name]) if name in computed.arguments else []
        for number, (spec, tensor) in enumerate(zip(TensorSpec.all_in(value), tensors, strict=False)):
            if spec.compute is None and is_inexact(spec.dtype):
                word = f"{name}.{number}" if isinstance(value, list) else name
                values = spec.domain(
                    random_generator(known.prototype.base, case.label, word), tensor.values.size, spec.dtype
                )
                if np.isfinite(values).sum() > np.isfinite(tensor.values).sum():
                    raise IllegalError(OUT_OF_RANGE)


def _check_results(known: Known, case: Case, computed: BaselineCase) -> None:
    results = [entry.values for value in computed.expected.values() for entry in expected_arrays(value)]
    tensors = [tensor.values for value in computed.arguments.values() for tensor in tensors_in(value)]
    if sum(array.size for array in (*tensors, *results)) > MOST_ELEMENTS:
        raise IllegalError("it has too many elements")
    ranks = max((array.ndim for array in (*tensors, *results)), default=0)
    if not all(_is_meant(p, case, max(ranks, 1)) for p in known.prototype.arguments):
        raise IllegalError("a fact of the prototype does not hold")
    for p in known.prototype.parameters:
        if p.role is Role.inout and (p.is_tensor or p.is_tensor_array):
            actual_shapes = [tensor.values.shape for tensor in tensors_in(computed.arguments[p.name])]
            if actual_shapes != [entry.values.shape for entry in expected_arrays(computed.expected[p.name])]:
                raise IllegalError("a result in place has another shape")
    shapes = [array.shape for array in results]
    if not known.prototype.elementwise and not relations(known).hold(case.arguments, shapes):
        raise IllegalError(UNRELATED)


def _is_meant(parameter: Parameter, case: Case, ranks: int) -> bool:
    """Return whether an argument satisfies the prototype's facts, where `axes` is the highest rank of the tensors."""
    value = case.arguments[parameter.name]
    if parameter.fact(facts.NamesAxis) and value is not None:
        return all(-ranks <= axis < ranks for axis in as_tuple(value))
    needed = parameter.fact(facts.NeededWhere)
    return needed is None or value is not None or not case.arguments[needed.argument]


def with_forward_shapes(known: Known, case: Case) -> Case:
    """A call of a gradient with `grad_output` in the shape of the forward result; IllegalError if there is none."""
    gradient = case.arguments.get("grad_output")
    forward, function = known.forward, find_reference(known.forward.name) if known.forward else None
    if forward is None or function is None or gradient is None or forward.results[0].is_callee_allocated:
        return case
    arguments = {p.name: case.arguments.get(p.name) for p in forward.arguments}
    missing = [p for p in forward.arguments if p.name not in case.arguments and not p.optional]
    if any(forward.has_effect(p.name, arguments) for p in missing):
        return case
    try:
        with bounded():
            shape = _forward_shape(forward, function, replace(case, arguments=arguments))
    except (*FAILURES, TimeoutError, MemoryError) as error:
        raise IllegalError(f"the forward function refuses it: {type(error).__name__}") from error
    return replace(case, arguments={**case.arguments, "grad_output": replace(gradient, shape=shape)})


def _forward_shape(forward: Prototype, function: Reference, case: Case) -> tuple[int, ...]:
    """Return the shape of the forward function's first result, computed with all numbers 1 and all positions 0.

    Tensors with literal numbers are not changed.

    Returns:
        The shape.
    """
    undecided = {p.name: ResultOverride() for p in forward.results}
    evaluation = Evaluation(forward, function, replace(case, results=undecided))
    with np.errstate(all="ignore"):
        result = evaluation.arrays({name: _plain(value) for name, value in case.arguments.items()})[0]
    return tuple(int(size) for size in result.shape)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if not isinstance(value, TensorSpec):
        return value
    if isinstance(value.compute, Literal) and value.compute.array.shape == value.shape:
        return value.compute.array
    return np.ones(value.shape) if is_inexact(value.dtype) else np.zeros(value.shape, np.int64)

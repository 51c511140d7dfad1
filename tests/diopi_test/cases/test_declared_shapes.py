"""No case contradicts the shapes that its prototype declares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sampling import sampled

from diopi_proto import facts
from diopi_proto.interface import lookup, prototypes
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOverride, TensorSpec
from diopi_test.cases.selection import select_cases

LEVELS = ("full", "large")


def _tensors(case: Case) -> dict[str, TensorSpec]:
    """Return the tensor arguments of a case by name."""
    return {name: value for name, value in case.arguments.items() if isinstance(value, TensorSpec)}


def _have_one_shape(prototype: Prototype) -> bool:
    """Return whether all tensors have one shape, as in the gradients of element-wise functions."""
    return prototype.elementwise and prototype.is_gradient


def contradictions(prototype: Prototype, case: Case) -> Iterator[str]:
    """Yield the contradictions between a case and the facts of its prototype."""
    shapes = {name: spec.shape for name, spec in _tensors(case).items()}
    if _have_one_shape(prototype) and len(set(shapes.values())) > 1:
        yield f"the tensors have the shapes {shapes}, the prototype says one"
    yield from _result_contradictions(prototype, case, shapes)
    yield from _size_contradictions(prototype, case, shapes)


def _result_contradictions(prototype: Prototype, case: Case, shapes: dict[str, tuple[int, ...]]) -> Iterator[str]:
    """Yield where shapes of results contradict the prototype."""
    result_shapes = {name: result.shape for name, result in case.results.items() if result and result.shape is not None}
    for p in prototype.results:
        fact = p.fact(facts.ShapeOf)
        if fact and p.name in result_shapes and result_shapes[p.name] != shapes.get(fact.tensor):
            yield f"{p.name} has the shape {result_shapes[p.name]}, that of {fact.tensor} is {shapes.get(fact.tensor)}"
    if prototype.elementwise and shapes and (result_shapes or prototype.is_inplace):
        broadcast_shape = np.broadcast_shapes(*shapes.values())
        for name, shape in result_shapes.items():
            if shape != broadcast_shape:
                yield f"{name} has the shape {shape}, the operands have {broadcast_shape} together"
        if prototype.is_inplace and broadcast_shape != next(iter(shapes.values())):
            yield f"the operands have the shape {broadcast_shape} together, which is not that of the first"


def _size_contradictions(prototype: Prototype, case: Case, shapes: dict[str, tuple[int, ...]]) -> Iterator[str]:
    """Yield where sizes of tensors contradict the declared shapes."""
    sizes: dict[int | str, int] = {}
    for name, declared in prototype.shapes.items():
        if name in prototype.unread_arguments(case.arguments) or name not in shapes:
            continue
        if len(declared) != len(shapes[name]):
            yield f"{name} has the shape {shapes[name]}, the prototype says {declared}"
            continue
        for size, length in zip(declared, shapes[name], strict=True):
            expected = size if isinstance(size, int) else sizes.setdefault(size, case.arguments.get(size, length))
            if expected != length:
                yield f"{name} has the shape {shapes[name]}, {size} is {expected}"


@pytest.mark.parametrize("name", sampled(prototypes(), 25, slow=35))
def test_no_case_contradicts_its_prototype(name: str) -> None:
    prototype = lookup(name)
    cases = [case for level in LEVELS for case in select_cases(name, level) if case.case_class.is_demanded]
    assert [(case.label, contradiction) for case in cases for contradiction in contradictions(prototype, case)] == []


def _case(results: dict[str, Any] | None = None, **shapes: tuple[int, ...]) -> Case:
    """Return a case with float32 tensors of these shapes."""
    arguments = {name: TensorSpec(shape, Dtype.float32) for name, shape in shapes.items()}
    return Case("float32-toy", Dtype.float32, arguments, results=results or {})


def test_contradictions_reports_wrong_shapes() -> None:
    backward, add = lookup("diopiTanhBackward"), lookup("diopiAddInp")
    assert list(contradictions(backward, _case(grad_output=(6, 19), output=(6, 1))))
    assert not list(contradictions(backward, _case(grad_output=(6, 19), output=(6, 19))))
    assert list(contradictions(add, _case(input=(1, 3), other=(2, 3))))
    assert list(contradictions(backward, _case({"grad_input": ResultOverride(shape=(1,))}, grad_output=(), output=())))

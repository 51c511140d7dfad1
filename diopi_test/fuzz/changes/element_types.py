"""Changes of the element types of a call.

A change receives Hypothesis's `draw`, the knowledge about valid calls and a case, and returns the changed case.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from diopi_proto import parameters as kinds
from diopi_proto.dtypes import category, common_dtype, is_floating
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOf, TensorSpec
from diopi_test.fuzz.changes.chances import SOMETIMES
from diopi_test.fuzz.changes.values import domains_by_name
from diopi_test.fuzz.knowledge import ValidCallKnowledge
from lib_rt.dtypes import to_numpy


def change_types(draw: DrawFn, knowledge: ValidCallKnowledge, case: Case) -> Case:
    """Return the case with another type under test, and sometimes with other types of operands or of the result."""
    if not knowledge.prototype.dtypes:
        return case
    new = draw(st.sampled_from(knowledge.prototype.dtypes))
    donors = knowledge.cases_of_category(new)
    if category(new) != category(case.dtype) and knowledge.is_determined_by_attributes(case):
        return case
    if not knowledge.mixes_types and _has_more_precise_arguments(case) and _itemsize(new) != _itemsize(case.dtype):
        return case
    if new is not case.dtype and donors:
        changed = _with_type(knowledge, case, new, draw(st.sampled_from(donors)))
        case = changed if not knowledge.mixes_types or _can_hold_result(knowledge, changed) else case
    if knowledge.mixes_types and draw(SOMETIMES):
        case = _mix_types(draw, knowledge, case)
    return _request_result_type(draw, knowledge, case)


def _has_more_precise_arguments(case: Case) -> bool:
    """Return whether the type under test is floating-point and an argument has a wider floating-point type."""
    types = [spec.dtype for _, spec in case.tensors if is_floating(spec.dtype)]
    return is_floating(case.dtype) and any(_itemsize(dtype) > _itemsize(case.dtype) for dtype in types)


def _itemsize(dtype: Dtype) -> int:
    """Return the number of bytes of an element."""
    return to_numpy(dtype).itemsize


def _with_type(knowledge: ValidCallKnowledge, case: Case, new: Dtype, donor: Case) -> Case:
    """Return the case with another type under test.

    Args:
        knowledge: the knowledge about the function.
        case: the case.
        new: the new element type.
        donor: a case of the category of `new`. If that category differs from the present one, the domains of the
            tensors and the scalars come from this case.
    """
    domains = domains_by_name(donor)

    def with_new_type(name: str, spec: TensorSpec) -> TensorSpec:
        """Return a tensor's specification with the new element type, if the tensor had the tested type."""
        supported = knowledge.prototype.dtypes_of(name) if not name.startswith("_") else knowledge.prototype.dtypes
        if isinstance(spec.compute, ResultOf) and not name.startswith("_"):
            saved = lookup(spec.compute.function).rule_of(spec.compute.result)([new])
            return replace(spec, dtype=saved) if saved in supported else spec
        if spec.dtype is not case.dtype or new not in supported:
            return spec
        of_other_kind = category(new) != category(case.dtype)
        return replace(spec, dtype=new, domain=domains.get(name, spec.domain) if of_other_kind else spec.domain)

    arguments = case.map_tensors(with_new_type)
    if category(new) != category(case.dtype):
        scalars = [p.name for p in knowledge.attributes if issubclass(p.annotation, kinds.Scalar)]
        arguments |= {name: donor.arguments[name] for name in scalars}
    results = {name: override and replace(override, dtype=None) for name, override in case.results.items()}
    return replace(case, dtype=new, arguments=arguments, results=results)


def _mix_types(draw: DrawFn, knowledge: ValidCallKnowledge, case: Case) -> Case:
    """Draw a type for each operand but the first; return `case` if an overwritten operand can't hold the result."""
    first = next(name for name, _ in case.tensors)
    arguments = dict(case.arguments)
    for p in knowledge.prototype.operands:
        spec = arguments[p.name]
        if p.name == first or not isinstance(spec, TensorSpec):
            continue
        dtype = draw(st.sampled_from(knowledge.prototype.dtypes_of(p.name)))
        domains = [domains_by_name(similar_case).get(p.name) for similar_case in knowledge.cases_of_category(dtype)]
        if category(dtype) != category(spec.dtype) and domains and domains[0]:
            arguments[p.name] = replace(spec, dtype=dtype, domain=domains[0])
        elif category(dtype) == category(spec.dtype):
            arguments[p.name] = replace(spec, dtype=dtype)
    mixed = replace(
        case,
        arguments=arguments,
        results={n: override and replace(override, dtype=None) for n, override in case.results.items()},
    )
    return mixed if _can_hold_result(knowledge, mixed) else case


def _can_hold_result(knowledge: ValidCallKnowledge, case: Case) -> bool:
    """Return whether the operand that an in-place call overwrites has a type that can hold the result."""
    if not knowledge.prototype.is_inplace:
        return True
    operands = [case.arguments[p.name] for p in knowledge.prototype.operands]
    tensors = [value.dtype for value in operands if isinstance(value, TensorSpec)]
    numbers = [value for value in operands if value is not None and not isinstance(value, TensorSpec)]
    rule = knowledge.prototype.rule_of(knowledge.prototype.results[0].name)
    return category(rule([common_dtype(tensors, numbers)])) <= category(tensors[0])


def _request_result_type(draw: DrawFn, knowledge: ValidCallKnowledge, case: Case) -> Case:
    """Return the case with a random type of a result that the caller may request; the label states the type."""
    if not knowledge.prototype.selectable_dtypes or not draw(SOMETIMES):
        return case
    dtype = draw(st.sampled_from(knowledge.prototype.selectable_dtypes))
    results = {name: override and replace(override, dtype=dtype) for name, override in case.results.items()}
    origin = case.label.partition("#")[0].partition("-ordered-")[0]
    return replace(case, label=f"{origin}-ordered-{dtype.name}", results=results)

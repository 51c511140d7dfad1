"""Changes of the attributes of a call.

A change receives Hypothesis's `draw`, the knowledge about valid calls and a case, and returns the changed case.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from diopi_proto import facts
from diopi_proto import parameters as kinds
from diopi_proto.dtypes import category
from diopi_proto.parameters import Parameter
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case
from diopi_test.fuzz.changes.chances import SOMETIMES
from diopi_test.fuzz.changes.shapes import draw_axes
from diopi_test.fuzz.changes.values import REAL_KINDS, domain_replacer
from diopi_test.fuzz.knowledge import INTEGER_KINDS, ValidCallKnowledge, largest_rank


def change_attributes(draw: DrawFn, knowledge: ValidCallKnowledge, case: Case) -> Case:
    """Return a call with other attributes: numbers come from another case together with the domains of its tensors.

    Axes, texts and truth values are drawn separately.
    """
    if knowledge.is_determined_by_attributes(case):
        return case
    donor = draw(st.sampled_from(knowledge.cases_of_category(case.dtype) or knowledge.cases))
    free = [p for p in knowledge.attributes if p.name not in knowledge.size_attributes | knowledge.drawing_attributes]
    shared_names = [p.name for p in free if _is_free_number(p, knowledge) and donor.arguments[p.name] is not None]
    arguments = dict(case.arguments)
    if draw(st.booleans()):
        arguments = case.map_tensors(domain_replacer(donor))
        arguments |= {name: donor.arguments[name] for name in shared_names if arguments[name] is not None}
    is_usual = knowledge.is_in_usual_range(replace(case, arguments=arguments))
    for p in free:
        is_number = issubclass(p.annotation, REAL_KINDS)
        if arguments[p.name] is not None and draw(SOMETIMES) and (is_usual or not is_number):
            arguments[p.name] = _draw_attribute(draw, knowledge, p, arguments[p.name], largest_rank(case), case.dtype)
    return replace(case, arguments=arguments)


def _is_free_number(parameter: Parameter, knowledge: ValidCallKnowledge) -> bool:
    """Return whether an attribute is a number that the same attribute of another case may replace.

    Axes, choices and truth values are drawn separately. Integers of functions with index tensors stay, because the
    indices may depend on them, as the targets of a loss depend on the number of classes.
    """
    tensors = [p.name for p in knowledge.prototype.arguments if p.is_tensor and knowledge.prototype.dtypes_of(p.name)]
    has_positions = any(all(category(dtype) == 1 for dtype in knowledge.prototype.dtypes_of(name)) for name in tensors)
    return not (
        (has_positions and parameter.annotation in (kinds.i64, kinds.const_i64))
        or (parameter.fact(facts.NamesAxis) and parameter.annotation not in (kinds.Size, kinds.const_Size))
        or parameter.fact(facts.OneOf)
        or issubclass(parameter.annotation, kinds.boolean)
    )


def _draw_attribute(
    draw: DrawFn, knowledge: ValidCallKnowledge, parameter: Parameter, value: Any, ranks: int, dtype: Dtype
) -> Any:
    """Draw the value of an attribute.

    Axes, texts and truth values are drawn from all valid values. A number lies between the numbers of the cases. Other
    values come from the cases, except that integers stay as they are.

    Args:
        draw: the draw function of Hypothesis.
        knowledge: the knowledge about the function.
        parameter: the attribute.
        value: the present value.
        ranks: the largest number of axes of the call's tensors.
        dtype: the element type of the call.

    Returns:
        The new value.
    """
    if parameter.fact(facts.NamesAxis):
        return draw_axes(draw, value, ranks)
    if texts := parameter.fact(facts.OneOf):
        return draw(st.sampled_from(texts.choices))
    if issubclass(parameter.annotation, kinds.boolean):
        return draw(st.booleans())
    known_values = knowledge.observed_values(parameter.name, dtype)
    same_type = [known_value for known_value in known_values if type(known_value) is type(value)]
    if type(value) is float:
        return draw(st.floats(min(same_type), max(same_type))) if all(map(math.isfinite, same_type)) else value
    if type(value) is int and issubclass(parameter.annotation, kinds.Scalar):
        return draw(st.integers(min(same_type), max(same_type)))
    return value if parameter.annotation in INTEGER_KINDS else draw(st.sampled_from(same_type))

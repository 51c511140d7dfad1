"""Traits of a case: unusual properties of its arguments that may explain why it fails and simpler cases do not.

`grouping.py` compares the traits of failed cases with the traits of passed cases. The properties are read from the
record of the case: from its class and element type, from the texts of the arguments of a call, and from the *regions*
of inputs, such as `input is NaN`, to which the wrong elements are limited.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache

from diopi_proto.dtypes import complexes, discrete_rules, half, integer
from diopi_proto.facts import NamesAxis
from diopi_proto.interface import prototypes
from diopi_proto.parameters import Role, Scalar
from diopi_proto.prototype import Prototype
from diopi_test.cases.case import CaseClass
from diopi_test.execution.deviation import Deviation
from diopi_test.execution.difference import Difference
from diopi_test.results.causes.former_logs import deviation_of
from diopi_test.results.records import CaseRecord

_TENSOR = re.compile(r"(?P<dtype>\w+) \((?P<shape>[\d, ]*)\), strides \((?P<strides>[-\d, ]*)\)")
"""Matches the text of a tensor argument, for instance `float32 (2, 3), strides (3, 1)`."""

MAX_ROWS = 65_535
"""The largest number of rows for which the launch grid of every GPU kernel is large enough."""

TRAITS: Mapping[str, str] = {
    "nan": "an input is NaN",
    "infinite": "an input is infinite",
    "negative_zero": "an input is −0",
    "subnormal": "an input is subnormal",
    "extreme_integer": "an input is the largest or smallest integer",
    "wide_integer": "an input is an integer beyond 32 bits",
    "far_from_zero": "the magnitude of an input is large",
    "near_zero": "an input is near 0",
    "below": "an input is below a bound",
    "above": "an input is above a bound",
    "negative": "an input is negative",
    "zero": "an input is 0",
    "bool_scalar": "a scalar is bool",
    "bool_tensor": "an operand is bool",
    "many_rows": f"a tensor has more than {MAX_ROWS:,} rows",
    "mixed_types": "the operands have different element types",
    "not_row_major": "an input is not row-major",
    "result_not_row_major": "the result is not row-major",
    "broadcast": "an operand is broadcast",
    "zero_dimensional": "an operand has no axes",
    "empty": "a tensor has no elements",
    "optional": "an optional argument is omitted",
    "layout": "the layout is not contiguous",
    "special": "the data have special values",
    "callers": "a framework makes the call in its way",
    "aliased": "parameters share memory",
    "concurrent": "calls are in flight at the same time",
    "float16": "the element type is float16",
    "bfloat16": "the element type is bfloat16",
    "half": "the element type has 16 bits",
    "complex": "the element type is complex",
    "float64": "the element type is float64",
    "bool": "the element type is bool",
    "integers": "the element type is an integer",
    "from_half": "the element type is not float32",
}
"""Conditions by trait, the most specific trait first."""

_OF_CONDITION = {
    "NaN": "nan",
    "infinite": "infinite",
    "-0": "negative_zero",
    "subnormal": "subnormal",
    "negative": "negative",
    "0": "zero",
    "below": "below",
    "above": "above",
    "far_from_zero": "far_from_zero",
    "near_zero": "near_zero",
}
"""Traits by the condition of a region."""

_OF_CLASS = {
    CaseClass.empty: "empty",
    CaseClass.optional: "optional",
    CaseClass.layout: "layout",
    CaseClass.special: "special",
    CaseClass.callers: "callers",
    CaseClass.aliased: "aliased",
    CaseClass.concurrent: "concurrent",
}
"""Traits by case class, which passed cases have, too."""

OF_RECORD = frozenset(
    {*_OF_CLASS.values(), "float16", "bfloat16", "half", "complex", "float64", "bool", "integers", "from_half"}
)
"""Traits that follow from the class and the element type of a case, so that they are also known if it passed."""

FLOATING_TYPE = "floating_type"
"""A name for any of `FLOATING_TYPES` in the conditions of a diagnosis."""

FLOATING_TYPES = frozenset({"float16", "bfloat16", "half", "complex", "float64"})
"""The traits of floating-point element types."""


def traits_of_case(record: CaseRecord, deviation: Deviation | None) -> frozenset[str]:
    """Return the traits of a failed case.

    Args:
        record: the record of the case.
        deviation: how its results differ; None if this is not known.

    Returns:
        Names of traits in `TRAITS`.
    """
    traits = {*record_traits(record)}
    for check in record.checks:
        for difference in check.differences if not check.passed else ():
            traits.update(_argument_traits(record.function, difference.arguments))
            traits.update(_worst_element_traits(difference))
            traits.update(_region_traits(deviation_of(difference)))
    if deviation is not None:
        traits.update(_region_traits(deviation))
    return frozenset(traits)


def record_traits(record: CaseRecord) -> Iterator[str]:
    """Yield the traits that follow from the class and the element type of a case."""
    if (name := _OF_CLASS.get(record.class_)) is not None:
        yield name
    dtype = record.dtype
    if dtype in ("float16", "bfloat16", "float64", "bool"):
        yield dtype
    if dtype in {half_type.name for half_type in half}:
        yield "half"
    if dtype in {complex_type.name for complex_type in complexes}:
        yield "complex"
    if dtype in {integer_type.name for integer_type in integer}:
        yield "integers"
    if dtype and dtype != "float32":
        yield "from_half"


def _region_traits(deviation: Deviation) -> Iterator[str]:
    """Yield the traits that follow from the regions of inputs to which the wrong elements are limited."""
    for region in deviation.regions:
        if region.parameter == "expected":
            continue
        is_extreme = region.condition.startswith(("the largest", "the smallest"))
        name = "extreme_integer" if is_extreme else _OF_CONDITION.get(region.condition)
        if name is not None:
            yield name


_INTEGER = re.compile(r"-?\d+")
"""Matches the text of an integer."""


def _worst_element_traits(difference: Difference) -> Iterator[str]:
    """Yield the traits that follow from the inputs and scalars from which the worst element of a tensor is computed."""
    numbers = (
        text for text in (*difference.inputs.values(), *difference.arguments.values()) if _INTEGER.fullmatch(text)
    )
    if any(not -(2**31) <= int(number) < 2**31 for number in numbers):
        yield "wide_integer"


def _argument_traits(function: str, arguments: Mapping[str, str]) -> Iterator[str]:
    """Yield the traits that follow from the texts of the arguments of a call."""
    prototype = _prototype(function)
    results = {parameter.name for parameter in prototype.results} if prototype else {"out"}
    updated = {parameter.name for parameter in prototype.results if parameter.role is Role.inout} if prototype else ()
    tensors = {name: match for name, text in arguments.items() if (match := _TENSOR.match(text))}
    shapes = {name: _numbers(match["shape"]) for name, match in tensors.items()}
    inputs = {name: match for name, match in tensors.items() if name.partition(".")[0] not in results}
    promoted_operands = {parameter.name for parameter in prototype.operands} if prototype else set()
    if prototype and any(
        issubclass(parameter.annotation, Scalar) and arguments.get(parameter.name) in ("True", "False")
        for parameter in prototype.arguments
    ):
        yield "bool_scalar"
    dtypes = {match["dtype"] for name, match in inputs.items() if name in promoted_operands}
    if "bool" in dtypes and len(dtypes) > 1:
        yield "bool_tensor"
    if len(dtypes) > 1:
        yield "mixed_types"
    if any(shape and shape[0] > MAX_ROWS for shape in shapes.values()):
        yield "many_rows"
    for name, match in tensors.items():
        if not _is_row_major(shapes[name], _numbers(match["strides"])):
            is_result = name in results and name not in updated
            yield "result_not_row_major" if is_result else "not_row_major"
    input_shapes = [shapes[name] for name in inputs]
    if () in input_shapes and any(input_shapes):
        yield "zero_dimensional"
    if prototype and prototype.elementwise and len({shape for shape in input_shapes if shape}) > 1:
        yield "broadcast"


def largest_size(arguments: Mapping[str, str]) -> int:
    """Return the number of elements of the largest tensor of a call; 0 without tensors.

    Args:
        arguments: the texts of the arguments by name.
    """
    tensors = (_TENSOR.match(text) for text in arguments.values())
    return max((math.prod(_numbers(match["shape"])) for match in tensors if match), default=0)


@cache
def _prototype(function: str) -> Prototype | None:
    """Return the prototype of a function; None if the standard does not have the function."""
    return prototypes().get(function)


def base_function(function: str) -> str:
    """Return the function of which `function` is the in-place or scalar form; otherwise `function` itself."""
    prototype = _prototype(function)
    return prototype.base if prototype else function


@cache
def family_of(function: str) -> str:
    """Return the family of a function; empty if the standard does not have the function."""
    prototype = _prototype(function)
    return prototype.family if prototype else ""


@cache
def is_rounded(function: str) -> bool:
    """Return whether a function rounds a result. Truth values and positions are exact, whatever their element type."""
    prototype = _prototype(function)
    if prototype is None or prototype.guarantee != "rounded":
        return False
    rules = prototype.result.values() if isinstance(prototype.result, Mapping) else (prototype.result,)
    return any(rule not in discrete_rules for rule in rules)


@cache
def is_pointwise(function: str) -> bool:
    """Return whether a function computes each element of its result from the elements at the same position."""
    prototype = _prototype(function)
    return bool(prototype and prototype.elementwise and not any(p.fact(NamesAxis) for p in prototype.arguments))


def _numbers(text: str) -> tuple[int, ...]:
    """Return the integers in a text in which they are separated by commas."""
    return tuple(int(number) for number in text.split(",") if number.strip())


def _is_row_major(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether elements lie in row-major order without gaps, except along axes of length 1."""
    step = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length not in (0, 1) and stride != step:
            return False
        step *= max(length, 1)
    return True

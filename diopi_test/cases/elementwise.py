"""What the cases of all element-wise functions share: shapes, layouts, special values, element types that meet.

A template's `sizes` are its operands: the shapes and layouts of the tensor arguments in order; the last one repeats.
Patterns are templates that have only operands; `with_domains` and the functions after it combine patterns with domains
and numbers. If a form of a function takes a tensor for an argument, numbers for that argument are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, special_values
from diopi_test.cases.layouts import Layout, contiguous, expanded, strided, transposed
from diopi_test.cases.model import Case, CaseClass, ResultOverride, TensorSpec
from diopi_test.cases.template import CaseTemplate, DtypeSelection, TensorTemplate, expand, leading_dtype, tensor

Arguments = Mapping[str, Any]
Labelled = Mapping[str, Arguments]
"""Sets of arguments, each with the label of a case."""

Domains = Mapping[str, Domain]


def pattern(
    label: str, *shapes: tuple[int, ...], layouts: Sequence[Layout] = (contiguous,), **attributes: Any
) -> CaseTemplate:
    """A template of operands with these shapes and layouts, the last ones of which repeat."""
    count = max(len(shapes), len(layouts))
    operands = (tensor(*_item_or_last(shapes, i), layout=_item_or_last(layouts, i)) for i in range(count))
    return CaseTemplate(label, tuple(operands), **attributes)


def _item_or_last(sequence: Sequence[Any], position: int) -> Any:
    return sequence[min(position, len(sequence) - 1)]


MATRIX = pattern("matrix", (7, 5), smoke=True)

UNIFORM = (
    MATRIX,
    pattern("scalar", ()),
    pattern("empty", (0, 3)),
    pattern("long", (1031,)),
    pattern("transposed", (4, 6), layouts=[transposed], result_layout=transposed),
    pattern("strided", (3, 2, 4), layouts=[strided], result_layout=strided, smoke=True),
    pattern("rank5", (2, 1, 3, 2, 2)),
    pattern("to-transposed", (5, 3), result_layout=transposed),
)
"""All tensors of one shape."""

ROW = pattern("row", (4, 5), (5,))
BASIC_ROW = ROW.replace(smoke=True)

BROADCAST = (
    BASIC_ROW,
    pattern("column", (4, 5), (4, 1)),
    pattern("outer", (6, 1), (1, 7)),
    pattern("by-scalar", (3, 4), ()),
    pattern("scalar-by", (), (3, 4)),
    pattern("rank-up", (3,), (2, 4, 3)),
    pattern("interleaved", (2, 1, 3, 1, 2), (4, 1, 3, 1)),
    pattern("long-rows", (3, 517), (3, 1)),
    pattern("empty-row", (0, 3), (3,)),
    pattern("expanded", (4, 3), layouts=[contiguous, expanded]),
    pattern("mixed-layouts", (4, 3), layouts=[transposed, strided]),
)
"""Tensors whose shapes or layouts differ."""


def elementwise_cases(prototype: Prototype, templates: Iterable[CaseTemplate]) -> Iterator[Case]:
    """The cases of all templates that suit the prototype."""
    names = tensor_arguments(prototype)

    def operands(template: CaseTemplate, dtype: Dtype) -> Mapping[str, TensorTemplate]:
        return {name: _item_or_last(template.sizes, i) for i, name in enumerate(names)}

    suitable = (_with_tensors(template, names) for template in templates if is_applicable(prototype, template))
    return expand(prototype, _distinct(suitable), operands)


def tensor_arguments(prototype: Prototype) -> list[str]:
    """The names of the prototype's tensor arguments, in order."""
    return [p.name for p in prototype.arguments if p.is_tensor]


def is_applicable(prototype: Prototype, template: CaseTemplate) -> bool:
    """Whether the operands suit the prototype: an in-place result must have the shape of the broadcast inputs."""
    if not prototype.is_inplace:
        return True
    operands = [_item_or_last(template.sizes, i) for i in range(len(tensor_arguments(prototype)))]
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    return shape == operands[0].shape and operands[0].layout is not expanded


def _with_tensors(template: CaseTemplate, names: Collection[str]) -> CaseTemplate:
    """The template without numbers for these arguments."""
    kept = (TensorTemplate, TensorSpec, type(None))
    given = {name: value for name, value in template.arguments.items() if name not in names or isinstance(value, kept)}
    return replace(template, arguments=given)


def _distinct(templates: Iterable[CaseTemplate]) -> Iterator[CaseTemplate]:
    """The first of those that differ in their labels alone, once they have no numbers for tensors any more."""
    seen: list[tuple[CaseTemplate, str]] = []
    for template in templates:
        call = (replace(template, label="", arguments={}), repr(template.arguments))  # 1, 1.0 and True are three
        if call not in seen:
            seen.append(call)
            yield template


# Templates


def with_domains(
    shapes: CaseTemplate,
    domains: Domains,
    label: str = "",
    arguments: Arguments | None = None,
    dtypes: DtypeSelection | Sequence[Dtype] | None = None,
    **attributes: Any,
) -> CaseTemplate:
    """A template with the operands of a pattern, drawn from these domains; by default it has the pattern's types."""
    full = "-".join(filter(None, [label, shapes.label]))
    return shapes.replace(
        full, arguments, dtypes=shapes.dtypes if dtypes is None else dtypes, domains=domains, **attributes
    )


def argument_variants(
    domains: Domains,
    values: Labelled,
    dtypes: DtypeSelection | Sequence[Dtype] | None = None,
    shapes: CaseTemplate = ROW,
    **attributes: Any,
) -> list[CaseTemplate]:
    """A template for each set of arguments, by label."""
    return [
        with_domains(shapes, domains, label, arguments, dtypes, **attributes) for label, arguments in values.items()
    ]


def vary_argument(label: str, argument: str, values: Mapping[str, Any] | Sequence[Any], **fixed: Any) -> Labelled:
    """Sets of arguments for `argument_variants` that differ in one number, labelled by its name or itself."""
    named = values if isinstance(values, Mapping) else {str(value): value for value in values}
    return {"-".join(filter(None, [label, name])): {**fixed, argument: value} for name, value in named.items()}


def distribute_patterns(
    prototype: Prototype,
    domains: Domains,
    arguments: Arguments | None = None,
    dtypes: Sequence[Dtype] | None = None,
) -> Iterator[CaseTemplate]:
    """Every pattern in one element type; in each of the others the basic pattern and one more in turn."""
    chosen = [dtype for dtype in dtypes or prototype.dtypes if dtype in prototype.dtypes]
    several = len(tensor_arguments(prototype)) > 1
    patterns = [shapes for shapes in (*UNIFORM, *(BROADCAST if several else ())) if is_applicable(prototype, shapes)]
    basic = BASIC_ROW if several else MATRIX
    others = [shapes for shapes in patterns if shapes is not basic]
    for turn, dtype in enumerate(chosen):
        for shapes in patterns if dtype is leading_dtype(chosen) else (basic, others[turn % len(others)]):
            yield with_domains(shapes, domains, "", arguments, [dtype])


def special_value_pairs(
    prototype: Prototype,
    arguments: Arguments | None = None,
    dtypes: Sequence[Dtype] | None = None,
    smoke: bool | Collection[Dtype] = True,
) -> Iterator[CaseTemplate]:
    """One case an element type that meets every special value of each tensor with every one of the others."""
    names = tensor_arguments(prototype)
    for dtype in prototype.dtypes if dtypes is None else dtypes:
        count = len(special_values(dtype))
        shapes = [tuple(count if axis == i else 1 for axis in range(len(names))) for i in range(len(names))]
        if prototype.is_inplace:
            shapes[0] = (count,) * len(names)
        yield with_domains(
            pattern("special", *shapes, smoke=smoke),
            dict.fromkeys(names, _special_values_along_axis),
            "",
            arguments,
            [dtype],
        )


def _special_values_along_axis(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """The special values along one axis, or along the first of a whole cube, which an in-place tensor spans."""
    values = special_values(dtype)
    return values.repeat(count // len(values))


PAIRS = (
    (Dtype.bool, Dtype.int32),
    (Dtype.uint8, Dtype.int8),
    (Dtype.int32, Dtype.int64),
    (Dtype.float16, Dtype.bfloat16),
    (Dtype.float16, Dtype.float32),
    (Dtype.int64, Dtype.float32),
    (Dtype.float32, Dtype.float64),
    (Dtype.complex64, Dtype.float32),
    (Dtype.float64, Dtype.complex64),
)
"""Element types that meet in one call: their common type is neither, the second's, or the first's."""

INPLACE_PAIRS = (
    (Dtype.int32, Dtype.int64),
    (Dtype.int64, Dtype.bool),
    (Dtype.float16, Dtype.float32),
    (Dtype.float32, Dtype.int64),
    (Dtype.complex64, Dtype.float64),
)
"""Element types that meet in one call and whose common type is of the first's category."""


def mixed_types(
    prototype: Prototype,
    domains: Domains,
    arguments: Arguments | None = None,
    pairs: Sequence[tuple[Dtype, Dtype]] | None = None,
    of_bool: bool = True,
    **attributes: Any,
) -> Iterator[CaseTemplate]:
    """The first tensor, which may be one `of_bool`, of one type and the others of another; exact by default."""
    first, *others = tensor_arguments(prototype)
    for one, other in pairs or (INPLACE_PAIRS if prototype.is_inplace else PAIRS):
        if not of_bool and one is Dtype.bool:
            continue
        if others and one in prototype.dtypes_of(first) and other in prototype.dtypes_of(others[0]):
            yield with_domains(
                operands_of_two_types("with", one, other, 16), domains, "", arguments, **{"exact": True, **attributes}
            )


def with_wider_scalar_tensor(
    prototype: Prototype, domains: Domains, arguments: Arguments | None = None, **attributes: Any
) -> Iterator[CaseTemplate]:
    """The second tensor without axes and of a wider type, which counts as that of any other operand."""
    one, other = Dtype.float16, Dtype.float32
    if len(tensor_arguments(prototype)) > 1 and not prototype.is_inplace:
        yield with_domains(
            operands_of_two_types("with-one", one, other), domains, "", arguments, **{"exact": True, **attributes}
        )


def operands_of_two_types(relation: str, one: Dtype, other: Dtype, *shape: int) -> CaseTemplate:
    """Operands of two element types, the first of which is said to be under test, the other ones of this shape."""
    operands = tensor(3, *(shape or (16,))), tensor(*shape, dtype=other)
    return CaseTemplate(f"{relation}-{other.name}", operands, dtypes=[one])


def with_result_dtype(dtype: Dtype, template: CaseTemplate) -> CaseTemplate:
    """The same with a result tensor of type `dtype`, where the result has a tensor of its own."""
    results = {"out": ResultOverride(dtype, template.result_layout)}
    return template.replace(f"{template.label}-into-{dtype.name}", results=results, inplace=False)


def mark_as_callers(cases: Iterable[Case]) -> Iterator[Case]:
    """The same cases as habits of callers."""
    return (replace(case, case_class=CaseClass.callers) for case in cases)

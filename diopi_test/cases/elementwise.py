"""Shared parts of the cases of element-wise functions: shapes, layouts, special values, and type promotion.

The `sizes` of a template are its operands: tensor templates with the shapes and layouts of the tensor arguments, in
order. If there are fewer operands than tensor arguments, the last operand stands for the remaining arguments.

A pattern is a template that has only operands. `CaseTemplate.with_domains` combines a pattern with domains and numbers.
If a form of a function takes a tensor for an argument, a number for this argument is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import leading_dtype
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass, ResultOverride, TensorSpec
from diopi_test.cases.domains import Domain, special_values
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import Layout, contiguous, expanded, strided, strides, transposed
from diopi_test.cases.selection.open_calls import reason_open
from diopi_test.cases.template import Arguments, CaseTemplate, TensorTemplate, expand, tensor

Operands = tuple[TensorTemplate, ...]
"""Templates of the tensor arguments in order; the last one stands for all remaining arguments."""


def pattern_template(
    label: str, *shapes: tuple[int, ...], layouts: Sequence[Layout] = (contiguous,), **attributes: Any
) -> CaseTemplate[Operands]:
    """Return a pattern.

    Args:
        label: The label.
        *shapes: The shapes of the operands; the last one also is the shape of the remaining operands.
        layouts: The layouts of the operands; the last one also is the layout of the remaining operands.
        **attributes: Further fields of the template.

    Returns:
        The pattern.
    """
    count = max(len(shapes), len(layouts))
    operands = (tensor(*_item_or_last(shapes, i), layout=_item_or_last(layouts, i)) for i in range(count))
    return CaseTemplate(label, tuple(operands), **attributes)


def _item_or_last(sequence: Sequence[Any], position: int) -> Any:
    """Return the item at a position, or the last item if the sequence is shorter."""
    return sequence[min(position, len(sequence) - 1)]


MATRIX = pattern_template("matrix", (7, 5), smoke=True)
"""The simplest pattern: all tensors have the shape 7 × 5."""

_GEOMETRY = (
    pattern_template("rank8", (2, 1, 2, 2, 1, 3, 2, 2)),
    pattern_template("misaligned", (4, 8), layouts=[strides(8, 1, offset=1)], result_layout=strides(8, 1, offset=3)),
)
"""Patterns with many axes, and with contiguous tensors at addresses that are no multiples of 16 bytes."""

UNIFORM = (
    MATRIX,
    pattern_template("scalar", ()),
    pattern_template("empty", (0, 3)),
    pattern_template("long", (1031,)),
    pattern_template("transposed", (4, 6), layouts=[transposed], result_layout=transposed),
    pattern_template("strided", (3, 2, 4), layouts=[strided], result_layout=strided, smoke=True),
    pattern_template("rank5", (2, 1, 3, 2, 2)),
    pattern_template("to-transposed", (5, 3), result_layout=transposed),
    *_GEOMETRY,
)
"""Patterns in which all tensors have one shape."""

ROW = pattern_template("row", (4, 5), (5,))
"""A matrix and a vector that is applied to each row."""

BASIC_ROW = ROW.replace(smoke=True)
"""The pattern `ROW`, for smoke cases."""

BROADCAST = (
    BASIC_ROW,
    pattern_template("column", (4, 5), (4, 1)),
    pattern_template("outer", (6, 1), (1, 7)),
    pattern_template("by-scalar", (3, 4), ()),
    pattern_template("scalar-by", (), (3, 4)),
    pattern_template("rank-up", (3,), (2, 4, 3)),
    pattern_template("interleaved", (2, 1, 3, 1, 2), (4, 1, 3, 1)),
    pattern_template("long-rows", (3, 517), (3, 1)),
    pattern_template("empty-row", (0, 3), (3,)),
    pattern_template("expanded", (4, 3), layouts=[contiguous, expanded]),
    pattern_template("mixed-layouts", (4, 3), layouts=[transposed, strided]),
)
"""Patterns of tensors with different shapes or layouts."""


FAR_APART = strides(17_000_023, 30_011, 3_001, 503, 97, 13, 1)
"""A layout with gaps between all elements. The last positions exceed 2^24, which float32 cannot count exactly."""

RANK_7 = (2, 5, 7, 3, 5, 7, 11)
"""Sizes for large tensors with many axes."""

LARGE_UNIFORM = (
    pattern_template("vector", (70_001,)),
    pattern_template("expanded-rows", (311, 227), layouts=[strides(0, 1)]),
)
"""Large patterns in which all tensors have one shape."""

LARGE_BROADCAST = (
    pattern_template("vector", (70_001,)),
    pattern_template("expanded-columns", (263, 257), layouts=[contiguous, strides(1, 0)]),
)
"""Large patterns of tensors with different layouts."""

FAR_APART_UNIFORM = pattern_template("rank7-far-apart", RANK_7, layouts=[FAR_APART])
"""A large pattern with gaps between all elements."""

FAR_APART_BROADCAST = pattern_template("rank7-far-apart", RANK_7, (7, 3, 1, 7, 1), layouts=[FAR_APART, contiguous])
"""A large pattern with gaps between all elements of the first operand, and a second operand of another shape."""

HUGE = pattern_template("huge", (70_001, 3), layouts=[strides(7_703, 1), contiguous])
"""A pattern of a first operand whose rows are so far apart that they span more than 2^31 bytes."""


def _narrow_type(dtypes: Sequence[Dtype]) -> Dtype:
    """Return float16, or the function's last type if it does not accept float16."""
    return Dtype.float16 if Dtype.float16 in dtypes else dtypes[-1]


def _large_templates(
    prototype: Prototype, templates: Sequence[CaseTemplate[Operands]]
) -> Iterator[CaseTemplate[Operands]]:
    """Yield a large template per large pattern.

    It has the domains and numbers of the first ordinary one of `templates` in the pattern's element type. Patterns for
    which there is none are skipped.
    """
    for shapes in Elementwise(prototype).large_patterns():
        (dtype,) = shapes.dtypes_for(prototype)
        usual = (t for t in templates if dtype in t.dtypes_for(prototype) and _is_ordinary(t))
        if (small := next(usual, None)) is not None:
            yield shapes.with_domains(small.domains, "", small.arguments)


def _is_ordinary(template: CaseTemplate[Operands]) -> bool:
    """Return whether the values of a template are ordinary, and its result has the default type."""
    words = ("special", "ends", "again", "empty", "ordered", "with", "number-as")
    is_typed = any(isinstance(result, ResultOverride) and result.dtype for result in template.results.values())
    is_basic = template.case_class is CaseClass.basic and not (template.exact or template.non_discriminating)
    return is_basic and not is_typed and not any(word in template.label for word in words)


def is_applicable(prototype: Prototype, template: CaseTemplate[Operands]) -> bool:
    """Return whether a function or form accepts the operands of a template.

    All functions do, except in-place forms: their first operand must have the broadcast shape, and must not overlap
    with itself in memory.
    """
    if not prototype.is_inplace:
        return True
    operands = [_item_or_last(template.sizes, i) for i in range(len(Elementwise(prototype).tensor_names()))]
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    return bool(shape == operands[0].shape and operands[0].layout(shape).is_non_overlapping(shape))


def _drop_numbers(template: CaseTemplate[Operands], names: Collection[str]) -> CaseTemplate[Operands]:
    """Return the template without numbers for these arguments."""
    accepted = (TensorTemplate, TensorSpec, type(None))
    remaining = {
        name: value for name, value in template.arguments.items() if name not in names or isinstance(value, accepted)
    }
    return replace(template, arguments=remaining)


def _drop_duplicates(templates: Iterable[CaseTemplate[Operands]]) -> Iterator[CaseTemplate[Operands]]:
    """Yield the templates without those that equal an earlier one except for the label."""
    seen: list[tuple[CaseTemplate[Operands], str]] = []
    for template in templates:
        call = (
            replace(template, label="", arguments={}),
            repr(template.arguments),
        )  # repr distinguishes 1, 1.0 and True
        if call not in seen:
            seen.append(call)
            yield template


def vary_argument(
    label: str, argument: str, values: Mapping[str, Any] | Sequence[Any], **fixed: Any
) -> Mapping[str, Arguments]:
    """Return sets of arguments for `CaseTemplate.variants`, which differ in one argument.

    Args:
        label: The start of the labels; may be empty.
        argument: The name of the argument.
        values: Its values: by the end of the labels, or a list of values that are also the ends of the labels.
        **fixed: Arguments that all sets have.

    Returns:
        The sets of arguments by label.
    """
    named = values if isinstance(values, Mapping) else {str(value): value for value in values}
    return {"-".join(filter(None, [label, name])): {**fixed, argument: value} for name, value in named.items()}


def _special_values_along_axis(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return the special values in order, each repeated equally often, so that they vary along the first long axis."""
    values = special_values(dtype)
    return values.repeat(count // len(values))


def _two_type_template(relation: str, first_dtype: Dtype, second_dtype: Dtype, *shape: int) -> CaseTemplate[Operands]:
    """Return a template with operands of two element types.

    Args:
        relation: The start of the label; a dash and the second type follow.
        first_dtype: The type of the first operand, which is the type under test.
        second_dtype: The type of the other operands.
        shape: The shape of the other operands. The first operand has 3 rows of this shape, or of 16 elements if the
            other operands have no axes.

    Returns:
        The template.
    """
    operands = tensor(3, *(shape or (16,))), tensor(*shape, dtype=second_dtype)
    return CaseTemplate(f"{relation}-{second_dtype.name}", operands, dtypes=[first_dtype])


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
"""Pairs of element types of the first and the other tensors; the common type is one of both, or a third type."""

INPLACE_PAIRS = (
    (Dtype.int32, Dtype.int64),
    (Dtype.int64, Dtype.bool),
    (Dtype.float16, Dtype.float32),
    (Dtype.float32, Dtype.int64),
    (Dtype.complex64, Dtype.float64),
)
"""Pairs of element types for in-place calls: the common type is of the category of the first type."""


@dataclass(frozen=True)
class Elementwise:
    """Cases and templates that many element-wise functions share, for one function or form.

    Attributes:
        prototype: The prototype of the function or form.
    """

    prototype: Prototype

    PROMOTED_PAIRS: ClassVar[Sequence[tuple[Dtype, Dtype]]] = (
        (Dtype.int32, Dtype.float16),
        (Dtype.int16, Dtype.bfloat16),
        (Dtype.int32, Dtype.float32),
        (Dtype.int64, Dtype.float64),
    )
    """Pairs of an integer type and a floating-point type; the latter is their common type."""

    def cases(self, templates: Iterable[CaseTemplate[Operands]], *, large: bool = True) -> Iterator[Case]:
        """Return the cases of those templates that are applicable to the prototype, and large cases derived from them.

        Args:
            templates: The templates of the small cases.
            large: Whether to derive large cases.

        Returns:
            The cases; open calls are not among the large cases.
        """
        names = self.tensor_names()

        def operands(template: CaseTemplate[Operands], dtype: Dtype) -> Mapping[str, TensorTemplate]:
            return {name: _item_or_last(template.sizes, i) for i, name in enumerate(names)}

        suitable = [_drop_numbers(template, names) for template in templates if is_applicable(self.prototype, template)]
        grown = _large_templates(self.prototype, suitable) if large else ()
        cases = expand(self.prototype, [*_drop_duplicates(suitable), *grown], operands)
        return (case for case in cases if not case.large or not reason_open(self.prototype, case))

    def tensor_names(self) -> list[str]:
        """Return the names of the tensor arguments in order."""
        return [p.name for p in self.prototype.arguments if p.is_tensor]

    def patterns(self) -> list[CaseTemplate[Operands]]:
        """Return the patterns `UNIFORM`, and for functions of several tensors also `BROADCAST`, if applicable."""
        patterns = UNIFORM if len(self.tensor_names()) == 1 else (*UNIFORM, *BROADCAST)
        return [shapes for shapes in patterns if is_applicable(self.prototype, shapes)]

    def large_patterns(self) -> Iterator[CaseTemplate[Operands]]:
        """Yield the applicable patterns of large operands, each in one element type."""
        is_uniform = len(self.tensor_names()) == 1 or self.prototype.is_gradient
        leading = [
            *(LARGE_UNIFORM if is_uniform else LARGE_BROADCAST),
            *([HUGE] if CaseFacts.declared_for(self.prototype).huge_form == self.prototype.form else []),
        ]
        for dtype, shapes in (
            *((leading_dtype(self.prototype.dtypes), shapes) for shapes in leading),
            (_narrow_type(self.prototype.dtypes), FAR_APART_UNIFORM if is_uniform else FAR_APART_BROADCAST),
        ):
            if is_applicable(self.prototype, shapes):
                yield shapes.replace(dtypes=[dtype], large=True)

    def distribute(
        self,
        domains: Mapping[str, Domain],
        arguments: Arguments | None = None,
        dtypes: Sequence[Dtype] | None = None,
    ) -> Iterator[CaseTemplate[Operands]]:
        """Yield templates that distribute the patterns over the element types.

        Args:
            domains: The domains by argument name.
            arguments: Other arguments by name.
            dtypes: The element types; None for all that the function accepts.

        Yields:
            For the leading type, a template per pattern. For each other type, two templates: with the basic pattern,
            and with one of the other patterns, assigned in rotation.
        """
        selected = [dtype for dtype in dtypes or self.prototype.dtypes if dtype in self.prototype.dtypes]
        patterns = self.patterns()
        basic = BASIC_ROW if len(self.tensor_names()) > 1 else MATRIX
        remaining = [shapes for shapes in patterns if shapes not in (basic, *_GEOMETRY)]
        for turn, dtype in enumerate(selected):
            for shapes in patterns if dtype is leading_dtype(selected) else (basic, remaining[turn % len(remaining)]):
                yield shapes.with_domains(domains, "", arguments, [dtype])

    def special_value_pairs(
        self,
        arguments: Arguments | None = None,
        dtypes: Sequence[Dtype] | None = None,
        smoke: bool | Collection[Dtype] = True,
    ) -> Iterator[CaseTemplate[Operands]]:
        """Yield one template per element type, in which all combinations of special values of the tensors occur.

        Args:
            arguments: Other arguments by name.
            dtypes: The element types; None for all that the function accepts.
            smoke: Whether the cases are smoke cases, or the element types of the smoke cases.

        Yields:
            The templates. Each tensor has its own axis, along which its special values vary.
        """
        names = self.tensor_names()
        for dtype in self.prototype.dtypes if dtypes is None else dtypes:
            count = len(special_values(dtype))
            shapes = [tuple(count if axis == i else 1 for axis in range(len(names))) for i in range(len(names))]
            if self.prototype.is_inplace:
                shapes[0] = (count,) * len(names)
            yield pattern_template("special", *shapes, smoke=smoke).with_domains(
                dict.fromkeys(names, _special_values_along_axis), "", arguments, [dtype]
            )

    def mixed_types(
        self,
        domains: Mapping[str, Domain],
        arguments: Arguments | None = None,
        pairs: Sequence[tuple[Dtype, Dtype]] | None = None,
        include_bool: bool = True,
        **attributes: Any,
    ) -> Iterator[CaseTemplate[Operands]]:
        """Yield templates in which the first tensor has one element type and the others another type.

        Args:
            domains: The domains of the tensors, by argument name.
            arguments: Other arguments by name.
            pairs: Pairs of element types; None for the defaults.
            include_bool: Whether the first tensor may be bool.
            attributes: Other attributes of the templates, which are exact by default.

        Yields:
            One template per pair that the function accepts.
        """
        first, *other_names = self.tensor_names()
        for first_dtype, second_dtype in pairs or (INPLACE_PAIRS if self.prototype.is_inplace else PAIRS):
            if not include_bool and first_dtype is Dtype.bool:
                continue
            if (
                other_names
                and first_dtype in self.prototype.dtypes_of(first)
                and second_dtype in self.prototype.dtypes_of(other_names[0])
            ):
                yield _two_type_template("with", first_dtype, second_dtype, 16).with_domains(
                    domains, "", arguments, **{"exact": True, **attributes}
                )

    def wider_scalar_tensor(
        self, domains: Mapping[str, Domain], arguments: Arguments | None = None, **attributes: Any
    ) -> Iterator[CaseTemplate[Operands]]:
        """Yield a template in float16 whose second tensor is a float32 tensor without axes.

        The standard lets such a tensor determine the common type. Functions of one tensor and in-place forms have no
        such template.

        Args:
            domains: The domains of the tensors, by argument name.
            arguments: Other arguments by name.
            attributes: Other fields of the template, which is exact by default.

        Yields:
            At most one template.
        """
        first_dtype, second_dtype = Dtype.float16, Dtype.float32
        if len(self.tensor_names()) > 1 and not self.prototype.is_inplace:
            yield _two_type_template("with-one", first_dtype, second_dtype).with_domains(
                domains, "", arguments, **{"exact": True, **attributes}
            )

    def promoted(
        self,
        domains: Callable[[Dtype], Mapping[str, Domain]],
        arguments: Arguments | None = None,
        floats_first: bool | None = None,
    ) -> Iterator[CaseTemplate[Operands]]:
        """Yield exact templates of tensors of an integer type together with tensors of a floating-point type.

        Args:
            domains: Returns the domains of the tensors for the floating type to which they are promoted.
            arguments: Other arguments by name.
            floats_first: Whether the first tensor has the floating-point type instead of the integer type; None for
                true if the form is in-place.

        Yields:
            One template per pair in `PROMOTED_PAIRS`; none for functions of one tensor.
        """
        floats_first_now = self.prototype.is_inplace if floats_first is None else floats_first
        for whole, floating in self.PROMOTED_PAIRS if len(self.tensor_names()) > 1 else ():
            first_dtype, second_dtype = (floating, whole) if floats_first_now else (whole, floating)
            yield _two_type_template("meets", first_dtype, second_dtype, 20).with_domains(
                domains(floating), "", arguments, exact=True
            )

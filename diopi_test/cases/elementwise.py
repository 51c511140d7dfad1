"""Shared parts of the cases of element-wise functions: shapes, layouts, special values, and type promotion.

- A template (`CaseTemplate`) describes cases that differ only in their element type. In this module, the `sizes` of a
  template are its operands.
- Operands are tensor templates with the shapes and layouts of the tensor arguments, in order. If there are fewer
  operands than tensor arguments, the last operand stands for the remaining arguments.
- A pattern is a template that has only operands. `CaseTemplate.with_domains` adds domains, from which the elements of
  the tensors are drawn, and numbers.
- A form is a variant of a function: in-place, scalar, or both. All forms share their templates. If a form takes a
  tensor for an argument, the template's number for this argument is ignored.
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
"""Templates of the tensor arguments in order; the last one also describes all remaining tensor arguments."""


def pattern_template(
    label: str, *shapes: tuple[int, ...], layouts: Sequence[Layout] = (contiguous,), **attributes: Any
) -> CaseTemplate[Operands]:
    """Return a pattern: a template with the shapes and layouts of tensor arguments, but without domains and numbers.

    Args:
        label: The label of the cases without the element type.
        *shapes: The shapes of the operands; the last one is also the shape of the remaining operands.
        layouts: The layouts of the operands; the last one is also the layout of the remaining operands.
        **attributes: Further fields of the template, such as `smoke`.

    Returns:
        The pattern.
    """
    count = max(len(shapes), len(layouts))
    operands = (tensor(*_item_or_last(shapes, i), layout=_item_or_last(layouts, i)) for i in range(count))
    return CaseTemplate(label, tuple(operands), **attributes)


def _item_or_last(sequence: Sequence[Any], position: int) -> Any:
    """Return the item of `sequence` at `position`, or its last item if the sequence is shorter."""
    return sequence[min(position, len(sequence) - 1)]


MATRIX = pattern_template("matrix", (7, 5), smoke=True)
"""The simplest pattern, for smoke cases: all tensors have the shape 7 × 5."""

_GEOMETRY = (
    pattern_template("rank8", (2, 1, 2, 2, 1, 3, 2, 2)),
    pattern_template("misaligned", (4, 8), layouts=[strides(8, 1, offset=1)], result_layout=strides(8, 1, offset=3)),
)
"""Patterns of tensors with 8 axes, and of contiguous tensors that do not start at a multiple of 16 bytes.

`Elementwise.distribute` uses them only in the leading element type.
"""

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
"""Patterns in which all tensor arguments have the same shape and the same layout.

The length 1031 exceeds common block sizes, such as 1024 elements.
"""

ROW = pattern_template("row", (4, 5), (5,))
"""A pattern of a matrix, and a vector that is broadcast to every row of the matrix."""

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
"""Patterns of two or more tensors with different shapes, which are broadcast, or with different layouts."""


FAR_APART = strides(17_000_023, 30_011, 3_001, 503, 97, 13, 1)
"""The layout of `RANK_7` tensors, with gaps along all axes except the last.

The last positions exceed 2^24, above which float32 does not represent every integer. A kernel that computes positions
in float32 therefore fails.
"""

RANK_7 = (2, 5, 7, 3, 5, 7, 11)
"""The shape of large tensors with seven axes and 80,850 elements."""

LARGE_UNIFORM = (
    pattern_template("vector", (70_001,)),
    pattern_template("expanded-rows", (311, 227), layouts=[strides(0, 1)]),
)
"""Large patterns for functions of one tensor and for gradients, whose tensors all have the same shape."""

LARGE_BROADCAST = (
    pattern_template("vector", (70_001,)),
    pattern_template("expanded-columns", (263, 257), layouts=[contiguous, strides(1, 0)]),
)
"""Large patterns for functions of several tensors; in the second pattern, the second tensor has another layout."""

FAR_APART_UNIFORM = pattern_template("rank7-far-apart", RANK_7, layouts=[FAR_APART])
"""A large pattern in which all tensors have seven axes and the layout `FAR_APART`."""

FAR_APART_BROADCAST = pattern_template("rank7-far-apart", RANK_7, (7, 3, 1, 7, 1), layouts=[FAR_APART, contiguous])
"""A large pattern whose first tensor has the layout `FAR_APART`, and whose second tensor is broadcast to the first."""

HUGE = pattern_template("huge", (70_001, 3), layouts=[strides(7_703, 1), contiguous])
"""A pattern whose first tensor spans more than 2^31 bytes in element types of 4 bytes or more.

Its rows are 7,703 elements apart. A kernel with signed 32-bit offsets fails.
"""


def _narrow_type(dtypes: Sequence[Dtype]) -> Dtype:
    """Return the element type of the patterns with `FAR_APART`: float16, or the last of `dtypes` if it is missing."""
    return Dtype.float16 if Dtype.float16 in dtypes else dtypes[-1]


def _large_templates(
    prototype: Prototype, templates: Sequence[CaseTemplate[Operands]]
) -> Iterator[CaseTemplate[Operands]]:
    """Yield templates of large cases, one per large pattern that the function accepts.

    Args:
        prototype: The prototype of the function or form.
        templates: The templates of the small cases. Each large template gets the domains and arguments of the first
            ordinary template in the element type of the large pattern.

    Yields:
        The large templates. A pattern is skipped if no ordinary template has its element type.
    """
    for pattern in Elementwise(prototype).large_patterns():
        (dtype,) = pattern.dtypes_for(prototype)
        candidates = (t for t in templates if dtype in t.dtypes_for(prototype) and _is_ordinary(t))
        if (small := next(candidates, None)) is not None:
            yield pattern.with_domains(small.domains, "", small.arguments)


def _is_ordinary(template: CaseTemplate[Operands]) -> bool:
    """Return whether a template has ordinary values and a result of the default element type.

    The words are parts of the labels of templates with special values or with several element types.
    """
    words = ("special", "ends", "again", "empty", "ordered", "with", "number-as")
    is_typed = any(isinstance(result, ResultOverride) and result.dtype for result in template.results.values())
    is_basic = template.case_class is CaseClass.basic and not (template.exact or template.non_discriminating)
    return is_basic and not is_typed and not any(word in template.label for word in words)


def is_applicable(prototype: Prototype, template: CaseTemplate[Operands]) -> bool:
    """Return whether a function or form accepts the operands of a template.

    In-place forms write their result into the first operand. The first operand must therefore have the broadcast shape
    of all operands, and no two elements of it may share memory. All other functions accept all operands.
    """
    if not prototype.is_inplace:
        return True
    operands = [_item_or_last(template.sizes, i) for i in range(len(Elementwise(prototype).tensor_names()))]
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    return bool(shape == operands[0].shape and operands[0].layout(shape).is_non_overlapping(shape))


def _drop_numbers(template: CaseTemplate[Operands], names: Collection[str]) -> CaseTemplate[Operands]:
    """Return the template without numbers for the arguments `names`, which are tensors in this form of the function."""
    accepted = (TensorTemplate, TensorSpec, type(None))
    remaining = {
        name: value for name, value in template.arguments.items() if name not in names or isinstance(value, accepted)
    }
    return replace(template, arguments=remaining)


def _drop_duplicates(templates: Iterable[CaseTemplate[Operands]]) -> Iterator[CaseTemplate[Operands]]:
    """Yield each template unless it equals an earlier one in everything except the label."""
    seen: list[tuple[CaseTemplate[Operands], str]] = []
    for template in templates:
        key = (
            replace(template, label="", arguments={}),
            repr(template.arguments),
        )  # repr distinguishes 1, 1.0 and True
        if key not in seen:
            seen.append(key)
            yield template


def vary_argument(
    label: str, argument: str, values: Mapping[str, Any] | Sequence[Any], **fixed: Any
) -> Mapping[str, Arguments]:
    """Return several sets of arguments for `CaseTemplate.variants`, which differ only in the value of one argument.

    Args:
        label: The start of the labels; may be empty.
        argument: The name of the argument.
        values: The values of the argument by the end of the labels; or a list of values, whose text is the end.
        **fixed: Arguments that all sets have.

    Returns:
        The sets of arguments by label.
    """
    named = values if isinstance(values, Mapping) else {str(value): value for value in values}
    return {"-".join(filter(None, [label, name])): {**fixed, argument: value} for name, value in named.items()}


def _special_values_along_axis(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return the special values of the type in order, each repeated `count // number of values` times.

    In a tensor whose first axis longer than 1 has one entry per special value, each entry contains only one value.
    """
    values = special_values(dtype)
    return values.repeat(count // len(values))


def _two_type_template(relation: str, first_dtype: Dtype, second_dtype: Dtype, *shape: int) -> CaseTemplate[Operands]:
    """Return a template in one element type under test, whose operands after the first have another type.

    Args:
        relation: The start of the label; a dash and the name of the second type follow.
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
"""Pairs of the element types of the first tensor and of the other tensors, for functions that return a new tensor.

Type promotion gives one of the two types for some pairs, and a third type for others.
"""

INPLACE_PAIRS = (
    (Dtype.int32, Dtype.int64),
    (Dtype.int64, Dtype.bool),
    (Dtype.float16, Dtype.float32),
    (Dtype.float32, Dtype.int64),
    (Dtype.complex64, Dtype.float64),
)
"""Pairs of the element types of the first tensor, which receives the result, and of the other tensors.

The common type of each pair has the category of the first type (integer, floating-point or complex). Otherwise, the
first tensor could not receive the result.
"""


@dataclass(frozen=True)
class Elementwise:
    """Cases and templates that element-wise functions share, for one function or form.

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
    """Pairs of an integer type and a floating-point type.

    The floating-point type is the common type of the pair. It cannot represent all values of the integer type.
    """

    def cases(self, templates: Iterable[CaseTemplate[Operands]], *, large: bool = True) -> Iterator[Case]:
        """Return the cases of the templates that the function accepts, and large cases derived from them.

        Args:
            templates: The templates of the small cases. Duplicates are dropped.
            large: Whether to derive large cases with `large_patterns`.

        Returns:
            The cases. Open calls, whose results PyTorch leaves undefined, are not among the large cases.
        """
        names = self.tensor_names()

        def operands(template: CaseTemplate[Operands], dtype: Dtype) -> Mapping[str, TensorTemplate]:
            return {name: _item_or_last(template.sizes, i) for i, name in enumerate(names)}

        applicable = [
            _drop_numbers(template, names) for template in templates if is_applicable(self.prototype, template)
        ]
        large_templates = _large_templates(self.prototype, applicable) if large else ()
        cases = expand(self.prototype, [*_drop_duplicates(applicable), *large_templates], operands)
        return (case for case in cases if not case.large or not reason_open(self.prototype, case))

    def tensor_names(self) -> list[str]:
        """Return the names of the tensor arguments in order."""
        return [p.name for p in self.prototype.arguments if p.is_tensor]

    def patterns(self) -> list[CaseTemplate[Operands]]:
        """Return the patterns that the function accepts: of `UNIFORM`, and for several tensors also of `BROADCAST`."""
        patterns = UNIFORM if len(self.tensor_names()) == 1 else (*UNIFORM, *BROADCAST)
        return [pattern for pattern in patterns if is_applicable(self.prototype, pattern)]

    def large_patterns(self) -> Iterator[CaseTemplate[Operands]]:
        """Yield the large patterns that the function accepts, each restricted to one element type.

        Functions that declare the fact `CaseFacts.huge_form` for this form also have the pattern `HUGE`.
        """
        is_uniform = len(self.tensor_names()) == 1 or self.prototype.is_gradient
        leading = [
            *(LARGE_UNIFORM if is_uniform else LARGE_BROADCAST),
            *([HUGE] if CaseFacts.declared_for(self.prototype).huge_form == self.prototype.form else []),
        ]
        for dtype, pattern in (
            *((leading_dtype(self.prototype.dtypes), pattern) for pattern in leading),
            (_narrow_type(self.prototype.dtypes), FAR_APART_UNIFORM if is_uniform else FAR_APART_BROADCAST),
        ):
            if is_applicable(self.prototype, pattern):
                yield pattern.replace(dtypes=[dtype], large=True)

    def distribute(
        self,
        domains: Mapping[str, Domain],
        arguments: Arguments | None = None,
        dtypes: Sequence[Dtype] | None = None,
    ) -> Iterator[CaseTemplate[Operands]]:
        """Yield templates in which every pattern and every element type occurs, but not every combination of both.

        Args:
            domains: The domains of the tensors by argument name.
            arguments: Other arguments by name.
            dtypes: The element types; None for all that the function accepts.

        Yields:
            For the leading type (usually float32), one template per pattern. For each other type, two templates: with
            the simplest pattern (`BASIC_ROW` or `MATRIX`), and with one of the other patterns, assigned in rotation.
        """
        selected = [dtype for dtype in dtypes or self.prototype.dtypes if dtype in self.prototype.dtypes]
        patterns = self.patterns()
        basic = BASIC_ROW if len(self.tensor_names()) > 1 else MATRIX
        remaining = [pattern for pattern in patterns if pattern not in (basic, *_GEOMETRY)]
        for turn, dtype in enumerate(selected):
            for pattern in patterns if dtype is leading_dtype(selected) else (basic, remaining[turn % len(remaining)]):
                yield pattern.with_domains(domains, "", arguments, [dtype])

    def special_value_pairs(
        self,
        arguments: Arguments | None = None,
        dtypes: Sequence[Dtype] | None = None,
        smoke: bool | Collection[Dtype] = True,
    ) -> Iterator[CaseTemplate[Operands]]:
        """Yield one template per element type, in which all combinations of the tensors' special values occur.

        Args:
            arguments: Other arguments by name.
            dtypes: The element types; None for all that the function accepts.
            smoke: Whether the cases are smoke cases, or the element types of the smoke cases.

        Yields:
            The templates. The operand at position i varies along axis i, and broadcasting combines all values. The
            first operand of an in-place form has the full shape, but still varies only along axis 0.
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
            pairs: Pairs of element types; None for `PAIRS`, or `INPLACE_PAIRS` in an in-place form.
            include_bool: Whether to include pairs whose first type is bool.
            attributes: Other fields of the templates. `exact` is true by default: no result has a rounding error.

        Yields:
            One template per pair that the function accepts; none for functions of one tensor.
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

        In the standard, unlike in PyTorch, a tensor without axes takes part in type promotion like other tensors.
        The result is therefore float32. Functions of one tensor and in-place forms have no such template.

        Args:
            domains: The domains of the tensors, by argument name.
            arguments: Other arguments by name.
            attributes: Other fields of the template. `exact` is true by default: no result has a rounding error.

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
        """Yield templates of an integer tensor and floating-point tensors, or the reverse, with exact results.

        Their results show whether an implementation first rounds the integers to the common type.

        Args:
            domains: Returns the domains of the tensors by argument name for the floating-point type, which is the
                common type of all tensors.
            arguments: Other arguments by name.
            floats_first: Whether the first tensor has the floating-point type, and the others the integer type; False
                for the reverse. None means true for in-place forms and false for others.

        Yields:
            One template per pair in `PROMOTED_PAIRS`; none for functions of one tensor.
        """
        is_reversed = self.prototype.is_inplace if floats_first is None else floats_first
        for integer_dtype, floating_dtype in self.PROMOTED_PAIRS if len(self.tensor_names()) > 1 else ():
            dtypes = (floating_dtype, integer_dtype) if is_reversed else (integer_dtype, floating_dtype)
            yield _two_type_template("meets", *dtypes, 20).with_domains(
                domains(floating_dtype), "", arguments, exact=True
            )

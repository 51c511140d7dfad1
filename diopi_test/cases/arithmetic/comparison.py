"""Cases of comparisons of elements and of whole tensors, and of logical and bitwise operations.

A pattern is a template that has only the shapes and layouts of operands. A domain is a set of values from which the
elements of a tensor are drawn. A case is non-discriminating if an implementation with a coarse error passes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import category, complexes, floating, is_complex, signed
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.arithmetic.values import (
    INTEGERS_BELOW_64_BITS,
    TABLE_PATTERN,
    argument_by_category,
    domain_by_dtype,
    domain_by_kind,
    draw_truth_values_or,
    for_both_operands,
    number_wrapping_to,
    rounded_in_one_operand,
    special_value_templates,
)
from diopi_test.cases.case import Case, cases_for
from diopi_test.cases.domains import Domain, choice, full_range, normal
from diopi_test.cases.elementwise import ROW, Elementwise, Operands, pattern_template, vary_argument
from diopi_test.cases.facts import CaseFacts, NumberChoice
from diopi_test.cases.layouts import contiguous, strided, strides, transposed
from diopi_test.cases.template import CaseTemplate, Derive, DtypeSelection, TensorTemplate, expand, tensor
from diopi_test.cases.type_promotion import IntegerGap
from lib_rt.formats import format_of, is_inexact

F16, BF16, F32 = Dtype.float16, Dtype.bfloat16, Dtype.float32
"""The element types of some templates."""


def with_small_increases(domain: Domain) -> Domain:
    """Return a domain like `domain`, but with a third of its numbers increased.

    The increase, 2^−13 for floating-point and complex types and 2^32 for int64, disappears if a kernel converts the
    numbers to a narrower type before it compares them. Other types have no increase.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = domain(rng, count, dtype)
        increase = 2.0**-13 if category(dtype) >= 2 else 2**32 if dtype is Dtype.int64 else 0
        return np.where(rng.permutation(count) % 3 == 0, values + increase, values)

    return draw


def few_numbers(ones: int) -> Domain:
    """Return a domain of 1 and at most two other numbers, so that operands are often equal.

    Args:
        ones: How many times more often 1 occurs than each other number. If only one number is drawn, it is 1.

    Returns:
        The domain.
    """
    other_values: tuple[Sequence[complex], ...] = ([0], [2, 0], [-1, 2], [1j, 2])
    return domain_by_dtype(lambda dtype: choice([*[1] * ones, *other_values[category(dtype)]]))


NO_COMPARISON_REASONS = {
    "to-nan": "comparisons with NaN are always false",
    "to-inf": "every finite number is less than infinity",
    "(negative-)?float-number|0|to-int": "no number of the element type equals the operand, or none is less",
    "special": "only a few of the special values are equal",
}
"""The reasons why cases are non-discriminating, by a pattern of labels."""

GAP = IntegerGap(F32).first
"""2^24, the first integer whose successor float32 cannot represent."""

COMPLEX_NUMBERS = choice([0, -0.0, 1, 1j, -1j, complex(nan, 0), complex(0, nan), complex(inf, 1)])
"""A domain of complex numbers: zeros, units, and numbers with a part that is NaN or infinite."""

FRACTIONS = {"input": choice([0.25, 0.5, -0.25, 1]), "other": choice([0.25, 0.5, 1])}
"""Domains of both operands: fractions that every floating-point type represents, so that many of them are equal."""

NEIGHBORS = for_both_operands(choice([2**62 + 1, 2**62, 2**62 + 2]))
"""Domains of both operands: neighboring int64 numbers, which become equal if a kernel converts them to float64."""

COMPARISONS = (
    *ROW.variants(
        FRACTIONS, vary_argument("to", "other", {"fraction": 0.5, "int": 0, "nan": nan, "inf": inf}), [F32, BF16]
    ),
    ROW.with_domains(NEIGHBORS, "wide", {"other": 2**62 + 1}, [Dtype.int64]),
)
"""Templates of comparisons in which both operands can be tensors, or `other` can be a number."""

NUMBER_COMPARISONS = (
    # No format represents 1/3. Elements of 1/3 rounded to the format equal the number only after it is rounded too.
    ROW.with_domains({"input": choice([1 / 3, 0.25, 0.5])}, "to-third", {"other": 1 / 3}, floating),
    ROW.with_domains({"input": IntegerGap(F16).representable_neighbors()}, "to-whole", {"other": 2049}, [F16]),
    ROW.with_domains({"input": choice([GAP + 1, GAP + 3, GAP - 1])}, "to-whole", {"other": float(GAP)}, [Dtype.int32]),
    ROW.with_domains(
        {"input": choice([2, 3, 4])}, "wrapped-number", {"other": number_wrapping_to(3)}, INTEGERS_BELOW_64_BITS
    ),
)
"""Templates of comparisons with a number that the function must first convert to the common type."""


@cases_for("diopiEq", "diopiNe", "diopiGe", "diopiGt", "diopiLe", "diopiLt", non_discriminating=NO_COMPARISON_REASONS)
def comparison_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the comparison of a tensor with a tensor or a number, element by element."""
    # Compare bool with a number that distinguishes its values: x > 1 and x < 0 are never true, x ≤ 1 and x ≥ 0 always.
    bool_number = int(prototype.base not in ("diopiGt", "diopiLe"))
    few_values = few_numbers(3 if prototype.base in ("diopiEq", "diopiNe") else 1)
    domains = {"input": few_values, "other": draw_truth_values_or(bool(bool_number), few_values)}
    templates = [
        *Elementwise(prototype).distribute(domains, {"other": argument_by_category(bool_number, 1, 1.0)}),
        *special_value_templates(prototype, {"other": argument_by_category(1, 0, 0.0)}),
        *COMPARISONS,
        *(ROW.with_domains(domains, "", {"other": 1}, [F32]).to_dtype(dtype) for dtype in (F32, Dtype.int64)),
    ]
    if prototype.parameter("other").is_tensor:
        templates += Elementwise(prototype).mixed_types(
            {"input": few_values, "other": with_small_increases(few_values)}
        )
        templates += Elementwise(prototype).promoted(rounded_in_one_operand)
        templates.append(TABLE_PATTERN.with_domains(for_both_operands(COMPLEX_NUMBERS), "special", dtypes=complexes))
    else:
        unequal_numbers = vary_argument("", "other", {"float-number": 0.5, "negative-float-number": -0.5, "0": 0})
        templates += [
            *NUMBER_COMPARISONS,
            *ROW.variants(domains, unequal_numbers, [Dtype.int32, Dtype.uint8, Dtype.bool]),
        ]
    return Elementwise(prototype).cases(templates)


# Logic


def truth_values(first: bool) -> Domain:
    """Return a domain of zeros and of nonzero values that a lossy conversion to bool turns into zeros.

    The nonzero values are fractions, and integers whose lowest byte is zero.

    Args:
        first: Whether two thirds of the values are nonzero, and a single value is nonzero. Otherwise half of the values
            are nonzero, and a single value is zero.

    Returns:
        The domain.
    """

    def choose_domain(dtype: Dtype) -> Domain:
        values: Sequence[complex] = [1, {Dtype.int16: 256, Dtype.int32: 65536, Dtype.int64: 2**32}.get(dtype, 1)]
        if is_inexact(dtype):
            values = [0.25, 0.25j, complex(nan, 0), -1j] if is_complex(dtype) else [0.25, -0.5, nan, inf]
        zeros = [0.0, -0.0] if is_inexact(dtype) else [0]
        return choice([*values, *zeros] if first else [*zeros, *zeros, *values])

    return domain_by_dtype(choose_domain)


@cases_for(
    "diopiLogicalAnd", "diopiLogicalOr", non_discriminating={"special": "only a few of the special values are false"}
)
def logic_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of logical operations on truth values."""
    domains = for_both_operands(truth_values(prototype.base == "diopiLogicalAnd"))
    templates = [
        *Elementwise(prototype).distribute(domains),
        *special_value_templates(prototype),
        *Elementwise(prototype).mixed_types(domains),
    ]
    return Elementwise(prototype).cases(templates)


@cases_for(
    "diopiBitwiseAnd", "diopiBitwiseOr", non_discriminating={"0|all": "no bit of 0 is set, and every bit of −1 is set"}
)
def bitwise_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of bitwise operations."""
    is_and = prototype.base == "diopiBitwiseAnd"
    domains = for_both_operands(draw_truth_values_or(is_and, full_range))
    masks = vary_argument("", "other", {"0": 0, "all": -1, "low": 1, "negative": -86})
    templates = [
        *Elementwise(prototype).distribute(domains, {"other": argument_by_category(int(is_and), 0x5A, 0)}),
        *special_value_templates(prototype, {"other": -2}, signed),
        *ROW.variants(domains, masks, signed),
        ROW.with_domains(domains, "wide", {"other": 0x5A5A_0F0F_3333_0001}, [Dtype.int64]),
        ROW.with_domains(domains, "0", {"other": 0}, [Dtype.bool]),
        *Elementwise(prototype).mixed_types(domains),
    ]
    if prototype.form == "scalar":
        templates.append(ROW.with_domains(domains, "number", {"other": 5 if is_and else 6}, [Dtype.bool]))
        templates.append(
            ROW.with_domains(domains, "wrapped-number", {"other": number_wrapping_to(0x5A)}, INTEGERS_BELOW_64_BITS[2:])
        )
    return Elementwise(prototype).cases(templates)


# Whole tensors


EQUAL_PATTERNS = (
    pattern_template("matrix", (4, 5), smoke=True, dtypes=DtypeSelection.all),
    pattern_template("scalar", (), dtypes=[F32, Dtype.int64]),
    pattern_template("layouts", (4, 6), layouts=[transposed, strided], dtypes=[F32, Dtype.int64]),
    pattern_template("long", (1031,), dtypes=[F32, Dtype.int64]),
)
"""Patterns of two tensors of one shape, for cases in which the tensors are equal or differ in one element."""

LARGE_EQUAL = (
    pattern_template("same", (263, 257), large=True),
    pattern_template("same-half", (70_001,), layouts=[strides(3), contiguous], dtypes=[Dtype.float16], large=True),
)
"""Patterns of the large cases with equal tensors."""

LARGE_DIFFERENT = pattern_template("last-differs", (70_001,), large=True)
"""The pattern of the large case whose tensors differ only in the last element."""

SHAPES: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "shapes": ((2, 3), (3, 2)),
    "broadcast": ((2, 3), (3,)),
    "ones": ((3,), (1, 3)),
    "empty": ((0, 3), (0, 3)),
    "empty-shapes": ((0, 3), (3, 0)),
}
"""Pairs of shapes of two tensors of ones, by label. Tensors with different shapes are not equal."""

VALUES = {"nan": (nan, nan), "zeros": (0.0, -0.0), "infinities": (inf, inf), "signs": (inf, -inf)}
"""The numbers that fill the first and the second tensor, by label."""


def _constant_pair_template(
    label: str,
    values: Sequence[float],
    dtypes: Sequence[Dtype] = (F32, F32),
    shapes: Sequence[tuple[int, ...]] = ((2,), (2,)),
) -> CaseTemplate:
    """Return a template of `diopiEqual` with two constant tensors.

    Args:
        label: The label of the case without the element type.
        values: The number that fills the first tensor, and the number that fills the second tensor.
        dtypes: The element types of both tensors.
        shapes: The shapes of both tensors.

    Returns:
        The template.
    """
    input_tensor, other_tensor = (
        tensor(*shape, dtype=dtype, domain=choice([value]))
        for shape, dtype, value in zip(shapes, dtypes, values, strict=True)
    )
    return CaseTemplate(label, (), {"input": input_tensor, "other": other_tensor}, dtypes=dtypes[:1])


def _near_integer_template(label: str, types: tuple[Dtype, Dtype], distance: int) -> CaseTemplate:
    """Return a template that compares an integer tensor with a floating-point tensor.

    The integer tensor contains n + 1, which the floating-point type rounds to n: n is the smallest positive integer
    whose successor the type cannot represent. After type promotion, the tensors are equal only if `distance` is 0.

    Args:
        label: The end of the label.
        types: The integer type and the floating-point type.
        distance: The difference between the elements of the floating-point tensor and n.

    Returns:
        The template.
    """
    gap = IntegerGap(types[1]).first
    return _constant_pair_template(f"meets-{types[1].name}{label}", (gap + 1, gap + distance), types)


CONSTANT_PAIRS = (
    *(_constant_pair_template(label, (1.0, 1.0), shapes=shapes) for label, shapes in SHAPES.items()),
    *(_constant_pair_template(label, values, shapes=((3,), (3,))) for label, values in VALUES.items()),
    _constant_pair_template("with-int32", (200, 200), (Dtype.uint8, Dtype.int32)),
    _constant_pair_template("with-int32-other", (200, 56), (Dtype.uint8, Dtype.int32)),
    _constant_pair_template("with-int8", (100, 100), (Dtype.uint8, Dtype.int8)),
    _constant_pair_template("with-int8-other", (200, -56), (Dtype.uint8, Dtype.int8)),
    *(_near_integer_template("", types, 0) for types in Elementwise.PROMOTED_PAIRS),
    *(_near_integer_template("-other", types, 4) for types in Elementwise.PROMOTED_PAIRS),
)
"""Templates of two constant tensors with different shapes, numbers or element types."""


@cases_for("diopiEqual")
def equal_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield the cases of `diopiEqual`, which returns whether two tensors have equal shapes and elements.

    The second tensor is a copy of the first, or differs from the first in one element.
    """
    altered_positions: Mapping[str, Sequence[int]] = {"same": [], "first": [0], "last": [-1]}
    for label, positions in altered_positions.items():
        templates = [pattern.with_domains({}, label) for pattern in EQUAL_PATTERNS]
        yield from expand(prototype, templates, _derive_altered_copy(positions))
    yield from expand(prototype, CONSTANT_PAIRS)
    yield from expand(prototype, LARGE_EQUAL, _derive_altered_copy([]))
    yield from expand(prototype, [LARGE_DIFFERENT], _derive_altered_copy([-1]))


def _derive_altered_copy(positions: Sequence[int]) -> Derive[Any]:
    """Return a function that derives the arguments `input` and `other` from a template and an element type.

    Args:
        positions: The positions, in row-major order, at which `other` differs from `input` by the smallest step.

    Returns:
        The function, for `expand`.
    """

    def operands(template: CaseTemplate[Operands], dtype: Dtype) -> Mapping[str, TensorTemplate]:
        original, copy = template.sizes[0], template.sizes[-1]

        def alter_input(values: Mapping[str, Any]) -> NDArray[Any]:
            array = np.array(values["input"], order="C")
            flat = array.reshape(-1)
            flat[positions] = (
                flat[positions] * (1 + format_of(dtype).epsilon) if is_inexact(dtype) else flat[positions] ^ 1
            )
            return array

        domain = domain_by_kind(normal(), full_range)
        return {"input": replace(original, domain=domain), "other": replace(copy, compute=alter_input)}

    return operands


CaseFacts(number_choices=[NumberChoice("other", "bool", False)]).declare("diopiBitwiseOr", "diopiLe", "diopiGt")

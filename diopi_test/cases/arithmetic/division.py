"""Cases of division, with and without rounding, and of remainders.

A pattern is a template that has only the shapes and layouts of operands. A domain is a set of values from which the
elements of a tensor are drawn. If a form takes a number as an operand, it ignores the domain of this operand and uses
the number in the template's arguments. A case is non-discriminating if an implementation with a coarse error passes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np

from diopi_proto.dtypes import floating, integer, numeric, signed
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, RoundMode
from diopi_test.cases.arithmetic.values import (
    CALLERS,
    HALF_PRECISION_INTEGERS,
    INTEGERS_BELOW_64_BITS,
    SMALL_AND_SPECIAL,
    SMOKE_ROW_PATTERN,
    TABLE_PATTERN,
    WIDE_NUMBERS,
    argument_by_category,
    domain_by_dtype,
    domain_by_kind,
    draw_wide_integers,
    for_both_operands,
    number_wrapping_to,
    replace_zeros,
    special_value_templates,
)
from diopi_test.cases.case import Case, cases_for
from diopi_test.cases.domains import (
    Domain,
    choice,
    full_range,
    integer_values,
    log_uniform,
    non_integers,
    subnormal,
    tiny_multiples,
    uniform,
)
from diopi_test.cases.elementwise import ROW, Elementwise, Operands, pattern_template, vary_argument
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.template import Arguments, ByDtype, CaseTemplate, expand, tensor
from diopi_test.cases.type_promotion import IntegerGap
from lib_rt.dtypes import integer_range, to_numpy
from lib_rt.formats import format_of

F32, F64 = Dtype.float32, Dtype.float64
"""The single-precision and the double-precision type."""

EXACT_TABLE = TABLE_PATTERN.replace(exact=True)
"""A pattern of a 9 × 11 matrix and a column, for operands whose results have no rounding error."""

ENDS_AS_OPERANDS = for_both_operands(SMALL_AND_SPECIAL)
"""Domains of both operands: zeros, small numbers, infinities and NaN."""

OTHER_FLOATS = [dtype for dtype in floating if dtype is not F32]
"""The floating-point types except float32."""

QUOTIENT_PATTERNS = (
    SMOKE_ROW_PATTERN.replace(dtypes=floating),
    pattern_template("long", (1031,)),
    pattern_template("layouts", (4, 6), layouts=[transposed, strided], result_layout=strided),
)
"""The patterns of `cases_away_from_jumps`."""


def cases_away_from_jumps(
    prototype: Prototype,
    label: str = "",
    patterns: Iterable[CaseTemplate[Operands]] = QUOTIENT_PATTERNS,
    **arguments: Any,
) -> Iterator[Case]:
    """Return cases whose quotients of `input` and `other` are not close to integers.

    A rounded quotient or a remainder jumps at integers, so that a small error would change the result there.

    Args:
        prototype: The prototype of the function or form.
        label: The start of the labels.
        patterns: The shapes and layouts of the operands.
        **arguments: Further arguments of the function.

    Returns:
        The cases. The quotient is drawn first, and `input` is its product with `other`.
    """

    def operands(template: CaseTemplate[Operands], dtype: Dtype) -> Mapping[str, Any]:
        dividend, divisor = template.sizes[0], template.sizes[-1]
        shape = np.broadcast_shapes(dividend.shape, divisor.shape)
        is_tensor = prototype.parameter("other").is_tensor
        return {
            "_quotient": tensor(*shape, dtype=F64, domain=non_integers(-6, 6, margin=0.15), layout=dividend.layout),
            "other": replace(divisor, domain=log_uniform(-2, 2)) if is_tensor else -1.375,
            "input": replace(dividend, shape=shape, compute=lambda values: values["_quotient"] * values["other"]),
        }

    return expand(prototype, [pattern.with_domains({}, label, arguments) for pattern in patterns], operands)


DIVISION_DOMAINS: Mapping[str, Domain] = {
    "input": domain_by_kind(log_uniform(-6, 6), integer_values(-99, 99)),
    "other": domain_by_kind(log_uniform(-6, 6), replace_zeros(integer_values(-9, 9))),
}
"""Domains of the operands of a division without rounding; integer divisors are not 0."""

UNROUNDED: Arguments = {"rounding_mode": RoundMode.none}
"""The argument for a division whose result is not rounded to an integer."""

NUMBER_DIVISORS = vary_argument(
    "by", "other", {"0": 0.0, "inf": -inf, "nan": nan, "third": 1 / 3, "int": 3}, **UNROUNDED
)
"""Arguments of divisions without rounding by a number, by the label of the template."""


@cases_for(
    "diopiDiv",
    non_discriminating={
        "by-(inf|nan)|(trunc|floor)-ends-by-nan": "every quotient by infinity is 0, and every quotient by NaN is NaN"
    },
)
def div_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of division, with and without a rounding mode."""
    templates = [
        *Elementwise(prototype).distribute(DIVISION_DOMAINS, {"other": argument_by_category(2, -7, 1.7), **UNROUNDED}),
        *special_value_templates(prototype, {"other": argument_by_category(0, 0, -0.0), **UNROUNDED}),
        *ROW.variants(DIVISION_DOMAINS, NUMBER_DIVISORS),
        *Elementwise(prototype).mixed_types(
            {"input": HALF_PRECISION_INTEGERS, "other": replace_zeros(WIDE_NUMBERS)}, UNROUNDED, exact=False
        ),
        *Elementwise(prototype).wider_scalar_tensor(
            {"input": HALF_PRECISION_INTEGERS, "other": replace_zeros(WIDE_NUMBERS)}, UNROUNDED, exact=False
        ),
        *ROUNDED_DIVISIONS,
    ]
    if prototype.form == "scalar":
        templates.append(
            ROW.with_domains(DIVISION_DOMAINS, "float-number", {"other": 2.5, **UNROUNDED}, [Dtype.int32, Dtype.bool])
        )
        templates += [_wrapped_number_template(mode) for mode in RoundMode if mode != RoundMode.END]
    if not prototype.is_inplace:
        templates += Elementwise(prototype).promoted(dividends, UNROUNDED)
        wide_domains = {"input": uniform(2**40, 2**50), "other": uniform(-9, 9)}
        templates += Elementwise(prototype).mixed_types(
            wide_domains, UNROUNDED, [(Dtype.int64, Dtype.complex128)], exact=False
        )
    yield from Elementwise(prototype).cases(templates)
    for mode in (RoundMode.trunc, RoundMode.floor):
        yield from cases_away_from_jumps(prototype, mode.name, rounding_mode=mode)


def dividends(dtype: Dtype) -> dict[str, Domain]:
    """Return domains of integers whose quotient is an integer only if the dividend is first rounded to `dtype`.

    Args:
        dtype: The floating-point type to which the operands are promoted.

    Returns:
        The domains of `input` and `other`: dividends that the type cannot represent, and divisors of the rounded
        dividends.
    """
    numbers = [
        IntegerGap(dtype).first + 3,
        -IntegerGap(dtype).first - 3,
        *([IntegerGap.ABOVE_FLOAT16] if dtype is Dtype.float16 else []),
    ]
    return {
        "input": choice(numbers),
        "other": choice([IntegerGap(dtype).prime_factor, -IntegerGap(dtype).prime_factor]),
    }


def _rounded_quotient_templates(mode: RoundMode) -> list[CaseTemplate[Operands]]:
    """Return templates of divisions whose quotients are rounded to integers as `mode` says."""
    rounding = {"rounding_mode": mode}
    negative: Arguments = {"other": ByDtype(lambda dtype: 3 if dtype is Dtype.uint8 else -3), **rounding}
    by_ends = f"{mode.name}-ends-by"
    return [
        EXACT_TABLE.with_domains(SMALL_INTEGERS, f"{mode.name}-whole", negative, numeric),
        *EXACT_TABLE.variants(
            ENDS_AS_OPERANDS, vary_argument(by_ends, "other", (2.0, -inf, 0.0, nan), **rounding), [F32]
        ),
        *EXACT_TABLE.variants(ENDS_AS_OPERANDS, vary_argument(by_ends, "other", (-inf,), **rounding), OTHER_FLOATS),
    ]


def _wrapped_number_template(mode: RoundMode) -> CaseTemplate[Operands]:
    """Return a template of an integer tensor that is divided by a number outside the range of its element type.

    The number wraps around to 7 if `mode` rounds the quotient to an integer. Without rounding, it does not wrap around.
    """
    arguments: Arguments = {"other": number_wrapping_to(7), "rounding_mode": mode}
    return ROW.with_domains({"input": full_range}, f"{mode.name}-wrapped-number", arguments, INTEGERS_BELOW_64_BITS)


SMALL_INTEGERS = {"input": integer_values(-20, 20), "other": replace_zeros(integer_values(-4, 4))}
"""Domains of small integers, whose quotients the function rounds; divisors are not 0."""

INEXACT_DIVISORS = {"input": integer_values(1, 20), "other": choice([0.1, -0.1, 0.7])}
"""Domains of integers and of the divisors ±0.1 and 0.7, which no floating-point type represents exactly.

The exact quotient of such numbers is close to an integer, and may be below it.
"""

TINY_OPERANDS = {"input": tiny_multiples(2.5, -2.5, 3.5), "other": tiny_multiples(2, -2)}
"""Domains of operands of a few times the smallest normal number, whose remainders are subnormal."""

TINY_DIVIDEND = ByDtype(lambda dtype: 3.5 * format_of(dtype).tiny)
"""A dividend: 3.5 times the smallest normal number of the type."""

TINY_DIVISOR = {"other": ByDtype(lambda dtype: -2 * format_of(dtype).tiny)}
"""The argument for a divisor of −2 times the smallest normal number of the type."""

FLOOR_BY_TINY: Mapping[str, Arguments] = {"floor-near-least": {**TINY_DIVISOR, "rounding_mode": RoundMode.floor}}
"""The arguments of a floor division by −2 times the smallest normal number, by the label of the template."""


def dtype_bits(dtype: Dtype) -> int:
    """Return the number of bits of an element of a type."""
    return 8 * to_numpy(dtype).itemsize


LOWEST_DIVIDENDS: Mapping[str, Domain] = {
    "input": domain_by_dtype(lambda dtype: choice([integer_range(dtype)[0], integer_range(dtype)[0] + 1])),
    "other": domain_by_dtype(lambda dtype: choice([3, -5, 2 ** (2 * dtype_bits(dtype) // 3)])),
}
"""Domains of dividends whose absolute value the signed integer type cannot represent, or only just, and of divisors."""

LOWEST_BY_NUMBER: Mapping[str, Arguments] = {
    f"{mode.name}-lowest": {"other": 7, "rounding_mode": mode} for mode in (RoundMode.trunc, RoundMode.floor)
}
"""The arguments of rounded divisions of the lowest integers, by the label of the template."""

ROUNDED_DIVISIONS = (
    *_rounded_quotient_templates(RoundMode.trunc),
    *_rounded_quotient_templates(RoundMode.floor),
    *EXACT_TABLE.variants(TINY_OPERANDS, FLOOR_BY_TINY, floating),
    *EXACT_TABLE.variants(LOWEST_DIVIDENDS, LOWEST_BY_NUMBER, signed),
    EXACT_TABLE.with_domains(
        INEXACT_DIVISORS, "floor-nearly-whole", {"other": 0.1, "rounding_mode": RoundMode.floor}, [F32, F64]
    ),
)
"""Templates of divisions whose quotients are rounded to integers."""


# Remainders

NO_REMAINDER_REASONS = {
    "ends-(-?inf|nan|0.0)": "there is no finite remainder of or by such a number",
    "by-truth|with-bool|of-5": "the remainder by true (1) is 0, and the remainder by false is unspecified",
}
"""The reasons why cases of remainders are non-discriminating, by a regular expression for labels."""

QUARTERS = choice([0.75, 1.25, -7.5, -0.25, 3.0])
"""A domain of divisors that are multiples of ¼, so that remainders of integers are exact."""

REMAINDER_INTEGERS = {"input": integer_values(-20, 20), "other": replace_zeros(integer_values(-6, 6))}
"""Domains of small integers, of which one remainder in three is 0; divisors are not 0."""


def _arguments_at_ends(*values: float) -> Mapping[str, Arguments]:
    """Return one set of arguments per value, by label. Each form uses the value for its number, `input` or `other`."""
    return {f"ends-{number}": {"input": number, "other": number} for number in values}


def _large_power(dtype: Dtype) -> float:
    """Return 2^(p − 2) for a type with p bits of precision.

    The type represents all multiples of ¼ up to this number. Remainders of such numbers are therefore exact.
    """
    return 2.0 ** (format_of(dtype).precision - 2)


LARGE_INTEGERS = domain_by_dtype(lambda dtype: integer_values(int(_large_power(dtype) / 2), int(_large_power(dtype))))
"""A domain of large integers whose remainders by multiples of ¼ are exact and whose quotients are large."""

FOURS: Mapping[str, Arguments] = {"whole-4": {"input": 20, "other": 4}}
"""Numbers for templates of small integers, by label: the dividend 20 or the divisor 4, depending on the form."""

NEGATIVE_FOURS: Mapping[str, Arguments] = {**FOURS, "whole--4": {"input": -20, "other": -4}}
"""Like `FOURS`, and also with the dividend −20 or the divisor −4."""

LARGE_DIVIDEND = ByDtype(lambda dtype: _large_power(dtype) - 1)
"""A dividend for `LARGE_INTEGERS`: the largest integer below `_large_power`."""

FAR_DIVIDENDS = domain_by_dtype(
    lambda dtype: log_uniform(format_of(dtype).precision + 1, format_of(dtype).precision + 4, signed=False)
)
"""A domain of positive numbers so large that their quotients by small numbers have more bits than the type.

Their remainders by positive numbers are exact. A remainder from a rounded quotient is off by multiples of the divisor.
"""

FAR_ARGUMENTS: Arguments = {
    "input": ByDtype(lambda dtype: 5 * 2.0 ** (format_of(dtype).precision + 1)),
    "other": 3.0,
}
"""The number of templates of `FAR_DIVIDENDS`: a dividend that is no multiple of the divisors, or a divisor."""

LARGEST_NUMBERS = domain_by_dtype(lambda dtype: choice([format_of(dtype).largest, -format_of(dtype).largest]))
"""A domain of the largest and the lowest finite number of the type."""

LOWEST_NUMBER = ByDtype(lambda dtype: -format_of(dtype).largest)
"""The lowest finite number of the type."""

SUBNORMAL_NUMBER = ByDtype(lambda dtype: format_of(dtype).tiny / 4)
"""A dividend: a quarter of the smallest normal number of the type."""

OVERFLOWING_QUOTIENTS = {
    "input": domain_by_dtype(lambda dtype: choice([format_of(dtype).largest, 5.0])),
    "other": domain_by_dtype(lambda dtype: choice([1.5 * format_of(dtype).tiny, 3.0])),
}
"""Domains of operands of which one quotient in four overflows, although the remainder is finite.

The vector kernels of PyTorch return a wrong remainder for such operands.
"""

REMAINDERS = (
    *EXACT_TABLE.variants(REMAINDER_INTEGERS, NEGATIVE_FOURS, (*floating, *signed)),
    *EXACT_TABLE.variants(REMAINDER_INTEGERS, FOURS, [Dtype.uint8]),
    *EXACT_TABLE.variants(ENDS_AS_OPERANDS, _arguments_at_ends(2.0, -3.0, 0.0, inf, -inf, nan), [F32]),
    *EXACT_TABLE.variants(ENDS_AS_OPERANDS, _arguments_at_ends(-inf), OTHER_FLOATS),
    TABLE_PATTERN.with_domains(TINY_OPERANDS, "near-least", {**TINY_DIVISOR, "input": TINY_DIVIDEND}, floating),
    TABLE_PATTERN.with_domains(
        {"input": subnormal, "other": LARGEST_NUMBERS}, "subnormal", {"input": 2.0, "other": LOWEST_NUMBER}, floating
    ),
    ROW.with_domains(
        {"input": FAR_DIVIDENDS, "other": choice([0.75, 3.0, 7.0, 11.0])},
        "farther",
        FAR_ARGUMENTS,
        floating,
        exact=True,
    ),
    ROW.with_domains(
        {"input": LARGE_INTEGERS, "other": QUARTERS},
        "far",
        {"input": LARGE_DIVIDEND, "other": -0.75},
        floating,
        exact=True,
    ),
)
"""Templates of remainders for all forms: either operand may be a number, or both may be tensors."""

BOOL_DIVIDENDS = {"input": choice([True, False]), "other": choice([1, 3, -2])}
"""Domains of truth values and of the integers by which they are divided."""

EXACT_CALLER_FIELDS: Mapping[str, Any] = {"exact": True, "case_class": CALLERS}
"""Fields of templates of exact results for calls with unusual types, which frameworks make."""

REMAINDERS_BY_NUMBER = (
    ROW.with_domains({"input": integer_values(-20, 20)}, "float-number", {"other": 2.5}, [Dtype.int32], exact=True),
    ROW.with_domains({"input": choice([-11, 11, 8, 3])}, "long-fraction", {"other": 2.7527864096894143}, [Dtype.int32]),
    SMOKE_ROW_PATTERN.with_domains(BOOL_DIVIDENDS, "by-3", {"other": 3}, [Dtype.bool], **EXACT_CALLER_FIELDS),
    SMOKE_ROW_PATTERN.with_domains(
        BOOL_DIVIDENDS, "by-a-fraction", {"other": 0.75}, [Dtype.bool], **EXACT_CALLER_FIELDS
    ),
    ROW.with_domains({"input": full_range}, "wrapped-number", {"other": number_wrapping_to(7)}, INTEGERS_BELOW_64_BITS),
    ROW.with_domains({"input": integer_values(-9, 9)}, "by-truth", {"other": True}, [Dtype.int32], case_class=CALLERS),
)
"""Templates of remainders of a tensor that is divided by a number."""


@cases_for("diopiRemainderTensor", non_discriminating=NO_REMAINDER_REASONS)
def remainder_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the remainder of a tensor that is divided by a tensor or a number."""
    templates = [
        *Elementwise(prototype).distribute(
            {"input": full_range, "other": replace_zeros(integer_values(-9, 9))}, {"other": 7}, integer
        ),
        *REMAINDERS,
        ROW.with_domains(
            {"input": draw_wide_integers, "other": choice([7, -11])}, "wide", {"other": 2**53 + 1}, [Dtype.int64]
        ),
    ]
    if prototype.form == "scalar":
        templates += REMAINDERS_BY_NUMBER
    else:
        templates.append(EXACT_TABLE.with_domains(OVERFLOWING_QUOTIENTS, "quotient-overflows", dtypes=[F32, F64]))
        bool_pairs = [(Dtype.bool, Dtype.int32), (Dtype.bool, F32)]
        true_divisors = {"input": integer_values(-9, 9), "other": choice([True])}
        templates += Elementwise(prototype).mixed_types(
            {"input": HALF_PRECISION_INTEGERS, "other": replace_zeros(WIDE_NUMBERS)}, include_bool=False
        )
        templates += Elementwise(prototype).wider_scalar_tensor(
            {"input": HALF_PRECISION_INTEGERS, "other": replace_zeros(WIDE_NUMBERS)}
        )
        templates += Elementwise(prototype).promoted(
            lambda dtype: {"input": IntegerGap(dtype).unrepresentable_integers(), "other": choice([3, -9])}
        )
        templates += Elementwise(prototype).mixed_types(BOOL_DIVIDENDS, {}, bool_pairs, smoke=True, case_class=CALLERS)
        templates += Elementwise(prototype).mixed_types(
            true_divisors, {}, [(Dtype.int32, Dtype.bool)], case_class=CALLERS
        )
    yield from cases_away_from_jumps(prototype, patterns=(*QUOTIENT_PATTERNS, *Elementwise(prototype).large_patterns()))
    yield from Elementwise(prototype).cases(templates, large=False)


REMAINDERS_OF_NUMBER = (
    *REMAINDERS,
    ROW.with_domains({"other": choice([7, -11])}, "wide", {"input": 2**62 + 3}, [Dtype.int64]),
    ROW.with_domains(
        {"other": choice([7, 5, 11])}, "wrapped-number", {"input": number_wrapping_to(101)}, INTEGERS_BELOW_64_BITS
    ),
    ROW.with_domains(
        {"other": replace_zeros(integer_values(-6, 6))}, "float-number", {"input": 7.5}, [Dtype.int32], exact=True
    ),
    SMOKE_ROW_PATTERN.with_domains(
        {"other": choice([True])}, "of-5", {"input": 5}, [Dtype.bool], **EXACT_CALLER_FIELDS
    ),
    SMOKE_ROW_PATTERN.with_domains(
        {"other": choice([True, False])}, "of-a-fraction", {"input": -2.25}, [Dtype.bool], **EXACT_CALLER_FIELDS
    ),
    ROW.with_domains({"other": QUARTERS}, "of-truth", {"input": True}, [F32], **EXACT_CALLER_FIELDS),
    TABLE_PATTERN.with_domains({"other": LARGEST_NUMBERS}, "of-subnormal", {"input": SUBNORMAL_NUMBER}, [F32, F64]),
)
"""Templates of remainders of a number that is divided by a tensor."""


@cases_for("diopiRemainder", non_discriminating=NO_REMAINDER_REASONS)
def remainder_of_number_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the remainder of a number that is divided by a tensor."""
    divisors = domain_by_kind(uniform(4.7, 6.5), replace_zeros(integer_values(-9, 9)))
    usual = Elementwise(prototype).distribute(
        {"other": divisors}, {"input": argument_by_category(0, 47, -13.7)}, numeric
    )
    return Elementwise(prototype).cases([*usual, *REMAINDERS_OF_NUMBER])

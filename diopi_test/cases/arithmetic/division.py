"""Division, rounded and not, and remainders."""

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
    BASIC_ROW,
    CALLERS,
    ENDS,
    INTEGERS,
    SMALL,
    TABLE,
    WIDE,
    by_category,
    by_dtype,
    by_kind,
    for_both_operands,
    nonzero,
    number_wrapping_to,
    special_value_templates,
    wide_integers,
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
from lib_rt.formats import format_of

F32, F64 = Dtype.float32, Dtype.float64
"""The single-precision and the double-precision type."""

EXACT_TABLE = TABLE.replace(exact=True)
"""A table of all pairs of operands with exact results."""

OF_ENDS = for_both_operands(ENDS)
"""Special and exact numbers as both operands."""

OTHER_FLOATS = [dtype for dtype in floating if dtype is not F32]
"""The floating-point types except float32."""

OFF_JUMPS = (
    BASIC_ROW.replace(dtypes=floating),
    pattern_template("long", (1031,)),
    pattern_template("layouts", (4, 6), layouts=[transposed, strided], result_layout=strided),
)
"""The shapes and layouts of quotients that are away from the jumps of rounding."""


def cases_off_jumps(
    prototype: Prototype,
    label: str = "",
    patterns: Iterable[CaseTemplate[Operands]] = OFF_JUMPS,
    **arguments: Any,
) -> Iterator[Case]:
    """Yield cases whose quotients of `input` and `other` keep away from whole numbers, where the function jumps."""

    def operands(template: CaseTemplate[Operands], dtype: Dtype) -> Mapping[str, Any]:
        dividend, divisor = template.sizes[0], template.sizes[-1]
        shape = np.broadcast_shapes(dividend.shape, divisor.shape)
        by_tensor = prototype.parameter("other").is_tensor
        return {
            "_quotient": tensor(*shape, dtype=F64, domain=non_integers(-6, 6, margin=0.15), layout=dividend.layout),
            "other": replace(divisor, domain=log_uniform(-2, 2)) if by_tensor else -1.375,
            "input": replace(dividend, shape=shape, compute=lambda values: values["_quotient"] * values["other"]),
        }

    return expand(prototype, [shapes.with_domains({}, label, arguments) for shapes in patterns], operands)


DIVISION: Mapping[str, Domain] = {
    "input": by_kind(log_uniform(-6, 6), integer_values(-99, 99)),
    "other": by_kind(log_uniform(-6, 6), nonzero(integer_values(-9, 9))),
}
"""The domains of a true division."""

TRUE: Arguments = {"rounding_mode": RoundMode.none}
"""The attribute of a true division."""

DIVISORS = vary_argument("by", "other", {"0": 0.0, "inf": -inf, "nan": nan, "third": 1 / 3, "int": 3}, **TRUE)
"""The numbers by which tensors are divided, by label."""


@cases_for(
    "diopiDiv",
    non_discriminating={
        "by-(inf|nan)|(trunc|floor)-ends-by-nan": "every quotient by infinity is 0, and every quotient by NaN is NaN"
    },
)
def div_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of division, with and without a rounding mode."""
    templates = [
        *Elementwise(prototype).distribute(DIVISION, {"other": by_category(2, -7, 1.7), **TRUE}),
        *special_value_templates(prototype, {"other": by_category(0, 0, -0.0), **TRUE}),
        *ROW.variants(DIVISION, DIVISORS),
        *Elementwise(prototype).mixed_types({"input": SMALL, "other": nonzero(WIDE)}, TRUE, exact=False),
        *Elementwise(prototype).wider_scalar_tensor({"input": SMALL, "other": nonzero(WIDE)}, TRUE, exact=False),
        *ROUNDED,
    ]
    if prototype.form == "scalar":
        templates.append(ROW.with_domains(DIVISION, "float-number", {"other": 2.5, **TRUE}, [Dtype.int32, Dtype.bool]))
        templates += [_wrapped_number_template(mode) for mode in RoundMode if mode != RoundMode.END]
    if not prototype.is_inplace:
        templates += Elementwise(prototype).promoted(dividends, TRUE)
        wide = {"input": uniform(2**40, 2**50), "other": uniform(-9, 9)}
        templates += Elementwise(prototype).mixed_types(wide, TRUE, [(Dtype.int64, Dtype.complex128)], exact=False)
    yield from Elementwise(prototype).cases(templates)
    for mode in (RoundMode.trunc, RoundMode.floor):
        yield from cases_off_jumps(prototype, mode.name, rounding_mode=mode)


def dividends(dtype: Dtype) -> dict[str, Domain]:
    """Return domains of dividends that the floating type has to round, and of divisors of the rounded numbers."""
    whole_numbers = [
        IntegerGap(dtype).first + 3,
        -IntegerGap(dtype).first - 3,
        *([IntegerGap.ABOVE_FLOAT16] if dtype is Dtype.float16 else []),
    ]
    return {
        "input": choice(whole_numbers),
        "other": choice([IntegerGap(dtype).prime_factor, -IntegerGap(dtype).prime_factor]),
    }


def _rounded_quotient_templates(mode: RoundMode) -> list[CaseTemplate[Operands]]:
    """Return templates of exact quotients that the function rounds."""
    rounding = {"rounding_mode": mode}
    negative: Arguments = {"other": ByDtype(lambda dtype: 3 if dtype is Dtype.uint8 else -3), **rounding}
    by_ends = f"{mode.name}-ends-by"
    return [
        EXACT_TABLE.with_domains(WHOLE, f"{mode.name}-whole", negative, numeric),
        *EXACT_TABLE.variants(OF_ENDS, vary_argument(by_ends, "other", (2.0, -inf, 0.0, nan), **rounding), [F32]),
        *EXACT_TABLE.variants(OF_ENDS, vary_argument(by_ends, "other", (-inf,), **rounding), OTHER_FLOATS),
    ]


def _wrapped_number_template(mode: RoundMode) -> CaseTemplate[Operands]:
    """Return a template of integers and a number outside their range, which wraps around unless division is true."""
    arguments: Arguments = {"other": number_wrapping_to(7), "rounding_mode": mode}
    return ROW.with_domains({"input": full_range}, f"{mode.name}-wrapped-number", arguments, INTEGERS)


WHOLE = {"input": integer_values(-20, 20), "other": nonzero(integer_values(-4, 4))}
"""Small integers whose quotients are rounded."""

TENTHS = {"input": integer_values(1, 20), "other": choice([0.1, -0.1, 0.7])}
"""Whole numbers and the divisors ±0.1 and 0.7, which no type represents: quotients that seem whole are not."""

NEAR_LEAST = {"input": tiny_multiples(2.5, -2.5, 3.5), "other": tiny_multiples(2, -2)}
"""Numbers whose remainders are subnormal."""

OF_LEAST = ByDtype(lambda dtype: 3.5 * format_of(dtype).tiny)
"""A dividend near the smallest normal number."""

TWICE_LEAST = {"other": ByDtype(lambda dtype: -2 * format_of(dtype).tiny)}
"""A divisor near the smallest normal number."""

BY_LEAST: Mapping[str, Arguments] = {"floor-near-least": {**TWICE_LEAST, "rounding_mode": RoundMode.floor}}
"""The arguments of a floor division by a number near the smallest normal number."""

ROUNDED = (
    *_rounded_quotient_templates(RoundMode.trunc),
    *_rounded_quotient_templates(RoundMode.floor),
    *EXACT_TABLE.variants(NEAR_LEAST, BY_LEAST, floating),
    EXACT_TABLE.with_domains(
        TENTHS, "floor-nearly-whole", {"other": 0.1, "rounding_mode": RoundMode.floor}, [F32, F64]
    ),
)
"""Templates of divisions that are rounded to integers."""


# Remainders

NO_REMAINDER_REASONS = {
    "ends-(-?inf|nan|0.0)": "there is no finite remainder of or by such a number",
    "by-truth|with-bool|of-5": "the remainder by true (1) is 0, and the remainder by false is unspecified",
}
"""Reasons why many wrong results can pass a case (`non_discriminating`), by a regular expression for labels."""

QUARTERS = choice([0.75, 1.25, -7.5, -0.25, 3.0])
"""Divisors that are multiples of ¼."""

SMALL_WHOLE = {"input": integer_values(-20, 20), "other": nonzero(integer_values(-6, 6))}
"""Small whole numbers, for which one remainder in three is 0."""


def _arguments_at_ends(*values: float) -> Mapping[str, Arguments]:
    """Return sets of arguments by label: in each, `input` and `other` are the same one of these values."""
    return {f"ends-{number}": {"input": number, "other": number} for number in values}


def _large_power(dtype: Dtype) -> float:
    """Return a power of two so large that quotients by fractions are large while all remainders are exact."""
    return 2.0 ** (format_of(dtype).precision - 2)


HIGH = by_dtype(lambda dtype: integer_values(int(_large_power(dtype) / 2), int(_large_power(dtype))))
"""Large integers whose remainders are exact."""

FOURS: Mapping[str, Arguments] = {"whole-4": {"input": 20, "other": 4}}
"""Small dividends and divisors."""

NEGATIVE_FOURS: Mapping[str, Arguments] = {**FOURS, "whole--4": {"input": -20, "other": -4}}
"""Small dividends of either sign, and divisors."""

BELOW_HIGHEST = ByDtype(lambda dtype: _large_power(dtype) - 1)
"""The largest dividend of `HIGH`."""

FAR_ENDS = by_dtype(lambda dtype: choice([format_of(dtype).largest, -format_of(dtype).largest]))
"""The largest finite numbers of either sign."""

FAR_END = ByDtype(lambda dtype: -format_of(dtype).largest)
"""The lowest finite number."""

SUBNORMAL_NUMBER = ByDtype(lambda dtype: format_of(dtype).tiny / 4)
"""A quarter of the smallest normal number."""

OVERFLOWING_QUOTIENTS = {
    "input": by_dtype(lambda dtype: choice([format_of(dtype).largest, 5.0])),
    "other": by_dtype(lambda dtype: choice([1.5 * format_of(dtype).tiny, 3.0])),
}
"""Numbers of which one quotient in four overflows; PyTorch's vector kernels return no remainder there."""

REMAINDERS = (
    *EXACT_TABLE.variants(SMALL_WHOLE, NEGATIVE_FOURS, (*floating, *signed)),
    *EXACT_TABLE.variants(SMALL_WHOLE, FOURS, [Dtype.uint8]),
    *EXACT_TABLE.variants(OF_ENDS, _arguments_at_ends(2.0, -3.0, 0.0, inf, -inf, nan), [F32]),
    *EXACT_TABLE.variants(OF_ENDS, _arguments_at_ends(-inf), OTHER_FLOATS),
    TABLE.with_domains(NEAR_LEAST, "near-least", {**TWICE_LEAST, "input": OF_LEAST}, floating),
    TABLE.with_domains(
        {"input": subnormal, "other": FAR_ENDS}, "subnormal", {"input": 2.0, "other": FAR_END}, floating
    ),
    ROW.with_domains(
        {"input": HIGH, "other": QUARTERS}, "far", {"input": BELOW_HIGHEST, "other": -0.75}, floating, exact=True
    ),
)
"""Templates of remainders; a number may be either operand."""

TRUTHS_BY_NUMBER = {"input": choice([True, False]), "other": choice([1, 3, -2])}
"""Truth values, and the numbers by which they are divided."""

EXACT_HABIT: Mapping[str, Any] = {"exact": True, "case_class": CALLERS}
"""Fields of exact cases of a call that frameworks make."""

BY_NUMBER = (
    ROW.with_domains({"input": integer_values(-20, 20)}, "float-number", {"other": 2.5}, [Dtype.int32], exact=True),
    ROW.with_domains({"input": choice([-11, 11, 8, 3])}, "long-fraction", {"other": 2.7527864096894143}, [Dtype.int32]),
    BASIC_ROW.with_domains(TRUTHS_BY_NUMBER, "by-3", {"other": 3}, [Dtype.bool], **EXACT_HABIT),
    BASIC_ROW.with_domains(TRUTHS_BY_NUMBER, "by-a-fraction", {"other": 0.75}, [Dtype.bool], **EXACT_HABIT),
    ROW.with_domains({"input": full_range}, "wrapped-number", {"other": number_wrapping_to(7)}, INTEGERS),
    ROW.with_domains({"input": integer_values(-9, 9)}, "by-truth", {"other": True}, [Dtype.int32], case_class=CALLERS),
)
"""Further templates of a tensor that is divided by a number."""


@cases_for("diopiRemainderTensor", non_discriminating=NO_REMAINDER_REASONS)
def remainder_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the remainder of a tensor, divided by a tensor or a number."""
    templates = [
        *Elementwise(prototype).distribute(
            {"input": full_range, "other": nonzero(integer_values(-9, 9))}, {"other": 7}, integer
        ),
        *REMAINDERS,
        ROW.with_domains(
            {"input": wide_integers, "other": choice([7, -11])}, "wide", {"other": 2**53 + 1}, [Dtype.int64]
        ),
    ]
    if prototype.form == "scalar":
        templates += BY_NUMBER
    else:
        templates.append(EXACT_TABLE.with_domains(OVERFLOWING_QUOTIENTS, "quotient-overflows", dtypes=[F32, F64]))
        truths = [(Dtype.bool, Dtype.int32), (Dtype.bool, F32)]
        by_truths = {"input": integer_values(-9, 9), "other": choice([True])}
        templates += Elementwise(prototype).mixed_types({"input": SMALL, "other": nonzero(WIDE)}, include_bool=False)
        templates += Elementwise(prototype).wider_scalar_tensor({"input": SMALL, "other": nonzero(WIDE)})
        templates += Elementwise(prototype).promoted(
            lambda dtype: {"input": IntegerGap(dtype).unrepresentable_integers(), "other": choice([3, -9])}
        )
        templates += Elementwise(prototype).mixed_types(TRUTHS_BY_NUMBER, {}, truths, smoke=True, case_class=CALLERS)
        templates += Elementwise(prototype).mixed_types(by_truths, {}, [(Dtype.int32, Dtype.bool)], case_class=CALLERS)
    yield from cases_off_jumps(prototype, patterns=(*OFF_JUMPS, *Elementwise(prototype).large_patterns()))
    yield from Elementwise(prototype).cases(templates, large=False)


OF_NUMBER = (
    *REMAINDERS,
    ROW.with_domains({"other": choice([7, -11])}, "wide", {"input": 2**62 + 3}, [Dtype.int64]),
    ROW.with_domains({"other": choice([7, 5, 11])}, "wrapped-number", {"input": number_wrapping_to(101)}, INTEGERS),
    ROW.with_domains(
        {"other": nonzero(integer_values(-6, 6))}, "float-number", {"input": 7.5}, [Dtype.int32], exact=True
    ),
    BASIC_ROW.with_domains({"other": choice([True])}, "of-5", {"input": 5}, [Dtype.bool], **EXACT_HABIT),
    BASIC_ROW.with_domains(
        {"other": choice([True, False])}, "of-a-fraction", {"input": -2.25}, [Dtype.bool], **EXACT_HABIT
    ),
    ROW.with_domains({"other": QUARTERS}, "of-truth", {"input": True}, [F32], **EXACT_HABIT),
    TABLE.with_domains({"other": FAR_ENDS}, "of-subnormal", {"input": SUBNORMAL_NUMBER}, [F32, F64]),
)
"""Templates of remainders of a number that is divided by a tensor."""


@cases_for("diopiRemainder", non_discriminating=NO_REMAINDER_REASONS)
def remainder_of_number_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the remainder of a number, divided by a tensor."""
    once_to_thrice = by_kind(uniform(4.7, 6.5), nonzero(integer_values(-9, 9)))
    usual = Elementwise(prototype).distribute({"other": once_to_thrice}, {"input": by_category(0, 47, -13.7)}, numeric)
    return Elementwise(prototype).cases([*usual, *OF_NUMBER])

"""Cases of sums, products, and sums of products: add, sub, mul, addcmul, addcdiv and lerp.

A pattern is a template that has only the shapes and layouts of operands. A domain is a set of values from which the
elements of a tensor are drawn. If a form takes a number as an operand, it ignores the domain of this operand and uses
the number in the template's arguments. A case is non-discriminating if an implementation with a coarse error passes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, nan

from diopi_proto.dtypes import ELEMENT_SIZE, category, floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.arithmetic.values import (
    CALLERS,
    CUBE_PATTERN,
    HALF_PRECISION_INTEGERS,
    INTEGERS_BELOW_64_BITS,
    SIX_SPECIAL_VALUES,
    SMALL_AND_WIDE_DOMAINS,
    TERNARY_PATTERNS,
    argument_by_category,
    domain_by_kind,
    draw_truth_values_or,
    draw_wide_integers,
    for_both_operands,
    number_wrapping_to,
    rounded_in_one_operand,
    special_value_templates,
)
from diopi_test.cases.case import Case, cases_for
from diopi_test.cases.domains import Domain, choice, full_range, integer_values, log_uniform, normal, uniform
from diopi_test.cases.elementwise import ROW, Elementwise, Operands, vary_argument
from diopi_test.cases.exact_integers import integers_without_overflow
from diopi_test.cases.facts import CallsUndefinedInPyTorch, CaseFacts, NumberChoice
from diopi_test.cases.template import Arguments, ByDtype, CaseTemplate, DtypeSelection
from diopi_test.cases.type_promotion import IntegerGap

F16, F32 = Dtype.float16, Dtype.float32
"""The element types of some templates."""

PROMOTED_DTYPES = [Dtype.int32, Dtype.uint8, Dtype.bool]
"""Element types that type promotion with a floating-point number changes to float32."""

TERM_DOMAINS = for_both_operands(domain_by_kind(normal(3), full_range))
"""Domains of both operands: normally distributed floating-point numbers, or integers from the type's whole range."""

SUMS = (
    *ROW.variants(
        TERM_DOMAINS,
        {
            "alpha-1": {"other": 2, "alpha": 1},
            "alpha-int": {"other": -3.5, "alpha": -4},
            "alpha-0": {"other": 2.5, "alpha": 0},
            "other-inf": {"other": inf, "alpha": 0.0},
        },
    ),
    ROW.with_domains(TERM_DOMAINS, "alpha-third", {"other": 0.1, "alpha": 1 / 3}, [F32, F16]),
    ROW.with_domains({"input": normal(), "other": SIX_SPECIAL_VALUES}, "ends-alpha-0", {"other": nan, "alpha": 0}),
    ROW.with_domains(for_both_operands(draw_wide_integers), "wide", {"other": 2**53 + 1, "alpha": -1}, [Dtype.int64]),
    ROW.with_domains(for_both_operands(draw_wide_integers), "alpha-0", {"other": 9, "alpha": 0}, [Dtype.int64]),
    ROW.with_domains(SMALL_AND_WIDE_DOMAINS, "whole", {"other": 2999, "alpha": -2}, [Dtype.int32], exact=True).to_dtype(
        F32
    ),
)
"""Templates of sums and differences for all forms: `other` is a number or a tensor."""

BOOL_SUMS = (
    ROW.with_domains(TERM_DOMAINS, "alpha-0", {"other": 3, "alpha": 0}, [Dtype.bool]),
    ROW.with_domains(TERM_DOMAINS, "truth-alpha-0", {"other": True, "alpha": 0}, [Dtype.bool], case_class=CALLERS),
    ROW.with_domains(TERM_DOMAINS, "truth-alpha-3", {"other": False, "alpha": 3}, [Dtype.bool], case_class=CALLERS),
    ROW.with_domains(
        TERM_DOMAINS, "truth-alpha-truth", {"other": False, "alpha": True}, [Dtype.bool], case_class=CALLERS
    ),
)
"""Templates of sums of tensors of type bool."""

UNREPRESENTABLE = {"input": choice([2**24 + 1, 2**24 + 3, 2**24 + 2])}
"""The domain of integers of which float32 represents only the last.

If the other operand is a floating-point number, the function must convert (and round) them before it computes.
"""

WRAPPED_NUMBER: Arguments = {"other": number_wrapping_to(99), "alpha": 1}
"""The arguments for adding a number outside the range of an integer type, which wraps around to 99."""

BEYOND_INT64 = {"input": choice([-0.0, 1.0]), **dict.fromkeys(("other", "tensor1", "tensor2"), choice([0, 2**62]))}
"""Domains of a floating-point tensor and of int64 tensors, whose product with −3 or with each other exceeds int64.

The function must therefore convert the integers to the floating-point type before it multiplies them.
"""

PROMOTING_NUMBERS = vary_argument("", "alpha", {"float-number": 1.5, "float-number-alpha-int": 2}, other=2.5)
"""Arguments by label for adding the floating-point number 2.5 to integers, with a fraction or an integer as `alpha`."""


@cases_for(
    "diopiAdd",
    "diopiSub",
    non_discriminating={"alpha-0|truth-alpha-(0|truth)|ends-alpha-0|other-inf": "0 times any operand is 0 or NaN"},
)
def add_and_sub_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of input + alpha · other and input − alpha · other."""
    is_add = prototype.base == "diopiAdd"
    without_bool = not is_add and prototype.parameter("other").is_tensor
    dtypes = [dtype for dtype in prototype.dtypes if not (without_bool and dtype is Dtype.bool)]
    opposite = {"other": -(2.0**24) if is_add else 2.0**24, "alpha": 1}
    cancelled = ROW.with_domains(UNREPRESENTABLE, "float-number-cancels", opposite, [Dtype.int32], exact=True)
    wrapped = ROW.with_domains(TERM_DOMAINS, "wrapped-number", WRAPPED_NUMBER, INTEGERS_BELOW_64_BITS)
    numbers_by_category = {
        "other": argument_by_category(-1 if is_add else 1, 5, 1.75),
        "alpha": argument_by_category(1, 3, -0.75),
    }
    templates = [
        *Elementwise(prototype).distribute(TERM_DOMAINS, numbers_by_category, dtypes),
        *special_value_templates(prototype, {"other": argument_by_category(1, 1, 0.0), "alpha": 1}),
        *SUMS,
        *(BOOL_SUMS if is_add else ()),
        *(
            (*ROW.variants(TERM_DOMAINS, PROMOTING_NUMBERS, PROMOTED_DTYPES), cancelled, wrapped)
            if prototype.form == "scalar"
            else ()
        ),
        *Elementwise(prototype).promoted(rounded_in_one_operand, {"alpha": 1}),
        *Elementwise(prototype).mixed_types(SMALL_AND_WIDE_DOMAINS, {"alpha": 3}, include_bool=not without_bool),
        *Elementwise(prototype).wider_scalar_tensor(SMALL_AND_WIDE_DOMAINS, {"alpha": 3}),
        *_beyond_int64(prototype, {"alpha": -3}),
    ]
    if without_bool:
        templates += Elementwise(prototype).mixed_types(
            for_both_operands(integer_values(-1, 1)), {"alpha": 1}, [(Dtype.bool, Dtype.int32)], smoke=True
        )
    return Elementwise(prototype).cases(templates)


WIDE_FACTOR = ByDtype(lambda dtype: 2**28 + 1 if dtype is Dtype.int64 else 2**13 + 1)
"""A large odd factor for int32 or int64 whose products with `integers_without_overflow(factors=2)` do not overflow."""

FACTORS = for_both_operands(domain_by_kind(log_uniform(-6, 6), draw_truth_values_or(True, full_range)))
"""The domains of both factors of a product."""

PRODUCTS = (
    *ROW.variants(FACTORS, vary_argument("by", "other", {"0": 0.0, "inf": inf, "nan": nan, "tiny": 1e-3, "int": -3})),
    ROW.with_domains(FACTORS, "by-wide", {"other": 2**53 + 1}, [Dtype.int64]),
    ROW.with_domains(
        for_both_operands(integers_without_overflow(factors=2)),
        "without-overflow",
        {"other": WIDE_FACTOR},
        [Dtype.int32, Dtype.int64],
    ),
    ROW.with_domains(FACTORS, "by-0", {"other": 0}, [Dtype.bool]),
    ROW.with_domains(SMALL_AND_WIDE_DOMAINS, "whole", {"other": 2999}, [Dtype.int32], exact=True).to_dtype(F32),
)
"""Templates of products for all forms: `other` is a number or a tensor."""


@cases_for("diopiMul", non_discriminating={"by-(0|nan)": "a product with 0 is 0, and a product with NaN is NaN"})
def mul_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of multiplication."""
    promoted_products = [
        ROW.with_domains(FACTORS, "float-number", {"other": 2.5}, PROMOTED_DTYPES),
        ROW.with_domains(UNREPRESENTABLE, "float-number-unheld", {"other": 3.0}, [Dtype.int32], exact=True),
        ROW.with_domains(FACTORS, "wrapped-number", {"other": number_wrapping_to(5)}, INTEGERS_BELOW_64_BITS),
    ]
    templates = [
        *Elementwise(prototype).distribute(FACTORS, {"other": argument_by_category(-1, -5, 1.7)}),
        *special_value_templates(prototype, {"other": argument_by_category(1, -2, -2.0)}),
        *PRODUCTS,
        *(promoted_products if prototype.form == "scalar" else ()),
        *Elementwise(prototype).mixed_types(SMALL_AND_WIDE_DOMAINS),
        *Elementwise(prototype).wider_scalar_tensor(SMALL_AND_WIDE_DOMAINS),
        *Elementwise(prototype).promoted(
            lambda dtype: for_both_operands(
                domain_by_kind(choice([3, -3]), IntegerGap(dtype).unrepresentable_integers())
            )
        ),
    ]
    return Elementwise(prototype).cases(templates)


PRODUCT_DOMAINS = {"input": normal(3), "tensor1": normal(2), "tensor2": log_uniform(-2, 2)}
"""The domains of `diopiAddcmul` and `diopiAddcdiv` for floating-point types: a summand and two factors.

The values of the divisor `tensor2` keep away from 0.
"""

PRODUCT_DOMAINS_OF_ANY_TYPE: Mapping[str, Domain] = {
    name: domain_by_kind(domain, full_range) for name, domain in PRODUCT_DOMAINS.items()
}
"""Like `PRODUCT_DOMAINS`, but for integer types with integers from the whole range."""

SUMS_OF_PRODUCTS = (
    *(pattern.with_domains(PRODUCT_DOMAINS_OF_ANY_TYPE, arguments={"value": 0.5}) for pattern in TERNARY_PATTERNS),
    *ROW.variants(PRODUCT_DOMAINS_OF_ANY_TYPE, vary_argument("value", "value", {"1": 1, "0": 0, "int": -2})),
    ROW.with_domains(
        dict.fromkeys(PRODUCT_DOMAINS, integers_without_overflow(factors=2, terms=4)),
        "without-overflow",
        {"value": 3},
        [Dtype.int32, Dtype.int64],
    ),
    ROW.with_domains(PRODUCT_DOMAINS_OF_ANY_TYPE, "value-third", {"value": 1 / 3}, [F32, F16]),
    CUBE_PATTERN.with_domains(dict.fromkeys(PRODUCT_DOMAINS, SIX_SPECIAL_VALUES), "special", {"value": -1}, floating),
    CUBE_PATTERN.with_domains(
        dict.fromkeys(PRODUCT_DOMAINS, SIX_SPECIAL_VALUES), "special-value-0", {"value": 0}, floating
    ),
)
"""Templates of input + value · tensor1 · tensor2, and of the same with a quotient."""


@cases_for("diopiAddcmul", "diopiAddcdiv", non_discriminating={"value-0": "0 times the other two operands is always 0"})
def addcmul_and_addcdiv_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of input + value · tensor1 · tensor2 and input + value · tensor1 / tensor2."""
    templates = [
        *Elementwise(prototype).distribute(PRODUCT_DOMAINS_OF_ANY_TYPE, {"value": argument_by_category(1, -3, 1.7)}),
        *SUMS_OF_PRODUCTS,
    ]
    if prototype.base == "diopiAddcmul":
        truncated = ROW.with_domains(PRODUCT_DOMAINS_OF_ANY_TYPE, "value-truncated", {"value": 2.75}, [Dtype.int32])
        templates.append(truncated if prototype.is_inplace else truncated.to_dtype(Dtype.int32))
        templates += Elementwise(prototype).mixed_types(
            {"input": HALF_PRECISION_INTEGERS, "tensor1": HALF_PRECISION_INTEGERS, "tensor2": integer_values(-9, 9)},
            {"value": 3},
        )
        templates += Elementwise(prototype).promoted(_products, {"value": 1}, floats_first=True)
        templates += _beyond_int64(prototype, {"value": -1})
    else:
        templates += Elementwise(prototype).mixed_types(PRODUCT_DOMAINS, {"value": 3}, exact=False)
    return Elementwise(prototype).cases(templates)


def _beyond_int64(prototype: Prototype, arguments: Arguments) -> Iterator[CaseTemplate[Operands]]:
    """Yield a template of a float32 tensor and int64 tensors whose scaled products int64 does not represent.

    Args:
        prototype: The prototype of the function or form.
        arguments: The argument for the scale, `alpha` or `value`.

    Yields:
        The template; none if the function does not accept these types.
    """
    for template in Elementwise(prototype).mixed_types(BEYOND_INT64, arguments, [(F32, Dtype.int64)]):
        yield template.replace(f"{template.label}-beyond")


def _products(dtype: Dtype) -> dict[str, Domain]:
    """Return domains of a summand and two factors for the case that the factors are integers.

    Args:
        dtype: The floating-point type of the summand, to which the factors are promoted. It cannot represent `tensor1`.

    Returns:
        The domains by argument name. After `tensor1` is rounded to `dtype`, the function makes no rounding error.
    """
    return {
        "input": choice([0, -IntegerGap(dtype).first]),
        "tensor1": IntegerGap(dtype).unrepresentable_integers(signs=[1]),
        "tensor2": choice([3]),
    }


LERP_DOMAINS = {"input": normal(3), "end": normal(3, mean=1), "weight": uniform(-0.5, 1.5)}
"""The domains of the start, the end and the weight of a linear interpolation."""

WEIGHTS = {"below-half": 0.49, "half": 0.5, "int": 2, "negative": -1.3, "third": 2 / 3}
"""Weights by the end of the label: on both sides of ½, where the formula of PyTorch changes, and outside [0, 1]."""

END_DOMAINS = {**LERP_DOMAINS, "weight": choice([0.0, 1.0])}
"""Domains of interpolations with the weights 0 and 1, whose results are the start or the end."""

SPECIAL_DOMAINS = {"input": SIX_SPECIAL_VALUES, "end": SIX_SPECIAL_VALUES, "weight": choice([0, 1, 0.25, 2, nan, 0.5])}
"""Domains of interpolations between special values, with a few different weights."""

LERPS = (
    *(pattern.with_domains(LERP_DOMAINS, arguments={"weight": 0.7}) for pattern in TERNARY_PATTERNS),
    *ROW.variants(LERP_DOMAINS, vary_argument("weight", "weight", WEIGHTS), [F32, F16, Dtype.complex64]),
    *ROW.variants(END_DOMAINS, vary_argument("weight", "weight", (0, 1.0)), DtypeSelection.all, exact=True),
    CUBE_PATTERN.with_domains(SPECIAL_DOMAINS, "special", {"weight": 0.25}, floating),
)
"""Templates of linear interpolations."""


@cases_for("diopiLerpTensor", non_discriminating={"weight-(0|1.0)": "one end of the interpolation has the weight 1"})
def lerp_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the linear interpolation input + weight · (end − input)."""
    return Elementwise(prototype).cases([*Elementwise(prototype).distribute(LERP_DOMAINS, {"weight": 0.3}), *LERPS])


def _has_bool_operand(prototype: Prototype, case: Case) -> bool:
    """Return whether an operand of the case is a tensor of type bool or the number True."""
    tensors, numbers = case.operands(prototype)
    return any(tensor.dtype is Dtype.bool for tensor in tensors) or any(number is True for number in numbers)


def _rounds_integer_operand(prototype: Prototype, case: Case) -> bool:
    """Return whether a floating-point number promotes int32 or int64 tensors to float32.

    Float32 cannot represent all integers of these types.
    """
    tensors, numbers = case.operands(prototype)
    if not tensors or not any(isinstance(number, float) for number in numbers):
        return False
    dtype = tensors[0].dtype
    return category(dtype) == 1 and ELEMENT_SIZE[dtype] >= ELEMENT_SIZE[Dtype.float32]


CaseFacts(
    open_calls=[CallsUndefinedInPyTorch(_has_bool_operand, "torch.sub rejects bool tensors and numbers")]
).declare("diopiSub")
CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _rounds_integer_operand,
            "a floating number promotes integers to float32, which cannot represent all of them; a vendor that "
            "computes more accurately returns another result",
        )
    ]
).declare("diopiAdd", "diopiSub", "diopiMul")

CaseFacts(
    number_choices=[
        NumberChoice("weight", "bool", True, non_discriminating="one end of the interpolation has the weight 1")
    ]
).declare("diopiLerpTensor")
CaseFacts(huge_form="plain").declare("diopiAdd")
CaseFacts(huge_form="inplace").declare("diopiMul")

"""Sums, products, and sums of products: add, sub, mul, addcmul, addcdiv, lerp."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, nan

from diopi_proto.dtypes import ELEMENT_SIZE, category, floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.arithmetic.values import (
    CALLERS,
    CUBE,
    INTEGERS,
    SMALL,
    SMALL_BY_WIDE,
    SPECIAL_AND_FINITE,
    TERNARY,
    by_category,
    by_kind,
    for_both_operands,
    number_wrapping_to,
    rounded_in_one_operand,
    special_value_templates,
    truth_values_or,
    wide_integers,
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

LIFTED = [Dtype.int32, Dtype.uint8, Dtype.bool]
"""The element types that a floating-point number changes to a floating-point type."""

TERMS = for_both_operands(by_kind(normal(3), full_range))
"""Ordinary floating-point numbers, and any integers, as both operands."""

SUMS = (
    *ROW.variants(
        TERMS,
        {
            "alpha-1": {"other": 2, "alpha": 1},
            "alpha-int": {"other": -3.5, "alpha": -4},
            "alpha-0": {"other": 2.5, "alpha": 0},
            "other-inf": {"other": inf, "alpha": 0.0},
        },
    ),
    ROW.with_domains(TERMS, "alpha-third", {"other": 0.1, "alpha": 1 / 3}, [F32, F16]),
    ROW.with_domains({"input": normal(), "other": SPECIAL_AND_FINITE}, "ends-alpha-0", {"other": nan, "alpha": 0}),
    ROW.with_domains(for_both_operands(wide_integers), "wide", {"other": 2**53 + 1, "alpha": -1}, [Dtype.int64]),
    ROW.with_domains(for_both_operands(wide_integers), "alpha-0", {"other": 9, "alpha": 0}, [Dtype.int64]),
    ROW.with_domains(SMALL_BY_WIDE, "whole", {"other": 2999, "alpha": -2}, [Dtype.int32], exact=True).to_dtype(F32),
)
"""Templates of sums and differences with a number."""

TRUTHS = (
    ROW.with_domains(TERMS, "alpha-0", {"other": 3, "alpha": 0}, [Dtype.bool]),
    ROW.with_domains(TERMS, "truth-alpha-0", {"other": True, "alpha": 0}, [Dtype.bool], case_class=CALLERS),
    ROW.with_domains(TERMS, "truth-alpha-3", {"other": False, "alpha": 3}, [Dtype.bool], case_class=CALLERS),
    ROW.with_domains(TERMS, "truth-alpha-truth", {"other": False, "alpha": True}, [Dtype.bool], case_class=CALLERS),
)
"""Templates of sums of truth values."""

UNHELD = {"input": choice([2**24 + 1, 2**24 + 3, 2**24 + 2])}
"""Integers of which float32 represents only the last; beside a floating number they are converted first."""

WRAPPED: Arguments = {"other": number_wrapping_to(99), "alpha": 1}
"""A number that wraps around in the element type."""

BEYOND_INT64 = {"input": choice([-0.0, 1.0]), **dict.fromkeys(("other", "tensor1", "tensor2"), choice([0, 2**62]))}
"""Floating-point numbers for integer tensors, which are converted before they are multiplied."""

LIFTS = vary_argument("", "alpha", {"float-number": 1.5, "float-number-alpha-int": 2}, other=2.5)
"""Floating-point numbers that are added to integers, by label."""


@cases_for(
    "diopiAdd",
    "diopiSub",
    non_discriminating={"alpha-0|truth-alpha-(0|truth)|ends-alpha-0|other-inf": "0 times any operand is 0 or NaN"},
)
def add_and_sub_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of addition and subtraction, with the factor `alpha`."""
    is_add = prototype.base == "diopiAdd"
    without_bool = not is_add and prototype.parameter("other").is_tensor
    dtypes = [dtype for dtype in prototype.dtypes if not (without_bool and dtype is Dtype.bool)]
    opposite = {"other": -(2.0**24) if is_add else 2.0**24, "alpha": 1}
    cancelled = ROW.with_domains(UNHELD, "float-number-cancels", opposite, [Dtype.int32], exact=True)
    wrapped = ROW.with_domains(TERMS, "wrapped-number", WRAPPED, INTEGERS)
    numbers_by_category = {"other": by_category(-1 if is_add else 1, 5, 1.75), "alpha": by_category(1, 3, -0.75)}
    templates = [
        *Elementwise(prototype).distribute(TERMS, numbers_by_category, dtypes),
        *special_value_templates(prototype, {"other": by_category(1, 1, 0.0), "alpha": 1}),
        *SUMS,
        *(TRUTHS if is_add else ()),
        *((*ROW.variants(TERMS, LIFTS, LIFTED), cancelled, wrapped) if prototype.form == "scalar" else ()),
        *Elementwise(prototype).promoted(rounded_in_one_operand, {"alpha": 1}),
        *Elementwise(prototype).mixed_types(SMALL_BY_WIDE, {"alpha": 3}, include_bool=not without_bool),
        *Elementwise(prototype).wider_scalar_tensor(SMALL_BY_WIDE, {"alpha": 3}),
        *_beyond_int64(prototype, {"alpha": -3}),
    ]
    if without_bool:
        templates += Elementwise(prototype).mixed_types(
            for_both_operands(integer_values(-1, 1)), {"alpha": 1}, [(Dtype.bool, Dtype.int32)], smoke=True
        )
    return Elementwise(prototype).cases(templates)


WIDE_FACTOR = ByDtype(lambda dtype: 2**28 + 1 if dtype is Dtype.int64 else 2**13 + 1)
"""A large odd factor whose products with the tensors do not overflow."""

FACTORS = for_both_operands(by_kind(log_uniform(-6, 6), truth_values_or(True, full_range)))
"""The domains of the factors of products."""

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
    ROW.with_domains(SMALL_BY_WIDE, "whole", {"other": 2999}, [Dtype.int32], exact=True).to_dtype(F32),
)
"""Templates of products with a number."""


@cases_for("diopiMul", non_discriminating={"by-(0|nan)": "a product with 0 is 0, and a product with NaN is NaN"})
def mul_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of multiplication."""
    lifted = [
        ROW.with_domains(FACTORS, "float-number", {"other": 2.5}, LIFTED),
        ROW.with_domains(UNHELD, "float-number-unheld", {"other": 3.0}, [Dtype.int32], exact=True),
        ROW.with_domains(FACTORS, "wrapped-number", {"other": number_wrapping_to(5)}, INTEGERS),
    ]
    templates = [
        *Elementwise(prototype).distribute(FACTORS, {"other": by_category(-1, -5, 1.7)}),
        *special_value_templates(prototype, {"other": by_category(1, -2, -2.0)}),
        *PRODUCTS,
        *(lifted if prototype.form == "scalar" else ()),
        *Elementwise(prototype).mixed_types(SMALL_BY_WIDE),
        *Elementwise(prototype).wider_scalar_tensor(SMALL_BY_WIDE),
        *Elementwise(prototype).promoted(
            lambda dtype: for_both_operands(by_kind(choice([3, -3]), IntegerGap(dtype).unrepresentable_integers()))
        ),
    ]
    return Elementwise(prototype).cases(templates)


THREE = {"input": normal(3), "tensor1": normal(2), "tensor2": log_uniform(-2, 2)}
"""The domains of a tensor and two factors, for floating-point types."""

THREE_OF_ANY: Mapping[str, Domain] = {name: by_kind(domain, full_range) for name, domain in THREE.items()}
"""The domains of a tensor and two factors, for all types."""

SUMS_OF_PRODUCTS = (
    *(shapes.with_domains(THREE_OF_ANY, arguments={"value": 0.5}) for shapes in TERNARY),
    *ROW.variants(THREE_OF_ANY, vary_argument("value", "value", {"1": 1, "0": 0, "int": -2})),
    ROW.with_domains(
        dict.fromkeys(THREE, integers_without_overflow(factors=2, terms=4)),
        "without-overflow",
        {"value": 3},
        [Dtype.int32, Dtype.int64],
    ),
    ROW.with_domains(THREE_OF_ANY, "value-third", {"value": 1 / 3}, [F32, F16]),
    CUBE.with_domains(dict.fromkeys(THREE, SPECIAL_AND_FINITE), "special", {"value": -1}, floating),
    CUBE.with_domains(dict.fromkeys(THREE, SPECIAL_AND_FINITE), "special-value-0", {"value": 0}, floating),
)
"""Templates of `diopiAddcmul`."""


@cases_for("diopiAddcmul", "diopiAddcdiv", non_discriminating={"value-0": "0 times the other two operands is always 0"})
def addcmul_and_addcdiv_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of adding a scaled product or quotient."""
    templates = [
        *Elementwise(prototype).distribute(THREE_OF_ANY, {"value": by_category(1, -3, 1.7)}),
        *SUMS_OF_PRODUCTS,
    ]
    if prototype.base == "diopiAddcmul":
        truncated = ROW.with_domains(THREE_OF_ANY, "value-truncated", {"value": 2.75}, [Dtype.int32])
        templates.append(truncated if prototype.is_inplace else truncated.to_dtype(Dtype.int32))
        templates += Elementwise(prototype).mixed_types(
            {"input": SMALL, "tensor1": SMALL, "tensor2": integer_values(-9, 9)}, {"value": 3}
        )
        templates += Elementwise(prototype).promoted(_products, {"value": 1}, floats_first=True)
        templates += _beyond_int64(prototype, {"value": -1})
    else:
        templates += Elementwise(prototype).mixed_types(THREE, {"value": 3}, exact=False)
    return Elementwise(prototype).cases(templates)


def _beyond_int64(prototype: Prototype, arguments: Arguments) -> Iterator[CaseTemplate[Operands]]:
    """Yield a template of floating-point numbers and integers whose products int64 does not represent."""
    for template in Elementwise(prototype).mixed_types(BEYOND_INT64, arguments, [(F32, Dtype.int64)]):
        yield template.replace(f"{template.label}-beyond")


def _products(dtype: Dtype) -> dict[str, Domain]:
    """Return domains of a summand and two factors; the type rounds one factor, after which all results are exact."""
    return {
        "input": choice([0, -IntegerGap(dtype).first]),
        "tensor1": IntegerGap(dtype).unrepresentable_integers(signs=[1]),
        "tensor2": choice([3]),
    }


SPAN = {"input": normal(3), "end": normal(3, mean=1), "weight": uniform(-0.5, 1.5)}
"""The domains of start, end and weight of a linear interpolation."""

WEIGHTS = {"below-half": 0.49, "half": 0.5, "int": 2, "negative": -1.3, "third": 2 / 3}
"""The weights by label."""

AT_ENDS = {**SPAN, "weight": choice([0.0, 1.0])}
"""Interpolations at the start and at the end."""

FEW_WEIGHTS = {"input": SPECIAL_AND_FINITE, "end": SPECIAL_AND_FINITE, "weight": choice([0, 1, 0.25, 2, nan, 0.5])}
"""Special values with few different weights."""

LERPS = (
    *(shapes.with_domains(SPAN, arguments={"weight": 0.7}) for shapes in TERNARY),
    *ROW.variants(SPAN, vary_argument("weight", "weight", WEIGHTS), [F32, F16, Dtype.complex64]),
    *ROW.variants(AT_ENDS, vary_argument("weight", "weight", (0, 1.0)), DtypeSelection.all, exact=True),
    CUBE.with_domains(FEW_WEIGHTS, "special", {"weight": 0.25}, floating),
)
"""Templates of linear interpolations."""


@cases_for("diopiLerpTensor", non_discriminating={"weight-(0|1.0)": "one end of the interpolation has the weight 1"})
def lerp_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of linear interpolation."""
    return Elementwise(prototype).cases([*Elementwise(prototype).distribute(SPAN, {"weight": 0.3}), *LERPS])


def _has_bool_operand(prototype: Prototype, case: Case) -> bool:
    """Return whether an operand is a bool tensor or True."""
    tensors, numbers = case.operands(prototype)
    return any(tensor.dtype is Dtype.bool for tensor in tensors) or any(number is True for number in numbers)


def _rounds_integer_operand(prototype: Prototype, case: Case) -> bool:
    """Return whether integers that float32 cannot represent are promoted to float32 by a floating number."""
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

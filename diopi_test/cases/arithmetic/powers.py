"""Cases of powers: base and exponent are tensors, or one of them is a number.

A pattern is a template that has only the shapes and layouts of operands. A domain is a set of values from which the
elements of a tensor are drawn. If a form takes a number as an operand, it ignores the domain of this operand and uses
the number in the template's arguments. A case is non-discriminating if an implementation with a coarse error passes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, nan

from diopi_proto.dtypes import common_dtype, floating, integer, signed
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.arithmetic.values import (
    CALLERS,
    INTEGERS_BELOW_64_BITS,
    SMOKE_ROW_PATTERN,
    TABLE_PATTERN,
    argument_by_category,
    domain_by_kind,
    draw_truth_values_or,
    number_wrapping_to,
)
from diopi_test.cases.case import Case, TensorSpec, cases_for
from diopi_test.cases.domains import Domain, choice, integer_values, tiny_multiples, uniform
from diopi_test.cases.elementwise import ROW, Elementwise, pattern_template, vary_argument
from diopi_test.cases.facts import CallsUndefinedInPyTorch, CaseFacts, NumberChoice
from diopi_test.cases.type_promotion import IntegerGap

F16, F32 = Dtype.float16, Dtype.float32
"""The element types of some templates."""

NO_POWER_REASONS = {
    "to-(0|nan|no-power)|ends-to-0.0": "every power with the exponent 0 is 1, and with the exponent NaN it is NaN",
    "negative-to-third": "a negative base with a fractional exponent gives NaN",
}
"""The reasons why cases are non-discriminating, by a regular expression for labels."""

SMALL_AND_SPECIAL = choice([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, inf, -inf, nan])
"""A domain of zeros, infinities, NaN, and numbers whose powers with small integer exponents are exact."""

BASES: Mapping[str, Domain] = {
    "input": domain_by_kind(uniform(0.2, 3), integer_values(-5, 5)),
    "exponent": domain_by_kind(uniform(-3, 3), integer_values(0, 5)),
}
"""The domains of ordinary bases and exponents."""

EXPONENTS = {
    **{"0": 0.0, "1": 1, "2": 2, "half": 0.5, "minus-half": -0.5, "minus-1": -1, "3": 3.0, "minus-2": -2.0},
    **{"inf": inf, "nan": nan},
}
"""Exponents of `BASES` by the end of the label."""

NEGATIVE_BASE_EXPONENTS = {"3": 3, "minus-2": -2.0, "third": 1 / 3}
"""Exponents of negative bases by the end of the label: the power with an exponent of 1/3 is NaN for real bases."""

BOOL_BASE_EXPONENTS = vary_argument("to", "exponent", {"2": 2, "no-power": 0, "half": 0.5})
"""Exponents of bases of type bool, by the label of the template."""

OVERFLOWING_EXPONENTS = vary_argument("far", "exponent", (64, 101))
"""Exponents by label whose powers exceed the range of every integer type, and therefore wrap around."""

WIDE_POWER_DOMAINS = {"input": choice([3, -3, 7]), "exponent": integer_values(20, 22)}
"""Domains of bases and exponents whose powers need up to 63 bits, more than float64 represents exactly."""

NEGATIVE_BASES = {"input": uniform(-3, -0.3), "exponent": integer_values(-4, 4)}
"""Domains of negative bases and of integer exponents."""

NEGATIVE_EXPONENTS = {"input": choice([-3, -1, 1, 2]), "exponent": integer_values(-3, 2)}
"""Domains of integer bases and of exponents that may be negative: the power is then 0, 1 or −1."""

BOOL_OPERANDS = {"input": choice([True, False, False]), "exponent": choice([True, False])}
"""Domains of bases and exponents of type bool."""

SUBNORMAL_BASES: Mapping[str, Domain] = {
    "input": tiny_multiples(0.0, 0.25, 0.375, 0.5, 0.75, -0.5),
    "exponent": choice([-0.5, 0.5, -0.25]),
}
"""Domains of bases that are zero or subnormal, and of exponents that give normal results, except for negative bases.

A kernel that flushes subnormal bases to zero returns 0 or infinity.
"""

POWERS = (
    *ROW.variants(BASES, vary_argument("to", "exponent", EXPONENTS)),
    *ROW.variants(
        NEGATIVE_BASES, vary_argument("negative-to", "exponent", NEGATIVE_BASE_EXPONENTS), [F32, F16, Dtype.complex64]
    ),
    *TABLE_PATTERN.variants(
        {"input": SMALL_AND_SPECIAL, "exponent": SMALL_AND_SPECIAL},
        vary_argument("ends-to", "exponent", (-1.0, 3, 0.0)),
        floating,
    ),
    *TABLE_PATTERN.variants(SUBNORMAL_BASES, vary_argument("subnormal-to", "exponent", (-0.5, 0.25)), floating),
    *ROW.variants(WIDE_POWER_DOMAINS, {"wide": {"exponent": 21}, "to-0": {"exponent": 0}}, [Dtype.int64]),
    *TABLE_PATTERN.variants(
        {"input": choice([2, 3, -3, -5, 7]), "exponent": integer_values(60, 127)}, OVERFLOWING_EXPONENTS, signed
    ),
    *TABLE_PATTERN.variants(
        {"input": choice([2, 3, 5, 7]), "exponent": integer_values(60, 127)}, OVERFLOWING_EXPONENTS, [Dtype.uint8]
    ),
)
"""Templates of powers of a tensor for all forms: the exponent is a number or a tensor."""

TENSOR_EXPONENTS = (
    pattern_template("row", (2, 12), (1,)).with_domains(
        {"input": SMALL_AND_SPECIAL, "exponent": choice([0.5])}, "ends-to-half", dtypes=floating
    ),
    TABLE_PATTERN.with_domains(NEGATIVE_EXPONENTS, "negative", dtypes=[Dtype.int8, Dtype.int64]),
    TABLE_PATTERN.with_domains(BOOL_OPERANDS, dtypes=[Dtype.bool], smoke=True, case_class=CALLERS),
)
"""Templates of powers of a tensor whose exponent is a tensor."""

TRUE_EXPONENTS = (
    ROW.with_domains(
        {"input": integer_values(-9, 9)}, "to-truth", {"exponent": True}, [Dtype.int32, F16], case_class=CALLERS
    ),
    SMOKE_ROW_PATTERN.with_domains(BOOL_OPERANDS, "to-truth", {"exponent": True}, [Dtype.bool], case_class=CALLERS),
)
"""Templates of powers of a tensor whose exponent is the truth value True."""

PROMOTING_EXPONENTS = (
    ROW.with_domains({"input": integer_values(0, 9)}, "to-float", {"exponent": 0.5}, [Dtype.int32, Dtype.uint8]),
    *ROW.variants(
        {"input": integer_values(0, 9)},
        vary_argument("to-negative-float", "exponent", {"fraction": -1.5, "integer": -2.0}),
        [Dtype.int32, Dtype.uint8],
    ),
    *SMOKE_ROW_PATTERN.variants(BOOL_OPERANDS, BOOL_BASE_EXPONENTS, [Dtype.bool], case_class=CALLERS),
)
"""Templates of integer and bool bases whose exponent is a number of another kind, which changes the result type."""


@cases_for("diopiPowTensor", non_discriminating=NO_POWER_REASONS)
def power_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of powers of a tensor whose exponent is a tensor or a number."""
    without_bool = [dtype for dtype in prototype.dtypes if dtype is not Dtype.bool]
    templates = [
        *Elementwise(prototype).distribute(BASES, {"exponent": argument_by_category(1, 3, 2.3)}, without_bool),
        *POWERS,
    ]
    if prototype.form in ("plain", "inplace"):
        templates += TENSOR_EXPONENTS
        small_integers = {"input": integer_values(1, 4), "exponent": integer_values(0, 5)}
        roots = {"input": choice([IntegerGap.ABOVE_FLOAT16, 4]), "exponent": choice([0.5, 1])}
        templates += Elementwise(prototype).mixed_types(small_integers, include_bool=False, exact=False)
        templates += Elementwise(prototype).mixed_types(roots, pairs=[(Dtype.int32, F16)], exact=False)
    else:
        templates += TRUE_EXPONENTS
    if prototype.form == "plain":
        bool_domains = dict.fromkeys(BASES, draw_truth_values_or(True, integer_values(1, 4)))
        pairs = [(Dtype.bool, Dtype.int32), (Dtype.bool, F32), (Dtype.int32, Dtype.bool)]
        templates += Elementwise(prototype).mixed_types(bool_domains, {}, pairs, exact=False, case_class=CALLERS)
    elif prototype.form == "scalar":
        templates += PROMOTING_EXPONENTS
    return Elementwise(prototype).cases(templates)


ONE_POWER_REASON = "every power of 1 is 1, and every power of NaN is NaN"
"""The reason why cases of powers of 1 or NaN are non-discriminating."""

EXPONENT = domain_by_kind(uniform(-3, 3), integer_values(0, 6))
"""The domain of a tensor of exponents."""

NUMBER_BASES = {"0": 0.0, "1": 1, "2": 2, "third": 1 / 3, "inf": inf, "nan": nan}
"""Bases of powers with a tensor of exponents, by the end of the label."""

POWERS_OF_NUMBER = (
    *ROW.variants({"exponent": EXPONENT}, vary_argument("of", "input", NUMBER_BASES)),
    ROW.with_domains({"exponent": integer_values(-4, 4)}, "of-negative", {"input": -1.5}, [F32, F16]),
    *TABLE_PATTERN.variants({"exponent": SMALL_AND_SPECIAL}, vary_argument("ends-of", "input", (-2.0, 0.0, 1.0, 0.5))),
    ROW.with_domains({"exponent": EXPONENT}, "of-float", {"input": 1.5}, [Dtype.int32, Dtype.bool]),
    *ROW.variants(
        {"exponent": integer_values(-3, 2)},
        vary_argument("negative-of", "input", (2, -1, 1)),
        [Dtype.int8, Dtype.int64],
    ),
    ROW.with_domains({"exponent": integer_values(20, 22)}, "wide", {"input": 7}, [Dtype.int64]),
    ROW.with_domains({"exponent": integer_values(60, 127)}, "far", {"input": 3}, integer),
    ROW.with_domains(
        {"exponent": integer_values(0, 5)}, "wrapped-number", {"input": number_wrapping_to(3)}, INTEGERS_BELOW_64_BITS
    ),
    ROW.with_domains(
        {"exponent": choice([0, 1, 0, 2])}, "of-truth", {"input": False}, [Dtype.int32], case_class=CALLERS
    ),
)
"""Templates of powers of a number whose exponent is a tensor."""


@cases_for("diopiPowScalar", non_discriminating={"of-(1|nan)|ends-of-1.0|negative-of-1": ONE_POWER_REASON})
def power_of_number_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of powers of a number whose exponent is a tensor."""
    usual = Elementwise(prototype).distribute({"exponent": EXPONENT}, {"input": argument_by_category(3, -3, 1.7)})
    return Elementwise(prototype).cases([*usual, *POWERS_OF_NUMBER])


def _raises_bool_to_bools(prototype: Prototype, case: Case) -> bool:
    """Return whether the exponent is a tensor and type promotion of base and exponent gives bool."""
    tensors, numbers = case.operands(prototype)
    is_tensor = isinstance(case.arguments["exponent"], TensorSpec)
    return is_tensor and common_dtype([tensor.dtype for tensor in tensors], numbers) is Dtype.bool


CaseFacts(
    open_calls=[CallsUndefinedInPyTorch(_raises_bool_to_bools, "torch.pow has no kernel for exponents of bool")]
).declare("diopiPowTensor", "diopiPowScalar")
CaseFacts(number_choices=[NumberChoice("input", "bool", False)]).declare("diopiPowScalar")

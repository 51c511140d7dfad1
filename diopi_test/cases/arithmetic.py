"""Binary and ternary element-wise functions: arithmetic, bounds, comparison and logic, with their scalar forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import category, complexes, floating, integer, is_complex, is_floating, numeric, signed
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, RoundMode
from diopi_test.case import Case, TensorSpec, cases_for
from diopi_test.cases.elementwise import (
    BROADCAST,
    UNIFORM,
    Pattern,
    elementwise_cases,
    fits,
    results,
    special_cases,
    tensor_arguments,
    tensors,
)
from diopi_test.domains import (
    Domain,
    between,
    choice,
    magnitudes,
    normal,
    off_whole,
    special_values,
    whole,
    whole_range,
)
from diopi_test.formats import format_of, is_inexact
from diopi_test.layouts import contiguous, strided, transposed

NAN, INF = float("nan"), float("inf")

Attribute = Any
"""The value of a scalar or other attribute, or a function from the element type to it."""

ROW = Pattern("row", [(4, 5), (5,)])
TABLE = Pattern("table", [(9, 11), (9, 1)])
CUBE = Pattern("cube", [(6, 6, 6), (6, 1), (6,)])


# Domains


def nonzero(domain: Domain) -> Domain:
    """As `domain`, with 1 for every 0."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = domain(rng, count, dtype)
        return np.where(values == 0, 1, values)

    return draw


def by_kind(of_floats: Domain, of_integers: Domain) -> Domain:
    """One domain for floating and complex types, another for integers and bool."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return (of_floats if category(dtype) >= 2 else of_integers)(rng, count, dtype)

    return draw


def without_negative_zero(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """The special values of the type, repeated, with 0 for −0.0: of two zeros either may be the larger."""
    values = special_values(dtype)
    return np.resize(np.where(values == 0, 0, values), count)


def wide_floats(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Whole numbers in [−16000, 16000], every second one divided by 1024."""
    return whole(-16000, 16000)(rng, count, dtype) / np.where(np.arange(count) % 2 == 0, 1, 1024)


def just_off(domain: Domain) -> Domain:
    """As `domain`, one third of them a little larger, by what conversion to a narrower type would lose."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = domain(rng, count, dtype)
        excess = 2.0**-13 if category(dtype) >= 2 else 2**32 if dtype is Dtype.int64 else 0
        return np.where(rng.permutation(count) % 3 == 0, values + excess, values)

    return draw


def lone_in_the_middle(domain: Domain) -> Domain:
    """As `domain`, but a number all alone is between −0.5 and 0.5, so that some of the others lie on either side."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return (between(-0.5, 0.5) if count == 1 and is_floating(dtype) else domain)(rng, count, dtype)

    return draw


def truths_or(first: bool, others: Domain) -> Domain:
    """For bool both truth values alike, `first` if there is but one; else `others`."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return (choice([first, not first]) if dtype is Dtype.bool else others)(rng, count, dtype)

    return draw


def three(ones: int) -> Domain:
    """Three numbers, so few that many pairs are equal; 1 that many times more often, and if there is but one number."""
    kinds: tuple[Sequence[complex], ...] = ([1, 0], [1, 2, 0], [1, -1, 2], [1, 1j, 2])

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        numbers = kinds[category(dtype)]
        return choice([*[numbers[0]] * ones, *numbers[1:]])(rng, count, dtype)

    return draw


def wide_integers(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Integers that differ in their lowest bits only, so that int64 passed through a double shows."""
    top = 2**62 if dtype is Dtype.int64 else 100
    return top + rng.integers(-3, 3, count, endpoint=True)


ENDS = choice([0.0, -0.0, 1.0, -1.5, 7.0, INF, -INF, NAN, 2.0, -7.0])
"""Whole and infinite numbers, whose quotients and remainders are exact."""

FEW = choice([0.0, -0.0, 1.5, INF, -INF, NAN])
"""The special values that matter in sums and products of three tensors."""


# Sets of cases


def attributes(prototype: Prototype, dtype: Dtype, values: Mapping[str, Attribute]) -> dict[str, Any]:
    """The values of the arguments that are no tensors in this form, for element type `dtype`."""
    names = [p.name for p in prototype.arguments if not p.is_tensor]
    return {name: values[name](dtype) if callable(values[name]) else values[name] for name in names}


def by_category(of_bool: Any, of_integers: Any, of_floats: Any) -> Callable[[Dtype], Any]:
    """A number for each category of element types; complex ones take that of floating ones."""
    return lambda dtype: (of_bool, of_integers, of_floats)[min(category(dtype), 2)]


def spread(
    prototype: Prototype,
    domains: Mapping[str, Domain],
    values: Mapping[str, Attribute] | None = None,
    dtypes: Iterable[Dtype] | None = None,
    label: str = "",
) -> Iterator[Case]:
    """Cases of every pattern in one element type; in each of the others of the smoke pattern and one more in turn."""
    chosen = list(dtypes if dtypes is not None else prototype.dtypes)
    several = len(tensor_arguments(prototype)) > 1
    patterns = [pattern for pattern in (*UNIFORM, *(BROADCAST if several else ())) if fits(prototype, pattern)]
    smoke = next(pattern for pattern in patterns if pattern.label == ("row" if several else "matrix"))
    others = [pattern for pattern in patterns if pattern is not smoke]
    for turn, dtype in enumerate(chosen):
        mine = patterns if dtype is _leading(chosen) else [smoke, others[turn % len(others)]]
        given = attributes(prototype, dtype, values or {})
        yield from elementwise_cases(prototype, domains, given, mine, [dtype], label)


def _leading(dtypes: Sequence[Dtype]) -> Dtype:
    return Dtype.float32 if Dtype.float32 in dtypes else dtypes[0]


def specials(
    prototype: Prototype, values: Mapping[str, Attribute] | None = None, dtypes: Sequence[Dtype] = floating
) -> Iterator[Case]:
    """The special values of all tensors with each other; at the smoke level in one type only, for their size."""
    for dtype in (dtype for dtype in dtypes if dtype in prototype.dtypes):
        for case in special_cases(prototype, attributes(prototype, dtype, values or {}), [dtype]):
            yield replace(case, smoke=dtype is _leading(dtypes))


def variants(
    prototype: Prototype,
    dtype: Dtype,
    domains: Mapping[str, Domain],
    values: Mapping[str, Mapping[str, Attribute]],
    pattern: Pattern = ROW,
) -> Iterator[Case]:
    """A case for every set of attribute values, by label; those this form doesn't have are ignored."""
    seen: list[str] = []
    for label, given in values.items():
        chosen = attributes(prototype, dtype, given)
        if repr(chosen) not in seen:
            seen.append(repr(chosen))
            yield from elementwise_cases(prototype, domains, chosen, [pattern], [dtype], label)


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


def mixed(
    prototype: Prototype,
    domains: Mapping[str, Domain],
    values: Mapping[str, Attribute] | None = None,
    exact: bool = True,
    pairs: Sequence[tuple[Dtype, Dtype]] | None = None,
    smoke: bool = False,
) -> Iterator[Case]:
    """Cases whose first tensor has one element type and the others another."""
    first, *others = tensor_arguments(prototype)
    for one, other in pairs or (INPLACE_PAIRS if prototype.is_inplace else PAIRS):
        if not others or one not in prototype.dtypes_of(first) or other not in prototype.dtypes_of(others[0]):
            continue
        arguments = {name: TensorSpec((16,), other, domains[name]) for name in others}
        yield Case(
            f"{one.name}-with-{other.name}",
            one,
            {first: TensorSpec((3, 16), one, domains[first]), **arguments, **attributes(prototype, one, values or {})},
            smoke=smoke,
            exact=exact,
        )


def exactly(cases: Iterable[Case]) -> Iterator[Case]:
    """The same cases with the promise that their data make every intermediate value exact."""
    return (replace(case, exact=True) for case in cases)


def into(dtype: Dtype, cases: Iterable[Case]) -> Iterator[Case]:
    """The same cases with results of type `dtype`, as far as they have a result tensor of its own."""
    for case in cases:
        overrides = {name: replace(override, dtype=dtype) for name, override in case.results.items() if override}
        if overrides:
            yield replace(case, label=f"{case.label}-into-{dtype.name}", results=overrides)


SMALL = whole(-250, 250)
WIDE = by_kind(wide_floats, whole(-3000, 3000))
"""Numbers whose sums and products with `SMALL` are exact in float32, while half precision can't hold them all."""


# Arithmetic


@cases_for(
    "diopiAdd", "diopiSub", weak={"alpha-0|ends-alpha-0|other-inf": "0 times the other is 0, or NaN, whatever it is"}
)
def add_and_sub(prototype: Prototype) -> Iterator[Case]:
    domains = {"input": by_kind(normal(3), whole_range), "other": by_kind(normal(3), whole_range)}
    without_bool = prototype.base == "diopiSub" and "other" in tensor_arguments(prototype)
    dtypes = [dtype for dtype in prototype.dtypes if not (without_bool and dtype is Dtype.bool)]
    number = by_category(-1 if prototype.base == "diopiAdd" else 1, 5, 1.75)
    yield from spread(prototype, domains, {"other": number, "alpha": by_category(1, 3, -0.75)}, dtypes)
    number_at_ends = by_category(1, 1, 0.0)
    yield from specials(prototype, {"other": number_at_ends, "alpha": 1}, [*floating, Dtype.int8])
    yield from variants(
        prototype,
        Dtype.float32,
        domains,
        {
            "alpha-1": {"other": 2, "alpha": 1},
            "alpha-int": {"other": -3.5, "alpha": -4},
            "alpha-0": {"other": 2.5, "alpha": 0},
            "alpha-third": {"other": 0.1, "alpha": 1 / 3},
            "other-inf": {"other": INF, "alpha": 0.0},
        },
    )
    ends = {"input": normal(), "other": FEW}
    yield from variants(prototype, Dtype.float32, ends, {"ends-alpha-0": {"other": NAN, "alpha": 0}})
    yield from variants(prototype, Dtype.float16, domains, {"alpha-third": {"other": 0.1, "alpha": 1 / 3}})
    yield from variants(
        prototype,
        Dtype.int64,
        {"input": wide_integers, "other": wide_integers},
        {"wide": {"other": 2**53 + 1, "alpha": -1}, "alpha-0": {"other": 9, "alpha": 0}},
    )
    if prototype.base == "diopiAdd":
        yield from variants(prototype, Dtype.bool, domains, {"alpha-0": {"other": 3, "alpha": 0}})
    if prototype.form == "scalar":
        lifts = {"float-number": {"other": 2.5, "alpha": 1.5}, "float-number-alpha-int": {"other": 2.5, "alpha": 2}}
        for dtype in (Dtype.int32, Dtype.uint8, Dtype.bool):
            yield from variants(prototype, dtype, domains, lifts)
    elif without_bool:
        whole_numbers = {"input": whole(-1, 1), "other": whole(-1, 1)}
        yield from mixed(prototype, whole_numbers, {"alpha": 1}, pairs=[(Dtype.bool, Dtype.int32)], smoke=True)
        pairs = [pair for pair in (INPLACE_PAIRS if prototype.is_inplace else PAIRS) if pair[0] is not Dtype.bool]
        yield from mixed(prototype, {"input": SMALL, "other": WIDE}, {"alpha": 3}, pairs=pairs)
    else:
        yield from mixed(prototype, {"input": SMALL, "other": WIDE}, {"alpha": 3})
    small = variants(prototype, Dtype.int32, {"input": SMALL, "other": WIDE}, {"whole": {"other": 2999, "alpha": -2}})
    yield from exactly(into(Dtype.float32, small))


@cases_for("diopiMul", weak={"by-(0|nan)": "a product with 0 or NaN is that"})
def mul(prototype: Prototype) -> Iterator[Case]:
    factors = by_kind(magnitudes(-6, 6), truths_or(True, whole_range))
    domains = {"input": factors, "other": factors}
    yield from spread(prototype, domains, {"other": by_category(-1, -5, 1.7)})
    yield from specials(prototype, {"other": by_category(1, -2, -2.0)}, [*floating, Dtype.int8])
    numbers = {"0": 0.0, "inf": INF, "nan": NAN, "tiny": 1e-3, "int": -3}
    yield from variants(prototype, Dtype.float32, domains, {f"by-{k}": {"other": v} for k, v in numbers.items()})
    yield from variants(prototype, Dtype.int64, domains, {"by-wide": {"other": 2**53 + 1}})
    yield from variants(prototype, Dtype.bool, domains, {"by-0": {"other": 0}})
    if prototype.form == "scalar":
        for dtype in (Dtype.int32, Dtype.uint8, Dtype.bool):
            yield from variants(prototype, dtype, domains, {"float-number": {"other": 2.5}})
    yield from mixed(prototype, {"input": SMALL, "other": WIDE})
    small = variants(prototype, Dtype.int32, {"input": SMALL, "other": WIDE}, {"whole": {"other": 2999}})
    yield from exactly(into(Dtype.float32, small))


def quotients(prototype: Prototype, first: str, pattern: Pattern, dtype: Dtype, divisor: float) -> dict[str, Any]:
    """Operands whose quotient keeps away from every whole number: `first` is its product with `other`."""
    shape = np.broadcast_shapes(pattern.shape(0), pattern.shape(1))
    arguments: dict[str, Any] = {"_quotient": TensorSpec(shape, Dtype.float64, off_whole(-6, 6, margin=0.15))}
    if "other" in tensor_arguments(prototype):
        arguments["other"] = TensorSpec(pattern.shape(1), dtype, magnitudes(-2, 2), pattern.layout(1))
    else:
        arguments["other"] = divisor
    arguments[first] = TensorSpec(
        shape, dtype, layout=pattern.layout(0), compute=lambda values: values["_quotient"] * values["other"]
    )
    return arguments


JUMP_PATTERNS = (
    Pattern("row", [(4, 5), (5,)], smoke=True),
    Pattern("long", [(1031,)]),
    Pattern("layouts", [(4, 6)], [transposed, strided], strided),
)


def off_jumps(
    prototype: Prototype, values: Mapping[str, Attribute], dtypes: Iterable[Dtype], label: str, divisor: float
) -> Iterator[Case]:
    """Cases of functions that jump where the quotient of `input` and `other` is whole, away from there."""
    for dtype in dtypes:
        for pattern in JUMP_PATTERNS if dtype is Dtype.float32 else JUMP_PATTERNS[:1]:
            arguments = quotients(prototype, "input", pattern, dtype, divisor)
            rest = attributes(prototype, dtype, {"other": divisor, **values})
            name = "-".join(filter(None, [dtype.name, label, pattern.label]))
            yield Case(name, dtype, {**rest, **arguments}, results(prototype, pattern), smoke=pattern.smoke)


@cases_for("diopiDiv", weak={"by-(inf|nan)|(trunc|floor)-ends-by-nan": "a quotient by infinity is 0, by NaN it is NaN"})
def div(prototype: Prototype) -> Iterator[Case]:
    true = {"other": by_category(2, -7, 1.7), "rounding_mode": RoundMode.none}
    domains = {"input": by_kind(magnitudes(-6, 6), whole(-99, 99)), "other": magnitudes(-6, 6)}
    domains["other"] = by_kind(domains["other"], nonzero(whole(-9, 9)))
    yield from spread(prototype, domains, true)
    yield from specials(prototype, {**true, "other": by_category(0, 0, -0.0)}, [*floating, Dtype.int8])
    numbers = {"0": 0.0, "inf": -INF, "nan": NAN, "third": 1 / 3, "int": 3}
    given = {f"by-{k}": {**true, "other": v} for k, v in numbers.items()}
    yield from variants(prototype, Dtype.float32, domains, given)
    if prototype.form == "scalar":
        for dtype in (Dtype.int32, Dtype.bool):
            yield from variants(prototype, dtype, domains, {"float-number": {**true, "other": 2.5}})
    yield from mixed(prototype, {"input": SMALL, "other": nonzero(WIDE)}, true, exact=False)
    for mode in (RoundMode.trunc, RoundMode.floor):
        yield from _rounded_div(prototype, mode)


def _rounded_div(prototype: Prototype, mode: RoundMode) -> Iterator[Case]:
    dtypes = [dtype for dtype in prototype.dtypes if dtype in floating]
    yield from off_jumps(prototype, {"rounding_mode": mode}, dtypes, mode.name, -1.375)
    domains = {"input": whole(-20, 20), "other": nonzero(whole(-4, 4))}
    for dtype in (dtype for dtype in prototype.dtypes if dtype in numeric):
        given = {f"{mode.name}-whole": {"other": 3 if dtype is Dtype.uint8 else -3, "rounding_mode": mode}}
        yield from exactly(variants(prototype, dtype, domains, given, TABLE))
    if mode == RoundMode.floor:
        # as many tenths as there are, since the nearest number of a type is not 0.1
        tenths = {"input": whole(1, 20), "other": choice([0.1, -0.1, 0.7])}
        for dtype in (Dtype.float32, Dtype.float64):
            nearly = {"floor-nearly-whole": {"other": 0.1, "rounding_mode": mode}}
            yield from exactly(variants(prototype, dtype, tenths, nearly, TABLE))
    for dtype in dtypes:
        numbers: tuple[float, ...] = (2.0, -INF, 0.0, NAN) if dtype is Dtype.float32 else (-INF,)
        by_ends = {f"{mode.name}-ends-by-{n}": {"other": n, "rounding_mode": mode} for n in numbers}
        yield from exactly(variants(prototype, dtype, {"input": ENDS, "other": ENDS}, by_ends, TABLE))


NO_POWER = {
    "to-(0|nan)|ends-to-0.0": "any number to the power 0 is 1, to NaN it is NaN",
    "negative-to-third": "a negative number has no broken power",
}


@cases_for("diopiPowTensor", weak=NO_POWER)
def power(prototype: Prototype) -> Iterator[Case]:
    bases = by_kind(between(0.2, 3), whole(-5, 5))
    domains = {"input": bases, "exponent": by_kind(between(-3, 3), whole(0, 5))}
    yield from spread(prototype, domains, {"exponent": by_category(1, 3, 2.3)})
    negative = {"input": between(-3, -0.3), "exponent": whole(-4, 4)}
    numbers: dict[str, float] = {"0": 0.0, "1": 1, "2": 2, "half": 0.5, "minus-half": -0.5, "minus-1": -1, "3": 3.0}
    numbers |= {"minus-2": -2.0, "inf": INF, "nan": NAN}
    given = {f"to-{label}": {"exponent": number} for label, number in numbers.items()}
    yield from variants(prototype, Dtype.float32, domains, given)
    exponents: dict[str, float] = {"3": 3, "minus-2": -2.0, "third": 1 / 3}
    whole_powers = {f"negative-to-{label}": {"exponent": number} for label, number in exponents.items()}
    for dtype in (Dtype.float32, Dtype.float16, Dtype.complex64):
        yield from variants(prototype, dtype, negative, whole_powers)
    ends = choice([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, INF, -INF, NAN])
    for dtype in floating:
        ends_to = {f"ends-to-{number}": {"exponent": number} for number in (-1.0, 3, 0.0)}
        yield from variants(prototype, dtype, {"input": ends, "exponent": ends}, ends_to, TABLE)
    wide = {"input": choice([3, -3, 7]), "exponent": whole(20, 22)}
    yield from variants(prototype, Dtype.int64, wide, {"wide": {"exponent": 21}, "to-0": {"exponent": 0}})
    if prototype.form in ("plain", "inplace"):
        inverse = {"input": choice([-3, -1, 1, 2]), "exponent": whole(-3, 2)}
        for dtype in (Dtype.int8, Dtype.int64):
            yield from variants(prototype, dtype, inverse, {"negative": {}}, TABLE)
        yield from mixed(prototype, {"input": whole(1, 4), "exponent": whole(0, 5)}, exact=False)
    elif prototype.form == "scalar":
        for dtype in (Dtype.int32, Dtype.uint8):
            yield from variants(prototype, dtype, {"input": whole(0, 9)}, {"to-float": {"exponent": 0.5}})


ONE_POWER = "any power of 1 is 1, of NaN it is NaN"


@cases_for("diopiPowScalar", weak={"of-(1|nan)|ends-of-1.0|negative-of-1": ONE_POWER})
def power_of_number(prototype: Prototype) -> Iterator[Case]:
    domains = {"exponent": by_kind(between(-3, 3), whole(0, 6))}
    yield from spread(prototype, domains, {"input": by_category(3, -3, 1.7)})
    numbers = {"0": 0.0, "1": 1, "2": 2, "third": 1 / 3, "inf": INF, "nan": NAN}
    yield from variants(prototype, Dtype.float32, domains, {f"of-{k}": {"input": v} for k, v in numbers.items()})
    for dtype in (Dtype.float32, Dtype.float16):
        yield from variants(prototype, dtype, {"exponent": whole(-4, 4)}, {"of-negative": {"input": -1.5}})
    ends = {"exponent": choice([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, INF, -INF, NAN])}
    of_ends = {f"ends-of-{number}": {"input": number} for number in (-2.0, 0.0, 1.0, 0.5)}
    yield from variants(prototype, Dtype.float32, ends, of_ends, TABLE)
    for dtype in (Dtype.int32, Dtype.bool):
        yield from variants(prototype, dtype, domains, {"of-float": {"input": 1.5}})
    for dtype in (Dtype.int8, Dtype.int64):
        inverse = {f"negative-of-{number}": {"input": number} for number in (2, -1, 1)}
        yield from variants(prototype, dtype, {"exponent": whole(-3, 2)}, inverse)
    yield from variants(prototype, Dtype.int64, {"exponent": whole(20, 22)}, {"wide": {"input": 7}})


TERNARY = (
    Pattern("three-shapes", [(4, 1, 5), (3, 1), (5,)], smoke=True),
    Pattern("three-layouts", [(4, 6)], [contiguous, transposed, strided], transposed),
)


@cases_for("diopiAddcmul", "diopiAddcdiv", weak={"value-0": "0 times the other two is 0 whatever they are"})
def addcmul_and_addcdiv(prototype: Prototype) -> Iterator[Case]:
    factors = {"input": normal(3), "tensor1": normal(2), "tensor2": magnitudes(-2, 2)}
    domains: dict[str, Domain] = {name: by_kind(domain, whole_range) for name, domain in factors.items()}
    yield from spread(prototype, domains, {"value": by_category(1, -3, 1.7)})
    yield from elementwise_cases(prototype, domains, {"value": 0.5}, TERNARY, [Dtype.float32])
    values = {"1": 1, "0": 0, "int": -2, "third": 1 / 3}
    yield from variants(prototype, Dtype.float32, domains, {f"value-{k}": {"value": v} for k, v in values.items()})
    yield from variants(prototype, Dtype.float16, domains, {"value-third": {"value": 1 / 3}})
    for dtype in floating:
        signs = {"special": {"value": -1}, "special-value-0": {"value": 0}}
        yield from variants(prototype, dtype, dict.fromkeys(factors, FEW), signs, CUBE)
    if prototype.base == "diopiAddcmul":
        truncated = variants(prototype, Dtype.int32, domains, {"value-truncated": {"value": 2.75}})
        yield from ([*truncated] if prototype.is_inplace else into(Dtype.int32, truncated))
        small = {"input": SMALL, "tensor1": SMALL, "tensor2": whole(-9, 9)}
        yield from mixed(prototype, small, {"value": 3})
    else:
        yield from mixed(prototype, factors, {"value": 3}, exact=False)


@cases_for("diopiLerpTensor", weak={"weight-(0|1.0)": "one end has all the weight"})
def lerp(prototype: Prototype) -> Iterator[Case]:
    domains = {"input": normal(3), "end": normal(3, mean=1), "weight": between(-0.5, 1.5)}
    yield from spread(prototype, domains, {"weight": 0.3})
    for pattern in TERNARY:
        yield from variants(prototype, Dtype.float32, domains, {"": {"weight": 0.7}}, pattern)
    weights = {"below-half": 0.49, "half": 0.5, "int": 2, "negative": -1.3, "third": 2 / 3}
    for dtype in (Dtype.float32, Dtype.float16, Dtype.complex64):
        yield from variants(prototype, dtype, domains, {f"weight-{k}": {"weight": v} for k, v in weights.items()})
    at_ends = {**domains, "weight": choice([0.0, 1.0])}
    for dtype in prototype.dtypes:
        ends = {f"weight-{number}": {"weight": number} for number in (0, 1.0)}
        yield from exactly(variants(prototype, dtype, at_ends, ends))
    special = {"input": FEW, "end": FEW, "weight": choice([0, 1, 0.25, 2, NAN, 0.5])}
    for dtype in floating:
        yield from variants(prototype, dtype, special, {"special": {"weight": 0.25}}, CUBE)


NO_REMAINDER = {"ends-(-?inf|nan|0.0)": "of or by such a number there is no remainder"}


@cases_for("diopiRemainderTensor", weak=NO_REMAINDER)
def remainder(prototype: Prototype) -> Iterator[Case]:
    floats = [dtype for dtype in prototype.dtypes if dtype in floating]
    integers = [dtype for dtype in prototype.dtypes if dtype in integer]
    yield from off_jumps(prototype, {}, floats, "", -1.375)
    yield from spread(prototype, {"input": whole_range, "other": nonzero(whole(-9, 9))}, {"other": 7}, integers)
    yield from _whole_remainders(prototype)
    yield from _far_remainders(prototype)
    wide = {"input": wide_integers, "other": choice([7, -11])}
    yield from variants(prototype, Dtype.int64, wide, {"wide": {"other": 2**53 + 1}})
    if prototype.form == "scalar":
        lifted = variants(prototype, Dtype.int32, {"input": whole(-20, 20)}, {"float-number": {"other": 2.5}})
        yield from exactly(lifted)
    else:
        yield from mixed(prototype, {"input": SMALL, "other": nonzero(WIDE)})


@cases_for("diopiRemainder", weak=NO_REMAINDER)
def remainder_of_number(prototype: Prototype) -> Iterator[Case]:
    once_to_thrice = by_kind(between(4.7, 6.5), nonzero(whole(-9, 9)))
    yield from spread(prototype, {"other": once_to_thrice}, {"input": by_category(0, 47, -13.7)})
    yield from _whole_remainders(prototype)
    yield from _far_remainders(prototype)
    yield from variants(prototype, Dtype.int64, {"other": choice([7, -11])}, {"wide": {"input": 2**62 + 3}})
    halves = {"float-number": {"input": 7.5}}
    yield from exactly(variants(prototype, Dtype.int32, {"other": nonzero(whole(-6, 6))}, halves))


def _far_remainders(prototype: Prototype) -> Iterator[Case]:
    """Remainders are exact, however many times the divisor fits."""
    quarters = choice([0.75, 1.25, -7.5, -0.25, 3.0])
    for dtype in floating:
        high = 2.0 ** (format_of(dtype).precision - 2)
        arguments = {"input": whole(int(high / 2), int(high)), "other": quarters}
        numbers = {"far": {"input": high - 1, "other": -0.75 if prototype.base == "diopiRemainderTensor" else 0.0}}
        yield from exactly(variants(prototype, dtype, arguments, numbers))


def _whole_remainders(prototype: Prototype) -> Iterator[Case]:
    """Exact remainders, of whole numbers (one in three is 0) and of the ends of the range."""
    domains = {"input": whole(-20, 20), "other": nonzero(whole(-6, 6))}
    for dtype in prototype.dtypes:
        signs = (1,) if dtype is Dtype.uint8 else (1, -1)
        given = {f"whole-{sign * 4}": {"input": sign * 20, "other": sign * 4} for sign in signs}
        yield from exactly(variants(prototype, dtype, domains, given, TABLE))
    for dtype in floating:
        numbers: tuple[float, ...] = (2.0, -3.0, 0.0, INF, -INF, NAN) if dtype is Dtype.float32 else (-INF,)
        ends = {f"ends-{number}": {"input": number, "other": number} for number in numbers}
        yield from exactly(variants(prototype, dtype, {"input": ENDS, "other": ENDS}, ends, TABLE))


# Bounds


def _bounds(prototype: Prototype) -> dict[str, Domain]:
    """Values around zero, the bounds closer to it, so that about a third of the values lie on either side."""
    is_upper = prototype.base in ("diopiClampMax", "diopiMinimum")
    domains = {"input": normal(3), "min": between(-2, 1), "max": between(0, 2), "other": normal(3)}
    integers = truths_or(is_upper, whole_range)
    return {name: by_kind(lone_in_the_middle(domain), integers) for name, domain in domains.items()}


def whole_bound(of_bool: int, of_uint8: int, of_integers: int, of_floats: float) -> Callable[[Dtype], Any]:
    """A bound in the middle of each type's values."""
    return lambda dtype: of_uint8 if dtype is Dtype.uint8 else by_category(of_bool, of_integers, of_floats)(dtype)


NAN_BOUND = "a bound of NaN makes all NaN"
CROSSED = "with the lower bound above the upper, the upper bound is the result"


@cases_for("diopiClamp", weak={"crossed": CROSSED, "nan-min|nan-max": NAN_BOUND})
def clamp(prototype: Prototype) -> Iterator[Case]:
    domains = _bounds(prototype)
    yield from spread(prototype, domains, {"min": whole_bound(0, 60, 2, -0.3), "max": whole_bound(1, 180, 90, 1.1)})
    yield from (_clamp_by_tensors if "min" in tensor_arguments(prototype) else _clamp_by_numbers)(prototype, domains)


def _clamp_by_tensors(prototype: Prototype, domains: Mapping[str, Domain]) -> Iterator[Case]:
    for dtype in (Dtype.float32, Dtype.bfloat16, Dtype.int16):
        for pattern in (ROW, Pattern("matrix", [(3, 4)], [transposed, strided], transposed)):
            specs = tensors(prototype, dtype, pattern, domains)
            bound = TensorSpec(pattern.shape(1), dtype, domains["max"], pattern.layout(1))
            for bounds in ({"min": None, "max": bound}, {"min": bound, "max": None}):
                absent = "min" if bounds["min"] is None else "max"
                yield Case(f"{dtype.name}-no-{absent}-{pattern.label}", dtype, {**specs, **bounds})
    yield from elementwise_cases(prototype, domains, {}, TERNARY, [Dtype.float32])
    ends = choice([0.0, 1.5, INF, -INF, NAN, -2.0])
    yield from elementwise_cases(prototype, dict.fromkeys(domains, ends), {}, [CUBE], floating, "special")
    crossed = {**domains, "min": between(0.5, 1), "max": between(-1, 0)}
    yield from elementwise_cases(prototype, crossed, {}, [ROW], [Dtype.float32], "crossed")
    wide = dict.fromkeys(domains, wide_integers)
    yield from elementwise_cases(prototype, wide, {}, [ROW], [Dtype.int64], "wide")
    yield from mixed(prototype, dict.fromkeys(domains, SMALL))


def _clamp_by_numbers(prototype: Prototype, domains: Mapping[str, Domain]) -> Iterator[Case]:
    bounds: dict[str, dict[str, Any]] = {
        "no-min": {"min": None, "max": 0.5},
        "no-max": {"min": 0.5, "max": None},
        "ints": {"min": -1, "max": 2},
        "crossed": {"min": 1.5, "max": -0.5},
        "third": {"min": -1 / 3, "max": 1 / 3},
        "infinite": {"min": -INF, "max": INF},
        "nan-min": {"min": NAN, "max": 1.0},
        "nan-max": {"min": -1.0, "max": NAN},
    }
    for dtype in (Dtype.float32, Dtype.float16):
        yield from variants(prototype, dtype, domains, bounds)
    for dtype in (Dtype.int32, Dtype.uint8):
        middle = 100 if dtype is Dtype.uint8 else 3
        whole_bounds: dict[str, dict[str, Any]] = {
            "no-min": {"min": None, "max": middle},
            "no-max": {"min": middle, "max": None},
            "crossed": {"min": 9, "max": 4},
        }
        yield from variants(prototype, dtype, domains, whole_bounds)
    wide = {"wide": {"min": 2**62 - 1, "max": 2**62 + 1}}
    yield from variants(prototype, Dtype.int64, {"input": wide_integers}, wide)
    yield from specials(prototype, {"min": -1.5, "max": 2.5})
    if not prototype.is_inplace:
        halves: dict[str, dict[str, Any]] = {
            "float-bounds": {"min": -1.5, "max": 2.5},
            "float-min": {"min": -1.5, "max": None},
        }
        yield from variants(prototype, Dtype.int32, {"input": whole(-5, 5)}, halves)


NO_CHOICE = {"at-(minus-)?inf": "nothing lies beyond an infinite bound", "at-nan": NAN_BOUND}


@cases_for("diopiClampMin", "diopiClampMax", "diopiMaximum", "diopiMinimum", weak=NO_CHOICE)
def bound(prototype: Prototype) -> Iterator[Case]:
    name = prototype.arguments[1].name
    domains = _bounds(prototype)
    yield from spread(prototype, domains, {name: whole_bound(int(prototype.base == "diopiClampMax"), 90, 7, 0.3)})
    wide = {"input": wide_integers, name: wide_integers}
    yield from variants(prototype, Dtype.int64, wide, {"wide": {name: 2**62 + 1}})
    if name in tensor_arguments(prototype):
        ends = dict.fromkeys(domains, without_negative_zero)
        for dtype in (*floating, Dtype.int8):
            square = Pattern("square", [(19, 19), (19, 1)], smoke=dtype is Dtype.float32)
            yield from elementwise_cases(prototype, ends, {}, [square], [dtype], "special")
        yield from mixed(prototype, {"input": SMALL, name: WIDE})
    else:
        yield from _bound_by_number(prototype, name, domains)


def _bound_by_number(prototype: Prototype, name: str, domains: Mapping[str, Domain]) -> Iterator[Case]:
    numbers = {"0": 0.0, "inf": INF, "minus-inf": -INF, "nan": NAN, "third": -1 / 3, "int": 1}
    given = {f"at-{label}": {name: number} for label, number in numbers.items()}
    for dtype in (Dtype.float32, Dtype.float16):
        yield from variants(prototype, dtype, domains, given)
    yield from specials(prototype, {name: -1.5})
    if not prototype.is_inplace:
        for dtype in (Dtype.int32, Dtype.bool):
            yield from variants(prototype, dtype, {"input": whole(-3, 3)}, {"float-number": {name: 0.5}})


# Comparison and logic


NO_COMPARISON = {
    "to-nan": "NaN is not equal to anything, nor more or less",
    "to-inf": "all numbers are less than infinity",
    "(negative-)?float-number|0|to-int": "no number of the type is equal, or none is less",
    "special": "few of the special values are equal",
}


@cases_for("diopiEq", "diopiNe", "diopiGe", "diopiGt", "diopiLe", "diopiLt", weak=NO_COMPARISON)
def comparison(prototype: Prototype) -> Iterator[Case]:
    # of the two truth values, none is greater than 1, none less than 0
    truth = int(prototype.base not in ("diopiGt", "diopiLe"))
    numbers = three(3 if prototype.base in ("diopiEq", "diopiNe") else 1)
    domains = {"input": numbers, "other": truths_or(bool(truth), numbers)}
    yield from spread(prototype, domains, {"other": by_category(truth, 1, 1.0)})
    yield from specials(prototype, {"other": by_category(1, 0, 0.0)}, [*floating, Dtype.int8])
    fractions = {"input": choice([0.25, 0.5, -0.25, 1]), "other": choice([0.25, 0.5, 1])}
    given = {f"to-{k}": {"other": v} for k, v in {"fraction": 0.5, "int": 0, "nan": NAN, "inf": INF}.items()}
    for dtype in (Dtype.float32, Dtype.bfloat16):
        yield from variants(prototype, dtype, fractions, given)
    wide = dict.fromkeys(("input", "other"), choice([2**62 + 1, 2**62, 2**62 + 2]))
    yield from variants(prototype, Dtype.int64, wide, {"wide": {"other": 2**62 + 1}})
    for dtype in (Dtype.float32, Dtype.int64):
        yield from into(dtype, variants(prototype, Dtype.float32, domains, {"": {"other": 1}}))
    if "other" in tensor_arguments(prototype):
        yield from mixed(prototype, {"input": numbers, "other": just_off(numbers)})
        points = choice([0, -0.0, 1, 1j, -1j, complex(NAN, 0), complex(0, NAN), complex(INF, 1)])
        for dtype in (dtype for dtype in complexes if dtype in prototype.dtypes):
            yield from elementwise_cases(prototype, {"input": points, "other": points}, {}, [TABLE], [dtype], "special")
    else:
        for dtype in (Dtype.int32, Dtype.uint8, Dtype.bool):
            given = {"float-number": {"other": 0.5}, "negative-float-number": {"other": -0.5}, "0": {"other": 0}}
            yield from variants(prototype, dtype, domains, given)


EQUAL_PATTERNS = (
    Pattern("matrix", [(4, 5)], smoke=True),
    Pattern("scalar", [()]),
    Pattern("layouts", [(4, 6)], [transposed, strided]),
    Pattern("long", [(1031,)]),
)


@cases_for("diopiEqual")
def equal(prototype: Prototype) -> Iterator[Case]:
    for dtype in prototype.dtypes:
        for pattern in EQUAL_PATTERNS if dtype in (Dtype.float32, Dtype.int64) else EQUAL_PATTERNS[:1]:
            for label, places in {"same": [], "first": [0], "last": [-1]}.items():
                yield _altered_copy(dtype, pattern, label, places)
    ones = choice([1.0])
    for label, (one, other) in EQUAL_SHAPES.items():
        yield _pair(label, TensorSpec(one, Dtype.float32, ones), TensorSpec(other, Dtype.float32, ones))
    for label, (first, second) in EQUAL_ENDS.items():
        specs = (TensorSpec((3,), Dtype.float32, choice([value])) for value in (first, second))
        yield _pair(label, *specs)
    for label, value in {"with-int32": 200, "with-int32-other": 56}.items():
        hundreds = TensorSpec((2,), Dtype.uint8, choice([200]))
        yield _pair(label, hundreds, TensorSpec((2,), Dtype.int32, choice([value])))
    for label, value in {"with-int8": 100, "with-int8-other": -56}.items():
        given = TensorSpec((2,), Dtype.uint8, choice([value % 256]))
        yield _pair(label, given, TensorSpec((2,), Dtype.int8, choice([value])))


EQUAL_SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "shapes": ((2, 3), (3, 2)),
    "broadcast": ((2, 3), (3,)),
    "ones": ((3,), (1, 3)),
    "empty": ((0, 3), (0, 3)),
    "empty-shapes": ((0, 3), (3, 0)),
}

EQUAL_ENDS = {"nan": (NAN, NAN), "zeros": (0.0, -0.0), "infinities": (INF, INF), "signs": (INF, -INF)}


def _pair(label: str, input: TensorSpec, other: TensorSpec) -> Case:
    return Case(f"{input.dtype.name}-{label}", input.dtype, {"input": input, "other": other})


def _altered_copy(dtype: Dtype, pattern: Pattern, label: str, places: Sequence[int]) -> Case:
    """Two tensors that differ at `places` only, counted in row-major order, and there by as little as possible."""

    def altered(values: Mapping[str, Any]) -> NDArray[Any]:
        copy = np.array(values["input"]).reshape(-1)
        copy[places] = copy[places] * (1 + format_of(dtype).epsilon) if is_inexact(dtype) else copy[places] ^ 1
        return copy.reshape(pattern.shape(1))

    input = TensorSpec(pattern.shape(0), dtype, by_kind(normal(), whole_range), pattern.layout(0))
    other = TensorSpec(pattern.shape(1), dtype, layout=pattern.layout(1), compute=altered)
    return Case(f"{dtype.name}-{label}-{pattern.label}", dtype, {"input": input, "other": other}, smoke=pattern.smoke)


def truths(first: bool) -> Domain:
    """Zeros and values that a conversion on the way would lose: fractions, and integers whose lowest byte is zero.

    Two in three are true, one in two if `first` is false; if there is but one, it is as `first` says.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if is_complex(dtype):
            values: Sequence[complex] = [0.25, 0.25j, complex(NAN, 0), -1j]
        elif is_floating(dtype):
            values = [0.25, -0.5, NAN, INF]
        else:
            values = [1, {Dtype.int16: 256, Dtype.int32: 65536, Dtype.int64: 2**32}.get(dtype, 1)]
        zeros = [0.0, -0.0] if is_inexact(dtype) else [0]
        return choice([*values, *zeros] if first else [*zeros, *zeros, *values])(rng, count, dtype)

    return draw


@cases_for("diopiLogicalAnd", "diopiLogicalOr", weak={"special": "few of the special values are false"})
def logic(prototype: Prototype) -> Iterator[Case]:
    domains = dict.fromkeys(("input", "other"), truths(prototype.base == "diopiLogicalAnd"))
    yield from spread(prototype, domains)
    yield from specials(prototype, {}, [*floating, Dtype.int8])
    yield from mixed(prototype, domains)


@cases_for("diopiBitwiseAnd", "diopiBitwiseOr", weak={"0|all": "0 has no bit, −1 has them all"})
def bitwise(prototype: Prototype) -> Iterator[Case]:
    is_and = prototype.base == "diopiBitwiseAnd"
    domains = dict.fromkeys(("input", "other"), truths_or(is_and, whole_range))
    yield from spread(prototype, domains, {"other": by_category(int(is_and), 0x5A, 0)})
    yield from specials(prototype, {"other": -2}, signed)
    numbers = {"0": 0, "all": -1, "low": 1, "negative": -86}
    for dtype in signed:
        yield from variants(prototype, dtype, domains, {k: {"other": v} for k, v in numbers.items()})
    yield from variants(prototype, Dtype.int64, domains, {"wide": {"other": 0x5A5A_0F0F_3333_0001}})
    yield from variants(prototype, Dtype.bool, domains, {"0": {"other": 0}})
    if prototype.form == "scalar":
        yield from variants(prototype, Dtype.bool, domains, {"number": {"other": 5 if is_and else 6}})
    yield from mixed(prototype, domains)


# Lists of tensors


LISTS: dict[str, list[tuple[int, ...]]] = {
    "three": [(3, 4), (5,), ()],
    "one": [(2, 3)],
    "none": [],
    "with-empty": [(2,), (0, 3), (4,)],
    "many": [(n % 4 + 1, 2) for n in range(21)],
    "very-many": [(n % 3 + 1,) for n in range(150)],
    "long": [(1031,), (2, 3)],
}


ABSORBING = {"by-(0|inf|nan)": "0, infinity and NaN leave nothing of the elements"}


@cases_for("diopiForeachaddScalar", "diopiForeachmulScalar", "diopiForeachmulTensor", weak=ABSORBING)
def foreach(prototype: Prototype) -> Iterator[Case]:
    by_tensor = prototype.parameter("other").is_tensor

    def case(label: str, dtypes: Sequence[Dtype], other: Any, shapes: str = "three", **options: Any) -> Case:
        domain = whole(-9, 9) if options.get("exact") else by_kind(normal(3), whole_range)
        layout = options.pop("layout", contiguous)
        inputs = [
            TensorSpec(shape, dtype, domain, layout) for shape, dtype in zip(LISTS[shapes], cycle(dtypes), strict=False)
        ]
        overrides = results(prototype, Pattern(label, LISTS[shapes], result=layout))
        return Case(f"{dtypes[0].name}-{label}", dtypes[0], {"inputs": inputs, "other": other}, overrides, **options)

    def one(dtype: Dtype, value: Any, shape: tuple[int, ...] = ()) -> Any:
        return TensorSpec(shape, dtype, choice([value])) if by_tensor else value

    number = by_category("mul" in prototype.name, 3, 1.7)
    for dtype in prototype.dtypes:
        yield case("three", [dtype], one(dtype, number(dtype)), smoke=True)
    for shapes in ("one", "none", "with-empty", "many", "long"):
        yield case(shapes, [Dtype.float32], one(Dtype.float32, -0.3), shapes)
    yield case("very-many", [Dtype.float32], one(Dtype.float32, 3.5), "very-many")
    yield case("long", [Dtype.float16], one(Dtype.float16, -0.3), "long")
    for layout in (transposed, strided):
        yield case(layout.__name__, [Dtype.float32], one(Dtype.float32, 2.5), layout=layout)
    for label, value in {"int": 3, "0": 0, "inf": INF, "nan": NAN, "third": 1 / 3}.items():
        for dtype in (Dtype.float32, Dtype.bfloat16):
            yield case(f"by-{label}", [dtype], one(dtype, value))
    yield case("wide", [Dtype.int64], one(Dtype.int64, 2**53 + 1))
    yield case("one-element", [Dtype.float16], one(Dtype.float16, 1.5, (1,)))
    several = [Dtype.float32, Dtype.int32, Dtype.float16, Dtype.complex64]
    yield case("several-dtypes", several, one(Dtype.float32, 3), "many", exact=True)
    yield case("float-number", [Dtype.int32, Dtype.uint8], one(Dtype.float32, 2.0), exact=True)

"""Cases with exceptional numbers, derived from a function's own cases.

The numbers are NaNs with the sign bit set, zero factors, numbers that overflow, numbers near the ends of the range, and
subnormal numbers. One function of this module per kind of numbers yields the cases, and states which functions of the
standard have them. A function of the standard has at most one case per element type and label suffix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import discrete_rules, floating, half, is_floating, position
from diopi_proto.facts import NamesAxis
from diopi_proto.parameters import Factor
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import Domain, random_generator
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.selection.open_calls import reason_open
from lib_rt.formats import format_of

Values = NDArray[Any]
"""A vector of numbers that a domain draws for a tensor."""

EXTREME_DTYPES = (Dtype.float32, Dtype.float16)
"""The types of cases with numbers near the ends of the range."""

NEGATIVE_NAN = float(np.copysign(np.nan, -1.0))
"""A NaN with the sign bit set."""


def exceptional_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield all cases with exceptional numbers.

    Args:
        prototype: The prototype of the function.
        cases: The function's own cases.

    Yields:
        The cases; none for functions with random results. They are derived only from cases that a vendor must pass.
    """
    if prototype.guarantee == "random":
        return
    required = [case for case in cases if case.case_class.is_demanded and not reason_open(prototype, case)]
    yield from negative_nan_cases(prototype, required)
    yield from zero_factor_cases(prototype, required)
    yield from overflow_cases(prototype, required)
    yield from extreme_cases(prototype, required)
    yield from subnormal_cases(prototype, required)


def negative_nan_cases(prototype: Prototype, cases: Iterable[Case]) -> Iterator[Case]:
    """Yield, per floating-point type, a copy of the first case with NaNs in which each NaN has its sign bit set.

    A kernel that compares the bits of numbers as integers takes a NaN with the sign bit for a number below −∞.

    Args:
        prototype: The prototype of the function.
        cases: The function's own cases.

    Yields:
        The cases; none if no case contains NaNs.
    """
    yield from _first_per_type(prototype, cases, floating, "negative-nan", _with_negative_nans)


def zero_factor_cases(prototype: Prototype, cases: Iterable[Case]) -> Iterator[Case]:
    """Yield, per floating-point type, a copy of the first case with infinities, with new numbers in all tensors.

    The first number of each tensor is ∞, the last is NaN, and all others are 0.

    A kernel that skips factors of 0 returns 0 for 0 · ∞ and 0 · NaN, which are NaN.

    Args:
        prototype: The prototype of the function.
        cases: The function's own cases.

    Yields:
        The cases; none unless the function multiplies matrices and has a case with infinities in which all tensors are
        drawn floating-point numbers.
    """
    if prototype.multiplies_matrices:
        yield from _first_per_type(prototype, cases, floating, "zero-factors", _with_zero_factors)


def overflow_cases(prototype: Prototype, cases: Iterable[Case]) -> Iterator[Case]:
    """Yield, per half-precision type, a copy of the first suitable smoke case with some numbers near the largest one.

    A kernel that saturates returns the largest number of the type where the result overflows to infinity.

    Args:
        prototype: The prototype of the function.
        cases: The function's own cases.

    Yields:
        The cases; none unless the function rounds its result and is element-wise, multiplies matrices, or works along
        an axis that an argument names. Gradients have none.
    """
    # Vendors add along an axis in float32, which has the range of bfloat16: it is open whether bfloat16 sums overflow.
    names_axis = any(parameter.fact(NamesAxis) for parameter in prototype.arguments)
    dtypes = half if prototype.elementwise or prototype.multiplies_matrices else (Dtype.float16,) if names_axis else ()
    is_rounded = prototype.guarantee == "rounded" and prototype.result not in discrete_rules
    if is_rounded and not prototype.is_gradient:
        yield from _first_per_type(prototype, cases, dtypes, "overflow", _with_large_numbers)


def extreme_cases(prototype: Prototype, cases: Iterable[Case]) -> Iterator[Case]:
    """Yield, per type, copies of the first suitable smoke case with numbers near the lowest and the highest number.

    The first tensor of the type under test gets these numbers.

    A kernel whose maximum starts from −10,000 or another finite number returns this number if all others are lower.

    Args:
        prototype: The prototype of the function.
        cases: The function's own cases.

    Yields:
        The cases; none unless the function selects numbers along an axis or declares `CaseFacts.finds_extremes`.
        Gradients have none.
    """
    selects = prototype.guarantee in ("exact", "any_of") or prototype.result is position
    names_axis = any(parameter.fact(NamesAxis) for parameter in prototype.arguments)
    finds_extremes = selects and names_axis and not prototype.moves_numbers
    if (finds_extremes or CaseFacts.declared_for(prototype).finds_extremes) and not prototype.is_gradient:
        for suffix, sign in (("near-lowest", -1.0), ("near-highest", 1.0)):
            yield from _first_per_type(prototype, cases, EXTREME_DTYPES, suffix, partial(_with_extremes, sign))


def subnormal_cases(prototype: Prototype, cases: Iterable[Case]) -> Iterator[Case]:
    """Yield, per floating-point type, a copy of the first suitable smoke case with only subnormal numbers.

    A vendor may flush subnormal numbers to zero when it computes, but not when it only moves them.

    Args:
        prototype: The prototype of the function.
        cases: The function's own cases.

    Yields:
        The cases; none unless the function only moves numbers.
    """
    if prototype.moves_numbers:
        yield from _first_per_type(prototype, cases, floating, "all-subnormal", _with_subnormals)


def _first_per_type(
    prototype: Prototype,
    cases: Iterable[Case],
    dtypes: Iterable[Dtype],
    suffix: str,
    make: Callable[[Prototype, Case, str], Case | None],
) -> Iterator[Case]:
    """Yield at most one derived case per element type.

    Args:
        prototype: The prototype of the function.
        cases: The original cases.
        dtypes: The element types.
        suffix: The label of the derived cases without the element type.
        make: Returns the derived case for the prototype, an original case and a label; None if the case is unsuitable.

    Yields:
        For each type, the case derived from the first suitable case of this type.
    """
    remaining = set(dtypes)
    for case in cases:
        if case.dtype in remaining and (derived := make(prototype, case, f"{case.dtype.name}-{suffix}")) is not None:
            remaining.remove(case.dtype)
            yield replace(derived, smoke=False, exact=False)


def _with_negative_nans(prototype: Prototype, case: Case, label: str) -> Case | None:
    """Return a case with the sign bits of its NaNs set and the same other numbers; None if it has no NaNs."""
    if not _has_numbers(prototype, case, np.isnan):
        return None

    def domain_of(word: str, spec: TensorSpec) -> Domain:
        """Return a domain with the numbers of the original case, whose NaNs are negative."""
        return partial(_draw_with_negative_nans, (prototype.base, case.label, word), spec.domain)

    return _with_domains(case, label, domain_of)


def _draw_with_negative_nans(key: tuple[str, ...], domain: Domain, rng: Generator, count: int, dtype: Dtype) -> Values:
    """Draw numbers from a domain with the generator of this key, and set the sign bit of each NaN."""
    values = domain(random_generator(*key), count, dtype)
    return np.where(np.isnan(values), NEGATIVE_NAN, values)


def _with_zero_factors(prototype: Prototype, case: Case, label: str) -> Case | None:
    """Return a case with ∞, zeros and NaN in all tensors.

    Return None if the case has no infinities, or a tensor that is not drawn, is empty or has no floating-point numbers.
    """
    if not all(_is_drawn(spec) for _, spec in _named_specs(case)) or not _has_numbers(prototype, case, np.isinf):
        return None
    return _with_domains(case, label, lambda word, spec: draw_infinity_zeros_and_nan)


def draw_infinity_zeros_and_nan(rng: Generator, count: int, dtype: Dtype) -> Values:
    """Return infinity first, NaN last, and zeros between them."""
    values = np.zeros(count)
    values[0], values[-1] = np.inf, np.nan
    return values


def _has_numbers(prototype: Prototype, case: Case, is_affected: Callable[[Values], Values]) -> bool:
    """Return whether a floating-point tensor of a case has numbers for which `is_affected` is true."""
    samples = (_draw(prototype, case, word, spec) for word, spec in _named_specs(case) if _is_drawn(spec))
    return any(bool(is_affected(values).any()) for values in samples)


def _with_large_numbers(prototype: Prototype, case: Case, label: str) -> Case | None:
    """Return a copy of a smoke case with large numbers in its tensors of the tested type; None if unsuitable.

    Factors such as alpha are 1, because a negative factor could keep sums within the range.
    """
    specs = dict(_named_specs(case))
    if not specs or not case.smoke or any(spec.compute is not None or not prod(spec.shape) for spec in specs.values()):
        return None
    tested = {word: spec for word, spec in specs.items() if spec.dtype is case.dtype}
    if not all(_accepts_large_numbers(_draw(prototype, case, word, spec)) for word, spec in tested.items()):
        return None
    draw_large = draw_large_ends if prototype.multiplies_matrices else draw_large_parts
    factors = {p.name: 1.0 for p in prototype.arguments if p.annotation is Factor}
    case = replace(case, arguments={**case.arguments, **factors})
    return _with_domains(case, label, lambda word, spec: draw_large if word in tested else spec.domain)


def _accepts_large_numbers(values: Values) -> bool:
    """Return whether large numbers may replace these values: some are below 1 and some above, or all are 0."""
    return bool(values.min() < 1 < values.max()) or not values.any()


def draw_large_ends(rng: Generator, count: int, dtype: Dtype) -> Values:
    """Draw numbers from 1/16 to 1, except the first and the last one, which are near the largest number."""
    return _draw_large(rng, count, dtype, 1)


def draw_large_parts(rng: Generator, count: int, dtype: Dtype) -> Values:
    """Draw numbers from 1/16 to 1, except the first and the last eighth, which are near the largest number."""
    return _draw_large(rng, count, dtype, max(count // 8, 1))


def _draw_large(rng: Generator, count: int, dtype: Dtype, ends: int) -> Values:
    """Draw numbers from 1/16 to 1, except `ends` of them at the beginning and at the end, which are large."""
    # All numbers are positive: with both signs, the order of additions would decide whether a sum is infinite or NaN.
    values = np.exp2(rng.uniform(-4, 0, count))
    values[:ends] = values[-ends:] = format_of(dtype).largest * rng.uniform(0.75, 1, min(ends, count))
    return values


def _with_extremes(sign: float, prototype: Prototype, case: Case, label: str) -> Case | None:
    """Return a copy of a smoke case with extreme numbers in its first drawn tensor of the type under test.

    The numbers have the sign of `sign`. Return None if the case is not a smoke case or has no such tensor.
    """
    first = next((word for word, spec in _named_specs(case) if spec.dtype is case.dtype and _is_drawn(spec)), None)
    if not case.smoke or first is None:
        return None
    domain = partial(draw_extremes, sign)
    return _with_domains(case, label, lambda word, spec: domain if word == first else spec.domain)


def draw_extremes(sign: float, rng: Generator, count: int, dtype: Dtype) -> Values:
    """Draw numbers with this sign from 50 % to 55 % of the largest number, so that their differences are finite."""
    return sign * format_of(dtype).largest * rng.uniform(0.5, 0.55, count)


def _with_subnormals(prototype: Prototype, case: Case, label: str) -> Case | None:
    """Return a copy of a smoke case with subnormal numbers in its floating-point tensors.

    The results also have the type under test, so that nothing is converted. Return None if the case is not a smoke
    case, or has no drawn floating-point tensors, or has some of another type.
    """
    specs = [spec for _, spec in _named_specs(case) if _is_drawn(spec)]
    if not case.smoke or not specs or any(spec.dtype is not case.dtype for spec in specs):
        return None
    results = {
        name: result if result is None or result.dtype is None else replace(result, dtype=case.dtype)
        for name, result in case.results.items()
    }
    return replace(_with_domains(case, label, lambda word, spec: draw_subnormals), results=results)


def draw_subnormals(rng: Generator, count: int, dtype: Dtype) -> Values:
    """Draw subnormal numbers of both signs, none of which is zero."""
    form = format_of(dtype)
    multiples = rng.integers(1, int(form.tiny / form.subnormal), count)
    return np.asarray(multiples * form.subnormal * rng.choice([-1.0, 1.0], count))


def _named_specs(case: Case) -> Iterator[tuple[str, TensorSpec]]:
    """Yield each tensor argument with the word that seeds its random numbers: "input", or "tensors.0" in a list.

    The module `diopi_test.oracle.data` draws the numbers with the same words.
    """
    for name, value in case.arguments.items():
        if isinstance(value, TensorSpec):
            yield name, value
        elif isinstance(value, list):
            yield from ((f"{name}.{i}", entry) for i, entry in enumerate(value) if isinstance(entry, TensorSpec))


def _draw(prototype: Prototype, case: Case, word: str, spec: TensorSpec) -> Values:
    """Return the numbers that the domain of a tensor draws in this case, at least one."""
    return spec.domain(random_generator(prototype.base, case.label, word), max(prod(spec.shape), 1), spec.dtype)


def _is_drawn(spec: TensorSpec) -> bool:
    """Return whether a tensor has elements that are real floating-point numbers drawn from a domain."""
    return spec.compute is None and is_floating(spec.dtype) and prod(spec.shape) > 0


def _with_domains(case: Case, label: str, domain_of: Callable[[str, TensorSpec], Domain]) -> Case:
    """Return a case with other domains of its drawn floating-point tensors.

    Args:
        case: The original case.
        label: The label of the new case.
        domain_of: Returns the domain for the word of a tensor (`_named_specs`) and the tensor.

    Returns:
        The new case.
    """
    domains = {word: domain_of(word, spec) for word, spec in _named_specs(case) if _is_drawn(spec)}

    def with_domain(word: str, value: Any) -> Any:
        """Return an argument with the new domain of the tensor, or of each tensor in a list."""
        if isinstance(value, list):
            return [with_domain(f"{word}.{number}", entry) for number, entry in enumerate(value)]
        return replace(value, domain=domains[word]) if word in domains else value

    arguments = {name: with_domain(name, value) for name, value in case.arguments.items()}
    return replace(case, label=label, arguments=arguments)

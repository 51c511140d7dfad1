"""Half-precision cases of sums, with whole numbers that reveal a vendor which accumulates in half precision.

The sums are exact in float32, in any order, and are rounded once. Their partial sums have more bits than a
half-precision number, so that a vendor which rounds them has another result, however few terms there are.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass, TensorSpec
from diopi_test.cases.domains import Domain, choice, integer_values
from diopi_test.cases.template import CaseTemplate, DtypeSelection
from lib_rt.formats import format_of

UNSUITABLE = (CaseClass.special, CaseClass.empty, CaseClass.open, CaseClass.negative)
"""The classes of cases that keep their numbers."""

SizesT = TypeVar("SizesT")

MAX_TOTAL = 60_000
"""The largest exact sum of float16, whose largest number is 65,504."""

TYPICAL_TOTAL = 8000
"""The standard deviation of exact sums with either sign."""


DomainOfTerms = Callable[[int, Dtype], Domain | None]
"""Returns the domain of the numbers in sums of this many terms, for a half-precision type; None if there is none."""

NEARLY_EQUAL = choice([0.7, -0.7, 0.9, -0.9])
"""Numbers whose moduli are so few that the rounding errors of long sums of their powers do not cancel."""

LONG_ROW = 1031
"""The length of rows whose sums of powers lose many units in half precision."""


def nonzero_integers(largest: int) -> Domain:
    """Return a domain of integers of either sign from 1 to `largest` in magnitude."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Draw magnitudes and signs."""
        return np.asarray(rng.integers(1, largest + 1, count) * rng.choice([-1, 1], count))

    return draw


def largest_factor(terms: int, factors: int, dtype: Dtype) -> int:
    """Return the largest whole number with which sums of products neither overflow nor are exact in half precision.

    Args:
        terms: the number of terms of a sum.
        factors: the number of factors of a term.
        dtype: the half-precision type.

    Returns:
        The largest magnitude of a factor, which is uniformly distributed.
    """
    deviation = (TYPICAL_TOTAL / math.sqrt(max(terms, 1))) ** (1 / factors)
    return int(min(deviation * math.sqrt(3), 2 ** format_of(dtype).precision - 1))


def integer_factors(factors: int) -> DomainOfTerms:
    """Return a function that returns the domain of `factors` factors of each term, for exact sums of products."""
    return lambda terms, dtype: nonzero_integers(largest_factor(terms, factors, dtype))


integer_pairs = integer_factors(2)
"""Returns the domain of the two factors of each term."""


def integer_multiples(terms: int, dtype: Dtype) -> Domain | None:
    """Return a domain of multiples of the number of terms, whose mean is a whole number of the element type.

    Return None if there are too many terms for several such numbers.
    """
    largest = 2 ** format_of(dtype).precision // max(terms, 1) - 1
    if largest < 4:
        return None
    return lambda rng, count, _: terms * rng.integers(1, largest + 1, count).astype(np.float64)


def reveal_half_sums(
    cases: Iterable[Case],
    terms: Callable[[Case], int],
    *,
    domain_of: DomainOfTerms = integer_pairs,
    addends: Collection[str] = (),
    unchanged: Collection[str] = (),
) -> Iterator[Case]:
    """Yield the cases, half-precision ones with whole numbers whose partial sums no half-precision type represents.

    A vendor may round a product before it adds something. So addends are 0, and a case keeps its numbers if it scales a
    product by anything but a power of 2. Cases with exact, special or computed numbers keep them, too.

    Args:
        cases: the cases of a function.
        terms: returns the number of terms of the sums of a case.
        domain_of: returns the domain of the numbers for a number of terms.
        addends: the names of tensors that are added to the sums.
        unchanged: the labels of cases that keep their numbers, because large sums would hide what is added.

    Yields:
        The cases.
    """
    for case in cases:
        domain = domain_of(terms(case), case.dtype) if case.dtype in half else None
        if domain is None or case.label in unchanged or not _is_suitable(case):
            yield case
            continue
        arguments = {
            name: _with_domain(value, choice([0]) if name in addends else domain, case.dtype)
            for name, value in case.arguments.items()
        }
        yield replace(case, arguments=arguments, exact=True)


def reveal_half_gradients(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield the cases; the gradients of the bias of half-precision ones are exact sums of whole numbers in float32.

    Args:
        cases: the cases of the gradients of a normalization.

    Yields:
        The cases.
    """
    for case in cases:
        gradient, bias = case.arguments["grad_output"], case.results.get("grad_bias")
        parameters = _parameter_shape(case)
        if not _is_suitable(case, ["grad_output"]) or bias is None or parameters is None:
            yield case
            continue
        terms = math.prod(gradient.shape) // math.prod(parameters)
        # two of these numbers exceed the whole numbers of the type, and a third one makes the difference visible
        largest = min(2 ** (format_of(case.dtype).precision + 1) // 3, MAX_TOTAL // terms)
        domain = integer_values(max(3 * largest // 4, 1), largest)
        arguments = {**case.arguments, "grad_output": replace(gradient, domain=domain)}
        yield replace(case, arguments=arguments, exact=("grad_bias",))


def _parameter_shape(case: Case) -> tuple[int, ...] | None:
    """Return the shape of the bias of a normalization; None if neither the bias nor the weight is passed."""
    passed = (case.arguments.get(name) for name in ("bias", "weight"))
    return next((value.shape for value in passed if isinstance(value, TensorSpec)), None)


def templates_with_long_half_rows(
    templates: Iterable[CaseTemplate[SizesT]], lengthen: Callable[[SizesT], SizesT | None]
) -> Iterator[CaseTemplate[SizesT]]:
    """Yield the templates, with other sizes of half-precision cases.

    Args:
        templates: the templates.
        lengthen: returns the sizes of half-precision cases; None to leave them as they are.

    Yields:
        A template of the types that are not half-precision types, and a template of half-precision types.
    """
    for template in templates:
        wide, narrow = split_dtypes(template)
        sizes = lengthen(template.sizes) if narrow and not template.large else None
        if sizes is None:
            yield template
            continue
        yield template.replace(dtypes=wide)
        yield dataclasses.replace(template.replace(dtypes=narrow), sizes=sizes)


def split_dtypes(template: CaseTemplate[Any]) -> tuple[list[Dtype], list[Dtype]]:
    """Return the element types of a template that are not half-precision types, and those that are."""
    selected: Sequence[Dtype] = ()
    if template.dtypes is DtypeSelection.all:
        selected = tuple(Dtype)
    elif not isinstance(template.dtypes, DtypeSelection):
        selected = template.dtypes
    return [dtype for dtype in selected if dtype not in half], [dtype for dtype in selected if dtype in half]


def _is_suitable(case: Case, names: Collection[str] = ()) -> bool:
    """Return whether the numbers of these tensors of a case may be replaced; those of all tensors by default."""
    if case.dtype not in half or case.exact or case.large or case.case_class in UNSUITABLE:
        return False
    values = [case.arguments[name] for name in names or case.arguments]
    specs = [spec for value in values for spec in TensorSpec.all_in(value)]
    if any(spec.compute is not None or not math.prod(spec.shape) or spec.dtype is not case.dtype for spec in specs):
        return False
    return _draws_normal_numbers(case, specs) and all(map(_is_power_of_two, _factors(case.arguments)))


def _draws_normal_numbers(case: Case, specs: Collection[TensorSpec]) -> bool:
    """Return whether all tensors have finite numbers that are neither tiny nor huge."""
    values = [spec.domain(np.random.default_rng(0), 64, case.dtype) for spec in specs]
    return all(np.isfinite(array).all() and 2.0**-10 < np.abs(array).max() < 2.0**10 for array in values)


def _factors(arguments: Mapping[str, Any]) -> Iterator[complex]:
    """Yield the numbers by which a call scales its products."""
    return (arguments[name] for name in ("alpha",) if name in arguments)


def _is_power_of_two(number: complex) -> bool:
    """Return whether the product of a number with this one has the same significant bits."""
    return isinstance(number, int | float) and number != 0 and math.frexp(abs(number))[0] == 0.5


def _with_domain(value: Any, domain: Domain, dtype: Dtype) -> Any:
    """Return an argument with the domain, if it is a tensor of this element type."""
    return replace(value, domain=domain) if isinstance(value, TensorSpec) and value.dtype is dtype else value


def terms_of_convolution(case: Case) -> int:
    """Return the most terms of a sum of a convolution: the elements of the kernel for an output channel."""
    shape: tuple[int, ...] = case.arguments["weight"].shape
    return math.prod(shape) // min(shape[:2])


def terms_of_gradients(case: Case) -> int:
    """Return the most terms of a sum of a gradient: all positions of a channel, or the elements of the kernel."""
    shape: tuple[int, ...] = case.arguments["grad_output"].shape
    return max(shape[0] * math.prod(shape[2:]), terms_of_convolution(case))

"""Half-precision cases of sums, with integers that reveal a vendor that accumulates in half precision.

Float32 represents the sums exactly, in any order of the terms, so that only the result is rounded. The partial sums
have more bits than a half-precision number. A vendor that rounds them returns another result, even with few terms.
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
"""The classes of cases whose numbers are not replaced."""

SizesT = TypeVar("SizesT")
"""The type of the sizes of a template."""

MAX_TOTAL = 60_000
"""The largest exact sum of float16, whose largest number is 65,504."""

TYPICAL_TOTAL = 8000
"""The intended standard deviation of exact sums of positive and negative terms."""


DomainOfTerms = Callable[[int, Dtype], Domain | None]
"""Returns the domain of the terms of a sum, or of their factors, for the number of terms and a half-precision type.

Returns None if there is no suitable domain.
"""

NEARLY_EQUAL = choice([0.7, -0.7, 0.9, -0.9])
"""Four numbers with two different magnitudes, so that rounding errors in long sums of their powers do not cancel."""

LONG_ROW = 1031
"""The length of rows whose sums of powers have errors of many units in the last place in half precision."""


def nonzero_integers(largest: int) -> Domain:
    """Return a domain of integers of either sign from 1 to `largest` in magnitude."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Draw magnitudes and signs."""
        return np.asarray(rng.integers(1, largest + 1, count) * rng.choice([-1, 1], count))

    return draw


def largest_factor(terms: int, factors: int, dtype: Dtype) -> int:
    """Return the largest magnitude of factors in sums of products that exceed half precision without overflow.

    Args:
        terms: the number of terms of a sum.
        factors: the number of factors of a term.
        dtype: the half-precision type.

    Returns:
        The largest magnitude of a factor, if factors are uniformly distributed integers of either sign.
    """
    deviation = (TYPICAL_TOTAL / math.sqrt(max(terms, 1))) ** (1 / factors)
    return int(min(deviation * math.sqrt(3), 2 ** format_of(dtype).precision - 1))


def integer_factors(factors: int) -> DomainOfTerms:
    """Return a function that returns the domain of `factors` factors of each term, for exact sums of products."""
    return lambda terms, dtype: nonzero_integers(largest_factor(terms, factors, dtype))


integer_pairs = integer_factors(2)
"""Returns the domain of the two factors of each term."""


def integer_multiples(terms: int, dtype: Dtype) -> Domain | None:
    """Return a domain of integers for means: multiples of the number of terms, so that their mean is an integer.

    Return None if there are so many terms that fewer than four such numbers are exact in the type.
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
    """Yield the cases, with other numbers in half-precision cases: integers whose partial sums are not exact there.

    A vendor may round a product before it adds another tensor. The added tensors are therefore 0, and a case that
    scales its products keeps its numbers unless the factor is a power of 2. Cases with exact, special or computed
    numbers also keep them.

    Args:
        cases: the cases of a function.
        terms: returns the number of terms of the sums of a case.
        domain_of: returns the domain of the numbers for a number of terms and an element type.
        addends: the names of tensors that are added to the sums.
        unchanged: the labels of cases that keep their numbers, because large sums would hide the effect of an addend.

    Yields:
        Each case once, in order. Cases with new numbers are exact.
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
    """Yield the cases, with integers as `grad_output` of half-precision cases.

    The gradient of the bias is then a sum that is exact in float32, but not in half precision.

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
    """Yield the templates, with longer rows in half-precision cases.

    Args:
        templates: the templates.
        lengthen: returns the sizes of half-precision cases for the sizes of a template; None to keep the template.

    Yields:
        For each template one for the types that are not half-precision types, and one for the half-precision types; or
        the template itself if it is large, lists no half-precision type, or keeps its sizes.
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
    """Return the element types of a template in two lists: other types, and half-precision types.

    Both lists are empty for the selections `leading` and `one_per_size`.
    """
    selected: Sequence[Dtype] = ()
    if template.dtypes is DtypeSelection.all:
        selected = tuple(Dtype)
    elif not isinstance(template.dtypes, DtypeSelection):
        selected = template.dtypes
    return [dtype for dtype in selected if dtype not in half], [dtype for dtype in selected if dtype in half]


def _is_suitable(case: Case, names: Collection[str] = ()) -> bool:
    """Return whether the numbers of these tensors of a case may be replaced; by default, of all its tensors."""
    if case.dtype not in half or case.exact or case.large or case.case_class in UNSUITABLE:
        return False
    values = [case.arguments[name] for name in names or case.arguments]
    specs = [spec for value in values for spec in TensorSpec.all_in(value)]
    if any(spec.compute is not None or not math.prod(spec.shape) or spec.dtype is not case.dtype for spec in specs):
        return False
    return _draws_normal_numbers(case, specs) and all(map(_is_power_of_two, _factors(case.arguments)))


def _draws_normal_numbers(case: Case, specs: Collection[TensorSpec]) -> bool:
    """Return whether samples of all tensors are finite, with a largest magnitude between 2^-10 and 2^10."""
    values = [spec.domain(np.random.default_rng(0), 64, case.dtype) for spec in specs]
    return all(np.isfinite(array).all() and 2.0**-10 < np.abs(array).max() < 2.0**10 for array in values)


def _factors(arguments: Mapping[str, Any]) -> Iterator[complex]:
    """Yield the numbers by which a call scales its products."""
    return (arguments[name] for name in ("alpha",) if name in arguments)


def _is_power_of_two(number: complex) -> bool:
    """Return whether the magnitude of a number is a power of 2; a product with it has the same significant bits."""
    return isinstance(number, int | float) and number != 0 and math.frexp(abs(number))[0] == 0.5


def _with_domain(value: Any, domain: Domain, dtype: Dtype) -> Any:
    """Return an argument with the domain, if it is a tensor of this element type."""
    return replace(value, domain=domain) if isinstance(value, TensorSpec) and value.dtype is dtype else value


def terms_of_convolution(case: Case) -> int:
    """Return the largest number of terms in a sum of a convolution: the kernel's elements per output channel."""
    shape: tuple[int, ...] = case.arguments["weight"].shape
    return math.prod(shape) // min(shape[:2])


def terms_of_gradients(case: Case) -> int:
    """Return the largest number of terms in a sum of a convolution's gradients.

    The number is that of all positions of a channel in all samples, or that of `terms_of_convolution`.
    """
    shape: tuple[int, ...] = case.arguments["grad_output"].shape
    return max(shape[0] * math.prod(shape[2:]), terms_of_convolution(case))

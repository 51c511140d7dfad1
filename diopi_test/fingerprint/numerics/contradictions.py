"""Compare the arithmetic that a vendor declares with the arithmetic that was measured.

There are two kinds of contradictions:

- The vendor uses arithmetic that is not declared (`is_undeclared` is true). Its results may exceed the error budgets.
- The declaration permits arithmetic that the vendor does not use. The error budgets are larger than necessary.

Each of the functions `_products` to `_sum_order` compares one field of the declaration (`Numerics`) or several, and
yields the contradictions. Fields that were not measured are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from diopi_impl.numerics import ErrorBound, Numerics
from diopi_impl.numerics.declaration import Products
from diopi_test.fingerprint.numerics.error_ranges import MEASURES, ErrorRange
from diopi_test.fingerprint.numerics.errors import FunctionErrors
from diopi_test.fingerprint.numerics.factors import FORMAT_OF_BITS, NAMES
from diopi_test.fingerprint.numerics.measurement import MeasuredNumerics
from diopi_test.results.declaration_check import Contradiction

UNDECLARED_ULP = 8.0
"""Errors of elementary functions up to this number of ulp never contradict a declaration."""

UNUSED_RATIO = 8.0
"""A declared bound counts as unused if it is larger than the measured errors by more than this factor."""

_ORDER: Sequence[Products] = ("ieee", *FORMAT_OF_BITS.values())
"""The formats to which factors of products are rounded, the most precise first."""


def find_contradictions(measured: MeasuredNumerics, declared: Numerics) -> list[Contradiction]:
    """Return the contradictions in all fields that were measured.

    Args:
        measured: what was measured of a vendor.
        declared: the declaration of the vendor, or of a run.

    Returns:
        The contradictions, in the order of the fields.
    """
    return [
        contradiction
        for find in (_products, _half_accumulation, _convolutions, _elementary, _ordered_fields, _sum_order)
        for contradiction in find(measured, declared)
    ]


def _evidence(measured: MeasuredNumerics, field: str) -> str:
    """Return what was measured for a field, as one text."""
    return "; ".join(measured.evidence[field])


def _products(measured: MeasuredNumerics, declared: Numerics) -> Iterator[Contradiction]:
    """Yield contradictions in the formats of the factors of products: of matrices and of convolutions."""
    for field, family in (("float32_products", "linalg"), ("convolution_products", "conv")):
        if field not in measured.evidence:
            continue
        measured_products, permitted = (numerics.products_of(family) for numerics in (measured.numerics, declared))
        evidence = _evidence(measured, field)
        if _ORDER.index(measured_products) > _ORDER.index(permitted):
            yield Contradiction(
                field,
                True,
                f'{evidence}; declared are products in {NAMES[permitted]}: declare {field} = "{measured_products}"',
            )
        elif measured_products != permitted:
            yield Contradiction(field, False, f"products in {NAMES[permitted]} are declared, but {evidence}")


def _half_accumulation(measured: MeasuredNumerics, declared: Numerics) -> Iterator[Contradiction]:
    """Yield a contradiction if sums of half precision are accumulated in another precision than declared."""
    field = "half_accumulation"
    if field in measured.evidence and measured.numerics.half_accumulation != declared.half_accumulation:
        is_undeclared = declared.half_accumulation == "float32"
        advice = 'declare half_accumulation = "half"' if is_undeclared else 'half_accumulation = "half" is declared'
        yield Contradiction(field, is_undeclared, f"{_evidence(measured, field)}; {advice}")


def _convolutions(measured: MeasuredNumerics, declared: Numerics) -> Iterator[Contradiction]:
    """Yield contradictions in the algorithms of convolutions."""
    field = "convolutions"
    if field not in measured.evidence:
        return
    used_algorithms, evidence = measured.numerics.convolutions, _evidence(measured, field)
    for algorithm in sorted(used_algorithms - declared.convolutions - {"direct"}):
        if algorithm == "winograd-f2" and "winograd-f4" in declared.convolutions:
            continue  # a declaration of 4 × 4 tiles also permits 2 × 2 tiles, whose errors are smaller
        yield Contradiction(field, True, f'{evidence}; add "{algorithm}" to convolutions')
    for algorithm in sorted(declared.convolutions - used_algorithms - {"direct"}):
        yield Contradiction(field, False, f'"{algorithm}" is declared, but no probed convolution uses it: {evidence}')


def _elementary(measured: MeasuredNumerics, declared: Numerics) -> Iterator[Contradiction]:
    """Yield contradictions in the error bounds of elementary functions.

    A binade is the range between two neighboring powers of two. Errors are compared with the bounds in each binade of
    the arguments.
    """
    for entry in measured.errors:
        bounds = declared.elementary.get(entry.name, ())
        excess = [binade for binade in entry.binades if not _is_permitted(binade, bounds)]
        if excess:
            worst = max(excess, key=lambda binade: binade.largest("ulp"))
            place = f"{worst.largest('ulp'):.3g} ulp for arguments from {worst.minimum:g} to {worst.maximum:g}"
            advice = "the declared bound is smaller" if bounds else "no bound is declared"
            yield Contradiction("elementary", True, f"{entry.name} has errors up to {place}; {advice}")
        elif bounds and all(_is_unused(entry, bound) for bound in bounds):
            yield Contradiction("elementary", False, f"a bound of {entry.name} is declared, but {entry}")


def _is_permitted(binade: ErrorRange, bounds: Sequence[ErrorBound]) -> bool:
    """Return whether the errors in a binade are at most `UNDECLARED_ULP`, or one of the bounds permits them."""
    overlapping = [bound for bound in bounds if bound.minimum < binade.maximum and binade.minimum < bound.maximum]
    return binade.largest("ulp") <= UNDECLARED_ULP or any(map(binade.is_permitted, overlapping))


def _is_unused(entry: FunctionErrors, bound: ErrorBound) -> bool:
    """Return whether a bound is larger than all errors in its range by more than `UNUSED_RATIO`."""
    inside = [b for b in entry.binades if bound.minimum <= b.minimum and b.maximum <= bound.maximum]
    return all(
        UNUSED_RATIO * binade.largest(measure) < getattr(bound, measure)
        for binade in inside
        for measure in MEASURES
        if getattr(bound, measure)
    )


_ORDERED_FIELDS: Mapping[str, Sequence[str]] = {
    "subnormals": ("keep", "flush-results", "flush-inputs"),
    "signed_zeros": ("keep", "ignore"),
    "float64": ("ieee", "emulated", "absent"),
}
"""Fields whose values are ordered by what they permit: each value permits more than the values before it."""


def _ordered_fields(measured: MeasuredNumerics, declared: Numerics) -> Iterator[Contradiction]:
    """Yield contradictions in the fields `_ORDERED_FIELDS`."""
    for field, order in _ORDERED_FIELDS.items():
        permitted = getattr(declared, field)
        if field not in measured.evidence or permitted is None:
            continue  # None permits everything: without a declaration, a vendor may flush subnormal numbers
        measured_value = getattr(measured.numerics, field) or "keep"
        if measured_value != permitted:
            is_undeclared = order.index(measured_value) > order.index(permitted)
            evidence = f'{field} = "{permitted}" is declared, but {_evidence(measured, field)}'
            yield Contradiction(field, is_undeclared, evidence)


def _sum_order(measured: MeasuredNumerics, declared: Numerics) -> Iterator[Contradiction]:
    """Yield contradictions about the families of functions whose order of summation changes from call to call."""
    field = "sum_order"
    if field not in measured.evidence:
        return
    for family in sorted(set(measured.numerics.sum_order) - set(declared.sum_order)):
        yield Contradiction(
            field, True, f'equal calls of the family {family} differ; declare sum_order.{family} = "run-to-run"'
        )
    for family in sorted(set(declared.sum_order) & measured.repeated_families):
        yield Contradiction(
            field, False, f'sum_order.{family} = "run-to-run" is declared, but equal calls of the probe agree'
        )

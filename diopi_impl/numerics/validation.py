"""The problems of a declaration: values outside their ranges, and fields that contradict each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from types import NoneType
from typing import Any, Literal, final, get_args, get_origin, get_type_hints

from diopi_impl.errors import VendorError
from diopi_impl.numerics.digest import LABELS, Declaration, to_table
from diopi_impl.numerics.elementary import ELEMENTARY_FUNCTIONS, largest_result
from diopi_proto.interface import prototypes

Bound = Any
"""An `ErrorBound`, whose module imports this one."""

MAX_RELATIVE_ERROR = 0.1
"""The largest relative error that a bound may permit. A result with a larger error is worth nothing."""

IEEE_NAME = "ieee"
"""The name of the declaration that permits nothing beyond the standard."""

FLOAT32_EPSILON = 2.0**-23
"""The largest unit in the last place of a float32 number relative to the number."""


@final
class NumericsError(VendorError):
    """A declaration is invalid. Each line of the message names a field, its value and the allowed values."""


def bound_problems(bound: Bound) -> list[str]:
    """Return a message for each invalid field of a bound, or for the bound as a whole."""
    problems = [
        f"{name}: expected a number of at least 0, found {value!r}"
        for name in ("ulp", "relative", "absolute")
        if not _is_number(value := getattr(bound, name)) or not 0 <= value < math.inf
    ]
    problems += [
        f"{name}: expected a number, found {value!r}"
        for name in ("minimum", "maximum")
        if not _is_number(value := getattr(bound, name)) or math.isnan(value)
    ]
    return problems or list(_contradictions_of_bound(bound))


def _contradictions_of_bound(bound: Bound) -> Iterator[str]:
    """Yield a message if the range is empty, and one if the bound permits too large an error."""
    if not bound.minimum < bound.maximum:
        limits = f"{bound.minimum!r} and {bound.maximum!r}"
        yield f"minimum and maximum: expected a minimum below the maximum, found {limits}"
    permitted = bound.ulp * FLOAT32_EPSILON + bound.relative + bound.absolute
    if permitted > MAX_RELATIVE_ERROR:
        values = ", ".join(f"{name} = {getattr(bound, name):g}" for name in ("ulp", "relative", "absolute"))
        yield (
            f"ulp, relative and absolute: the permitted error is {permitted:.2g} ({values}), expected at most "
            f"{MAX_RELATIVE_ERROR}: a result with a larger error is worth nothing"
        )


def value_problems(numerics: Declaration) -> list[str]:
    """Return a message for each invalid field of a declaration."""
    problems = [
        problem for name, kind in _literal_fields(type(numerics)).items() for problem in _choice(numerics, name, kind)
    ]
    problems += _label_problems(numerics)
    problems += _convolution_problems(numerics)
    problems += _elementary_problems(numerics.elementary)
    problems += _sum_order_problems(numerics)
    return problems


def _literal_fields(record: type) -> Mapping[str, tuple[object, ...]]:
    """Return the allowed values of the fields with a fixed set of values; None is one of them for optional fields."""
    kinds = get_type_hints(record).items()
    return {name: allowed for name, kind in kinds if (allowed := _allowed_values(kind))}


def _allowed_values(kind: Any) -> tuple[object, ...]:
    """Return the values of a literal type, also if it is optional; empty for other types."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    members = get_args(kind)
    if NoneType not in members:
        return ()
    return (*itertools.chain.from_iterable(_allowed_values(member) for member in members), None)


def values_of(record: type, name: str) -> list[str]:
    """Return the allowed values of a field with a fixed set of values.

    Args:
        record: The class `Numerics`.
        name: The name of the field; for a field that holds several values, the allowed values of each.

    Returns:
        The values in the order of the documentation.
    """
    kind = get_type_hints(record)[name]
    allowed = _allowed_values(kind) or next(filter(None, map(_allowed_values, get_args(kind))))
    return [str(value) for value in allowed if value is not None]


def _choice(numerics: Declaration, name: str, allowed: Collection[object]) -> Iterator[str]:
    """Yield a message if a field has none of its allowed values."""
    value = getattr(numerics, name)
    if not _is_hashable(value) or value not in allowed:
        yield describe_choice(name, (entry for entry in allowed if entry is not None), value)


def _label_problems(numerics: Declaration) -> Iterator[str]:
    """Yield a message if the name or the sources are not texts."""
    if not isinstance(numerics.name, str) or not numerics.name.strip() or not numerics.name.isprintable():
        yield f"name: expected a name such as 'tf32', found {numerics.name!r}"
    sources = numerics.sources
    if not _is_list(sources) or not all(isinstance(source, str) and source.strip() for source in sources):
        yield f"sources: expected a list of texts that name documents, found {sources!r}"


def _convolution_problems(numerics: Declaration) -> Iterator[str]:
    """Yield a message if the algorithms of convolutions are unknown or missing."""
    allowed, algorithms = values_of(type(numerics), "convolutions"), numerics.convolutions
    if not _is_list(algorithms) or not algorithms or not all(entry in allowed for entry in algorithms):
        declared = sorted(algorithms, key=str) if isinstance(algorithms, (set, frozenset)) else algorithms
        yield f"convolutions: expected a list with at least one of {_quote(allowed)}, found {declared!r}"


def _elementary_problems(elementary: object) -> Iterator[str]:
    """Yield a message for each unknown function, and for each function without or with ambiguous bounds."""
    if not isinstance(elementary, Mapping):
        yield f"elementary: expected error bounds by the name of a function, found {elementary!r}"
        return
    for name, bounds in elementary.items():
        if name not in ELEMENTARY_FUNCTIONS:
            yield describe_choice("elementary", ELEMENTARY_FUNCTIONS, name)
        elif not _is_list(bounds) or not bounds:
            yield f"elementary.{name}: expected at least one error bound, found {bounds!r}"
        else:
            yield from _ambiguities(f"elementary.{name}", bounds)
            yield from _worthless_bounds(name, bounds)


def _worthless_bounds(name: str, bounds: Iterable[Bound]) -> Iterator[str]:
    """Yield a message for each bound that permits too large an error of even the largest result in its range.

    An absolute error is compared with the largest result. If the error of a function is absolute, results near a zero
    of the function have no relative accuracy.
    """
    for bound in bounds:
        result = largest_result(name, bound.minimum, bound.maximum)
        absolute = bound.absolute / result if result else math.inf if bound.absolute else 0.0
        permitted = bound.ulp * FLOAT32_EPSILON + bound.relative + absolute
        if permitted > MAX_RELATIVE_ERROR:
            yield (
                f"elementary.{name}: for arguments from {bound.minimum:g} to {bound.maximum:g}, the permitted error is "
                f"{permitted:.2g} times the largest result, {result:.2g} (absolute = {bound.absolute:g}), expected at "
                f"most {MAX_RELATIVE_ERROR}: a result with a larger error is worth nothing"
            )


def _ambiguities(place: str, bounds: Iterable[Bound]) -> Iterator[str]:
    """Yield a message for each pair of bounds with the same range."""
    for first, second in itertools.combinations(bounds, 2):
        if (first.minimum, first.maximum) == (second.minimum, second.maximum):
            yield (
                f"{place}: two bounds contradict each other for arguments from {first.minimum:g} to "
                f"{first.maximum:g}: {first} and {second}; expected one bound per range"
            )


def _sum_order_problems(numerics: Declaration) -> Iterator[str]:
    """Yield a message for each unknown family, and for each unknown order of sums."""
    if not isinstance(numerics.sum_order, Mapping):
        yield f"sum_order: expected an order by the name of a family, found {numerics.sum_order!r}"
        return
    allowed, families = values_of(type(numerics), "sum_order"), known_families()
    for family, order in numerics.sum_order.items():
        if family not in families:
            yield describe_choice("sum_order", families, family)
        if order not in allowed:
            yield describe_choice(f"sum_order.{family}", allowed, order)


@cache
def known_families() -> tuple[str, ...]:
    """Return the names of the families of standard functions, sorted."""
    return tuple(sorted({prototype.family for prototype in prototypes().values()}))


def contradictions(numerics: Declaration) -> list[str]:
    """Return a message for each pair of fields that contradict each other; the fields have valid values."""
    problems = []
    if numerics.float64 == "emulated" and numerics.subnormals == "keep":
        problems.append(
            "float64 and subnormals: 'emulated' contradicts 'keep', because a pair of float32 numbers can't represent "
            "the subnormal numbers of float64; expected subnormals to be 'flush-results' or 'flush-inputs', or absent"
        )
    if numerics.name == IEEE_NAME and (deviating := deviating_fields(numerics)):
        value = to_table(numerics)[deviating[0]]
        problems.append(
            f"name and {deviating[0]}: the name {IEEE_NAME!r} contradicts {value!r}; expected another name, or the "
            "fields of IEEE arithmetic"
        )
    return problems


def deviating_fields(numerics: Declaration) -> list[str]:
    """Return the names of the fields with another arithmetic than IEEE, apart from stricter subnormals."""
    deviating = [name for name in to_table(numerics) if name not in LABELS]
    return [name for name in deviating if (name, getattr(numerics, name)) != ("subnormals", "keep")]


def describe_choice(place: str, allowed: Iterable[object], value: object) -> str:
    """Return a message for a value that is not one of the allowed values.

    Args:
        place: the field that has the value.
        allowed: the allowed values.
        value: the value.
    """
    return f"{place}: expected one of {_quote(allowed)}, found {value!r}"


def _quote(values: Iterable[object]) -> str:
    """Return values as Python writes them, separated by commas."""
    return ", ".join(map(repr, values))


def _is_number(value: object) -> bool:
    """Return whether a value is a real number, which bool is not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_list(value: object) -> bool:
    """Return whether a value is a collection other than text or a mapping."""
    return isinstance(value, Collection) and not isinstance(value, (str, Mapping))


def _is_hashable(value: object) -> bool:
    """Return whether a value that was read from TOML can be an element of a set."""
    return not isinstance(value, (list, dict, set))

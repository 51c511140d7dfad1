"""References compute the expected results of functions; there is one module, or one package, per family of functions.

A reference is an implementation in NumPy that computes in float64, complex128, int64 or bool. It receives arrays in one
of these types, whose values the element type of the case represents exactly. It declares the arguments of the prototype
that it uses, by name and in any order. It returns the results in the prototype's order: an array for a tensor, a list
for an array of tensors, and None for an omitted result.

If the result is an array, its error budget (the largest allowed error) follows from the prototype's guarantee. To state
more about a result, a reference returns a *remark*: an object of a class derived from `Remark`. If the standard does
not define the results for the arguments, a reference raises ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar, final

import numpy as np

from diopi_proto.families import load_families
from diopi_proto.implementations import accept_all_by_name
from diopi_proto.interface import lookup

Reference = Callable[..., Any]
"""A function that computes the expected results of a standard function from its arguments."""

F = TypeVar("F", bound=Reference)
"""The registered reference."""

_references: dict[str, Reference] = {}
"""The registered references, by function name. Each accepts all arguments of the prototype by name."""


@dataclass(frozen=True)
class Remark:
    """A result together with a property that the reference states about it. Each derived class is one property.

    Attributes:
        value: the result, an array; it may itself have a remark.
    """

    value: Any


@final
@dataclass(frozen=True)
class WithTerms(Remark):
    """A result with its *terms*: the sizes of the rounding errors of intermediate values, in units of eps.

    The term of a single rounded value is its magnitude. The term of a sum is the standard deviation of its error. The
    unit of the error budget includes eps times the terms (docs/budgets.md). A result with terms, even 0, may be
    rounded although the function's guarantee is `exact`.

    Attributes:
        terms: the terms of values that a kernel keeps in float32 or in a finer type; they broadcast to the result. For
            half-precision results, they are multiplied by the eps of float32.
        stored: the terms of values that are rounded to the result's type, for example because an operator stores them
            and the next operator reads them; they broadcast to the result.
        signed: whether zeros have a sign, as in products. If false, and `terms` is an array with axes, a zero of either
            sign is accepted, because it may be the sum of zeros of either sign.
        exact: a mask of the elements that are not rounded, for example because they are unchanged; it broadcasts to the
            result.
    """

    terms: Any
    stored: Any = 0.0
    signed: bool = field(default=False, kw_only=True)
    exact: Any = field(default=False, kw_only=True)


@final
@dataclass(frozen=True)
class Exact(Remark):
    """A floating-point result that must be exact although the function's guarantee is `rounded`."""


@final
@dataclass(frozen=True)
class AnyOf(Remark):
    """One of several valid results, because values are equal, the order is free, or numbers are random.

    The suite does not compare a vendor's result with this one. The function's validator
    (`diopi_test.oracle.validators`) decides whether the vendor's result is valid.
    """


@final
@dataclass(frozen=True)
class PartlySpecified(Remark):
    """A result with elements that the standard does not specify; an implementation may leave them unwritten.

    Attributes:
        value: the result, which may itself have a remark.
        specified: a bool array of the shape of the result, false for unspecified elements.
    """

    specified: Any


def mark_unspecified(is_unspecified: Any, result: Any) -> Any:
    """Return `result` with the remark that the elements where `is_unspecified` is true are unspecified.

    The mask broadcasts to the result. If it is false everywhere, the result is returned unchanged.
    """
    return PartlySpecified(result, np.logical_not(is_unspecified)) if np.any(is_unspecified) else result


def strip_remarks(result: Any) -> Any:
    """Return the value of a result without its remarks, which may be nested."""
    return strip_remarks(result.value) if isinstance(result, Remark) else result


def reference(*names: str) -> Callable[[F], F]:
    """Register the decorated function as the reference of these functions and of the forms derived from them.

    If the result depends on the tensor that the caller provides for it, for example on the element type, the reference
    has a keyword-only parameter `out`. It receives the properties of that tensor as a `ResultOverride`, or a tuple of
    these objects if the function has several results.

    Args:
        names: the names of the functions.

    Returns:
        A decorator that returns the function unchanged.

    Raises:
        ValueError: The prototype lacks one of the function's parameters.
    """

    def register(function: F) -> F:
        """Enter `function` into the registry under each name, and return it unchanged."""
        for name in names:
            _references[name] = accept_all_by_name(function, name, [p.name for p in lookup(name).arguments])
        return function

    return register


@contextmanager
def separate_registry() -> Iterator[Mapping[str, Reference]]:
    """Register references in an empty registry until the context ends; the value of the context is this registry."""
    global _references
    previous, _references = _references, {}
    try:
        yield _references
    finally:
        _references = previous


def find_reference(name: str) -> Reference | None:
    """Return the reference of a function, or of the function that it is a form of (in-place or scalar).

    The reference accepts all arguments of the prototype, also arguments that the registered function does not declare.

    Args:
        name: the name of the function.

    Returns:
        The reference as a function of all arguments; None if the function has none.
    """
    load_families(__name__)
    return _references.get(name) or _references.get(lookup(name).base)


def overridable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let arrays of a derived class replace the decorated function, by NumPy's protocol `__array_function__` (NEP 18).

    The suite evaluates references with such arrays to measure the effect of a vendor's declared arithmetic.

    Args:
        function: A function of positional arguments.

    Returns:
        A function that calls `__array_function__` of the first such array among its arguments. Without such an array,
        it calls `function`.
    """

    @wraps(function)
    def dispatch(*arguments: Any) -> Any:
        """Call the method of the first array of a derived class, or the function."""
        for argument in arguments:
            if isinstance(argument, np.ndarray) and type(argument) is not np.ndarray:
                return argument.__array_function__(dispatch, (type(argument),), arguments, {})
        return function(*arguments)

    dispatch._implementation = function  # type: ignore[attr-defined]  # what ndarray.__array_function__ calls
    return dispatch

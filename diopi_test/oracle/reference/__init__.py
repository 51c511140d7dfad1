"""References: every function in float64, complex128 and int64 with NumPy, with one module or package per family.

A reference declares the arguments of the prototype that it uses, by name and in any order, and returns the results in
the prototype's order. References are written to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

import numpy as np

from diopi_proto.families import load_families
from diopi_proto.implementations import accept_all_by_name
from diopi_proto.interface import lookup

Reference = Callable[..., Any]
F = TypeVar("F", bound=Reference)

_references: dict[str, Reference] = {}


@dataclass(frozen=True)
class Remark:
    """A result about which the reference states a property; the derived classes are the properties.

    Attributes:
        value: the result.
    """

    value: Any


@final
@dataclass(frozen=True)
class WithTerms(Remark):
    """A result with the size of the intermediate terms that a sound algorithm may cancel.

    The error budget gets eps times these terms (docs/budgets.md), which broadcast to the result. A result with terms,
    even 0, is rounded although the function's guarantee is `exact` in general.

    Attributes:
        terms: intermediate values that an algorithm computes in float32 or a finer type, whose eps applies.
        stored: intermediate values that may be stored in the result's type, whose eps applies, as between operators.
        signed: whether zeros have a sign, as in products; zeros that are left by sums have none.
        exact: where the result is not rounded at all, for example because it is unchanged; broadcasts to the result.
    """

    terms: Any
    stored: Any = 0.0
    signed: bool = field(default=False, kw_only=True)
    exact: Any = field(default=False, kw_only=True)


@final
@dataclass(frozen=True)
class Exact(Remark):
    """A floating-point result that must be exact although the function's guarantee is `rounded` in general."""


@final
@dataclass(frozen=True)
class AnyOf(Remark):
    """One of several valid results, because values are equal, the order is free, or numbers are random.

    The suite does not compare a vendor's result with it: the function's validator (`diopi_test.oracle.validators`)
    decides.
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
    """Return `result` with the elements unspecified where `is_unspecified` is true; the mask broadcasts to it."""
    return PartlySpecified(result, np.logical_not(is_unspecified)) if np.any(is_unspecified) else result


def strip_remarks(result: Any) -> Any:
    """Return a result without the reference's remarks."""
    return strip_remarks(result.value) if isinstance(result, Remark) else result


def reference(*names: str) -> Callable[[F], F]:
    """Register the decorated function as the reference of these functions and of the forms derived from them.

    A keyword-only parameter `out` receives the caller's decisions about the result, a `ResultOverride`, or a tuple of
    them for several results. Functions need it if their result depends on the tensor that the caller provides.

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
    """Register references in a separate registry, the value of the context, until the context ends."""
    global _references
    previous, _references = _references, {}
    try:
        yield _references
    finally:
        _references = previous


def find_reference(name: str) -> Reference | None:
    """Return the reference of a function, or of the function that it is a form of; None if there is none.

    It accepts all arguments of the prototype, also arguments that the registered function does not declare.

    Args:
        name: the name of the function.

    Returns:
        The reference as a function of all arguments.
    """
    load_families(__name__)
    return _references.get(name) or _references.get(lookup(name).base)

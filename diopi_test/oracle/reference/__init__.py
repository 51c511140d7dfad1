"""The truth: every function computed in float64, complex128 and int64 with NumPy, one module or package a family.

A reference takes the prototype's arguments by name and returns its results in order. It is written for reading.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

import numpy as np

from diopi_proto.families import load_families
from diopi_proto.interface import lookup

Reference = Callable[..., Any]
F = TypeVar("F", bound=Reference)

_references: dict[str, Reference] = {}


@dataclass(frozen=True)
class Remark:
    """A result and something the reference says about it."""

    value: Any


@final
@dataclass(frozen=True)
class WithTerms(Remark):
    """A result together with the size of the intermediate terms that a sound algorithm may cancel to get it.

    Both broadcast to the result; eps times them is added to the error budget (docs/budgets.md): the eps of float32 for
    the `terms` of a computation, which is done in float32 at least; that of the result's own type for what may be
    `stored` in it on the way, as where operators follow each other. A result with terms, even 0, is rounded although
    its function guarantees exact results in general. Zeros that sums leave have no sign; those of products are
    `signed`. Where `exact` is true nothing is rounded, as where the result is what was there before.
    """

    terms: Any
    stored: Any = 0.0
    signed: bool = field(default=False, kw_only=True)
    exact: Any = field(default=False, kw_only=True)


@final
@dataclass(frozen=True)
class Exact(Remark):
    """A floating result that must be exact although its function's results are rounded in general."""


@final
@dataclass(frozen=True)
class AnyOf(Remark):
    """One of several right results, where ties or a free order leave a choice.

    What a vendor gives is not compared with it: the function's judge (`diopi_test.oracle.validators`) proves it right.
    """


@final
@dataclass(frozen=True)
class PartlySpecified(Remark):
    """A result the standard leaves open in places: an implementation may put anything there, or nothing.

    `value` may be a result of the kinds above; `specified` is a bool array of its shape, false where it is open.
    """

    specified: Any


def leave_open(is_open: Any, result: Any) -> Any:
    """Return `result` without a demand where `is_open` is true, which broadcasts to it."""
    return PartlySpecified(result, np.logical_not(is_open)) if np.any(is_open) else result


def strip_remarks(result: Any) -> Any:
    """A result without what the reference says about it."""
    return strip_remarks(result.value) if isinstance(result, Remark) else result


def reference(*names: str) -> Callable[[F], F]:
    """Register the decorated function as the reference of these functions and of the forms derived from them.

    A keyword-only `out` receives what the caller decided about the result, a `ResultOverride` (a tuple of them for
    several results), for functions whose result follows from the tensor the caller made.

    Raises ValueError when its parameters are not the prototype's arguments.
    """

    def register(function: F) -> F:
        for name in names:
            prototype = lookup(name)
            expected = [parameter.name for parameter in prototype.arguments]
            parameters = [
                p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.KEYWORD_ONLY
            ]
            if parameters != expected:
                raise ValueError(f"{name}: the reference takes {parameters}, the prototype says {expected}")
            _references[name] = function
        return function

    return register


@contextmanager
def separate_registry() -> Iterator[Mapping[str, Reference]]:
    """While it lasts, references are registered apart from the others, in what it gives."""
    global _references
    previous, _references = _references, {}
    try:
        yield _references
    finally:
        _references = previous


def takes_out(function: Reference) -> bool:
    """Whether a reference has the keyword-only parameter `out`."""
    parameter = inspect.signature(function).parameters.get("out")
    return parameter is not None and parameter.kind is parameter.KEYWORD_ONLY


def find_reference(name: str) -> Reference | None:
    """The reference of a function or of the function it is a form of, if there is one."""
    load_families(__name__)
    return _references.get(name) or _references.get(lookup(name).base)

"""The list of defects, their libraries, and the comparison of actual with expected results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
inf, nan = np.inf, np.nan
float32, float64, int64, complex64 = (
    partial(np.array, dtype=name) for name in ("float32", "float64", "int64", "complex64")
)

TOLERANCE = 8  # units in the last place of the result's type; correct functions stay below 4


@dataclass(frozen=True)
class Library:
    """A library in which defects were found.

    Attributes:
        title: the name.
        packages: the distributions that must be installed; the first one has the version.
        find_version: returns the version of a library that is part of another one.
    """

    title: str
    packages: tuple[str, ...]
    find_version: Callable[[], str] | None = None

    @property
    def version(self) -> str:
        """The installed version; empty if a package is missing."""
        try:
            versions = [metadata.version(package) for package in self.packages]
        except metadata.PackageNotFoundError:
            return ""
        return self.find_version() if self.find_version else versions[0]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A defect.

    Attributes:
        library: the library.
        call: the operator and its input.
        expected: the correct result: an array, or a text for calls whose rejection matters.
        compute: returns the actual result.
        definition: how the operator is defined.
        status: what its maintainers know, with a link.
    """

    library: Library
    call: str
    expected: Array | str
    compute: Callable[[], Array | str]
    definition: str
    status: str

    def reproduces(self, actual: Array | str) -> bool:
        """Return whether a result is not the expected one."""
        if isinstance(actual, str) or isinstance(self.expected, str):
            return bool(actual != self.expected)
        return not is_correct(actual, self.expected)


FINDINGS: list[Finding] = []
UNKNOWN = "no public report found"


def finding(
    library: Library, call: str, expected: Any, definition: str, status: str = UNKNOWN
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Return a decorator that registers a function which computes the actual result."""

    def register(compute: Callable[[], Any]) -> Callable[[], Any]:
        value = expected if isinstance(expected, str) else np.asarray(expected)
        FINDINGS.append(
            Finding(library=library, call=call, expected=value, compute=compute, definition=definition, status=status)
        )
        return compute

    return register


def is_correct(actual: Array, expected: Array) -> bool:
    """Return whether a result is the expected one, or for floating-point numbers, close to it."""
    if actual.shape != expected.shape:
        return False
    if expected.dtype.kind not in "fc":
        return bool((actual == expected).all())
    if expected.dtype.kind == "c":
        return is_correct(actual.real, expected.real) and is_correct(actual.imag, expected.imag)
    with np.errstate(all="ignore"):
        unit = np.abs(np.spacing(expected))
        near = np.abs(actual.astype(np.float64) - expected.astype(np.float64)) <= TOLERANCE * unit
    same = (actual == expected) & ((expected != 0) | (np.signbit(actual) == np.signbit(expected)))
    return bool((same | (np.isnan(actual) & np.isnan(expected)) | (near & (expected != 0))).all())


def text(value: Array | str) -> str:
    """Return a result as a text."""
    if isinstance(value, str):
        return value
    digits = 9 if value.dtype.itemsize == 4 else 17
    numbers = [f"{number:.{digits}g}" if value.dtype.kind == "f" else str(number) for number in value.ravel().tolist()]
    return ", ".join(numbers).replace("inf", "∞").replace("nan", "NaN")

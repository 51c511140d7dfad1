"""The defects that were found in other libraries, and the comparison of their actual with their expected results.

The modules of this folder register the defects with `register_defect`. The program `found.py` reproduces them.
"""

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

TOLERANCE = 8
"""The permitted error in units in the last place of the result's type. Correct functions stay below 4."""


@dataclass(frozen=True)
class Library:
    """A library in which defects were found.

    Attributes:
        title: the name of the library.
        packages: the names of the Python distributions that must be installed.
        find_version: returns the version of a library that is part of another library; None if the version is that of
            the first distribution.
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
class Defect:
    """A call of a library whose result differs from the definition of the operator.

    Attributes:
        library: the library that is called.
        call: the operator and its input.
        expected: the correct result: an array, or a text for calls whose rejection matters.
        compute: makes the call and returns the actual result.
        definition: how the operator is defined.
        status: what the maintainers of the library know, with a link.
    """

    library: Library
    call: str
    expected: Array | str
    compute: Callable[[], Array | str]
    definition: str
    status: str

    def reproduces(self, actual: Array | str) -> bool:
        """Return whether the result `actual` differs from the expected result, so that the defect still exists."""
        if isinstance(actual, str) or isinstance(self.expected, str):
            return bool(actual != self.expected)
        return not is_correct(actual, self.expected)


DEFECTS: list[Defect] = []
"""All registered defects, in the order of registration."""

NO_REPORT = "no public report found"
"""The status of a defect that has no public report."""


def register_defect(
    library: Library, call: str, expected: Any, definition: str, status: str = NO_REPORT
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Return a decorator that registers a defect. The decorated function makes the call and returns the actual result.

    The parameters are the attributes of `Defect`.
    """

    def register(compute: Callable[[], Any]) -> Callable[[], Any]:
        expected_result = expected if isinstance(expected, str) else np.asarray(expected)
        DEFECTS.append(
            Defect(
                library=library,
                call=call,
                expected=expected_result,
                compute=compute,
                definition=definition,
                status=status,
            )
        )
        return compute

    return register


def is_correct(actual: Array, expected: Array) -> bool:
    """Return whether a result equals the expected result; floating-point numbers may differ by `TOLERANCE` units."""
    if actual.shape != expected.shape:
        return False
    if expected.dtype.kind not in "fc":
        return bool((actual == expected).all())
    if expected.dtype.kind == "c":
        return is_correct(actual.real, expected.real) and is_correct(actual.imag, expected.imag)
    with np.errstate(all="ignore"):
        unit = np.abs(np.spacing(expected))
        is_near = np.abs(actual.astype(np.float64) - expected.astype(np.float64)) <= TOLERANCE * unit
    is_equal = (actual == expected) & ((expected != 0) | (np.signbit(actual) == np.signbit(expected)))
    return bool((is_equal | (np.isnan(actual) & np.isnan(expected)) | (is_near & (expected != 0))).all())


def format_result(value: Array | str) -> str:
    """Return the numbers of a result as text, separated by commas; return a text unchanged."""
    if isinstance(value, str):
        return value
    digits = 9 if value.dtype.itemsize == 4 else 17
    numbers = [f"{number:.{digits}g}" if value.dtype.kind == "f" else str(number) for number in value.ravel().tolist()]
    return ", ".join(numbers).replace("inf", "∞").replace("nan", "NaN")

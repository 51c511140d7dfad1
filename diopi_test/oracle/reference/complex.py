"""Complex numbers from real numbers, and their parts.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import reference

Array = NDArray[Any]


@reference("diopiComplex")
def complex_(real, imag):
    """Return real + i · imag, without an addition that would turn infinities into NaN."""
    numbers = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.complex128)
    numbers.real, numbers.imag = real, imag
    return numbers


@reference("diopiPolar")
def polar(abs, angle):
    """Return abs · (cos(angle) + i · sin(angle))."""
    return complex_(abs * np.cos(angle), abs * np.sin(angle))


@reference("diopiConj")
def conj(input):
    """Return the complex conjugate; a real input is unchanged."""
    return complex_(input.real, -input.imag) if np.iscomplexobj(input) else input


@reference("diopiReal")
def real(input):
    """Return the real part."""
    return input.real


@reference("diopiImag")
def imag(input):
    """Return the imaginary part."""
    return input.imag

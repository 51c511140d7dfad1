"""Measure the errors of elementary functions such as exp in float32, and find error bounds that permit them.

Each function is called with 65,536 numbers of both signs: 128 in every *binade*, which is the range between two
neighboring powers of two. The errors are in units in the last place (ulp) of the exact result. An *error bound* is part
of a vendor's declaration: it states the largest error for a range of arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_impl.numerics import ELEMENTARY_FUNCTIONS, ErrorBound
from diopi_proto.types import Dtype, RoundMode
from diopi_test.fingerprint.elementary import error, find_truth
from diopi_test.fingerprint.numerics.error_ranges import (
    MAX_CORRECT_ULP,
    TOLERANCE,
    ErrorRange,
    join_signs,
    merge_ranges,
    round_up_ulp,
)
from diopi_test.fingerprint.numerics.operators import Operators
from diopi_test.fingerprint.probe import ProbeFailedError
from diopi_test.fingerprint.samples import significands, sweep
from lib_rt.dtypes import Array
from lib_rt.formats import FORMATS

Floats = NDArray[np.float64]

SINGLE = FORMATS[Dtype.float32]
"""The format of float32, with its smallest and largest numbers."""

MAX_UNIFORM_ULP = 8.0
"""If no error exceeds this number of ulp, one bound is declared for all arguments."""

NEAR_OVERFLOW = 4.0
"""Infinity instead of a finite result above `SINGLE.largest / NEAR_OVERFLOW` is an early overflow, not an error."""


@final
@dataclass(frozen=True)
class Sample:
    """Arguments and results of one call of a function; all three arrays have the same length.

    Attributes:
        argument: the argument whose range decides which error bound applies; for a division, it is the divisor.
        result: the results of the vendor.
        exact: the exact results.
    """

    argument: Floats
    result: Floats
    exact: Floats

    @property
    def is_normal(self) -> NDArray[np.bool_]:
        """A mask of the elements to which error bounds apply: argument and exact result are normal float32 numbers."""
        normal = np.ones(self.exact.shape, bool)
        for values in (self.argument, self.exact):
            normal &= (np.abs(values) >= SINGLE.tiny) & (np.abs(values) <= SINGLE.largest)
        return normal


def _unary(name: str) -> Callable[[Operators], Sample]:
    """Return a function for `CALLS` that calls an elementary function of one argument.

    Args:
        name: the name of the elementary function in declarations, such as `exp`.
    """
    function = f"diopi{name.capitalize()}"

    def call(operators: Operators) -> Sample:
        numbers = sweep(Dtype.float32)
        result = operators[function](numbers, shape=numbers.shape, dtype=Dtype.float32)
        exact = numbers.astype(np.float64)
        return Sample(exact, result.astype(np.float64), find_truth(function, exact, Dtype.float32))

    return call


def _divide(operators: Operators) -> Sample:
    """Call diopiDiv with divisors of all magnitudes and dividends of the same magnitude.

    The quotients are between 1/2 and 2, so that they neither overflow nor underflow.

    Args:
        operators: the operators of the vendor.

    Returns:
        The sample, whose arguments are the divisors.
    """
    divisor = sweep(Dtype.float32)
    finite = np.isfinite(divisor) & (np.abs(divisor) >= SINGLE.tiny) & (np.abs(divisor) < SINGLE.largest / 2)
    divisor = divisor[finite]
    dividend = np.ldexp(significands(Dtype.float32, 1)[: len(divisor)], np.frexp(divisor)[1] - 1)
    return _binary(operators, "diopiDiv", dividend, divisor, np.divide, divisor, RoundMode.none)


def _power(operators: Operators) -> Sample:
    """Return a sample of diopiPowTensor with positive bases of all magnitudes.

    The exact results are between 2^−100 and 2^100.
    """
    base = sweep(Dtype.float32)
    base = base[np.isfinite(base) & (base >= SINGLE.tiny) & (base != 1)]
    exponent = (2 * significands(Dtype.float32, 1)[: len(base)].astype(np.float64) - 3) * 100 / np.log2(base)
    return _binary(operators, "diopiPowTensor", base, exponent.clip(-100, 100).astype(np.float32), np.power, base)


def _binary(
    operators: Operators,
    function: str,
    first: Array,
    second: Array,
    truth: Callable[[Floats, Floats], Floats],
    argument: Array,
    *attributes: Any,
) -> Sample:
    """Call a function of two tensors.

    Args:
        operators: the operators of the vendor.
        function: the standard name of the function.
        first: its first operand.
        second: its second operand.
        truth: a function that computes the exact results from both operands in float64.
        argument: the operand whose range decides which error bound applies.
        *attributes: the remaining arguments.

    Returns:
        The results and the exact results.
    """
    result = operators[function](first, second, *attributes, shape=first.shape, dtype=Dtype.float32)
    exact = truth(first.astype(np.float64), second.astype(np.float64))
    return Sample(argument.astype(np.float64), result.astype(np.float64), exact)


CALLS: Mapping[str, Callable[[Operators], Sample]] = {
    **{name: _unary(name) for name in ELEMENTARY_FUNCTIONS if name not in ("atan2", "divide", "exp2", "pow")},
    "divide": _divide,
    "pow": _power,
}
"""For each elementary function, by its name in declarations, a function that calls it and returns the sample.

The functions atan2 and exp2 can be declared but not measured, because the standard does not have them.
"""


@final
@dataclass(frozen=True, kw_only=True)
class FunctionErrors:
    """The errors of a function.

    Attributes:
        name: the name in declarations.
        ulp: the largest error in ulp; infinite for a NaN in place of a number.
        argument: the argument with the largest error.
        bounds: the bounds that permit the errors; empty if no declaration is needed.
        binades: the errors of each binade of arguments.
        early_overflow: the least magnitude of an argument whose result is infinite although the exact result is finite.
        undeclared: the end of a sentence that lists the ranges whose errors can't be declared; empty if there are none.
    """

    name: str
    ulp: float
    argument: float
    bounds: tuple[ErrorBound, ...]
    binades: Sequence[ErrorRange]
    early_overflow: float = math.inf
    undeclared: str = ""

    def __str__(self) -> str:
        size = "NaN" if np.isinf(self.ulp) else f"{self.ulp:.3g} ulp"
        overflow = f"; infinity from {self.early_overflow:.6g} on" if np.isfinite(self.early_overflow) else ""
        return f"{self.name}: errors up to {size}, at {self.argument:.6g}{overflow}{self.undeclared}"


def measure_errors(operators: Operators) -> list[FunctionErrors]:
    """Return the errors of each function in `CALLS` that the vendor implements."""
    measured = []
    for name, call in CALLS.items():
        try:
            with np.errstate(all="ignore"):
                sample = call(operators)
        except ProbeFailedError:
            continue
        measured.append(find_bounds(name, sample))
    return measured


@np.errstate(all="ignore")
def find_bounds(name: str, sample: Sample) -> FunctionErrors:
    """Return the errors of a function, and the bounds that permit them.

    No bound is needed if all errors are at most one ulp. One bound for all arguments suffices if no error exceeds
    `MAX_UNIFORM_ULP`. Otherwise, the arguments are divided into ranges.

    Args:
        name: the name in declarations.
        sample: the arguments and results of the function.
    """
    overflows = np.isinf(sample.result) & (np.abs(sample.exact) > SINGLE.largest / NEAR_OVERFLOW)
    is_counted = sample.is_normal & ~_is_flushed(sample) & ~overflows
    errors = np.where(is_counted, error(sample.result, sample.exact, Dtype.float32), 0)
    worst = int(np.argmax(errors))
    largest = float(errors[worst])
    bounds: tuple[ErrorBound, ...] = ()
    binades = [list(_binades(sample, is_counted, errors, sign)) for sign in (-1.0, 1.0)]
    ranges = [entry for of_sign in binades for entry in merge_ranges(of_sign)] if largest > MAX_UNIFORM_ULP else []
    places = [f"{entry.minimum:g} to {entry.maximum:g}" for entry in ranges if entry.is_undeclarable]
    if ranges:
        bounds = join_signs(tuple(bound for entry in ranges if (bound := entry.bound) is not None))
    elif largest > MAX_CORRECT_ULP + TOLERANCE:
        bounds = (ErrorBound(ulp=round_up_ulp(largest)),)
    return FunctionErrors(
        name=name,
        ulp=largest,
        argument=float(sample.argument[worst]),
        bounds=bounds,
        binades=[entry for of_sign in binades for entry in of_sign],
        early_overflow=float(np.abs(sample.argument[overflows & sample.is_normal]).min(initial=math.inf)),
        undeclared=f"; too large to be declared from {', '.join(places)}" if places else "",
    )


def _is_flushed(sample: Sample) -> NDArray[np.bool_]:
    """Return a mask of the results that are zero although the exact result is a nonzero number close to the subnormals.

    They are the effect of flushing, which is another field of the declaration.
    """
    flushed: NDArray[np.bool_] = (sample.result == 0) & (np.abs(sample.exact) < 2 * SINGLE.tiny)
    return flushed


def _binades(sample: Sample, is_counted: NDArray[np.bool_], errors: Floats, sign: float) -> Iterator[ErrorRange]:
    """Yield the errors of each binade of arguments, from the smallest magnitude to the largest.

    Args:
        sample: the arguments and results.
        is_counted: a mask of the elements whose errors count.
        errors: the error of each element in ulp.
        sign: the sign of the arguments, −1.0 or 1.0.
    """
    of_sign = is_counted & (np.sign(sample.argument) == sign)
    exponents = np.where(of_sign, np.frexp(sample.argument)[1] - 1, 0)
    with np.errstate(all="ignore"):
        distance = np.abs(sample.result - sample.exact)
        relative = distance / np.abs(sample.exact)
    sizes = {"ulp": errors, "relative": relative, "absolute": distance}
    for exponent in range(SINGLE.min_exponent, SINGLE.max_exponent + 1):
        chosen = of_sign & (exponents == exponent)
        if chosen.any():
            inner = 2.0**exponent if exponent > SINGLE.min_exponent else 0.0
            outer = 2.0 ** (exponent + 1) if exponent < SINGLE.max_exponent else math.inf
            minimum, maximum = sorted((sign * inner, sign * outer))
            largest = {measure: [float(size[chosen].max())] for measure, size in sizes.items()}
            result = float(np.abs(sample.exact[chosen]).max())
            yield ErrorRange(minimum=minimum, maximum=maximum, errors=largest, result=result)

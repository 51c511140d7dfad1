"""The fact `moves_numbers` holds: results are elements of the arguments or constants, whatever the numbers are."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count, islice
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sampling import sampled

from diopi_proto.dtypes import floating
from diopi_proto.interface import lookup, prototypes
from diopi_test.cases.case import Case
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.oracle.reference import strip_remarks
from diopi_test.oracle.subnormals import must_keep_subnormals
from diopi_test.quality.mutation.mutant import SimulatedCall

EXACT = [name for name, prototype in prototypes().items() if prototype.guarantee == "exact" and prototype.dtypes]
MOVING = [name for name in EXACT if lookup(name).moves_numbers]
"""The exact functions that move numbers."""

COMPUTING = ["diopiAbs", "diopiNeg", "diopiRelu", "diopiMax", "diopiMaximum", "diopiClamp", "diopiSgn", "diopiAmax"]
"""Exact functions that compute or compare."""


def scramble(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return other numbers for those that `number_elements` returns; neither order nor sign are preserved."""
    return np.where(np.mod(numbers, 1) == 0.25, 100 * np.sin(numbers), numbers)


def number_elements(case: BaselineCase) -> Mapping[str, Any]:
    """Return the arguments of a case in which all floating-point elements are different numbers with the fraction ¼."""
    numbers = count(1.25)

    def with_numbers(value: Any) -> Any:
        if isinstance(value, list):
            return [with_numbers(entry) for entry in value]
        is_floating = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        return np.reshape(list(islice(numbers, value.size)), value.shape) if is_floating else value

    return {name: with_numbers(value) for name, value in case.plain_arguments().items()}


def moves(case: BaselineCase) -> bool:
    """Return whether scrambled arguments give the scrambled results."""
    call = SimulatedCall.from_expected(case)
    plain = number_elements(case)
    scrambled = {name: _scramble_argument(value) for name, value in plain.items()}
    first, second = (_flatten(call.compute_reference(arguments)) for arguments in (plain, scrambled))
    return all(np.array_equal(scramble(a), b) for a, b in zip(first, second, strict=True))


def _scramble_argument(value: Any) -> Any:
    """Return an argument with its floating-point tensors scrambled."""
    if isinstance(value, list):
        return [_scramble_argument(entry) for entry in value]
    return scramble(value) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value


def _flatten(results: Any) -> list[NDArray[Any]]:
    """Return the real and imaginary parts of all result arrays without their remarks."""
    entries = results if isinstance(results, list | tuple) else [results]
    arrays = [np.asarray(strip_remarks(a)) for e in entries for a in (e if isinstance(e, list) else [e])]
    return [np.stack([array.real, array.imag]) for array in arrays]


def ordinary_case(function: str) -> Case:
    """Return the first smoke case of a function in a floating-point type."""
    return next(case for case in select_cases(function, "full") if case.smoke and case.dtype in floating)


@pytest.mark.parametrize("function", sampled([name for name in MOVING if name != "diopiImag"], 12))
def test_functions_with_the_fact_move_numbers(function: str) -> None:
    assert moves(compute_baseline_case(lookup(function), ordinary_case(function)))


@pytest.mark.parametrize("function", COMPUTING)
def test_functions_that_compute_do_not_have_the_fact(function: str) -> None:
    assert not lookup(function).moves_numbers
    assert not moves(compute_baseline_case(lookup(function), ordinary_case(function)))


def test_only_calls_that_do_not_convert_numbers_must_keep_subnormal_numbers() -> None:
    cases = {case.label: case for case in select_cases("diopiCopyInp", "full")}
    for label, must_keep in (("float32-all-subnormal", True), ("float32-to-float16", False)):
        assert must_keep_subnormals(compute_baseline_case(lookup("diopiCopyInp"), cases[label])) == must_keep
    assert not must_keep_subnormals(compute_baseline_case(lookup("diopiAbs"), ordinary_case("diopiAbs")))

"""Test that a finite result is open if an intermediate value overflows the type of the computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOverride, TensorSpec
from diopi_test.cases.products import fixed_values
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.overflow import RangedArray
from diopi_test.oracle.records import Expected
from lib_rt.formats import format_of

MAX, FAR = format_of(Dtype.float32).largest, format_of(Dtype.float64).largest


def expected(function: str, dtype: Dtype = Dtype.float32, **arguments: Any) -> Expected:
    """Return the first expected result of a call; lists are vectors, and nested lists matrices, of `dtype`."""
    specs = {
        name: TensorSpec(np.shape(value), dtype, fixed_values(list(np.ravel(value))))
        if isinstance(value, list)
        else value
        for name, value in arguments.items()
    }
    results = {"out": ResultOverride()} if function in ("diopiSum", "diopiMean", "diopiNorm", "diopiStd") else {}
    case = compute_baseline_case(lookup(function), Case(f"{dtype.name}-far", dtype, specs, results=results))
    first = next(iter(case.expected.values()))
    assert isinstance(first, Expected)
    return first


def is_open(result: Expected) -> list[bool]:
    """Return for each element whether its value is unspecified."""
    specified = np.ones(result.values.shape, bool) if result.specified is None else result.specified
    return [not known for known in np.ravel(specified)]


OPEN: dict[str, tuple[str, dict[str, Any]]] = {
    "product of matrices": ("diopiMm", {"input": [[MAX, MAX]], "mat2": [[2.0], [-1.0]]}),
    "product before a quotient": ("diopiAddcdiv", {"input": [1.0], "tensor1": [MAX], "tensor2": [4.0], "value": 3.0}),
    "sum": ("diopiSum", {"input": [MAX, MAX, -MAX], "dim": (0,)}),
    "mean": ("diopiMean", {"input": [MAX, MAX], "dim": (0,)}),
    "pooling": ("diopiAdaptiveAvgPool2d", {"input": [[[[MAX, MAX]]]], "output_size": (1, 1)}),
    "polynomial": ("diopiGeluBackward", {"grad_output": [1.0], "input": [-1e20], "approximate": "tanh"}),
    "sum of squares": ("diopiNorm", {"input": [1e30, 1.0], "p": 2.0, "dim": (0,)}),
    "variance": ("diopiStd", {"input": [1e30, 1.0], "dim": (0,), "correction": 1}),
    "difference": ("diopiLerpScalar", {"input": [MAX], "end": [-MAX], "weight": 0.5}),
    "activation": ("diopiHardswish", {"input": [MAX]}),
    "quotient": ("diopiRemainderTensor", {"input": [MAX], "other": [0.75]}),
    "quotient of small numbers": ("diopiRemainderTensor", {"input": [1000.0], "other": [1e-36]}),
}

KNOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "no product overflows": ("diopiMm", {"input": [[MAX, MAX]], "mat2": [[0.5], [0.25]]}),
    "no order of the sum overflows": ("diopiSum", {"input": [MAX, 1.0, -MAX], "dim": (0,)}),
    "the result itself overflows": ("diopiSum", {"input": [MAX, MAX], "dim": (0,)}),
    "an operand is infinite": ("diopiSum", {"input": [np.inf, MAX, MAX], "dim": (0,)}),
    "differences overflow in the result": ("diopiLogSoftmax", {"input": [MAX, 1.0, -MAX], "dim": 0}),
    "the exponential vanishes": ("diopiSilu", {"input": [MAX, -MAX, 1e38]}),
    "numbers are moved": ("diopiRelu", {"input": [MAX, -MAX]}),
    "the largest quotient": ("diopiRemainderTensor", {"input": [MAX, -MAX, 5.0], "other": [1.0, 2.0, 0.0]}),
}


@pytest.mark.parametrize("kind", OPEN)
def test_results_whose_intermediate_values_overflow_are_open(kind: str) -> None:
    function, arguments = OPEN[kind]
    assert is_open(expected(function, **arguments)) == [True]


@pytest.mark.parametrize("kind", KNOWN)
def test_results_without_intermediate_overflow_are_specified(kind: str) -> None:
    function, arguments = KNOWN[kind]
    assert not any(is_open(expected(function, **arguments)))


def test_intermediate_values_of_half_precision_have_the_range_of_float32() -> None:
    largest = format_of(Dtype.float16).largest
    assert is_open(expected("diopiMean", Dtype.float16, input=[largest] * 3, dim=(0,))) == [False]
    assert is_open(expected("diopiMean", Dtype.bfloat16, input=[3e38, 3e38], dim=(0,))) == [True]


def test_results_that_overflow_in_the_reference_are_open_in_float64() -> None:
    assert is_open(expected("diopiMean", Dtype.float64, input=[FAR, FAR], dim=(0,))) == [True]
    assert is_open(expected("diopiSum", Dtype.float64, input=[FAR, FAR], dim=(0,))) == [False]
    assert is_open(expected("diopiRemainderTensor", Dtype.float64, input=[FAR, 7.0], other=[0.75, 2.0])) == [
        True,
        False,
    ]


def test_only_elements_that_overflow_are_open() -> None:
    assert is_open(expected("diopiCumsum", input=[1.0, MAX, MAX, -MAX], dim=0)) == [False, False, False, True]


def make_ranged(values: Any) -> Any:
    """Return an array in which numbers of at least 100 are infinite."""
    array = np.array(values).view(RangedArray)
    array.bound = 100.0
    return array


def drop_range(array: Any) -> NDArray[Any]:
    """Return the values of an array without its range."""
    bare: NDArray[Any] = np.asarray(array).view(np.ndarray)
    return bare


def test_ranged_arrays_overflow_at_their_bound() -> None:
    assert drop_range(make_ranged([60.0, -60.0, 30.0]) * 2).tolist() == [np.inf, -np.inf, 60.0]
    assert drop_range(make_ranged([60.0 + 1j]) * 2).tolist() == [complex(np.inf, 2)]
    in_place = make_ranged([60.0])
    in_place += in_place
    assert drop_range(in_place).tolist() == [np.inf]


def test_ranged_sums_are_nan_if_an_order_of_additions_overflows() -> None:
    terms = make_ranged([60.0, 60.0, -60.0])
    assert np.isnan(drop_range(terms.sum()))
    assert drop_range(terms[1:].sum()) == 0
    assert np.isnan(drop_range(np.einsum("i,i->", terms, make_ranged([1.0, 1.0, 1.0]))))
    assert np.isnan(drop_range(np.einsum("i,i->", make_ranged([60.0, 40.0, -60.0]), make_ranged([1.0, 1.0, 1.0]))))
    assert np.isnan(drop_range(terms.astype(complex) @ make_ranged([1.0, 1.0, 1.0])))
    sums = np.zeros(2).view(RangedArray)
    sums.bound = 100.0
    np.add.at(sums, np.array([0, 0, 0, 1]), make_ranged([60.0, 60.0, -60.0, 60.0]))
    assert np.isnan(drop_range(sums)).tolist() == [True, False]

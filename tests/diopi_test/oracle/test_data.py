"""The reference receives the arguments that the standard converts first in converted form."""

from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, RoundMode
from diopi_test.cases.case import Case, ResultOverride, TensorSpec
from diopi_test.cases.domains import choice
from diopi_test.cases.layouts import strides
from diopi_test.oracle.data import convert_array
from diopi_test.oracle.evaluation import compute_baseline_case, draw_arguments
from diopi_test.oracle.records import Expected

F16, F32, F64, I32, BOOL = Dtype.float16, Dtype.float32, Dtype.float64, Dtype.int32, Dtype.bool


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([2049, 70000, -3], F16, [2048, np.inf, -3]),
        ([2.0**24 + 1, 0.1], F32, [2.0**24, float(np.float32(0.1))]),
        ([1.7, -2.7, 0.0], I32, [1, -2, 0]),
        ([300, 7], Dtype.int8, [44, 7]),
        ([0.5, 0.0, np.nan], BOOL, [True, False, True]),
        ([1 + 2j, 2j], F32, [1, 0]),
    ],
)
def test_convert_array_rounds_truncates_and_wraps(values: list[complex], dtype: Dtype, expected: list[float]) -> None:
    assert convert_array(np.array(values), dtype).tolist() == expected


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("dtype", "expected"), [(F32, [1, 0]), (I32, [1, 0]), (BOOL, [True, True])])
def test_a_real_tensor_takes_the_real_parts_of_complex_values(dtype: Dtype, expected: list[float]) -> None:
    spec = TensorSpec((2,), dtype, compute=lambda values: np.array([1 + 2j, 2j]))
    case = Case("complex-values", dtype, {"input": spec})
    assert draw_arguments(lookup("diopiAbs"), case)["input"].values.tolist() == expected


CONVERTED: dict[str, tuple[str, dict[str, Dtype], dict[str, float], Dtype, list[str], Dtype | None]] = {
    "operands": ("diopiAdd", {"input": I32, "other": F16}, {}, F16, ["input", "other"], F16),
    "lifted": ("diopiMulScalar", {"input": I32}, {"other": 0.5}, F32, ["input"], F32),
    "compared": ("diopiEqScalar", {"input": F32}, {"other": 0.1}, BOOL, ["input", "other"], F32),
    "compared as integers": ("diopiEqScalar", {"input": I32}, {"other": 1}, BOOL, ["input", "other"], I32),
    "wrapped": ("diopiRemainder", {"other": I32}, {"input": 2**32 + 1}, I32, ["other", "input"], I32),
    "divided": ("diopiDivScalar", {"input": I32}, {"other": 3, "rounding_mode": RoundMode.none}, F32, ["input"], I32),
    "rounded": (
        "diopiDivScalar",
        {"input": I32},
        {"other": 3, "rounding_mode": RoundMode.trunc},
        F32,
        ["input", "other"],
        I32,
    ),
    "raised": ("diopiPow", {"input": I32}, {"exponent": 3}, I32, ["input"], I32),
    "bounded": (
        "diopiHardtanh",
        {"input": F16},
        {"min_val": 0, "max_val": 0.1},
        F16,
        ["min_val", "max_val"],
        F16,
    ),
    "cut": ("diopiClampMinScalar", {"input": I32}, {"min": 0.5}, I32, ["input"], I32),
    "not cut": ("diopiClampMinScalar", {"input": I32}, {"min": 0.5}, F32, ["input"], F32),
    "ordered": ("diopiSum", {"input": F32}, {}, I32, ["input"], I32),
    "neither": ("diopiTopk", {"input": F32}, {}, F32, [], None),
}


@pytest.mark.parametrize("call", CONVERTED)
def test_reference_receives_converted_arguments(call: str) -> None:
    function, dtypes, arguments, result, names, common = CONVERTED[call]
    found, dtype = lookup(function).find_conversions(dtypes, arguments, result)
    assert found == names
    assert not names or dtype is common


def expected_of(function: str, arguments: dict[str, Any], result: Dtype | None = None) -> Any:
    """Return the expected results of a function and the input from which they were computed."""
    case = Case("float32-case", F32, arguments, results={"out": ResultOverride(result, shape=())} if result else {})
    computed = compute_baseline_case(lookup(function), case)
    (expected,) = computed.expected.values()
    assert isinstance(expected, Expected)
    plain = computed.plain_arguments()["input"]
    return expected.values.tolist(), plain.tolist()


def test_baseline_case_uses_converted_arguments() -> None:
    arguments = {"input": TensorSpec((1,), I32, choice([2049])), "other": TensorSpec((1,), F16, choice([2048]))}
    assert expected_of("diopiEq", arguments) == ([True], [2048])
    fraction = {"input": TensorSpec((3,), F64, choice([1.7])), "dim": ()}
    assert expected_of("diopiSum", fraction, I32) == (3, [1, 1, 1])
    assert expected_of("diopiSum", fraction, F64)[0] == pytest.approx(5.1)


@pytest.mark.parametrize(
    ("shape", "steps"), [((5, 4), (0, 1)), ((5, 4), (1, 1)), ((6, 3), (2, 1)), ((2, 3, 4), (0, 0, 1))]
)
def test_elements_that_share_memory_are_equal(shape: tuple[int, ...], steps: tuple[int, ...]) -> None:
    case = Case("float32", Dtype.float32, {"input": TensorSpec(shape, Dtype.float32, layout=strides(*steps))})
    values = draw_arguments(lookup("diopiSin"), case)["input"].values
    place = strides(*steps)(shape)
    storage: dict[int, float] = {}
    for index in np.ndindex(*shape):
        assert values[index] == storage.setdefault(int(np.dot(index, place.strides)), values[index])
    assert len(set(storage.values())) == place.storage_elements

"""Test references of random functions: degenerate results are exact, and all others need a validator."""

from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, Expected


def case_of(name: str, label: str) -> BaselineCase:
    """Return the computed case with this label."""
    (case,) = (case for case in select_cases(name, "full") if case.label == label)
    return compute_baseline_case(lookup(name), case)


def expected(name: str, label: str, result: str) -> Expected:
    """Return the expected result of a case that has exactly one valid result."""
    found = case_of(name, label).expected[result]
    assert isinstance(found, Expected)
    return found


DETERMINED: list[tuple[str, str, str, Any]] = [
    ("diopiDropout", "float32-p-0", "mask", True),
    ("diopiDropout", "float32-p-1", "out", 0),
    ("diopiDropout", "float32-p-1-byte", "mask", 0),
    ("diopiDropoutInp", "float32-p-1", "input", 0),
    ("diopiRandomInp", "int64-one", "inout", 5),
    ("diopiUniformInp", "float16-point", "inout", 0.75),
    ("diopiBernoulliScalar", "bool-p-1", "out", True),
    ("diopiBernoulliScalar", "float32-p-0", "out", 0),
    ("diopiNormal", "float64-point", "out", -0.75),
    ("diopiNormalScalarTensor", "float32-point", "out", -2.5),
    ("diopiRandperm", "int64-n-1", "out", 0),
    ("diopiMultinomial", "float32-certain", "out", [[2], [0], [1], [2]]),
    ("diopiMultinomial", "float32-single", "out", 0),
]


@pytest.mark.parametrize(("name", "label", "result", "value"), DETERMINED)
def test_degenerate_distributions_have_a_determined_result(name: str, label: str, result: str, value: Any) -> None:
    override = expected(name, label, result)
    assert not override.needs_validator and override.budget is None
    assert override.values.size and (override.values == np.array(value)).all()


def test_degenerate_distributions_by_element_have_determined_results() -> None:
    bernoulli, normal = case_of("diopiBernoulli", "float32-certain"), case_of("diopiNormalTensor", "float32-point")
    for case, source in ((bernoulli, "input"), (normal, "mean")):
        override = case.expected["out"]
        assert isinstance(override, Expected) and not override.needs_validator
        assert np.array_equal(override.values, case.plain_arguments()[source])


def test_dropout_in_inference_copies_and_leaves_the_mask_unspecified() -> None:
    case = case_of("diopiDropout", "float32-inference")
    assert np.array_equal(
        expected(case.function, case.label, "out").values, case.plain_arguments()["input"], equal_nan=True
    )
    specified = expected(case.function, case.label, "mask").specified
    assert specified is not None and not specified.any()


@pytest.mark.parametrize(
    ("name", "label", "result", "shape", "dtype"),
    [
        ("diopiDropout", "float16-channels-byte", "mask", (40, 30, 1, 1), Dtype.uint8),
        ("diopiRandperm", "bfloat16-sample", "out", (257,), Dtype.bfloat16),
        ("diopiNormalTensor", "float32-rank-up", "out", (3, 35, 40), Dtype.float32),
        ("diopiMultinomial", "float64-put-aside", "out", (6000, 2), Dtype.int64),
        ("diopiRandomInp", "bool-sample", "inout", (45, 80), Dtype.bool),
    ],
)
def test_random_results_have_a_shape_and_type_but_no_values(
    name: str, label: str, result: str, shape: tuple[int, ...], dtype: Dtype
) -> None:
    override = expected(name, label, result)
    assert override.needs_validator and not override.values.any()
    assert (override.values.shape, override.dtype) == (shape, dtype)

"""The references of the activation functions: conversions, limits and rejected arguments.

`diopi-test run --vendor torch_cpu` compares their values and gradients with PyTorch.
"""

import numpy as np
import pytest
from references import call_reference

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import choice
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import Expected


def test_leaky_relu_backward_rejects_negative_slope_for_a_result() -> None:
    ones = np.ones(2)
    assert call_reference("diopiLeakyReluBackward", ones, -ones, -0.5, False).tolist() == [-0.5, -0.5]
    with pytest.raises(ValueError, match=r"negative_slope is -0\.5"):
        call_reference("diopiLeakyReluBackward", ones, ones, -0.5, True)


def test_softmax_without_finite_maximum_is_nan() -> None:
    slices = np.array([[-np.inf, -np.inf], [np.inf, 1.0], [np.nan, 1.0], [-np.inf, 2.0]])
    with np.errstate(invalid="ignore"):
        actual = call_reference("diopiSoftmax", slices, 1)
    np.testing.assert_array_equal(actual, [[np.nan] * 2, [np.nan] * 2, [np.nan] * 2, [0, 1]])


@pytest.mark.parametrize("dim", [0, -1])
def test_softmax_of_a_scalar_is_one(dim: int) -> None:
    assert call_reference("diopiSoftmax", np.array(3.0), dim) == 1
    assert call_reference("diopiLogSoftmax", np.array(3.0), dim) == 0


@pytest.mark.parametrize(
    ("function", "numbers", "values", "results"),
    [
        ("diopiHardtanh", {"min_val": -2.7, "max_val": 3.6}, [-9, 9], {-2, 3}),
        ("diopiThreshold", {"threshold": 1.7, "value": 9.6}, [1, 2], {9, 2}),
    ],
)
def test_scalars_with_integer_tensors_are_truncated(
    function: str, numbers: dict[str, float], values: list[int], results: set[int]
) -> None:
    case = Case("int32", Dtype.int32, {"input": TensorSpec((64,), Dtype.int32, choice(values)), **numbers})
    expected = compute_baseline_case(lookup(function), case).expected["out"]
    assert isinstance(expected, Expected)
    assert set(expected.values.ravel().tolist()) == results

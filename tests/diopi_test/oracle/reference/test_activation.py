"""The references of the activation functions: gradients against finite differences, values against known facts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.domains import choice
from diopi_test.cases.model import Case, TensorSpec
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import Expected
from tests.helpers.references import call

Array = np.ndarray[Any, Any]

STEP = 2.0**-17  # near the cube root of eps, where a central difference is most accurate


def _difference(function: Callable[[Array], Array], x: Array, grad: Array) -> Array:
    """The gradient of Σ grad · function(x) by central differences, one element of x after the other."""
    gradient = np.zeros(x.shape)
    for position in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[position] = STEP
        gradient[position] = np.sum(grad * (function(x + step) - function(x - step))) / (2 * STEP)
    return gradient


@pytest.fixture
def data() -> tuple[Array, Array]:
    """An input and a gradient; no value of the input is near one of the kinks -3, -1, 0, 0.6, 1 and 3."""
    rng = np.random.default_rng(7)
    return rng.integers(-4, 4, (4, 6)) + rng.uniform(0.1, 0.5, (4, 6)), rng.normal(size=(4, 6))


OF_INPUT = {
    "diopiHardtanh": (-1.0, 1.0),
    "diopiHardswish": (),
    "diopiGelu-none": ("none",),
    "diopiGelu-tanh": ("tanh",),
    "diopiLeakyRelu": (0.3,),
    "diopiSilu": (),
}


@pytest.mark.parametrize("case", OF_INPUT)
def test_activation_gradient_of_the_input_matches_differences(case: str, data: tuple[Array, Array]) -> None:
    x, grad = data
    name, attributes = case.split("-")[0], OF_INPUT[case]
    actual = (*attributes, False) if name == "diopiLeakyRelu" else attributes
    expected = _difference(lambda x: call(name, x, *attributes), x, grad)
    np.testing.assert_allclose(call(f"{name}Backward", grad, x, *actual), expected, atol=1e-8)


def test_threshold_gradient(data: tuple[Array, Array]) -> None:
    x, grad = data
    expected = _difference(lambda x: call("diopiThreshold", x, 0.6, 7.0), x, grad)
    np.testing.assert_allclose(call("diopiThresholdBackward", grad, x, 0.6), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("diopiSigmoid", ()),
        ("diopiSoftmax", (0,)),
        ("diopiSoftmax", (-1,)),
        ("diopiLogSoftmax", (0,)),
        ("diopiLogSoftmax", (1,)),
    ],
)
def test_activation_gradient_of_the_result_matches_differences(
    name: str, attributes: tuple[int, ...], data: tuple[Array, Array]
) -> None:
    x, grad = data
    expected = _difference(lambda x: call(name, x, *attributes), x, grad)
    result = call(name, x, *attributes)
    np.testing.assert_allclose(call(f"{name}Backward", grad, result, *attributes), expected, atol=1e-8)


def test_leaky_relu_backward_rejects_negative_slope_for_a_result() -> None:
    ones = np.ones(2)
    assert call("diopiLeakyReluBackward", ones, -ones, -0.5, False).tolist() == [-0.5, -0.5]
    with pytest.raises(ValueError, match=r"negative_slope is -0\.5, expected at least 0"):
        call("diopiLeakyReluBackward", ones, ones, -0.5, True)


def test_complex_sigmoid_gradient_is_conjugate() -> None:
    z, grad = np.array([0.3 - 0.7j]), np.array([1.0 + 2.0j])
    slope = (call("diopiSigmoid", z + STEP) - call("diopiSigmoid", z - STEP)) / (2 * STEP)
    actual = call("diopiSigmoidBackward", grad, call("diopiSigmoid", z))
    np.testing.assert_allclose(actual, grad * np.conj(slope), atol=1e-8)


def test_softmax_sums_to_one_and_ignores_offsets(data: tuple[Array, Array]) -> None:
    x, _ = data
    y = call("diopiSoftmax", x, 0)
    np.testing.assert_allclose(y.sum(0), 1)
    np.testing.assert_allclose(call("diopiSoftmax", x + 1000, 0), y)
    np.testing.assert_allclose(np.exp(call("diopiLogSoftmax", x, 0)), y)


def test_softmax_without_finite_maximum() -> None:
    slices = np.array([[-np.inf, -np.inf], [np.inf, 1.0], [np.nan, 1.0], [-np.inf, 2.0]])
    with np.errstate(invalid="ignore"):
        actual = call("diopiSoftmax", slices, 1)
    np.testing.assert_array_equal(actual, [[np.nan] * 2, [np.nan] * 2, [np.nan] * 2, [0, 1]])


@pytest.mark.parametrize("dim", [0, -1])
def test_softmax_of_a_scalar_is_one(dim: int) -> None:
    assert call("diopiSoftmax", np.array(3.0), dim) == 1
    assert call("diopiLogSoftmax", np.array(3.0), dim) == 0


def test_gelu_forms_agree_roughly_and_have_accurate_tails() -> None:
    x = np.linspace(-4, 4, 81)
    np.testing.assert_allclose(call("diopiGelu", x, "tanh"), call("diopiGelu", x, "none"), atol=5e-4)
    assert call("diopiGelu", np.array([-20.0]), "none")[0] == pytest.approx(-5.507248237212467e-88)  # -20 Φ(-20)


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


def test_hardswish_is_zero_or_identity_beyond_its_ends() -> None:
    np.testing.assert_array_equal(call("diopiHardswish", np.array([-4.0, -3.0, 3.0, 5.0])), [0, 0, 3, 5])
    np.testing.assert_array_equal(call("diopiHardswishBackward", np.full(2, 7.0), np.array([-3.0, 3.0])), [0, 7])

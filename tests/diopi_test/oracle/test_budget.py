"""Budgets: amplification of input errors, intermediate terms, and which inputs are perturbed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from diopi_proto.types import Dtype
from diopi_test.cases.case import TensorSpec
from diopi_test.cases.domains import random_generator
from diopi_test.oracle.amplification import measure_amplification
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.data import TensorData
from diopi_test.oracle.subnormals import flush_subnormals, has_subnormals
from lib_rt.dtypes import to_numpy
from lib_rt.formats import FORMATS, ulp


def tensor(values: Any, dtype: Dtype = Dtype.float32) -> TensorData:
    """Return the data of a tensor with these values, rounded to the element type."""
    array = np.asarray(values).astype(to_numpy(dtype))
    return TensorData(array, TensorSpec(array.shape, dtype))


def amplification(function: Any, values: Mapping[str, Any], dtype: Dtype = Dtype.float32) -> np.ndarray:
    """Return the largest change of each result element when the inputs move by half an ulp."""

    def evaluate(plain: Mapping[str, Any]) -> list[np.ndarray]:
        return [np.asarray(function(**plain))]

    plain = {name: value.exact if isinstance(value, TensorData) else value for name, value in values.items()}
    result_dtype = dtype if dtype in FORMATS else Dtype.float32
    return measure_amplification(
        evaluate, values, evaluate(plain), [result_dtype], dtype, lambda: random_generator("test")
    )[0]


@pytest.mark.parametrize("dtype", [Dtype.float16, Dtype.float32, Dtype.float64], ids=lambda dtype: dtype.name)
def test_identity_amplifies_by_half_an_ulp(dtype: Dtype) -> None:
    values = np.linspace(1, 10, 30)
    amplified = amplification(lambda x: x, {"x": tensor(values, dtype)}, dtype)
    assert np.allclose(amplified, ulp(values.astype(to_numpy(dtype)), dtype) / 2, rtol=1e-6)


def test_amplification_measures_cancellation() -> None:
    a, b = tensor([1.0, 1.0]), tensor([1.0, -1.0])
    amplified = amplification(lambda a, b: a + b, {"a": a, "b": b})
    assert amplified[1] == pytest.approx(2.0**-23, rel=1e-6)  # the sum is 0, the error of its operands is not


def test_steep_functions_amplify() -> None:
    amplified = amplification(lambda x: np.exp(x), {"x": tensor([10.0])})
    assert amplified[0] == pytest.approx(np.exp(10) * float(ulp(10.0, Dtype.float32)) / 2, rel=1e-3)


def test_attribute_does_not_hide_the_cancellation_it_causes() -> None:
    amplified = amplification(lambda x, a: x + a, {"x": tensor(np.full(5000, 0.3)), "a": -0.3})
    assert (amplified >= ulp(np.array(0.3), Dtype.float32) / 2 * 0.99).all()


def test_attributes_are_perturbed_only_if_the_format_cannot_represent_them() -> None:
    x = tensor(np.zeros(4))
    assert amplification(lambda x, a: x + a, {"x": x, "a": 0.5}).max() < 1e-30
    assert amplification(lambda x, a: x + a, {"x": x, "a": 0.1}).max() == pytest.approx(2.0**-28, rel=1e-6)
    assert amplification(lambda x, a: x + a, {"x": x, "a": 3}).max() < 1e-30


def test_index_tensors_are_not_perturbed() -> None:
    def take(x: np.ndarray, index: np.ndarray) -> np.ndarray:
        assert index.dtype == np.int64
        return x[index]

    amplified = amplification(take, {"x": tensor([1.0, 2.0]), "index": tensor([1, 0], Dtype.int64)})
    assert (amplified > 0).all()


def test_integers_are_perturbed_if_float32_cannot_represent_them() -> None:
    integers = np.array([9, 2**24, 2**26 + 1])
    amplified = amplification(lambda x: np.sqrt(x), {"x": tensor(integers, Dtype.int32)}, Dtype.int32)
    assert np.allclose(amplified, [0, 0, ulp([2.0**26], Dtype.float32)[0] / 2 / (2 * 2**13)], rtol=1e-3)


def test_nonfinite_results_do_not_widen_a_budget() -> None:
    amplified = amplification(lambda x: 1 / x, {"x": tensor([np.inf, np.nan, 2.0])})
    assert amplified[0] == 0
    assert amplified[1] == 0
    assert amplified[2] > 0


def test_unit_is_amplification_plus_ulp_plus_terms() -> None:
    reference = np.array([1.0, 1.5, 0.0])
    step = 2.0**-23
    amplified, terms = np.array([0, 3 * step, 0]), np.array([2.0, 0, 0])
    assert Budget.derive(reference, Dtype.float32, amplified, terms=terms).unit.tolist() == [
        3 * step,
        4 * step,
        2.0**-149,
    ]


def test_nan_terms_do_not_enter_the_unit() -> None:
    assert Budget.derive(np.ones(1), Dtype.float32, np.zeros(1), terms=np.nan).unit == 2.0**-23


def test_nonfinite_results_have_no_unit() -> None:
    assert np.isnan(Budget.derive(np.array([np.inf, np.nan]), Dtype.float32, np.zeros(2)).unit).all()


def test_flush_subnormals_replaces_them_by_zero() -> None:
    data = tensor([1e-40, -1e-40, 1.0])
    assert has_subnormals(data)
    assert not has_subnormals(tensor([1e-40], Dtype.float64))
    flushed = flush_subnormals(data)
    assert flushed.tolist() == [0.0, 0.0, 1.0]
    assert np.signbit(flushed).tolist() == [False, True, False]


def test_subnormal_scalars_are_flushed_in_the_type_they_are_computed_in() -> None:
    assert has_subnormals(1e-40)
    assert not has_subnormals(1e-40, Dtype.float64)
    assert flush_subnormals(-1e-310, Dtype.float64) == 0.0
    assert not has_subnormals(1)


@pytest.mark.parametrize("dtype", [Dtype.float32, Dtype.float64], ids=lambda dtype: dtype.name)
def test_unit_near_zero_does_not_depend_on_its_ratio_to_the_ulp(dtype: Dtype) -> None:
    values = np.array([0.0, 1.0])
    epsilon = float(np.finfo(to_numpy(dtype)).eps)
    units = Budget.derive(values, dtype, np.zeros(2), stored=1.0).unit
    assert np.allclose(units, [epsilon, 2 * epsilon], rtol=1e-6, atol=0)


def test_narrow_input_is_perturbed_in_the_type_it_is_converted_to() -> None:
    narrow = tensor(np.ones(4), Dtype.float16)
    change = amplification(lambda x: x, {"x": narrow}, Dtype.float32)
    assert change.tolist() == [2.0**-24] * 4


def test_zero_sum_may_have_either_sign() -> None:
    values = np.array([0.0, -0.0, 1.0])
    spacing = ulp(values, Dtype.float16)
    derived = Budget.derive(values, Dtype.float16, np.zeros(3), is_sum=True)
    for budget in (derived, Budget(spacing).with_unsigned_zeros(values, Dtype.float16)):
        assert budget.covers_subnormals(Dtype.float16)[:2].all()
        assert budget.unit[2] == spacing[2]
    assert not Budget(spacing).covers_subnormals(Dtype.float16)[:2].any()


@pytest.mark.parametrize("sign", [1, -1], ids=["sum", "difference"])
@pytest.mark.parametrize("shapes", [((5000,), (5000,)), ((100, 50), (50,)), ((50, 1), (10, 50, 40))], ids=str)
def test_joint_effect_of_two_inputs_is_measured_at_each_element(shapes: Any, sign: int) -> None:
    a, b = (tensor(np.ones(shape)) for shape in shapes)
    amplified = amplification(lambda a, b: a + sign * b, {"a": a, "b": b})
    assert (amplified == 2.0**-23).all()


def test_joint_effect_of_complex_parts_and_list_entries_is_measured() -> None:
    z = tensor(np.full(5000, 1 + 1j), Dtype.complex64)
    assert amplification(lambda z: z.real - z.imag, {"z": z}).min() == 2.0**-23
    listed = [tensor(np.ones(5000)) for _ in range(8)]
    plain = {"tensors": [scalar.exact for scalar in listed]}

    def differences(tensors: list[np.ndarray]) -> list[np.ndarray]:
        return [tensors[i] - tensors[j] for i in range(8) for j in range(i)]

    found = measure_amplification(
        lambda arguments: differences(**arguments),
        {"tensors": listed},
        differences(**plain),
        [Dtype.float32] * 28,
        Dtype.float32,
        lambda: random_generator("test"),
    )
    assert np.min(found) == 2.0**-23


def test_infinite_part_does_not_affect_the_amplification_of_the_finite_part() -> None:
    amplified = amplification(lambda x: x.real, {"x": tensor([3, complex(3, np.inf)], Dtype.complex64)})
    assert amplified.tolist() == [0.5 * ulp(np.float64(3), Dtype.float32)] * 2

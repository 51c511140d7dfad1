"""Budgets: amplification by the problem, intermediate terms, and what is moved by half an ulp."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from diopi_proto.types import Dtype
from diopi_test.cases.data import TensorData, random_generator
from diopi_test.cases.formats import FORMATS, ulp
from diopi_test.cases.model import TensorSpec
from diopi_test.oracle import budget
from lib_rt.dtypes import to_numpy


def tensor(values: Any, dtype: Dtype = Dtype.float32) -> TensorData:
    array = np.asarray(values).astype(to_numpy(dtype))
    return TensorData(array, TensorSpec(array.shape, dtype))


def amplification(function: Any, values: Mapping[str, Any], dtype: Dtype = Dtype.float32) -> np.ndarray:
    def evaluate(plain: Mapping[str, Any]) -> list[np.ndarray]:
        return [np.asarray(function(**plain))]

    plain = {name: value.exact if isinstance(value, TensorData) else value for name, value in values.items()}
    result_dtype = dtype if dtype in FORMATS else Dtype.float32
    return budget.amplification(
        evaluate, values, evaluate(plain), [result_dtype], dtype, lambda: random_generator("test")
    )[0]


@pytest.mark.parametrize("dtype", [Dtype.float16, Dtype.float32, Dtype.float64], ids=lambda dtype: dtype.name)
def test_the_identity_amplifies_by_half_an_ulp(dtype: Dtype) -> None:
    values = np.linspace(1, 10, 30)
    amplified = amplification(lambda x: x, {"x": tensor(values, dtype)}, dtype)
    assert np.allclose(amplified, ulp(values.astype(to_numpy(dtype)), dtype) / 2, rtol=1e-6)


def test_cancellation_is_found_without_knowing_the_operator() -> None:
    a, b = tensor([1.0, 1.0]), tensor([1.0, -1.0])
    amplified = amplification(lambda a, b: a + b, {"a": a, "b": b})
    assert amplified[1] == pytest.approx(2.0**-23, rel=1e-6)  # the sum is 0, the error of its operands is not


def test_steep_functions_amplify() -> None:
    amplified = amplification(lambda x: np.exp(x), {"x": tensor([10.0])})
    assert amplified[0] == pytest.approx(np.exp(10) * float(ulp(10.0, Dtype.float32)) / 2, rel=1e-3)


def test_an_attribute_never_hides_what_it_cancels() -> None:
    amplified = amplification(lambda x, a: x + a, {"x": tensor(np.full(5000, 0.3)), "a": -0.3})
    assert (amplified >= ulp(np.array(0.3), Dtype.float32) / 2 * 0.99).all()


def test_attributes_are_moved_only_if_the_format_cannot_hold_them() -> None:
    x = tensor(np.zeros(4))
    assert amplification(lambda x, a: x + a, {"x": x, "a": 0.5}).max() < 1e-30
    assert amplification(lambda x, a: x + a, {"x": x, "a": 0.1}).max() == pytest.approx(2.0**-28, rel=1e-6)
    assert amplification(lambda x, a: x + a, {"x": x, "a": 3}).max() < 1e-30


def test_index_tensors_stay_what_they_are() -> None:
    def take(x: np.ndarray, index: np.ndarray) -> np.ndarray:
        assert index.dtype == np.int64
        return x[index]

    amplified = amplification(take, {"x": tensor([1.0, 2.0]), "index": tensor([1, 0], Dtype.int64)})
    assert (amplified > 0).all()


def test_integers_are_moved_as_float32_if_that_does_not_hold_them() -> None:
    integers = np.array([9, 2**24, 2**26 + 1])
    amplified = amplification(lambda x: np.sqrt(x), {"x": tensor(integers, Dtype.int32)}, Dtype.int32)
    assert np.allclose(amplified, [0, 0, ulp([2.0**26], Dtype.float32)[0] / 2 / (2 * 2**13)], rtol=1e-3)


def test_what_is_not_finite_does_not_widen_a_budget() -> None:
    amplified = amplification(lambda x: 1 / x, {"x": tensor([np.inf, np.nan, 2.0])})
    assert amplified[0] == 0
    assert amplified[1] == 0
    assert amplified[2] > 0


def test_a_unit_is_made_of_what_is_amplified_an_ulp_and_terms() -> None:
    reference = np.array([1.0, 1.5, 0.0])
    step = 2.0**-23
    unit = budget.unit(reference, np.array([0, 3 * step, 0]), np.array([2.0, 0, 0]), 0, Dtype.float32)
    assert unit.tolist() == [3 * step, 4 * step, 2.0**-149]


def test_terms_that_are_no_numbers_make_no_unit() -> None:
    assert budget.unit(np.ones(1), np.zeros(1), np.nan, 0, Dtype.float32) == 2.0**-23


def test_what_is_not_finite_has_no_unit() -> None:
    assert np.isnan(budget.unit(np.array([np.inf, np.nan]), np.zeros(2), 0, 0, Dtype.float32)).all()


def test_flushing_takes_subnormal_numbers_for_zero() -> None:
    data = tensor([1e-40, -1e-40, 1.0])
    assert budget.has_subnormals(data)
    assert not budget.has_subnormals(tensor([1e-40], Dtype.float64))
    flushed = budget.flushed(data)
    assert flushed.tolist() == [0.0, 0.0, 1.0]
    assert np.signbit(flushed).tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", [Dtype.float32, Dtype.float64], ids=lambda dtype: dtype.name)
def test_a_unit_next_to_zero_is_what_it_is_whatever_its_ratio_to_the_ulp(dtype: Dtype) -> None:
    values = np.array([0.0, 1.0])
    epsilon = float(np.finfo(to_numpy(dtype)).eps)
    units = budget.unit(values, np.zeros(2), 0, 1.0, dtype)
    assert np.allclose(units, [epsilon, 2 * epsilon], rtol=1e-6, atol=0)


def test_an_input_narrower_than_the_type_under_test_is_moved_as_what_it_is_converted_to() -> None:
    narrow = tensor(np.ones(4), Dtype.float16)
    change = amplification(lambda x: x, {"x": narrow}, Dtype.float32)
    assert change.tolist() == [2.0**-24] * 4


def test_a_zero_that_a_sum_leaves_has_no_sign() -> None:
    amplified = budget.with_unsigned_zeros(np.array([0.0, -0.0, 1.0]), np.zeros(3), Dtype.float16)
    assert (budget.K * amplified[:2] >= FORMATS[Dtype.float16].tiny).all()
    assert amplified[2] == 0


@pytest.mark.parametrize("sign", [1, -1], ids=["sum", "difference"])
@pytest.mark.parametrize("shapes", [((5000,), (5000,)), ((100, 50), (50,)), ((50, 1), (10, 50, 40))], ids=str)
def test_what_two_inputs_do_together_is_seen_at_each_element(shapes: Any, sign: int) -> None:
    a, b = (tensor(np.ones(shape)) for shape in shapes)
    amplified = amplification(lambda a, b: a + sign * b, {"a": a, "b": b})
    assert (amplified == 2.0**-23).all()


def test_so_is_what_parts_of_complex_numbers_and_entries_of_a_list_do_together() -> None:
    z = tensor(np.full(5000, 1 + 1j), Dtype.complex64)
    assert amplification(lambda z: z.real - z.imag, {"z": z}).min() == 2.0**-23
    listed = [tensor(np.ones(5000)) for _ in range(8)]
    plain = {"tensors": [one.exact for one in listed]}

    def differences(tensors: list[np.ndarray]) -> list[np.ndarray]:
        return [tensors[i] - tensors[j] for i in range(8) for j in range(i)]

    found = budget.amplification(
        lambda given: differences(**given),
        {"tensors": listed},
        differences(**plain),
        [Dtype.float32] * 28,
        Dtype.float32,
        lambda: random_generator("test"),
    )
    assert np.min(found) == 2.0**-23


def test_an_infinite_part_leaves_the_other_part_its_rounding() -> None:
    amplified = amplification(lambda x: x.real, {"x": tensor([3, complex(3, np.inf)], Dtype.complex64)})
    assert amplified.tolist() == [0.5 * ulp(np.float64(3), Dtype.float32)] * 2

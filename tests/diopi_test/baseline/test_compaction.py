"""Compacting results does not change any verdict."""

import numpy as np
import pytest

from diopi_proto.types import Dtype
from diopi_test.baseline.compaction import (
    SPARE_BITS,
    argument_digest,
    compact_expected,
    from_byte_planes,
    round_up_ulps,
    to_byte_planes,
    widen_ulps,
)
from diopi_test.cases.domains import log_uniform
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.records import BaselineTensor, Expected
from lib_rt.formats import format_of, ulp

FLOATING = (Dtype.float16, Dtype.bfloat16, Dtype.float32, Dtype.float64)


def random_values(dtype: Dtype) -> np.ndarray:
    """Return 5,000 values from the whole range of an element type."""
    return log_uniform(-1100, 1100)(np.random.default_rng(1), 5000, dtype)


@pytest.mark.parametrize("dtype", FLOATING)
def test_values_move_by_a_small_part_of_an_ulp(dtype: Dtype) -> None:
    values = random_values(dtype)
    short = compact_expected(Expected(values=values, dtype=dtype, budget=Budget(ulp(values, dtype)))).values
    assert (np.abs(short - values) <= ulp(values, dtype) * 2.0 ** -(SPARE_BITS + 1)).all()
    assert (short != values).any() == (dtype is not Dtype.float64)


@pytest.mark.parametrize("dtype", [*FLOATING, Dtype.complex64])
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 1)])
def test_compaction_keeps_the_shape(dtype: Dtype, shape: tuple[int, ...]) -> None:
    values = np.full(shape, 1.5)
    for budget in (None, Budget(np.ones(shape))):
        assert (
            compact_expected(Expected(values=values, dtype=dtype, budget=budget, flushed=values)).values.shape == shape
        )
    assert round_up_ulps(np.ones(shape, np.float32)).shape == shape


def test_compaction_keeps_zeros_infinities_and_nan() -> None:
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, np.finfo(np.float64).max])
    short = compact_expected(
        Expected(values=values, dtype=Dtype.float32, budget=Budget(ulp(values, Dtype.float32)))
    ).values
    assert np.array_equal(short[:6], values[:6], equal_nan=True)
    assert (np.signbit(short) == np.signbit(values)).all()
    assert (np.isfinite(short) == np.isfinite(values)).all()
    assert short[6] != 0


def test_compaction_shortens_real_and_imaginary_parts() -> None:
    values = random_values(Dtype.float32) + 1j * random_values(Dtype.float32)[::-1]
    short = compact_expected(
        Expected(values=values, dtype=Dtype.complex64, budget=Budget(ulp(values, Dtype.complex64)))
    ).values
    for real, imag in ((short.real, values.real), (short.imag, values.imag)):
        assert (np.abs(real - imag) <= ulp(imag, Dtype.float32) * 2.0 ** -(SPARE_BITS + 1)).all()


def test_budgets_grow_by_one_in_128_at_most() -> None:
    budgets = np.random.default_rng(2).uniform(1, 1000, 5000).astype(np.float32)
    stored = round_up_ulps(budgets)
    assert stored.dtype.itemsize == 2
    back = widen_ulps(stored)
    assert (back >= budgets).all()
    assert (back <= budgets * (1 + 1 / 128)).all()


def test_a_budget_beyond_the_range_of_bfloat16_is_unchanged() -> None:
    budgets = np.array([1, 3.4e38], np.float32)
    assert np.array_equal(round_up_ulps(budgets), budgets)


@pytest.mark.parametrize("dtype", FLOATING)
def test_exact_results_are_stored_as_they_round(dtype: Dtype) -> None:
    values = np.array([1.0, 0.1, -0.0, np.inf, 3 * format_of(dtype).subnormal])
    with np.errstate(all="ignore"):
        rounded = compact_expected(Expected(values=values, dtype=dtype)).values
    assert rounded.dtype.itemsize <= max(4, values.astype(rounded.dtype).itemsize)
    assert np.signbit(rounded[2])
    assert np.isinf(rounded[3])


def test_compaction_keeps_integers() -> None:
    expected = Expected(values=np.arange(5), dtype=Dtype.int64)
    assert compact_expected(expected) is expected


@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (3, 4, 5)])
@pytest.mark.parametrize("dtype", [np.bool_, np.int16, np.float32, np.complex128])
def test_byte_planes_can_be_converted_back(shape: tuple[int, ...], dtype: type) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    found = from_byte_planes(b"before" + to_byte_planes(array), np.dtype(dtype), shape, 6)
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)


def test_argument_digest_differs_for_different_inputs() -> None:
    def inputs(values: object, dtype: Dtype = Dtype.float32, layout: str = "contiguous", name: str = "input") -> str:
        return argument_digest({name: BaselineTensor(np.asarray(values, np.float32), dtype, layout), "dim": 1})

    digests = {
        inputs([1, 2]),
        inputs([2, 1]),
        inputs([[1, 2]]),
        inputs([1, 2], layout="strided"),
        inputs([1, 2], Dtype.tfloat32),
        inputs([1, 2], name="other"),
    }
    assert len(digests) == 6
    assert inputs([1, 2]) == inputs([1, 2])

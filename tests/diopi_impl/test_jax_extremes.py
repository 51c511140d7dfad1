"""Maxima and minima in jax_cpu: they propagate NaN at every length, and subnormal numbers are ordered."""

from itertools import product
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from sampling import sampled

from diopi_impl.jax_cpu.extremes import has_subnormals, nan_propagating_max, nan_propagating_min, nan_rank, to_ranks
from diopi_impl.jax_cpu.pool import max_pool
from diopi_proto.dtypes import floating
from diopi_proto.types import Dtype
from lib_rt.dtypes import to_numpy

SHAPES = [(5,), (8, 1031), (40_009,), (7, 11, 13, 17)]


def numbers(shape: tuple[int, ...], dtype: Dtype) -> NDArray[Any]:
    """Return random numbers with a NaN in the middle."""
    values = np.random.default_rng(0).uniform(-50, 50, shape).astype(to_numpy(dtype))
    values.reshape(-1)[values.size // 2] = np.nan
    return values


EXTREMES = {"max": (nan_propagating_max, np.max), "min": (nan_propagating_min, np.min)}


@pytest.mark.parametrize(
    ("dtype", "shape", "keepdims", "name"), sampled(product(floating, SHAPES, [False, True], EXTREMES), 3, slow=5)
)
def test_nan_propagates_to_the_extreme_of_its_slice_only(
    dtype: Dtype, shape: tuple[int, ...], keepdims: bool, name: str
) -> None:
    vendor_function, numpy_function = EXTREMES[name]
    values = numbers(shape, dtype)
    for axes in (None, 0, -1, tuple(range(0, len(shape), 2))):
        with jax.enable_x64(True):
            found = np.asarray(jax.jit(lambda x, axes=axes: vendor_function(x, axes, keepdims=keepdims))(values))
        expected = numpy_function(values.astype(np.float64), axes, keepdims=keepdims)
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found.astype(np.float64), expected)


def test_extremes_of_integers_and_of_empty_axes_are_correct() -> None:
    whole = np.arange(12).reshape(3, 4)
    assert np.asarray(nan_propagating_max(whole, 0)).tolist() == [8, 9, 10, 11]
    assert np.asarray(nan_propagating_min(np.float32(3), ())).tolist() == 3
    with pytest.raises(ValueError, match="zero-size"):
        nan_propagating_max(np.zeros((3, 0), np.float32), 1)


@pytest.mark.parametrize("dtype", floating)
def test_maxima_of_many_windows_are_exact(dtype: Dtype) -> None:
    values = numbers((3, 2, 41, 51), dtype)
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(lambda x: max_pool(x, (2, 3), (2, 3), (0, 0), (1, 1), False))(values))
    windows = values[..., :40, :].astype(np.float64).reshape(3, 2, 20, 2, 17, 3)
    np.testing.assert_array_equal(found.astype(np.float64), windows.max((3, 5)))


SUBNORMALS = np.array([3, 0.0, -2, -0.0, 7, 1, -1])


@pytest.mark.parametrize("dtype", floating)
def test_subnormal_numbers_are_in_order(dtype: Dtype) -> None:
    numpy_type = to_numpy(dtype)
    values = (SUBNORMALS * float(ml_dtypes.finfo(numpy_type).smallest_subnormal)).astype(numpy_type)
    with jax.enable_x64(True):
        order = np.asarray(jax.jit(to_ranks)(np.append(values, numpy_type.type(np.nan))))
        assert jax.jit(nan_propagating_max)(values) == values[4]
        assert jax.jit(nan_propagating_min)(values) == values[2]
        assert bool(jax.jit(has_subnormals)(values))
        assert not bool(jax.jit(has_subnormals)(np.array([0.0, -0.0, 1.0, np.inf, np.nan], numpy_type)))
    assert np.argsort(order, kind="stable").tolist() == [2, 6, 1, 3, 5, 0, 4, 7]
    assert order[1] == order[3] == 0
    assert order[-1] == nan_rank(order)

"""Selection in float32, which has a separate implementation, agrees with sorting in float64."""

from typing import Any

import numpy as np
import pytest

from diopi_impl import find_vendor
from diopi_proto.types import Error
from lib_rt import Context, Tensor

ROW = [0.0, -0.0, np.nan, 3, -np.inf, np.inf, -np.nan, 0.0, -0.0, 1, 3, -1]


def select_first(dtype: type, k: int, dim: int, largest: bool) -> list[Any]:
    """Return the values and positions of the first k elements."""
    vendor = find_vendor("jax_cpu")
    rows = np.array([ROW, ROW[::-1], [0] * len(ROW)], dtype)
    rows, shape = (rows, (3, k)) if dim == 1 else (rows.T, (k, 3))
    with vendor.open_device() as device, Context(device) as context:
        arrays = np.zeros(shape, dtype), np.zeros(shape, np.int64), rows
        arguments = [Tensor.from_numpy(context, array) for array in arrays]
        assert vendor.call("diopiTopk", context, *arguments, k, dim, largest, True) is Error.Success, (
            vendor.last_error()
        )
        return [tensor.numpy() for tensor in arguments[:2]]


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("k", "dim"), [(12, 1), (4, 1), (5, 0), (0, 1)])
def test_topk_agrees_with_a_stable_sort(k: int, dim: int, largest: bool) -> None:
    (values, places), (wide, expected) = (select_first(dtype, k, dim, largest) for dtype in (np.float32, np.float64))
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(values, wide.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(values), np.signbit(wide))

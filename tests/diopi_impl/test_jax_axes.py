"""Axes that jax_cpu's operators reject."""

import numpy as np
import pytest

from diopi_impl.jax_cpu import vendor
from diopi_proto.types import Dtype, Error
from lib_rt import Context, Tensor


def _call(name: str, *attributes: object, shape: tuple[int, ...] = (2, 3, 4)) -> str:
    """Make a call that must fail and return its error message."""
    with vendor.open_device() as device, Context(device) as context:
        input = Tensor.from_numpy(context, np.ones(shape, np.float32), dtype=Dtype.float32)
        out = Tensor.empty(context, shape, Dtype.float32)
        code = vendor.call(name, context, out, input, *attributes)
        out.close()
        input.close()
    assert code is Error.ErrorOccurred
    return vendor.last_error()


@pytest.mark.parametrize("name", ["diopiSoftmax", "diopiLogSoftmax", "diopiCumsum"])
@pytest.mark.parametrize("dim", [3, -4])
def test_axis_out_of_range_is_rejected(name: str, dim: int) -> None:
    assert _call(name, dim) == f"{name}: dim {dim} is out of range for a 3-d input"


def test_zero_dim_input_has_one_axis() -> None:
    assert _call("diopiSoftmax", 1, shape=()) == "diopiSoftmax: dim 1 is out of range for a 0-d input"


@pytest.mark.parametrize("dim", [(0, 0), (1, -2)])
def test_repeated_axis_is_rejected(dim: tuple[int, ...]) -> None:
    assert _call("diopiSum", dim) == f"diopiSum: dim {dim} names an axis twice"


def test_gelu_rejects_unknown_approximation() -> None:
    assert _call("diopiGelu", "exact") == "diopiGelu: approximate is 'exact', expected 'none' or 'tanh'"

"""Convolutions of the built-in vendor, compared with PyTorch at the sizes of models."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sampling import sampled

from diopi_impl import BaseVendor, find_vendor
from diopi_proto.types import Error
from lib_rt import Context, Tensor

torch = pytest.importorskip("torch")

ATTRIBUTES = [
    # input, weight, stride, padding, dilation, groups
    ((2, 37, 57, 31), (41, 37, 3, 3), (2, 3), (2, 1), (2, 4), 1),
    ((1, 128, 28, 28), (128, 4, 3, 3), (1, 1), (1, 1), (1, 1), 32),
    ((2, 96, 28, 28), (192, 1, 7, 7), (2, 2), (3, 3), (1, 1), 96),
    ((1, 3, 112, 112), (64, 3, 7, 7), (2, 2), (3, 3), (1, 1), 1),
    ((2, 64, 14, 11), (37, 64, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 5, 3, 3), (7, 5, 1, 1), (2, 2), (1, 1), (1, 1), 1),
    ((2, 24, 4, 5), (64, 24, 3, 2), (2, 3), (1, 0), (1, 2), 1),
    ((2, 5, 1, 31), (15, 1, 1, 31), (1, 2), (0, 15), (1, 1), 5),
    ((1, 8, 5, 5), (8, 2, 2, 2), (5, 4), (0, 1), (3, 3), 4),
    ((1, 16, 5, 14, 9), (12, 4, 3, 2, 3), (1, 2, 2), (1, 0, 1), (2, 1, 2), 4),
    ((1, 9, 3, 4, 4), (40, 9, 2, 2, 3), (1, 2, 2), (0, 1, 1), (1, 1, 1), 1),
]
TRANSPOSED = [
    ((2, 64, 14, 11), (64, 32, 3, 3), (2, 3), (2, 1), (1, 2), (2, 4), 8),
    ((1, 21, 17, 17), (21, 1, 16, 16), (8, 8), (4, 4), (0, 0), (1, 1), 21),
    ((1, 16, 4, 9, 5), (16, 8, 4, 4, 2), (2, 2, 2), (0, 3, 1), (1, 0, 1), (2, 2, 1), 8),
]


@pytest.fixture
def context() -> Iterator[Context]:
    """Yield a context on the device of `jax_cpu`."""
    with find_vendor("jax_cpu").open_device() as device, Context(device) as context:
        yield context


def call_function(context: Context, function: str, results: list[tuple[int, ...]], *arguments: Any) -> list[Any]:
    """Return the results of the built-in vendor, which have these shapes."""
    vendor: BaseVendor = find_vendor("jax_cpu")
    arrays = [*(np.zeros(shape, np.float32) for shape in results), *arguments]
    passed = [Tensor.from_numpy(context, a) if isinstance(a, np.ndarray) else a for a in arrays]
    assert vendor.call(function, context, *passed) is Error.Success, vendor.last_error()
    return [tensor.numpy() for tensor in passed[: len(results)]]


def assert_close(actual: Any, expected: Any) -> None:
    """Assert equality within the error of float32."""
    expected = expected.detach().numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=2e-6 * np.abs(expected).max())


def check(context: Context, rank: int, function: str, forward: Any, shapes: Any, order: Any, backward: Any) -> None:
    """Compare the function and its gradients with `forward` in float64."""
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape, np.float32) for shape in shapes)
    inputs = [torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in (x, w)]
    expected = forward(*inputs)
    y = rng.standard_normal(expected.shape, np.float32)
    assert_close(*call_function(context, f"diopi{function}{rank}d", [y.shape], x, w, None, *order), expected)
    expected.backward(torch.tensor(y, dtype=torch.float64))
    results = [x.shape, w.shape, y.shape[1:2]]
    grads = call_function(context, f"diopi{function}{rank}dBackward", results, y, x, w, y.shape[1:2], *backward)
    for grad, tensor in zip(grads, inputs, strict=False):
        assert_close(grad, tensor.grad)
    np.testing.assert_allclose(grads[2], y.sum((0, *range(2, y.ndim)), np.float64), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize(("x", "w", "stride", "padding", "dilation", "groups"), sampled(ATTRIBUTES, 3))
def test_convolutions_equal_those_of_pytorch(
    context: Context, x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> None:
    rank, order = len(stride), [stride, padding, dilation, groups]
    forward = getattr(torch.nn.functional, f"conv{rank}d")
    check(context, rank, "Convolution", lambda a, b: forward(a, b, None, *order), (x, w), order, order)


@pytest.mark.parametrize(("x", "w", "stride", "padding", "more", "dilation", "groups"), sampled(TRANSPOSED, 1))
def test_transposed_convolutions_equal_those_of_pytorch(
    context: Context, x: Any, w: Any, stride: Any, padding: Any, more: Any, dilation: Any, groups: int
) -> None:
    rank, order = len(stride), [stride, padding, more, groups, dilation]
    forward = getattr(torch.nn.functional, f"conv_transpose{rank}d")
    backward = [stride, padding, dilation, more, groups]
    check(context, rank, "ConvTranspose", lambda a, b: forward(a, b, None, *order), (x, w), order, backward)

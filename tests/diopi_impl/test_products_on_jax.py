"""Invalid calls of linear algebra and convolutions on jax_cpu return an error code and a message, and write nothing."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from diopi_impl.jax_cpu import vendor
from diopi_proto.types import Dtype, Error
from lib_rt import Context, Tensor, is_poison


@pytest.fixture
def context() -> Iterator[Context]:
    """Yield a context on the device of `jax_cpu`."""
    with vendor.open_device() as device, Context(device) as opened:
        yield opened


def ones(*shape: int) -> np.ndarray:
    """Return a float32 array of ones."""
    return np.ones(shape, np.float32)


NOT_DEFINITE = -np.eye(2, dtype=np.float32)
ALIKE = (1, 1), (0, 0), (1, 1)

REJECTED: dict[str, tuple[str, list[tuple[int, ...]], tuple[Any, ...], str]] = {
    "mm of batches": ("diopiMm", [(1, 2, 2)], (ones(1, 2, 2), ones(2, 2)), "expected 2 axes"),
    "mm that does not fit": ("diopiMm", [(2, 2)], (ones(2, 3), ones(2, 2)), "3"),
    "bmm does not broadcast": ("diopiBmm", [(2, 2, 2)], (ones(1, 2, 2), ones(2, 2, 2)), "1"),
    "matmul of a number": ("diopiMatmul", [(2,)], (ones(), ones(2)), ""),
    "linear with a wrong bias": ("diopiLinear", [(2, 3)], (ones(2, 4), ones(3, 4), ones(2)), "2"),
    "indefinite": ("diopiCholesky", [(2, 2), ()], (NOT_DEFINITE, False, True), "leading minor of order 1"),
    "cdist, p": ("diopiCdist", [(2, 2)], (ones(2, 3), ones(2, 3), -1.0, None), "p is -1.0"),
    "cdist, mode": ("diopiCdist", [(2, 2)], (ones(2, 3), ones(2, 3), 2.0, 3), "compute_mode is 3"),
    "large kernel": (
        "diopiConvolution2d",
        [(1, 1, 0, 1)],
        (ones(1, 1, 2, 3), ones(1, 1, 3, 3), None, *ALIKE, 1),
        "size",
    ),
    "stride 0": (
        "diopiConvolution2d",
        [(1, 1, 1, 1)],
        (ones(1, 1, 3, 3), ones(1, 1, 3, 3), None, (0, 1), (0, 0), (1, 1), 1),
        "stride",
    ),
    "groups": ("diopiConvolution2d", [(1, 3, 1, 1)], (ones(1, 4, 1, 1), ones(3, 2, 1, 1), None, *ALIKE, 2), "3"),
    "output padding": (
        "diopiConvTranspose2d",
        [(1, 1, 3, 4)],
        (ones(1, 1, 3, 3), ones(1, 1, 1, 1), None, (1, 1), (0, 0), (0, 1), 1, (1, 1)),
        "output_padding",
    ),
    "patches": ("diopiIm2Col", [(1, 9, 0)], (ones(1, 1, 2, 3), (3, 3), (1, 1), (0, 0), (1, 1)), "does not fit"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_invalid_products_are_rejected(case: str, context: Context) -> None:
    name, shapes, arguments, message = REJECTED[case]
    results = [Tensor.empty(context, shape, Dtype.int32 if shape == () else Dtype.float32) for shape in shapes]
    values = [
        Tensor.from_numpy(context, argument) if isinstance(argument, np.ndarray) else argument for argument in arguments
    ]
    assert vendor.call(name, context, *results, *values) is Error.ErrorOccurred
    assert message in vendor.last_error()
    assert all(is_poison(result.numpy()).all() for result in results)


def test_qr_rejects_unknown_mode(context: Context) -> None:
    q, r = (Tensor.from_numpy(context, ones(2, 2)) for _ in range(2))
    assert (
        vendor.call("diopiLinalgQR", context, Tensor.from_numpy(context, ones(2, 2)), "raw", q, r)
        is Error.ErrorOccurred
    )
    assert "mode is 'raw'" in vendor.last_error()

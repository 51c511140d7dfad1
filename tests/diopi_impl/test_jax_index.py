"""jax_cpu rejects positions out of range, which JAX itself clamps, and writes nothing."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from diopi_impl.jax_cpu import vendor
from diopi_proto.types import Error
from lib_rt import Context, Tensor

INPUT = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    """Yield a context on the device of `jax_cpu`."""
    with vendor.open_device() as device, Context(device) as context:
        yield context


to_array = np.array

CALLS: dict[str, tuple[str, tuple[int, ...], list[Any]]] = {
    "gather": ("diopiGather", (1, 1), [INPUT, 1, to_array([[4]])]),
    "gather, negative": ("diopiGather", (1, 1), [INPUT, 1, to_array([[-1]])]),
    "gather, more rows than input": ("diopiGather", (4, 1), [INPUT, 1, to_array([[0], [0], [0], [0]])]),
    "gather, rank": ("diopiGather", (1,), [INPUT, 1, to_array([0])]),
    "gather backward": ("diopiGatherBackward", (3, 4), [INPUT[:1, :1], INPUT, 1, to_array([[4]])]),
    "scatter": ("diopiScatter", (3, 4), [INPUT, 0, INPUT, to_array([[3]]), ""]),
    "scatter, smaller source": ("diopiScatter", (3, 4), [INPUT, 0, INPUT[:1], to_array([[1], [2]]), ""]),
    "scatter, no such reduction": ("diopiScatter", (3, 4), [INPUT, 0, INPUT, to_array([[1]]), "mean"]),
    "index_select": ("diopiIndexSelect", (3, 1), [INPUT, 1, to_array([4])]),
    "index_select, rank 2": ("diopiIndexSelect", (3, 1), [INPUT, 1, to_array([[1]])]),
    "index_select backward": ("diopiIndexSelectBackward", (3, 4), [INPUT[:, :1], (3, 4), 1, to_array([-1])]),
    "index_fill": ("diopiIndexFill", (3, 4), [INPUT, 0, to_array([-4]), np.float32(1)]),
    "index_put": ("diopiIndexPut", (3, 4), [INPUT, INPUT[0], [to_array([3])], 1, False]),
    "mask of another shape": ("diopiIndexPut", (3, 4), [INPUT, INPUT[0], [to_array([True, False])], 1, False]),
    "select": ("diopiSelect", (3,), [INPUT, 1, 4]),
    "slice, step": ("diopiSlice", (3, 4), [INPUT, 1, 0, 4, 0]),
    "dim": ("diopiSlice", (3, 4), [INPUT, 2, 0, 4, 1]),
    "masked_scatter, too few": ("diopiMaskedScatter", (3, 4), [INPUT, np.ones((3, 4), bool), INPUT[0]]),
    "embedding": ("diopiEmbedding", (1, 4), [INPUT, to_array([3]), -1, False, False]),
    "embedding backward": ("diopiEmbeddingBackward", (2, 4), [INPUT[:1], to_array([2]), 2, -1, False, False]),
    "sort backward": ("diopiSortBackward", (3, 4), [INPUT[:1], 0, to_array([[0, 3, 0, 0]]), (3, 4), True]),
    "one_hot": ("diopiOneHot", (1, 3), [to_array([3]), 3]),
}


def _to_tensors(context: Context, value: Any) -> Any:
    """Return arrays, and lists of arrays, as tensors; return attributes unchanged."""
    if isinstance(value, list):
        return [_to_tensors(context, entry) for entry in value]
    return Tensor.from_numpy(context, np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


@pytest.mark.parametrize("name", list(CALLS))
def test_indices_out_of_range_are_rejected(name: str, context: Context) -> None:
    function, shape, arguments = CALLS[name]
    before = np.full(shape, 77, np.float32)
    out = Tensor.from_numpy(context, before)
    assert vendor.call(function, context, out, *_to_tensors(context, arguments)) is Error.ErrorOccurred
    np.testing.assert_array_equal(out.numpy(), before)
    assert vendor.last_error().startswith(f"{function}: ")

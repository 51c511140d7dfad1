"""Large results that NumPy writes directly: when it does so, and that they equal those of a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.large_results import LARGE
from diopi_proto.types import Dtype, Error, RoundMode, Scalar
from lib_rt import Context, Tensor

ROWS, COLUMNS = 5, LARGE // 4
SCALAR_ONE = Scalar.from_number(1)

Array = np.ndarray


@pytest.fixture
def context() -> Iterator[Context]:
    """Yield a context on the device of `jax_cpu`."""
    with vendor.open_device() as device, Context(device) as opened:
        yield opened


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that receives an entry for each compiled program."""
    compiled: list[None] = []
    compile_ = jax.stages.Lowered.compile

    def note(self: Any, compiler_options: Any = None) -> Any:
        compiled.append(None)
        return compile_(self, compiler_options)

    monkeypatch.setattr(jax.stages.Lowered, "compile", note)
    return compiled


def call(name: str, context: Context, *arguments: Any) -> None:
    """Call a function of the built-in vendor and assert that it succeeds."""
    assert vendor.call(name, context, *arguments) is Error.Success, vendor.last_error()


def random_array(*shape: int, dtype: Any = np.float32) -> Array:
    """Return an array of random numbers between 0.5 and 2; equal shapes have equal numbers."""
    return np.random.default_rng(0).uniform(0.5, 2, shape).astype(dtype)


@pytest.mark.parametrize(
    ("name", "attributes", "expected"),
    [
        ("diopiAdd", [SCALAR_ONE], np.add),
        ("diopiSub", [SCALAR_ONE], np.subtract),
        ("diopiMul", [], np.multiply),
        ("diopiDiv", [RoundMode.none], np.divide),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_binary_results_are_computed_by_numpy(
    name: str, attributes: list[Any], expected: np.ufunc, dtype: Any, context: Context, programs: list[None]
) -> None:
    array, row = random_array(ROWS, COLUMNS, dtype=dtype), random_array(COLUMNS, dtype=dtype)
    tensor = Tensor.from_numpy(context, array)
    out = Tensor.empty(context, array.shape, tensor.dtype)
    call(name, context, out, tensor, Tensor.from_numpy(context, row), *attributes)
    np.testing.assert_array_equal(out.numpy(), expected(array, row))
    call(f"{name}InpScalar", context, tensor, Scalar.from_number(0.1), *attributes)
    np.testing.assert_array_equal(tensor.numpy(), expected(array, dtype(0.1)))
    assert not programs


def test_infinite_results_cause_no_warning(context: Context) -> None:
    array = random_array(ROWS, COLUMNS)
    tensor = Tensor.from_numpy(context, array)
    call("diopiDivInpScalar", context, tensor, Scalar.from_number(0.0), RoundMode.none)
    call("diopiAddInpScalar", context, tensor, Scalar.from_number(1e300), SCALAR_ONE)
    assert (tensor.numpy() == np.inf).all()


def test_a_result_may_overlap_an_operand(context: Context, programs: list[None]) -> None:
    numbers = random_array(LARGE + 1001)
    tensor = Tensor.from_numpy(context, numbers)
    memory = tensor.data_ptr, tensor.storage_nbytes
    first, last = (
        Tensor.from_memory(context, *memory, (LARGE + 1000,), Dtype.float32, (1,), offset) for offset in (0, 1)
    )
    call("diopiAdd", context, last, first, last, SCALAR_ONE)
    np.testing.assert_array_equal(last.numpy(), numbers[:-1] + numbers[1:])
    assert not programs


@pytest.mark.parametrize(
    ("dtype", "operand", "alpha"),
    [(np.float32, 0.5, 2), (np.float16, 0.5, 1), (np.int32, 2, 1), (np.float32, 2, 1)],
    ids=["a factor", "half precision", "integers", "an integer"],
)
def test_other_binary_results_are_computed_by_a_program(
    dtype: Any, operand: Any, alpha: int, context: Context, programs: list[None]
) -> None:
    numbers = np.ones(LARGE + 1, dtype)
    tensor = Tensor.from_numpy(context, numbers)
    call("diopiAddInpScalar", context, tensor, Scalar.from_number(operand), Scalar.from_number(alpha))
    assert (tensor.numpy() == dtype(1 + alpha * operand)).all()
    assert len(programs) == 1


def test_mismatched_shapes_are_rejected(context: Context) -> None:
    out, x, y = (Tensor.from_numpy(context, random_array(ROWS, length)) for length in (COLUMNS, COLUMNS, COLUMNS - 1))
    assert vendor.call("diopiMul", context, out, x, y) is Error.ErrorOccurred
    assert "incompatible shapes" in vendor.last_error().lower()


@pytest.mark.parametrize("shape", [(700,), (7, 100)])
def test_large_embeddings_are_computed_by_numpy(shape: tuple[int, ...], context: Context, programs: list[None]) -> None:
    table, indices = random_array(40, 128), np.random.default_rng(0).integers(0, 40, shape)
    tensors = [Tensor.from_numpy(context, array) for array in (table, indices)]
    out = Tensor.empty(context, (*shape, 128), Dtype.float32)
    call("diopiEmbedding", context, out, *tensors, -1, False, False)
    np.testing.assert_array_equal(out.numpy(), table[indices])
    assert not programs


def test_embedding_may_overwrite_its_table(context: Context) -> None:
    table = random_array(700, 128)
    tensor = Tensor.from_numpy(context, table)
    call(
        "diopiEmbedding",
        context,
        tensor,
        tensor,
        Tensor.from_numpy(context, np.arange(700)[::-1].copy()),
        -1,
        False,
        False,
    )
    np.testing.assert_array_equal(tensor.numpy(), table[::-1])


def test_embedding_rejects_indices_out_of_range(context: Context) -> None:
    out, table = (Tensor.from_numpy(context, random_array(rows, 128)) for rows in (700, 40))
    before = out.numpy().copy()
    indices = Tensor.from_numpy(context, np.full(700, 40))
    assert vendor.call("diopiEmbedding", context, out, table, indices, -1, False, False) is not Error.Success
    assert "indices contains 40" in vendor.last_error()
    np.testing.assert_array_equal(out.numpy(), before)

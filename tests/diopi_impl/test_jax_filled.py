"""Large results that NumPy writes where they are due: which they are, and that they are what a program would make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.filled import LARGE
from diopi_proto.types import Dtype, Error, RoundMode, Scalar
from lib_rt import Context, Tensor

ROWS, COLUMNS = 5, LARGE // 4
ONE = Scalar.from_number(1)

Array = np.ndarray


@pytest.fixture
def context() -> Iterator[Context]:
    with vendor.open_device() as device, Context(device) as made:
        yield made


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Has an entry for each program that is compiled from now on."""
    compiled: list[None] = []
    compile_ = jax.stages.Lowered.compile

    def note(self: Any, compiler_options: Any = None) -> Any:
        compiled.append(None)
        return compile_(self, compiler_options)

    monkeypatch.setattr(jax.stages.Lowered, "compile", note)
    return compiled


def call(name: str, context: Context, *arguments: Any) -> None:
    assert vendor.call(name, context, *arguments) is Error.Success, vendor.last_error()


def drawn(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(0).uniform(0.5, 2, shape).astype(dtype)


@pytest.mark.parametrize(
    ("name", "others", "expected"),
    [
        ("diopiAdd", [ONE], np.add),
        ("diopiSub", [ONE], np.subtract),
        ("diopiMul", [], np.multiply),
        ("diopiDiv", [RoundMode.none], np.divide),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_two_operands(
    name: str, others: list[Any], expected: np.ufunc, dtype: Any, context: Context, programs: list[None]
) -> None:
    one, row = drawn(ROWS, COLUMNS, dtype=dtype), drawn(COLUMNS, dtype=dtype)
    given = Tensor.from_numpy(context, one)
    out = Tensor.empty(context, one.shape, given.dtype)
    call(name, context, out, given, Tensor.from_numpy(context, row), *others)
    np.testing.assert_array_equal(out.numpy(), expected(one, row))
    call(f"{name}InpScalar", context, given, Scalar.from_number(0.1), *others)
    np.testing.assert_array_equal(given.numpy(), expected(one, dtype(0.1)))
    assert not programs


def test_infinities_are_results_like_any_other(context: Context) -> None:
    one = drawn(ROWS, COLUMNS)
    given = Tensor.from_numpy(context, one)
    call("diopiDivInpScalar", context, given, Scalar.from_number(0.0), RoundMode.none)
    call("diopiAddInpScalar", context, given, Scalar.from_number(1e300), ONE)
    assert (given.numpy() == np.inf).all()


def test_a_result_that_overlaps_an_operand(context: Context, programs: list[None]) -> None:
    numbers = drawn(LARGE + 1001)
    tensor = Tensor.from_numpy(context, numbers)
    memory = tensor.data_ptr, tensor.storage_nbytes
    first, last = (
        Tensor.from_memory(context, *memory, (LARGE + 1000,), Dtype.float32, (1,), offset) for offset in (0, 1)
    )
    call("diopiAdd", context, last, first, last, ONE)
    np.testing.assert_array_equal(last.numpy(), numbers[:-1] + numbers[1:])
    assert not programs


@pytest.mark.parametrize(
    ("dtype", "other", "alpha"),
    [(np.float32, 0.5, 2), (np.float16, 0.5, 1), (np.int32, 2, 1), (np.float32, 2, 1)],
    ids=["a factor", "half precision", "integers", "an integer"],
)
def test_what_else_is_a_programs(dtype: Any, other: Any, alpha: int, context: Context, programs: list[None]) -> None:
    numbers = np.ones(LARGE + 1, dtype)
    tensor = Tensor.from_numpy(context, numbers)
    call("diopiAddInpScalar", context, tensor, Scalar.from_number(other), Scalar.from_number(alpha))
    assert (tensor.numpy() == dtype(1 + alpha * other)).all()
    assert len(programs) == 1


def test_shapes_that_do_not_fit(context: Context) -> None:
    out, one, other = (Tensor.from_numpy(context, drawn(ROWS, length)) for length in (COLUMNS, COLUMNS, COLUMNS - 1))
    assert vendor.call("diopiMul", context, out, one, other) is Error.ErrorOccurred
    assert "incompatible shapes" in vendor.last_error().lower()


@pytest.mark.parametrize("shape", [(700,), (7, 100)])
def test_rows_of_a_table(shape: tuple[int, ...], context: Context, programs: list[None]) -> None:
    table, indices = drawn(40, 128), np.random.default_rng(0).integers(0, 40, shape)
    given = [Tensor.from_numpy(context, one) for one in (table, indices)]
    out = Tensor.empty(context, (*shape, 128), Dtype.float32)
    call("diopiEmbedding", context, out, *given, -1, False, False)
    np.testing.assert_array_equal(out.numpy(), table[indices])
    assert not programs


def test_rows_of_the_table_that_they_are_written_to(context: Context) -> None:
    table = drawn(700, 128)
    given = Tensor.from_numpy(context, table)
    call(
        "diopiEmbedding",
        context,
        given,
        given,
        Tensor.from_numpy(context, np.arange(700)[::-1].copy()),
        -1,
        False,
        False,
    )
    np.testing.assert_array_equal(given.numpy(), table[::-1])


def test_rows_that_the_table_does_not_have(context: Context) -> None:
    out, table = (Tensor.from_numpy(context, drawn(rows, 128)) for rows in (700, 40))
    before = out.numpy().copy()
    indices = Tensor.from_numpy(context, np.full(700, 40))
    assert vendor.call("diopiEmbedding", context, out, table, indices, -1, False, False) is not Error.Success
    assert "indices holds 40" in vendor.last_error()
    np.testing.assert_array_equal(out.numpy(), before)

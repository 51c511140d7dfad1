"""The memory of large results is reused as soon as no reference to their elements is left, and not before."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from ml_dtypes import bfloat16

from diopi_impl.jax_cpu import memory
from diopi_impl.jax_cpu.memory import MAX_SPARES, ResultMemory
from diopi_impl.jax_cpu.programs import ProgramCache

LARGE = 2**12


@pytest.fixture(autouse=True)
def lending_small_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the size from which results are lent, so that small tests reach it."""
    monkeypatch.setattr(memory, "LARGE", LARGE)


def _double_array(programs: ProgramCache, array: np.ndarray[Any, Any]) -> Any:
    """Return the doubled array; the program also has a second, small result."""
    return programs.program("doubled", lambda: lambda arrays: [2 * arrays[0], arrays[0][:1]])([array])[0]


@pytest.mark.parametrize("dtype", [np.float32, bfloat16, np.int64, np.complex64])
def test_large_result_reuses_memory_of_previous_result(dtype: type) -> None:
    programs, ones = ProgramCache(), np.ones((3, LARGE // 2), dtype)
    result = _double_array(programs, ones)
    address = result.ctypes.data
    assert result.dtype == dtype
    assert (result == 2).all()
    del result
    next_result = _double_array(programs, 2 * ones)
    assert next_result.ctypes.data == address
    assert (next_result == 4).all()


def test_memory_with_a_view_is_not_reused() -> None:
    programs, ones = ProgramCache(), np.ones((2, LARGE), np.float32)
    view = _double_array(programs, ones)[1:, ::7]
    results = [_double_array(programs, n * ones) for n in range(2, 5)]
    assert (view == 2).all()
    assert [result[0, 0] for result in results] == [4, 6, 8]


def test_lent_elements_are_read_only() -> None:
    result = _double_array(ProgramCache(), np.ones(LARGE, np.float32))
    with pytest.raises(ValueError, match="read-only"):
        result[0] = 0


def test_small_results_are_not_lent() -> None:
    result = ProgramCache().program("sum", lambda: lambda arrays: [arrays[0].sum()])([np.ones(LARGE, np.float32)])[0]
    assert not isinstance(result, np.ndarray)


def test_pool_keeps_no_more_bytes_than_its_limit() -> None:
    shape, dtype = (100,), np.dtype(np.float32)
    memory_pool = ResultMemory(limit=1000)
    lent = [memory_pool.lend(jnp.full(shape, n, dtype)) for n in range(3)]
    addresses = [array.ctypes.data for array in lent]
    while lent:
        del lent[0]  # the oldest first
    arrays = [memory_pool.take(shape, dtype) for _ in range(3)]
    assert [array.unsafe_buffer_pointer() for array in arrays if not isinstance(array, np.ndarray)] == addresses[:0:-1]
    assert isinstance(arrays[2], np.ndarray)


def test_pool_keeps_the_arrays_released_last() -> None:
    memory_pool = ResultMemory(limit=10**6)
    for n in range(MAX_SPARES + 1):
        memory_pool.release(jnp.zeros(n + 1, np.float32))
    found = [
        not isinstance(memory_pool.take((n + 1,), np.dtype(np.float32)), np.ndarray) for n in range(MAX_SPARES + 1)
    ]
    assert found == [False] + MAX_SPARES * [True]


def test_memory_of_another_shape_or_type_is_not_reused() -> None:
    memory_pool = ResultMemory(limit=1000)
    memory_pool.release(jnp.zeros((2, 3), np.float32))
    for shape, dtype in (((3, 2), np.float32), ((2, 3), np.int32)):
        assert isinstance(memory_pool.take(shape, np.dtype(dtype)), np.ndarray)
    assert not isinstance(memory_pool.take((2, 3), np.dtype(np.float32)), np.ndarray)

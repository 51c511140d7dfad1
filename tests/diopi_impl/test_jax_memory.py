"""Memory of large results: used again once nobody refers to their elements, never before."""

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
    monkeypatch.setattr(memory, "LARGE", LARGE)


def _doubled(programs: ProgramCache, array: np.ndarray[Any, Any]) -> Any:
    return programs.program("doubled", lambda: lambda arrays: [2 * arrays[0], arrays[0][:1]])([array])[0]


@pytest.mark.parametrize("dtype", [np.float32, bfloat16, np.int64, np.complex64])
def test_a_large_result_is_written_where_the_one_before_it_lay(dtype: type) -> None:
    programs, ones = ProgramCache(), np.ones((3, LARGE // 2), dtype)
    result = _doubled(programs, ones)
    address = result.ctypes.data
    assert result.dtype == dtype
    assert (result == 2).all()
    del result
    again = _doubled(programs, 2 * ones)
    assert again.ctypes.data == address
    assert (again == 4).all()


def test_elements_to_which_a_view_refers_stay() -> None:
    programs, ones = ProgramCache(), np.ones((2, LARGE), np.float32)
    view = _doubled(programs, ones)[1:, ::7]
    others = [_doubled(programs, n * ones) for n in range(2, 5)]
    assert (view == 2).all()
    assert [other[0, 0] for other in others] == [4, 6, 8]


def test_elements_cannot_be_written() -> None:
    result = _doubled(ProgramCache(), np.ones(LARGE, np.float32))
    with pytest.raises(ValueError, match="read-only"):
        result[0] = 0


def test_small_results_are_not_lent() -> None:
    result = ProgramCache().program("sum", lambda: lambda arrays: [arrays[0].sum()])([np.ones(LARGE, np.float32)])[0]
    assert not isinstance(result, np.ndarray)


def test_no_more_is_kept_than_the_limit() -> None:
    shape, dtype = (100,), np.dtype(np.float32)
    kept = ResultMemory(limit=1000)
    lent = [kept.lend(jnp.full(shape, n, dtype)) for n in range(3)]
    addresses = [array.ctypes.data for array in lent]
    while lent:
        del lent[0]  # the oldest first
    taken = [kept.take(shape, dtype) for _ in range(3)]
    assert [array.unsafe_buffer_pointer() for array in taken if not isinstance(array, np.ndarray)] == addresses[:0:-1]
    assert isinstance(taken[2], np.ndarray)


def test_of_many_arrays_the_last_are_kept() -> None:
    kept = ResultMemory(limit=10**6)
    for n in range(MAX_SPARES + 1):
        kept.release(jnp.zeros(n + 1, np.float32))
    found = [not isinstance(kept.take((n + 1,), np.dtype(np.float32)), np.ndarray) for n in range(MAX_SPARES + 1)]
    assert found == [False] + MAX_SPARES * [True]


def test_memory_of_another_shape_or_type_is_not_taken() -> None:
    kept = ResultMemory(limit=1000)
    kept.release(jnp.zeros((2, 3), np.float32))
    for shape, dtype in (((3, 2), np.float32), ((2, 3), np.int32)):
        assert isinstance(kept.take(shape, np.dtype(dtype)), np.ndarray)
    assert not isinstance(kept.take((2, 3), np.dtype(np.float32)), np.ndarray)

"""jax_cpu calls LAPACK with one thread, and restores the number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest

from diopi_impl.jax_cpu import lapack, vendor
from diopi_impl.jax_cpu.lapack import blas, single_thread, with_lapack
from diopi_proto.interface import lookup
from diopi_proto.types import Error
from diopi_test.cases.selection import select_cases
from diopi_test.execution.call import Call
from diopi_test.oracle.evaluation import draw_case_with_zeros

QR = lookup("diopiLinalgQR")
MATRIX = np.eye(3, dtype=np.float32)
THREADS = 3
"""The number of BLAS threads before the calls."""


def threads() -> set[int]:
    """Return the numbers of threads of the BLAS libraries."""
    return {library["num_threads"] for library in blas().info()}


@pytest.fixture(autouse=True)
def many_threads() -> Iterator[None]:
    """Let NumPy's linear algebra use several threads."""
    with blas().limit(limits=THREADS):
        yield


def test_blas_threads_are_limited_during_a_call_and_restored() -> None:
    seen: list[set[int]] = []

    def qr(A: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
        seen.append(threads())
        return A, A

    with_lapack(QR, qr)([MATRIX, "reduced"], [None, None])
    assert seen == [{1}]
    assert threads() == {THREADS}


def test_overlapping_calls_keep_one_thread_until_the_last_ends() -> None:
    def fail() -> None:
        with single_thread:
            raise ValueError("a call that fails")

    with ThreadPoolExecutor(1) as pool, single_thread:
        with pytest.raises(ValueError, match="fails"):
            pool.submit(fail).result()
        assert threads() == {1}
    assert threads() == {THREADS}


@pytest.mark.parametrize(
    "function", ["diopiLinalgQR", "diopiTriangularSolve", "diopiTriangularSolveBackward", "diopiCholeskyBackward"]
)
def test_lapack_functions_run_with_one_thread(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[None] = []
    monkeypatch.setattr(lapack, "single_thread", _Recorded(entered))
    case = draw_case_with_zeros(lookup(function), select_cases(function, "smoke")[0])
    with vendor.open_device() as device, Call(vendor, device, case) as call:
        assert call.run_rejected()[0] is Error.Success
    assert len(entered) == 1


class _Recorded(nullcontext[list[None]]):
    """A context that records its entries in a list."""

    def __enter__(self) -> list[None]:
        self.enter_result.append(None)
        return self.enter_result

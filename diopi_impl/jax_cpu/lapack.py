"""Functions that call LAPACK, which run with one BLAS thread: several threads wait for each other on a busy machine.

JAX calls the BLAS library that SciPy bundles or is linked to. Its number of threads is a setting of the process. It is
1 while such a function runs, and is restored afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, final

import scipy.linalg.cython_lapack  # loads the library
import threadpoolctl

from diopi_impl.functional import Adapted
from diopi_impl.jax_cpu.jit import adapt_by_compiling
from diopi_impl.specs import OutSpec
from diopi_proto.prototype import Prototype


def with_lapack(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
    """Return the adapted form of an implementation that calls LAPACK: it runs with a single BLAS thread."""
    run = adapt_by_compiling(prototype, function)

    def call_with_single_thread(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        """Run the implementation with a single BLAS thread."""
        with single_thread:  # `run` returns when the results are computed
            return run(arguments, out)

    return call_with_single_thread


@cache
def blas() -> threadpoolctl.ThreadpoolController:
    """Return the BLAS library that JAX calls: the library that SciPy bundles, or else all loaded BLAS libraries."""
    libraries = threadpoolctl.ThreadpoolController().select(user_api="blas")
    package = Path(scipy.linalg.__file__).parents[1]
    folders = [package, package.with_name("scipy.libs")]  # where a wheel has its libraries
    paths = [library.filepath for library in libraries.lib_controllers]
    bundled = [path for path in paths if any(Path(path).is_relative_to(folder) for folder in folders)]
    return libraries.select(filepath=bundled) if bundled else libraries


@final
class _SingleThread:
    """A context that limits BLAS to one thread from the first entry to the last exit."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._restore: Callable[[], None]

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._restore = blas().limit(limits=1).restore_original_limits
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._restore()


single_thread = _SingleThread()
"""The context of all calls of LAPACK in this process."""

"""The state of the process that a call must not change, because every later call in the process depends on it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from cffi import FFI

_ffi = FFI()
_ffi.cdef("int fegetround(void); int fegetenv(void*); int fesetenv(void const*);")
_libm: Any = _ffi.dlopen(None)

_FENV_SIZE = 256
"""The size in bytes of the buffer for the C type `fenv_t`, which is smaller on every platform."""

_SMALLEST_NORMAL, _SMALLEST = 2.0**-1022, 2.0**-1074
"""Numbers of float64; operations on them show whether the CPU takes subnormal numbers for zero."""


@final
class ProcessState:
    """The floating-point environment, signal mask, working directory and NumPy error handling of this process.

    The constructor stores the current state. `restore` compares the state with the stored one and restores it.
    """

    def __init__(self) -> None:
        self._environment = _ffi.new(f"char[{_FENV_SIZE}]")
        _libm.fegetenv(self._environment)
        self._before = _state()

    def restore(self) -> Sequence[str]:
        """Restore the state and return a description of each change; empty if nothing had changed."""
        current_state = _state()
        if current_state == self._before:
            return ()
        changed = [
            f"{property_name} was {original!r} and is {current!r}"
            for (property_name, original), current in zip(self._before.items(), current_state.values(), strict=True)
            if original != current
        ]
        _libm.fesetenv(self._environment)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before["the signal mask"])
        os.chdir(self._before["the working directory"])
        np.seterr(**self._before["NumPy's error handling"])
        return changed


def _state() -> dict[str, Any]:
    """Return the current state of the process: each aspect and its value."""
    return {
        "the rounding mode": _libm.fegetround(),
        "whether subnormal results are flushed to zero": _SMALLEST_NORMAL / 2.0 == 0.0,
        "whether subnormal operands are taken for zero": _SMALLEST * 2.0**60 == 0.0,
        "the signal mask": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "the working directory": _working_directory(),
        "NumPy's error handling": np.geterr(),
    }


def _working_directory() -> str:
    """Return the working directory, which may have been deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "a folder that was deleted"

"""Compiled programs of JAX: how they are made, and which of them are kept.

JAX's settings are those of the whole process, which may be another's, as that of an exported library is. They stay as
they are: what a program needs (element types of 64 bits, the CPU, options of XLA) is in force while it is compiled or
called, in the calling thread alone.

Programs whose arguments or results have more than `LARGE` elements are compiled with XLA's usual optimisations: their
time is that of the computation. All others are compiled quickly: their time is that of the compilation.

Two environment variables are read whenever a program is made: `DIOPI_JAX_OPTIMIZE` is 1 to optimise every program, 0 to
optimise none, and `DIOPI_JAX_PROGRAMS_MB` is how many megabytes the programs that are kept may take.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable
from pathlib import Path
from threading import Lock
from typing import Any

import jax
import numpy as np

Program = Callable[[Any], Any]

PAGE = os.sysconf("SC_PAGE_SIZE")

LIMIT_MB = 128
"""Megabytes that the programs kept take at most, if the environment does not say: those of a model's training step."""

LEAST = 2**18
"""Bytes that a program takes at least, where the process has not grown by as much: most take a little more."""

LARGE = 2**14
"""Elements an array has at most, of a program that is not worth optimising."""

_QUICKLY_MADE: dict[str, str | bool] = {"xla_backend_optimization_level": "0", "xla_cpu_use_fusion_emitters": False}
"""Options of XLA that make compilation three times cheaper and change no result beyond rounding."""


_lowering = Lock()
"""Held while a program is traced and lowered, when JAX imports what it needs: modules that several threads import at
once may be seen half made."""


class ProgramCache:
    """The programs used last, by what they compute and the types of their arguments. Threads may share it."""

    def __init__(self) -> None:
        self._programs: dict[Hashable, tuple[Program, int]] = {}  # with their bytes, in order of use
        self._lock = Lock()

    def run(self, key: Hashable, arrays: Any, build: Callable[[], Callable[[Any], Any]]) -> Any:
        """What the program for `key` and arrays of these shapes and types makes of them, built when there is none."""
        key = (key, _signature(arrays))
        with jax.enable_x64(True):  # int64 and float64 are element types of the standard
            program = self._find(key)
            if program is None:
                before = resident_bytes()
                program = _compiled(build(), arrays)
                self._keep(key, program, max(resident_bytes() - before, LEAST))  # XLA does not say what it takes
            return program(arrays)

    def _find(self, key: Hashable) -> Program | None:
        with self._lock:
            kept = self._programs.pop(key, None)
            if kept is None:
                return None
            self._programs[key] = kept
            return kept[0]

    def _keep(self, key: Hashable, program: Program, nbytes: int) -> None:
        limit = float(os.environ.get("DIOPI_JAX_PROGRAMS_MB", LIMIT_MB)) * 1e6
        with self._lock:
            self._programs[key] = program, nbytes
            taken = sum(nbytes for _, nbytes in self._programs.values())
            while taken > limit and len(self._programs) > 1:
                taken -= self._programs.pop(next(iter(self._programs)))[1]


def resident_bytes() -> int:
    """Memory of this process that is not swapped out, in bytes."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE


def _compiled(function: Callable[[Any], Any], arrays: Any) -> Program:
    """`function` compiled for the CPU, whatever device JAX computes on by default."""
    with _lowering, jax.default_device(jax.devices("cpu")[0]):
        lowered = jax.jit(function).lower(arrays)
    largest = max((math.prod(one.shape) for one in jax.tree.leaves((lowered.in_avals, lowered.out_info))), default=0)
    return lowered.compile(compiler_options={} if _optimises(largest) else _QUICKLY_MADE)


def _optimises(largest: int) -> bool:
    """Whether a program is optimised whose largest array has so many elements."""
    setting = os.environ.get("DIOPI_JAX_OPTIMIZE", "auto")
    if setting not in ("0", "1", "auto"):
        raise ValueError(f"DIOPI_JAX_OPTIMIZE is {setting!r}, expected 0, 1 or auto")
    return largest > LARGE if setting == "auto" else setting == "1"


def _signature(arrays: Any) -> Any:
    if isinstance(arrays, np.ndarray):
        return arrays.shape, arrays.dtype
    return tuple([_signature(array) for array in arrays]) if isinstance(arrays, list) else type(arrays)

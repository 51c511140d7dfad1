"""Compiled programs of JAX: how they are made, and which of them are kept.

JAX's settings are those of the whole process, which may be another's, as that of an exported library is. They stay as
they are: what a program needs (element types of 64 bits, the CPU, options of XLA) is in force while it is compiled or
called, in the calling thread alone.

Programs whose arguments or results have more than `LARGE` elements are compiled with XLA's usual optimisations: their
time is that of the computation. All others are compiled quickly: their time is that of the compilation.

The programs used last are kept. There is room for `LEAST`; a program that is asked for again after it was dropped makes
room for one more, as long as the memory lasts. So whoever makes each call a few times in a row, as the suite does, uses
little memory, and a training step finds all of its programs from the third time on.

Two environment variables are read whenever a program is made: `DIOPI_JAX_OPTIMIZE` is 1 to optimise every program, 0 to
optimise none, and `DIOPI_JAX_PROGRAMS` is how many programs are kept, whatever is asked for again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from threading import Lock
from types import MappingProxyType
from typing import Any, final

import jax
import numpy as np

from diopi_impl.jax_cpu import memory

Program = Callable[[Any], Any]

Options = Mapping[str, str | bool]
"""Of XLA's compiler, by name."""

MIN_PROGRAMS = 32
"""Programs for which there is room at least, if the environment does not say."""

PROGRAM_SIZE = 3 * 2**19
"""Bytes that one takes, small or large: its code is little of it."""

MEMORY_SHARE = 16
"""Programs may take one part in so many of the machine's memory."""

MAX_DROPPED_KEYS = 2**16
"""Programs that were dropped of which is known that there were."""

LARGE = 2**14
"""Elements an array has at most, of a program that is not worth optimising."""

RESULTS_SHARE = 32
"""So may the memory of results that is kept to be written again."""

_FAST_COMPILATION: Options = {"xla_backend_optimization_level": "0", "xla_cpu_use_fusion_emitters": False}
"""Options of XLA that make compilation three times cheaper and change no result beyond rounding."""

YNNPACK = "xla_cpu_experimental_ynn_fusion_type"
"""The option that says what XLA leaves to that library: of its own choice sums, products and convolutions."""

SUMS, PRODUCTS, CONVOLUTIONS = (
    f"LIBRARY_FUSION_TYPE_{kind}" for kind in ("REDUCE", "INDIVIDUAL_DOT", "INDIVIDUAL_CONVOLUTION")
)

PRODUCTS_BY_EIGEN: Options = {YNNPACK: f"{SUMS},{CONVOLUTIONS}"}
"""Options that leave products to Eigen and not to YNNPACK, XLA's own choice: a product of rows with columns takes two
thirds of the time, one of a few rows with rows up to twenty times as long."""

LONG_ROWS = 2**15
"""Elements in a row from which on YNNPACK takes ten to two hundred times as long as XLA to add rows up."""

_lowering = Lock()
"""Held while a program is traced and lowered, when JAX imports what it needs: modules that several threads import at
once may be seen half made."""


@final
class _CachedProgram:
    """A program, as long as it is kept, and when it was used last: a number that grows."""

    __slots__ = ("program", "used")

    def __init__(self, program: Program) -> None:
        self.program: Program | None = program
        self.used = 0


class ProgramCache:
    """The programs used last, by what they compute and the types of their arguments. Threads may share it."""

    def __init__(self) -> None:
        self._programs: dict[Hashable, _CachedProgram] = {}
        self._dropped: set[int] = set()  # hashes of their keys
        self._room = MIN_PROGRAMS
        self._uses = count(1)
        self._lock = Lock()

    def program(
        self, key: Hashable, build: Callable[[], Callable[[Any], Any]], options: Options = MappingProxyType({})
    ) -> Program:
        """The program for `key` and arrays that all have the same shapes and types, built when there is none.

        `options` are those with which it is optimised, where this XLA has them.
        """
        entry: _CachedProgram | None = None

        def run(arrays: Any) -> Any:
            nonlocal entry
            program = entry.program if entry is not None else None
            if entry is None or program is None:
                entry, program = self._find((key, _signature(arrays)), arrays, build, options)
            entry.used = next(self._uses)
            return program(arrays)

        return run

    def _find(
        self, key: Hashable, arrays: Any, build: Callable[[], Callable[[Any], Any]], options: Options
    ) -> tuple[_CachedProgram, Program]:
        entry = self._programs.get(key)
        program = entry.program if entry is not None else None
        if entry is not None and program is not None:
            return entry, program
        program = _compile(build(), arrays, options)
        return self._store(key, program), program

    def _store(self, key: Hashable, program: Program) -> _CachedProgram:
        with self._lock:
            if key in self._programs:  # another thread was first
                return self._programs[key]
            if hash(key) in self._dropped:
                self._dropped.remove(hash(key))
                self._room = min(self._room + 1, max(MIN_PROGRAMS, _max_programs()))
            entry = self._programs[key] = _CachedProgram(program)
            entry.used = next(self._uses)
            while len(self._programs) > int(os.environ.get("DIOPI_JAX_PROGRAMS", self._room)):
                self._drop(min(self._programs, key=lambda cached_key: self._programs[cached_key].used))
            return entry

    def _drop(self, key: Hashable) -> None:
        self._programs.pop(key).program = None
        if len(self._dropped) >= MAX_DROPPED_KEYS:
            self._dropped.clear()
        self._dropped.add(hash(key))


def _max_programs() -> int:
    """Programs for which there is memory."""
    return _machine_memory() // MEMORY_SHARE // PROGRAM_SIZE


def _machine_memory() -> int:
    """Bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


_memory = memory.ResultMemory(_machine_memory() // RESULTS_SHARE)


def _compile(function: Callable[[Any], Any], arrays: Any, options: Options) -> Program:
    """`function` compiled for the CPU, whatever device JAX computes on by default."""
    with _lowering, jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        traced = jax.jit(function).trace(arrays)
        results, structure = jax.tree.flatten(traced.out_info)
        lent = [i for i, result in enumerate(results) if _bytes(result) > memory.LARGE]
        lowered = _lower_with_donation(function, [results[i] for i in lent], arrays) if lent else traced.lower()
    largest = max((math.prod(array.shape) for array in jax.tree.leaves((lowered.in_avals, results))), default=0)
    chosen = _supported_options(_choose_options(options, traced.jaxpr)) if _is_optimised(largest) else _FAST_COMPILATION
    with jax.enable_x64(True):
        program: Program = lowered.compile(compiler_options=chosen)
    if lent:
        program = _reuse_result_memory(program, structure, [(i, results[i].shape, results[i].dtype) for i in lent])
    return _with_wide_types(program) if _has_wide_types(lowered.in_avals) else program


def _choose_options(options: Options, jaxpr: Any) -> Options:
    """The options of a program, with which XLA makes its sums itself if they are of long rows."""
    if not any(_sums_long_rows(equation) for equation in _equations(jaxpr)):
        return options
    kinds = str(options.get(YNNPACK, f"{SUMS},{PRODUCTS},{CONVOLUTIONS}")).split(",")
    return {**options, YNNPACK: ",".join(kind for kind in kinds if kind != SUMS)}


def _sums_long_rows(equation: Any) -> bool:
    if equation.primitive.name != "reduce_sum":
        return False
    last = max(equation.params["axes"], default=-1)
    return math.prod(equation.invars[0].aval.shape[last + 1 :]) >= LONG_ROWS


def _equations(jaxpr: Any) -> Iterator[Any]:
    """Those of a program, and of the programs that it calls."""
    for equation in jaxpr.eqns:
        yield equation
        for value in jax.tree.leaves(equation.params, is_leaf=lambda value: hasattr(value, "eqns")):
            if hasattr(value, "eqns"):
                yield from _equations(value)


def _supported_options(options: Options) -> dict[str, str | bool]:
    """Those of these options that the compiler knows: they come and go with its versions."""
    return {name: value for name, value in options.items() if _is_supported(name, value)}


@cache
def _is_supported(name: str, value: str | bool) -> bool:
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options={name: value})
    except jax.errors.JaxRuntimeError:
        return False
    return True


def _lower_with_donation(function: Callable[[Any], Any], large: Sequence[Any], arrays: Any) -> Any:
    """`function` lowered to a program whose large results take the places of arrays that it is given."""
    return jax.jit(lambda _, arrays: function(arrays), donate_argnums=0, keep_unused=True).lower(large, arrays)


def _reuse_result_memory(program: Callable[..., Any], structure: Any, large: Sequence[tuple[int, Any, Any]]) -> Program:
    """`program` with large results, given as (position, shape, dtype), in memory that is used again."""

    def run(arrays: Any) -> Any:
        spares = [_memory.take(shape, dtype) for _, shape, dtype in large]
        results = jax.tree.leaves(jax.block_until_ready(program(spares, arrays)))
        for i, _, _ in large:
            results[i] = _memory.lend(results[i])
        return jax.tree.unflatten(structure, results)

    return run


def _bytes(result: Any) -> int:
    return math.prod(result.shape) * result.dtype.itemsize


def _has_wide_types(arguments: Any) -> bool:
    """Whether JAX narrows any of these arguments if it is not told to leave them."""
    return any(argument.dtype.itemsize >= 8 for argument in jax.tree.leaves(arguments))


def _with_wide_types(program: Program) -> Program:
    def run(arrays: Any) -> Any:
        with jax.enable_x64(True):
            return program(arrays)

    return run


def _is_optimised(largest: int) -> bool:
    """Whether a program is optimised whose largest array has so many elements."""
    setting = os.environ.get("DIOPI_JAX_OPTIMIZE", "auto")
    if setting not in ("0", "1", "auto"):
        raise ValueError(f"DIOPI_JAX_OPTIMIZE is {setting!r}, expected 0, 1 or auto")
    return largest > LARGE if setting == "auto" else setting == "1"


def _signature(arrays: Any) -> Any:
    if isinstance(arrays, np.ndarray):
        return arrays.shape, arrays.dtype
    return tuple([_signature(array) for array in arrays]) if isinstance(arrays, list) else type(arrays)

"""Compilation and caching of JAX programs.

JAX's settings belong to the process, which may be the user's own, as with an exported library. They are not changed.
The settings that a program needs (64-bit element types, the CPU, options of XLA) apply only while the program is
compiled or called, and only in the calling thread.

Programs whose arguments or results have more than `LARGE` elements are compiled with XLA's usual optimisations, because
their computation dominates. All others are compiled quickly, because their compilation dominates.

The cache contains the most recently used programs, `MIN_PROGRAMS` at first. When a program is requested again after it
was dropped, the cache grows by one, up to a share of the machine's memory. The suite, which repeats each call a few
times in a row, needs little memory, and a training step finds all of its programs from the third step on.

Two environment variables are read whenever a program is compiled. `DIOPI_JAX_OPTIMIZE` is 1 to optimise every program
and 0 to optimise none. `DIOPI_JAX_PROGRAMS` fixes the size of the cache.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from threading import Lock
from types import MappingProxyType
from typing import Any, final

import jax
import numpy as np

from diopi_impl.jax_cpu import memory
from diopi_impl.jax_cpu.placement import check_dtypes, first_line
from diopi_impl.jax_cpu.program_store import ProgramStore
from diopi_impl.jax_cpu.serialization import deserialize_program, serialize_program

Program = Callable[[Any], Any]
"""A compiled function: returns result arrays for argument arrays of fixed shapes and element types."""

Options = Mapping[str, str | bool]
"""Options of XLA's compiler, by name."""

MIN_PROGRAMS = 32
"""The initial size of the cache, unless the environment sets it."""

PROGRAM_SIZE = 3 * 2**19
"""The memory of a program in bytes, which hardly depends on the size of its code."""

MEMORY_SHARE = 16
"""The reciprocal of the share of the machine's memory that programs may use."""

MAX_DROPPED_KEYS = 2**16
"""The maximum number of dropped programs whose keys are remembered."""

LARGE = 2**14
"""Programs whose arrays all have at most this number of elements are not optimised."""

RESULTS_SHARE = 32
"""The reciprocal of the share of the machine's memory that results may use while they wait to be reused."""

MAX_RESULT_BYTES = 2**29
"""The maximum size of these results, so that a process does not grow by gigabytes on a machine with much memory."""

_FAST_COMPILATION: Options = {"xla_backend_optimization_level": "0", "xla_cpu_use_fusion_emitters": False}
"""Options of XLA that compile three times faster and change results only by rounding; some versions of XLA lack one."""

YNNPACK = "xla_cpu_experimental_ynn_fusion_type"
"""The option that selects the operations that XLA delegates to YNNPACK: by default sums, products and convolutions."""

SUMS, PRODUCTS, CONVOLUTIONS = (
    f"LIBRARY_FUSION_TYPE_{kind}" for kind in ("REDUCE", "INDIVIDUAL_DOT", "INDIVIDUAL_CONVOLUTION")
)
"""The values of this option, of which a comma-separated list may be given."""

PRODUCTS_BY_EIGEN: Options = {YNNPACK: f"{SUMS},{CONVOLUTIONS}"}
"""Options that delegate products to Eigen instead of YNNPACK. A product of rows with columns takes two thirds of the
time, but a product of a few rows with rows takes up to twenty times as long."""

LONG_ROWS = 2**15
"""The least length of rows for whose sums YNNPACK takes 10 to 200 times as long as XLA."""

logger = logging.getLogger(__name__)

_lowering = Lock()
"""The lock of tracing and lowering. During these JAX imports modules lazily, and a thread may see a module that
another thread has only partly imported."""


@final
class _CachedProgram:
    """A program (None after it was dropped), and the number of its latest use."""

    __slots__ = ("program", "used")

    def __init__(self, program: Program) -> None:
        self.program: Program | None = program
        self.used = 0


class ProgramCache:
    """A cache of the most recently used programs. Threads may share it."""

    def __init__(self) -> None:
        self._programs: dict[Hashable, _CachedProgram] = {}
        self._dropped: set[int] = set()  # the hashes of the keys of dropped programs
        self._room = MIN_PROGRAMS
        self._uses = count(1)
        self._lock = Lock()
        self.store: ProgramStore | None = None

    def program(
        self,
        key: Hashable,
        build: Callable[[], Callable[[Any], Any]],
        options: Options = MappingProxyType({}),
        stored_as: str | None = None,
        device: jax.Device | None = None,
    ) -> Program:
        """Return the program for `key`, which compiles itself for the shapes and types of its first arguments.

        Args:
            key: identifies what the program computes.
            build: returns the function to compile.
            options: options for optimised programs; options that the installed XLA lacks are ignored.
            stored_as: identifies what the program computes, in all processes with the same sources. None if the program
                must not be stored.
            device: the device on which the program runs; None for the first device of the CPU. Options and stored
                programs are only for this one.

        Returns:
            A function of arrays that all have the same shapes and types in every call.
        """
        entry: _CachedProgram | None = None

        def run(arrays: Any) -> Any:
            """Call the program, which is compiled on the first call and after it was dropped."""
            nonlocal entry
            program = entry.program if entry is not None else None
            if entry is None or program is None:
                entry, program = self._find((key, _signature(arrays)), arrays, build, options, stored_as, device)
            entry.used = next(self._uses)
            return program(arrays)

        return run

    def _find(
        self,
        key: Hashable,
        arrays: Any,
        build: Callable[[], Callable[[Any], Any]],
        options: Options,
        stored_as: str | None,
        device: jax.Device | None,
    ) -> tuple[_CachedProgram, Program]:
        """Return the cached program for `key`, loaded or compiled first if it is not in the cache."""
        entry = self._programs.get(key)
        program = entry.program if entry is not None else None
        if entry is not None and program is not None:
            return entry, program
        if device is not None:
            program = _compile_for_device(build(), arrays, device)
        elif self.store is None or stored_as is None:
            program = _compile(build(), arrays, options).program
        else:
            program = _load_or_compile(self.store, f"{stored_as} {_signature(arrays)}", build, arrays, options)
        return self._insert(key, program), program

    def _insert(self, key: Hashable, program: Program) -> _CachedProgram:
        """Add a program to the cache, and drop the least recently used programs beyond its size."""
        with self._lock:
            if key in self._programs:  # another thread stored the program first
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
        """Remove a program from the cache and remember its key."""
        self._programs.pop(key).program = None
        if len(self._dropped) >= MAX_DROPPED_KEYS:
            self._dropped.clear()
        self._dropped.add(hash(key))


def _max_programs() -> int:
    """Return the number of programs for which there is memory."""
    return _machine_memory() // MEMORY_SHARE // PROGRAM_SIZE


def _machine_memory() -> int:
    """Return the size of the machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


_memory = memory.ResultMemory(min(_machine_memory() // RESULTS_SHARE, MAX_RESULT_BYTES))
"""The memory of large results, which programs reuse."""


@final
@dataclass(frozen=True)
class _CompiledProgram:
    """A program that was compiled.

    Attributes:
        program: the function of arrays.
        serializable: JAX's compiled and lowered forms of the program; None if the program can't be stored.
    """

    program: Program
    serializable: tuple[Any, Any] | None


def _load_or_compile(
    store: ProgramStore, key: str, build: Callable[[], Callable[[Any], Any]], arrays: Any, options: Options
) -> Program:
    """Return the stored program for `key`; compile and store it if there is none."""
    content = store.read(key)
    if content is not None:
        try:
            with _lowering:
                program, arguments = deserialize_program(content, arrays)
            return _with_wide_types(program) if _has_wide_types(arguments) else program
        except Exception:  # whatever JAX raises for a program that it can't load: compile the program
            logger.debug("the stored program for %s can't be loaded", key, exc_info=True)
    compiled = _compile(build(), arrays, options)
    if compiled.serializable is not None:
        try:
            store.write(key, serialize_program(*compiled.serializable))
        except Exception:  # whatever JAX raises for a program that it can't serialize: do not store the program
            logger.debug("the program for %s can't be stored", key, exc_info=True)
    return compiled.program


def _compile(function: Callable[[Any], Any], arrays: Any, options: Options) -> _CompiledProgram:
    """Return `function` compiled for the CPU, whatever JAX's default device is."""
    with _lowering, jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        traced = jax.jit(function).trace(arrays)
        results, structure = jax.tree.flatten(traced.out_info)
        lent = [i for i, result in enumerate(results) if _byte_count(result) > memory.LARGE]
        lowered = _lower_with_donation(function, [results[i] for i in lent], arrays) if lent else traced.lower()
    largest = max((math.prod(array.shape) for array in jax.tree.leaves((lowered.in_avals, results))), default=0)
    wanted = _choose_options(options, traced.jaxpr) if _is_optimised(largest) else _FAST_COMPILATION
    chosen = _supported_options(wanted)
    with jax.enable_x64(True):
        compiled = lowered.compile(compiler_options=chosen)
    program: Program = compiled
    if lent:
        program = _reuse_result_memory(program, structure, [(i, results[i].shape, results[i].dtype) for i in lent])
    if _has_wide_types(lowered.in_avals):
        program = _with_wide_types(program)
    return _CompiledProgram(program, None if lent else (compiled, lowered))


def _compile_for_device(function: Callable[[Any], Any], arrays: Any, device: jax.Device) -> Program:
    """Return `function` compiled for a device, with the default options of its compiler.

    Args:
        function: the function of arrays.
        arrays: arguments with the shapes and types of all calls.
        device: the device.

    Returns:
        The program, which copies its arguments to the device.

    Raises:
        UnsupportedDtypeError: if the device rejects the element type of an argument or of a result.
        NotImplementedError: if the device's compiler lacks an operation; the message quotes the compiler.
        JaxRuntimeError: if the compilation fails for another reason.
    """
    with _lowering, jax.enable_x64(True), jax.default_device(device):
        traced = jax.jit(function).trace(arrays)
        check_dtypes(device, {array.dtype for array in jax.tree.leaves((arrays, traced.out_info))})
        lowered = traced.lower()
    try:
        with jax.enable_x64(True):
            program: Program = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        if "UNIMPLEMENTED" in str(error):
            raise NotImplementedError(f"{device}: {first_line(error)}") from error
        raise
    return _with_wide_types(program) if _has_wide_types(lowered.in_avals) else program


def _choose_options(options: Options, jaxpr: Any) -> Options:
    """Return the options of a program: XLA itself computes sums of long rows."""
    if not any(_sums_long_rows(equation) for equation in _equations(jaxpr)):
        return options
    kinds = str(options.get(YNNPACK, f"{SUMS},{PRODUCTS},{CONVOLUTIONS}")).split(",")
    return {**options, YNNPACK: ",".join(kind for kind in kinds if kind != SUMS)}


def _sums_long_rows(equation: Any) -> bool:
    """Return whether an equation sums rows of at least `LONG_ROWS` elements."""
    if equation.primitive.name != "reduce_sum":
        return False
    last = max(equation.params["axes"], default=-1)
    return math.prod(equation.invars[0].aval.shape[last + 1 :]) >= LONG_ROWS


def _equations(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a program and of the programs that it calls."""
    for equation in jaxpr.eqns:
        yield equation
        for value in jax.tree.leaves(equation.params, is_leaf=lambda value: hasattr(value, "eqns")):
            if hasattr(value, "eqns"):
                yield from _equations(value)


def _supported_options(options: Options) -> dict[str, str | bool]:
    """Return the options that the installed compiler supports, which depends on its version."""
    return {name: value for name, value in options.items() if _is_supported(name, value)}


@cache
def _is_supported(name: str, value: str | bool) -> bool:
    """Return whether the installed XLA accepts an option."""
    with _lowering:
        lowered = jax.jit(lambda: 0).lower()
    try:
        lowered.compile(compiler_options={name: value})
    except jax.errors.JaxRuntimeError:
        return False
    return True


def _lower_with_donation(function: Callable[[Any], Any], large: Sequence[Any], arrays: Any) -> Any:
    """Return `function` lowered to a program that writes its large results into donated arrays."""
    return jax.jit(lambda _, arrays: function(arrays), donate_argnums=0, keep_unused=True).lower(large, arrays)


def _reuse_result_memory(program: Callable[..., Any], structure: Any, large: Sequence[tuple[int, Any, Any]]) -> Program:
    """Return `program` with its large results, (position, shape, dtype) each, in reused memory."""

    def run(arrays: Any) -> Any:
        """Run the program with donated arrays, and lend its large results."""
        spares = [_memory.take(shape, dtype) for _, shape, dtype in large]
        results = jax.tree.leaves(jax.block_until_ready(program(spares, arrays)))
        for i, _, _ in large:
            results[i] = _memory.lend(results[i])
        return jax.tree.unflatten(structure, results)

    return run


def _byte_count(result: Any) -> int:
    """Return the size of a result in bytes."""
    return math.prod(result.shape) * result.dtype.itemsize


def _has_wide_types(arguments: Any) -> bool:
    """Return whether an argument has a 64-bit type, which JAX would convert to 32 bits unless they are enabled."""
    return any(argument.dtype.itemsize >= 8 for argument in jax.tree.leaves(arguments))


def _with_wide_types(program: Program) -> Program:
    """Return the program, called with 64-bit types enabled."""

    def run(arrays: Any) -> Any:
        """Call the program with 64-bit types enabled."""
        with jax.enable_x64(True):
            return program(arrays)

    return run


def _is_optimised(largest: int) -> bool:
    """Return whether to optimise a program whose largest array has `largest` elements."""
    setting = os.environ.get("DIOPI_JAX_OPTIMIZE", "auto")
    if setting not in ("0", "1", "auto"):
        raise ValueError(f"DIOPI_JAX_OPTIMIZE is {setting!r}, expected 0, 1 or auto")
    return largest > LARGE if setting == "auto" else setting == "1"


def _signature(arrays: Any) -> Any:
    """Return the shapes and element types of arrays, nested like the arrays."""
    if isinstance(arrays, np.ndarray):
        return arrays.shape, arrays.dtype
    return tuple([_signature(array) for array in arrays]) if isinstance(arrays, list) else type(arrays)

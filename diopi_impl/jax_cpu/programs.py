"""Compile JAX programs and cache them.

JAX's settings apply to the whole process. An exported library runs in the process of a user's program, so this module
does not change them. The settings that a program needs (64-bit element types, the CPU, options of XLA) apply only in
the calling thread, while it compiles or calls the program.

A program is optimized if one of its arrays has more than `LARGE` elements, because then the computation takes most of
the time. Other programs are compiled quickly, because then the compilation takes most of the time.

The cache contains the most recently used programs, at first at most `MIN_PROGRAMS`. When a program is requested again
after it was dropped, the cache grows by one, up to a share of the machine's memory. The suite needs little memory,
because it repeats each call a few times in a row. A training step finds all its programs in the cache from the third
step on.

Each compilation reads two environment variables. `DIOPI_JAX_OPTIMIZE` is 1 to optimize every program and 0 to optimize
none. `DIOPI_JAX_PROGRAMS` fixes the size of the cache.
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
from jax._src import config as jax_config

from diopi_impl.jax_cpu import memory
from diopi_impl.jax_cpu.placement import check_dtypes, first_line
from diopi_impl.jax_cpu.program_store import ProgramStore
from diopi_impl.jax_cpu.serialization import deserialize_program, serialize_program

Program = Callable[[Any], Any]
"""A compiled function. It takes and returns arrays with fixed shapes and element types."""

Options = Mapping[str, str | bool]
"""Options of XLA's compiler, by name."""

MIN_PROGRAMS = 32
"""The initial size of the cache in programs, unless `DIOPI_JAX_PROGRAMS` is set."""

PROGRAM_SIZE = 3 * 2**19
"""The approximate memory of a program in bytes. It hardly depends on the size of the code."""

PROGRAM_MEMORY_DIVISOR = 16
"""Cached programs may use the machine's memory divided by this number."""

MAX_DROPPED_KEYS = 2**16
"""The maximum number of dropped programs whose keys are remembered. If there are more, all keys are forgotten."""

LARGE = 2**14
"""A program is optimized if one of its arrays has more elements than this."""

RESULT_MEMORY_DIVISOR = 32
"""Released results, whose memory later results reuse, may occupy the machine's memory divided by this number."""

MAX_RELEASED_BYTES = 2**29
"""Released results may occupy at most this number of bytes, even on a machine with much memory."""

_FAST_COMPILATION: Options = {"xla_backend_optimization_level": "0", "xla_cpu_use_fusion_emitters": False}
"""Options with which XLA compiles three times as fast. They change only the rounding of results.

Some versions of XLA do not have all of these options.
"""

YNNPACK_OPTION = "xla_cpu_experimental_ynn_fusion_type"
"""The name of the option with the kinds of operations that XLA delegates to the library YNNPACK.

The default is all of `SUMS`, `PRODUCTS` and `CONVOLUTIONS`.
"""

SUMS, PRODUCTS, CONVOLUTIONS = (
    f"LIBRARY_FUSION_TYPE_{kind}" for kind in ("REDUCE", "INDIVIDUAL_DOT", "INDIVIDUAL_CONVOLUTION")
)
"""The kinds of operations for `YNNPACK_OPTION`, which takes a comma-separated list of them."""

PRODUCTS_BY_EIGEN: Options = {YNNPACK_OPTION: f"{SUMS},{CONVOLUTIONS}"}
"""Options that delegate matrix products to the library Eigen instead of YNNPACK.

A product with an untransposed matrix takes two thirds of the time. A product of a few rows with a transposed matrix
takes up to twenty times as long.
"""

LONG_ROWS = 2**15
"""The length from which on XLA itself adds up rows, for which YNNPACK takes 10 to 200 times as long.

To sum an array over an axis is to add up its rows: the parts with all axes behind the summed one.
"""

logger = logging.getLogger(__name__)
"""The logger that reports stored programs which can't be loaded or written."""

_lowering_lock = Lock()
"""The lock for tracing and lowering programs.

JAX imports modules lazily in these steps, and a thread may see a module that another thread has only partly imported.
"""


@final
class _CachedProgram:
    """A program in the cache, and the number of the latest use. The program is None after the cache dropped it."""

    __slots__ = ("program", "used")

    def __init__(self, program: Program) -> None:
        self.program: Program | None = program
        self.used = 0


class ProgramCache:
    """A cache of the most recently used programs. Threads may share it."""

    def __init__(self) -> None:
        self._programs: dict[Hashable, _CachedProgram] = {}
        self._dropped_hashes: set[int] = set()  # the hashes of the keys of dropped programs
        self._max_size = MIN_PROGRAMS
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
        """Return a function that calls the program for `key`.

        The first call compiles the program for the shapes and types of the arguments.

        Args:
            key: identifies what the program computes.
            build: returns the function to compile.
            options: compiler options for optimized programs. Options that the installed XLA lacks are ignored.
            stored_as: the key of the program in the store of compiled programs, which other processes with the same
                sources read. None if the program must not be stored.
            device: the device on which the program runs; None for the first device of the CPU. Other devices ignore
                `options` and `stored_as`.

        Returns:
            A function that takes the argument arrays and returns the result arrays. The shapes and types of the
            arguments must be the same in every call.
        """
        entry: _CachedProgram | None = None

        def run(arrays: Any) -> Any:
            """Call the program; compile it first on the first call and after the cache dropped it."""
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
        """Return the program for `key` from the cache; load or compile it if the cache does not contain it.

        Args:
            key: the key of the program in the cache.
            arrays: arguments with the shapes and types of all calls.
            build: returns the function to compile.
            options: see `program`.
            stored_as: see `program`.
            device: the device to compile for; None for the CPU.

        Returns:
            The entry of the cache, and the program.
        """
        entry = self._programs.get(key)
        program = entry.program if entry is not None else None
        if entry is not None and program is not None:
            return entry, program
        if device is not None:
            program = _compile_for_device(build(), arrays, device)
        else:
            program = self.compile(build, arrays, stored_as, options)
        return self._insert(key, program), program

    def compile(
        self,
        build: Callable[[], Callable[[Any], Any]],
        arrays: Any,
        stored_as: str | None,
        options: Options = MappingProxyType({}),
    ) -> Program:
        """Return a program for the CPU from the store of compiled programs, or compile it; the cache is not used.

        Args:
            build: returns the function to compile.
            arrays: arguments with the shapes and types of all calls.
            stored_as: see `program`.
            options: see `program`.

        Returns:
            The program.
        """
        if self.store is None or stored_as is None:
            return _compile(build(), arrays, options).program
        return _load_or_compile(self.store, f"{stored_as} {_signature(arrays)}", build, arrays, options)

    def _insert(self, key: Hashable, program: Program) -> _CachedProgram:
        """Add a program to the cache, and drop the least recently used programs beyond its size.

        Returns:
            The cached program: if another thread was faster, the program of that thread.
        """
        with self._lock:
            if key in self._programs:  # another thread stored the program first
                return self._programs[key]
            if hash(key) in self._dropped_hashes:
                self._dropped_hashes.remove(hash(key))
                self._max_size = min(self._max_size + 1, max(MIN_PROGRAMS, _max_programs()))
            entry = self._programs[key] = _CachedProgram(program)
            entry.used = next(self._uses)
            while len(self._programs) > int(os.environ.get("DIOPI_JAX_PROGRAMS", self._max_size)):
                self._drop(min(self._programs, key=lambda cached_key: self._programs[cached_key].used))
            return entry

    def _drop(self, key: Hashable) -> None:
        """Remove a program from the cache and remember the hash of its key."""
        self._programs.pop(key).program = None
        if len(self._dropped_hashes) >= MAX_DROPPED_KEYS:
            self._dropped_hashes.clear()
        self._dropped_hashes.add(hash(key))


def _max_programs() -> int:
    """Return the number of programs that fit in the cache's share of the memory."""
    return _machine_memory() // PROGRAM_MEMORY_DIVISOR // PROGRAM_SIZE


def _machine_memory() -> int:
    """Return the size of the machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


_released_results = memory.ResultMemory(min(_machine_memory() // RESULT_MEMORY_DIVISOR, MAX_RELEASED_BYTES))
"""The pool of released large results, whose memory later results reuse."""


@final
@dataclass(frozen=True)
class _CompiledProgram:
    """A compiled program, and the data that the store needs.

    Attributes:
        program: the compiled function.
        serializable: JAX's compiled and lowered forms of the program; None if the program can't be stored.
    """

    program: Program
    serializable: tuple[Any, Any] | None


def _load_or_compile(
    store: ProgramStore, key: str, build: Callable[[], Callable[[Any], Any]], arrays: Any, options: Options
) -> Program:
    """Return the stored program for `key`; compile and store it if there is none, or if it can't be loaded.

    Args:
        store: the store.
        key: the key of the program in the store.
        build: returns the function to compile.
        arrays: arguments with the shapes and types of all calls.
        options: see `ProgramCache.program`.
    """
    content = store.read(key)
    if content is not None:
        try:
            with _lowering_lock:
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
    """Return `function`, compiled for the CPU, whatever JAX's default device is."""
    # JAX would take 2 ms to remove its own frames from the traceback of an invalid call, which nobody sees
    whole_tracebacks = jax_config.traceback_filtering("off")
    with _lowering_lock, jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]), whole_tracebacks:
        traced = jax.jit(function).trace(arrays)
        results, structure = jax.tree.flatten(traced.out_info)
        lent = [i for i, result in enumerate(results) if _byte_count(result) > memory.LARGE]
        lowered = _lower_with_donation(function, [results[i] for i in lent], arrays) if lent else traced.lower()
    largest = max((math.prod(array.shape) for array in jax.tree.leaves((lowered.in_avals, results))), default=0)
    requested = _choose_options(options, traced.jaxpr) if _needs_optimization(largest) else _FAST_COMPILATION
    supported = _supported_options(requested)
    with jax.enable_x64(True):
        compiled = lowered.compile(compiler_options=supported)
    program: Program = compiled
    if lent:
        program = _reuse_result_memory(program, structure, [(i, results[i].shape, results[i].dtype) for i in lent])
    if _has_wide_types(lowered.in_avals):
        program = _with_wide_types(program)
    return _CompiledProgram(program, None if lent else (compiled, lowered))


def _compile_for_device(function: Callable[[Any], Any], arrays: Any, device: jax.Device) -> Program:
    """Compile `function` for a device, with the default options of the device's compiler.

    Args:
        function: the function to compile, which takes and returns arrays.
        arrays: arguments with the shapes and types of all calls.
        device: the device.

    Returns:
        The program, which copies its arguments to the device.

    Raises:
        UnsupportedDtypeError: if the device rejects the element type of an argument or of a result.
        NotImplementedError: if the device's compiler lacks an operation; the message quotes the compiler.
        JaxRuntimeError: if the compilation fails for another reason.
    """
    with _lowering_lock, jax.enable_x64(True), jax.default_device(device):
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
    """Return the options for a program: if it adds up long rows, XLA must not delegate sums to YNNPACK."""
    if not any(_sums_long_rows(equation) for equation in _nested_equations(jaxpr)):
        return options
    delegated = str(options.get(YNNPACK_OPTION, f"{SUMS},{PRODUCTS},{CONVOLUTIONS}")).split(",")
    return {**options, YNNPACK_OPTION: ",".join(kind for kind in delegated if kind != SUMS)}


def _sums_long_rows(equation: Any) -> bool:
    """Return whether an equation adds up rows of at least `LONG_ROWS` elements."""
    if equation.primitive.name != "reduce_sum":
        return False
    last = max(equation.params["axes"], default=-1)
    return math.prod(equation.invars[0].aval.shape[last + 1 :]) >= LONG_ROWS


def _nested_equations(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a JAX program and of the programs nested in it."""
    for equation in jaxpr.eqns:
        yield equation
        for value in jax.tree.leaves(equation.params, is_leaf=lambda value: hasattr(value, "eqns")):
            if hasattr(value, "eqns"):
                yield from _nested_equations(value)


def _supported_options(options: Options) -> dict[str, str | bool]:
    """Return the options that the installed version of XLA supports."""
    return {name: value for name, value in options.items() if _is_supported(name, value)}


@cache
def _is_supported(name: str, value: str | bool) -> bool:
    """Return whether the installed XLA accepts an option."""
    with _lowering_lock:
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
    """Return a program that writes its large results into the memory of released results.

    Args:
        program: the program, whose first argument is a list of donated arrays for the large results.
        structure: the nesting of the results.
        large: for each large result, the position among all results, the shape and the element type.

    Returns:
        The program, which takes only the arguments.
    """

    def run(arrays: Any) -> Any:
        """Call the program with arrays to overwrite, and lend its large results to the caller."""
        spares = [_released_results.take(shape, dtype) for _, shape, dtype in large]
        results = jax.tree.leaves(jax.block_until_ready(program(spares, arrays)))
        for i, _, _ in large:
            results[i] = _released_results.lend(results[i])
        return jax.tree.unflatten(structure, results)

    return run


def _byte_count(result: Any) -> int:
    """Return the size of a result in bytes."""
    return math.prod(result.shape) * result.dtype.itemsize


def _has_wide_types(arguments: Any) -> bool:
    """Return whether an argument has a 64-bit type, which JAX would convert to 32 bits unless they are enabled."""
    return any(argument.dtype.itemsize >= 8 for argument in jax.tree.leaves(arguments))


def _with_wide_types(program: Program) -> Program:
    """Return a function that calls the program with 64-bit types enabled."""

    def run(arrays: Any) -> Any:
        """Call the program with 64-bit types enabled."""
        with jax.enable_x64(True):
            return program(arrays)

    return run


def _needs_optimization(largest: int) -> bool:
    """Return whether to optimize a program whose largest array has `largest` elements."""
    setting = os.environ.get("DIOPI_JAX_OPTIMIZE", "auto")
    if setting not in ("0", "1", "auto"):
        raise ValueError(f"DIOPI_JAX_OPTIMIZE is {setting!r}, expected 0, 1 or auto")
    return largest > LARGE if setting == "auto" else setting == "1"


def _signature(arrays: Any) -> Any:
    """Return the shapes and element types of arrays, and the types of numbers, in tuples instead of the lists."""
    if isinstance(arrays, np.ndarray):
        return arrays.shape, arrays.dtype
    return tuple([_signature(array) for array in arrays]) if isinstance(arrays, list) else type(arrays)

"""The adapter of jax_cpu: implementations are compiled once for each combination of attributes and shapes.

Arrays are traced, and attributes are constants of the program. Half-precision arrays are computed in float32. Each
result is rounded once: to the element type of the caller's tensor, or to the type that the standard prescribes if the
callee allocates it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import jax.numpy as jnp
import numpy as np

from diopi_impl.functional import Adapted, Adapter, Compute, out_keyword, split_results
from diopi_impl.jax_cpu.convert import convert_to_dtype, promote_arguments, widen_half
from diopi_impl.jax_cpu.environment import digest_environment
from diopi_impl.jax_cpu.placement import current_device
from diopi_impl.jax_cpu.program_store import ProgramStore
from diopi_impl.jax_cpu.programs import Options, Program, ProgramCache
from diopi_impl.results import check_entry_count, check_shape
from diopi_impl.specs import OutSpec, ResultSpec
from diopi_proto.implementations import takes_out
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from lib_rt.dtypes import from_numpy

_programs = ProgramCache()
"""The compiled programs of this process."""

_implementations: Counter[str] | None = Counter()
"""The number of implementations of each function that were adapted while the vendor was imported; then None."""


def store_programs(folder: Path, since: float) -> None:
    """Store the vendor's compiled programs in a folder, and load them from there; see `BaseVendor.store_programs`."""
    environment = digest_environment(since)
    _programs.store = None if environment is None else ProgramStore(folder, environment)


def compile_and_store(function: Callable[[Any], Any], key: str) -> Program:
    """Return a function that compiles `function` on its first call, or loads it from the folder of stored programs.

    Args:
        function: a function of a list of arrays.
        key: identifies what the function computes, the same in all processes.

    Returns:
        The function, which is optimized if an array is large. Its arguments have the same shapes in all calls.
    """
    program: Program | None = None

    def run(arrays: Any) -> Any:
        """Call the program; compile it first on the first call."""
        nonlocal program
        if program is None:
            program = _programs.compile(lambda: function, arrays, key)
        return program(arrays)

    return run


def end_registration() -> None:
    """Exclude implementations that are adapted from now on from the store: they do not belong to the vendor."""
    global _implementations
    _implementations = None


def _name_implementation(prototype: Prototype) -> str | None:
    """Return a name for the programs of an implementation, the same in all processes; None if they are not stored."""
    if _implementations is None:
        return None
    _implementations[prototype.name] += 1
    return f"{prototype.name} {_implementations[prototype.name]}"


def adapt_by_compiling(
    prototype: Prototype,
    function: Callable[..., Any],
    *,
    traced: Sequence[str] = (),
    options: Options = MappingProxyType({}),
) -> Compiled:
    """Adapt an implementation by compiling it: a program is compiled for each form of call.

    Calls have the same form if their attributes, shapes and element types are equal.

    Args:
        prototype: the standard function.
        function: the implementation, a function of traced arrays and attributes.
        traced: the names of numbers that are inputs of the program, like arrays.
        options: options of the compiler for optimized programs.

    Returns:
        The adapted implementation.
    """
    return Compiled(prototype, function, traced, options)


@final
class Compiled:
    """An implementation that is compiled once for each combination of attributes, result specs, shapes and types."""

    def __init__(
        self, prototype: Prototype, function: Callable[..., Any], traced: Sequence[str], options: Options
    ) -> None:
        self._prototype = prototype
        self._function = function
        self._takes_out = takes_out(function)
        self._options = options
        self._name = _name_implementation(prototype)
        self._traced = [p.is_tensor or p.is_tensor_array or p.name in traced for p in prototype.arguments]
        self._traced_positions = [i for i, flag in enumerate(self._traced) if flag]

    def __call__(self, arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        """Return the results of a call."""
        return self.prepare(arguments, out)(arguments)

    def prepare(self, arguments: Sequence[Any], out: Sequence[OutSpec]) -> Compute:
        """Return the function that computes the results of all calls of a form; see `diopi_impl.functional`."""
        attributes = [value for value, flag in zip(arguments, self._traced, strict=True) if not flag]
        # repr distinguishes 1, 1.0, True, 0.0 and -0.0, which == does not
        key = self, repr(attributes) if attributes else "", tuple([_spec_key(spec) for spec in out])
        stored_as = None if self._name is None or _programs.store is None else f"{self._name} {key[1:]} {self._options}"
        build = partial(partial, self._body, attributes, out)
        on_cpu = _programs.program(key, build, self._options, stored_as)

        def compute(arguments: Sequence[Any]) -> Sequence[Any]:
            """Run the program for the arguments of a call, on the device of this thread."""
            device = current_device()
            program = on_cpu if device is None else _programs.program((key, device), build, device=device)
            return [_to_host(result) for result in program([arguments[i] for i in self._traced_positions])]

        return compute

    def _body(self, attributes: Sequence[Any], out: Sequence[OutSpec], arrays: Sequence[Any]) -> list[Any]:
        """Return the results for traced arrays and the attributes of a form of call: the function that is compiled."""
        arrays_left, attributes_left = iter(arrays), iter(attributes)
        return self.compute([next(arrays_left) if flag else next(attributes_left) for flag in self._traced], out)

    def compute(self, values: Sequence[Any], out: Sequence[OutSpec]) -> list[Any]:
        """Return the results for traced arrays and attributes in the prototype's order, without compiling anything.

        Args:
            values: the arguments. Numbers in place of tensors are weakly typed arrays.
            out: the result specs.

        Returns:
            The results, in the element types of the specs.
        """
        prototype = self._prototype
        arguments = [_widen(value) for value in promote_arguments(prototype, values, out)]
        keywords = {"out": out_keyword(prototype, out)} if self._takes_out else {}
        results = split_results(prototype, self._function(*arguments, **keywords))
        return [
            _convert_new_result(prototype, p, values, result) if p.is_callee_allocated else _convert(result, spec)
            for p, result, spec in zip(prototype.results, results, out, strict=True)
        ]


@final
class Shortcut:
    """An implementation that NumPy computes on the CPU in some calls, without compiling anything.

    Args:
        direct: computes these calls.
        compiled: computes all other calls.
        applies: returns whether `direct` computes a call, from its arguments and result specs.
    """

    def __init__(
        self, direct: Adapted, compiled: Compiled, applies: Callable[[Sequence[Any], Sequence[OutSpec]], bool]
    ) -> None:
        self.compiled = compiled
        self._direct = direct
        self._applies = applies

    def __call__(self, arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        """Return the results of a call."""
        is_direct = current_device() is None and self._applies(arguments, out)
        return (self._direct if is_direct else self.compiled)(arguments, out)


def check_on_host(check: Callable[..., None], adapt: Adapter = adapt_by_compiling) -> Adapter:
    """Return an adapter that calls `check` with a call's arguments first; it raises if they are invalid.

    A compiled program can't check the values of its inputs. These include numbers in place of tensors.

    Args:
        check: a function of the arguments. It reads only numbers, shapes and element types.
        adapt: the adapter of the implementation.

    Returns:
        The adapter.
    """
    return lambda prototype, function: CheckedOnHost(check, adapt(prototype, function))


@final
class CheckedOnHost:
    """An implementation whose arguments are checked before the call; a program checks them when it is compiled.

    Args:
        check: raises an exception if the arguments are invalid. It reads only numbers, shapes and element types.
        adapted: the implementation.
    """

    def __init__(self, check: Callable[..., None], adapted: Adapted) -> None:
        self.check = check
        self.adapted = adapted

    def __call__(self, arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        """Check the arguments, then call the implementation."""
        self.check(*arguments)
        return self.adapted(arguments, out)


def _widen(value: Any) -> Any:
    """Return half-precision arrays, also in lists, as float32, and other values unchanged."""
    if isinstance(value, list):
        return [_widen(entry) for entry in value]
    return widen_half(value) if hasattr(value, "dtype") else value


def _convert(result: Any, spec: OutSpec) -> Any:
    """Return a result in the element type of its tensor; raise ValueError if its shape differs."""
    if spec is None or result is None:
        return result
    if isinstance(spec, ResultSpec):
        array = jnp.asarray(result)
        check_shape(spec.name, spec.shape, array.shape)
        return convert_to_dtype(array, spec.dtype)
    check_entry_count(spec[0].name if spec else "", spec, result)
    return [_convert(entry, entry_spec) for entry, entry_spec in zip(result, spec, strict=True)]


def _convert_new_result(prototype: Prototype, parameter: Parameter, values: Sequence[Any], result: Any) -> Any:
    """Return a result that the callee allocates, or an array of them, in the element types of the standard."""
    tensors = {p.name for p in prototype.arguments if p.is_tensor or p.is_tensor_array}
    arguments = {
        p.name: _as_spec(value) if p.name in tensors else value
        for p, value in zip(prototype.arguments, values, strict=True)
    }

    def convert(value: Any, entry: int | None = None) -> Any:
        """Return a result, or an entry of an array, in the element type that the standard infers."""
        dtype = prototype.infer(parameter.name, arguments, entry)
        return value if value is None or dtype is None else convert_to_dtype(jnp.asarray(value), dtype)

    if not parameter.is_tensor_array:
        return convert(result)
    check_entry_count(parameter.c_name, [*prototype.result], result)  # type: ignore[misc]  # a callee-allocated array has a mapping of rules
    return [convert(value, entry) for entry, value in enumerate(result)]


def _as_spec(value: Any) -> Any:
    """Return the spec of a traced tensor, or of each entry of an array."""
    if isinstance(value, list | tuple):
        return [_as_spec(entry) for entry in value]
    return value if value is None else ResultSpec(value.shape, from_numpy(value.dtype))


def _spec_key(spec: OutSpec) -> Hashable:
    """Return the properties of a result spec that a program depends on, as a key that hashes quickly."""
    if isinstance(spec, ResultSpec):
        return spec.shape, spec.dtype
    return None if spec is None else tuple([_spec_key(entry) for entry in spec])


def _to_host(result: Any) -> Any:
    """Return a result, or each entry of a list, as a NumPy array."""
    if isinstance(result, list):
        return [np.asarray(entry) for entry in result]
    return None if result is None else np.asarray(result)

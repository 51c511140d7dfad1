"""How jax_cpu runs a functional implementation: compiled once for each combination of attributes and shapes.

Arrays are traced, attributes are constants of the program. Half-precision arrays are computed in float32 and every
result is rounded once, to the element type of the caller's tensor.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from diopi_impl.functional import (
    Adapted,
    OutSpec,
    ResultSpec,
    as_results,
    check_number,
    check_shape,
    out_keyword,
    wants_out,
)
from diopi_proto.dtypes import half
from diopi_proto.prototype import Prototype
from lib_rt.dtypes import to_numpy

PROGRAM_LIMIT = int(os.environ.get("DIOPI_JAX_PROGRAMS", "32"))
"""Compiled programs kept at a time: each takes one to two megabytes, so memory stays flat however many cases run."""

_HALF = tuple(to_numpy(dtype) for dtype in half)


class ProgramCache:
    """Compiled programs by (function, attributes, result types, argument types); all are dropped when it is full."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._programs: dict[Any, Any] = {}

    def get(self, key: Any, arrays: Any, build: Callable[[], Callable[..., Any]]) -> Any:
        """The program for `key` and arrays of these shapes and types, built when there is none."""
        full_key = (key, _signature(arrays))
        program = self._programs.get(full_key)
        if program is None:
            if len(self._programs) >= self._limit:
                self._programs.clear()
                jax.clear_caches()
            program = self._programs[full_key] = jax.jit(build())
        return program


def _signature(arrays: Any) -> Any:
    if isinstance(arrays, list):
        return tuple(_signature(array) for array in arrays)
    return (arrays.shape, arrays.dtype) if isinstance(arrays, np.ndarray) else type(arrays)


_programs = ProgramCache(PROGRAM_LIMIT)


def compiled(prototype: Prototype, function: Callable[..., Any], *, traced: Sequence[str] = ()) -> Adapted:
    """The adapter of jax_cpu: jit compilation; `traced` names numbers that are inputs of the program as arrays are."""
    takes_out = wants_out(function)
    is_traced = [p.is_tensor or p.is_tensor_array or p.name in traced for p in prototype.arguments]

    def body(attributes: Sequence[Any], out: Sequence[OutSpec], arrays: Sequence[Any]) -> list[Any]:
        arrays_left, attributes_left = iter(arrays), iter(attributes)
        arguments = [_widen(next(arrays_left)) if flag else next(attributes_left) for flag in is_traced]
        keywords = {"out": out_keyword(prototype, out)} if takes_out else {}
        results = as_results(prototype, function(*arguments, **keywords))
        return [_convert(result, spec) for result, spec in zip(results, out, strict=True)]

    def adapted(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        arrays = [value for value, flag in zip(arguments, is_traced, strict=True) if flag]
        attributes = [value for value, flag in zip(arguments, is_traced, strict=True) if not flag]
        key = (function, repr(attributes), tuple(out))  # repr tells 1, 1.0, True, 0.0 and -0.0 apart, which == does not
        program = _programs.get(key, arrays, lambda: partial(body, attributes, out))
        return [_to_host(result) for result in program(arrays)]

    return adapted


def _widen(value: Any) -> Any:
    """Half precision as float32; everything else unchanged."""
    if isinstance(value, list):
        return [_widen(entry) for entry in value]
    return value.astype(jnp.float32) if value is not None and value.dtype in _HALF else value


def _convert(result: Any, spec: OutSpec) -> Any:
    """A result in the element type of its tensor; ValueError, before anything is compiled, if it has another shape."""
    if spec is None or result is None:
        return result
    if isinstance(spec, ResultSpec):
        array = jnp.asarray(result)
        check_shape(spec.name, spec.shape, array.shape)
        return array.astype(to_numpy(spec.dtype))
    check_number(spec[0].name if spec else "", spec, result)
    return [_convert(one, its_spec) for one, its_spec in zip(result, spec, strict=True)]


def _to_host(result: Any) -> Any:
    if isinstance(result, list):
        return [np.asarray(one) for one in result]
    return None if result is None else np.asarray(result)

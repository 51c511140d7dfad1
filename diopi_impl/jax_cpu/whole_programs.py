"""Compile sequences of calls of standard functions as single programs of XLA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from diopi_impl.functional import Adapted
from diopi_impl.jax_cpu.jit import CheckedOnHost, Compiled, Shortcut, compile_and_store
from diopi_impl.jax_cpu.large_results import LargeResultImplementation
from diopi_impl.jax_cpu.positions import PreparedOnHost
from diopi_impl.program import FunctionProgram, FunctionStep, RearrangeStep, RunProgram, replace_arrays
from diopi_proto.interface import lookup

HostArray = NDArray[Any]
"""An array of NumPy, which the host can read."""


def find_compiled(adapted: Adapted | None) -> Compiled | None:
    """Return the part of an adapted implementation that XLA compiles; None if there is none."""
    if isinstance(adapted, CheckedOnHost | PreparedOnHost):
        return find_compiled(adapted.adapted)
    if isinstance(adapted, LargeResultImplementation | Shortcut):
        return adapted.compiled
    return adapted if isinstance(adapted, Compiled) else None


def compile_program(program: FunctionProgram, implementations: Mapping[str, Adapted]) -> RunProgram:
    """Return a function that runs a program; the first call compiles it.

    Args:
        program: the program.
        implementations: the adapted implementations by function.

    Returns:
        The function. Inputs have the same shapes and types in all calls.
    """
    prepared = [
        (step, implementation)
        for step in program.steps
        if isinstance(step, FunctionStep)
        and isinstance(implementation := implementations[step.function], PreparedOnHost)
    ]

    def compute(operands: Sequence[Sequence[Array]]) -> list[Array]:
        """Return the outputs of the program for the traced inputs and the arrays of each prepared call."""
        arrays = {id(step): values for (step, _), values in zip(prepared, operands[1:], strict=True)}

        def call(step: FunctionStep, arguments: Sequence[Any]) -> Sequence[Any]:
            """Return the results of a function."""
            if id(step) in arrays:
                left = iter(arrays[id(step)])
                arguments = [next(left) if hasattr(value, "dtype") else value for value in arguments]
            return _compute(step, implementations[step.function], arguments)

        return program.run(operands[0], call, _rearrange)

    run = compile_and_store(compute, f"program {_digest(program)}")

    def run_with_arrays(arrays: Sequence[HostArray]) -> Sequence[HostArray]:
        """Prepare the arguments of calls that need it, run the program and return the outputs as NumPy arrays."""
        calls = [_prepare(program, step, implementation, arrays) for step, implementation in prepared]
        return [np.asarray(result) for result in run([list(arrays), *calls])]

    return run_with_arrays


def _digest(program: FunctionProgram) -> str:
    """Return a digest of a program, including all elements of its constants, which the text of an array abbreviates."""
    digest = sha256(repr(replace(program, constants={})).encode())
    for number, constant in sorted(program.constants.items()):
        digest.update(repr((number, constant.shape, constant.dtype)).encode() + constant.tobytes())
    return digest.hexdigest()


def _prepare(
    program: FunctionProgram, step: FunctionStep, implementation: PreparedOnHost, inputs: Sequence[HostArray]
) -> list[HostArray]:
    """Return the arrays among the prepared arguments of a call, whose arrays are inputs or constants."""
    arguments = replace_arrays(step.arguments, {**program.constants, **dict(enumerate(inputs))})
    return [value for value in implementation.prepare_arguments(arguments) if isinstance(value, np.ndarray)]


def _compute(step: FunctionStep, adapted: Adapted, arguments: Sequence[Any]) -> Sequence[Any]:
    """Return the results of a function for traced arrays."""
    if isinstance(adapted, CheckedOnHost):
        adapted.check(*arguments)
    values = [
        jnp.asarray(value) if parameter.is_tensor and isinstance(value, bool | int | float) else value
        for parameter, value in zip(lookup(step.function).arguments, arguments, strict=True)
    ]
    compiled = find_compiled(adapted)
    assert compiled is not None  # `can_compile` is true for all functions of a program
    return compiled.compute(values, step.specs)


def _rearrange(step: RearrangeStep, array: Any) -> Array:
    """Return the reshaped and permuted array."""
    return jnp.transpose(jnp.reshape(array, step.shape), step.axes)

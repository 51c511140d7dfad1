"""Serialization of compiled programs: JSON that describes the arguments and results, and XLA's executable.

JAX's public functions for this purpose use pickle. This module uses the same parts of JAX without it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax._src import core, stages
from jax._src.interpreters import pxla
from jaxlib import xla_client

_LENGTH_BYTES = 4
"""The number of bytes of the length of the header at the beginning of a serialized program."""


class SerializationError(Exception):
    """A program can't be serialized; the message says why."""


def serialize_program(program: Any, lowered: jax.stages.Lowered) -> bytes:
    """Serialize a program of one CPU device.

    Args:
        program: the compiled program, a `jax.stages.Compiled`.
        lowered: the program before its compilation.

    Returns:
        The serialized program.

    Raises:
        SerializationError: if a process that has not lowered the program can't run it: the program calls functions of
            libraries, which JAX registers when it lowers a program, or it refers to arrays outside of it.
    """
    executable = program._executable._unloaded_executable
    references = program._params.const_args or executable.mut or executable.keepalive or executable.host_callbacks
    if references or executable.ordered_effects or executable.unordered_effects or _calls_libraries(lowered):
        raise SerializationError("the program refers to arrays or functions outside of it")
    structure = jax.tree.unflatten(program.out_tree, range(program.out_tree.num_leaves))
    description = {
        "arguments": [_describe(argument) for argument in jax.tree.leaves(lowered.in_avals)],
        "read": sorted(executable.kept_var_idx),
        "results": [_describe(result) for result in executable.output_avals],
        "structure": structure,
    }
    header = json.dumps(description).encode()
    if program.out_tree != jax.tree.structure(json.loads(header)["structure"]):
        raise SerializationError("the results are nested in other ways than lists")
    code = executable.backend.serialize_executable(executable.xla_executable)
    return len(header).to_bytes(_LENGTH_BYTES, "big") + header + code


def deserialize_program(content: bytes, arrays: Any) -> tuple[jax.stages.Compiled, Sequence[Any]]:
    """Load a serialized program into this process, on its first CPU device.

    Args:
        content: the serialized program. It contains machine code.
        arrays: the arguments of a call, nested as in all calls of the program.

    Returns:
        The program, and the abstract values of its arguments.
    """
    start = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "big")
    description = json.loads(content[_LENGTH_BYTES:start])
    arguments, results = ([_abstract(*entry) for entry in description[kind]] for kind in ("arguments", "results"))
    tree = jax.tree.structure(((arrays,), {}))
    executable = _load(content[start:], [arguments[i] for i in description["read"]], results, description["read"])
    infos = jax.tree.unflatten(tree, [stages.ArgInfo(argument, donated=False) for argument in arguments])
    program = jax.stages.Compiled(executable, [], infos, jax.tree.structure(description["structure"]))
    return program, arguments


def _load(code: bytes, arguments: Sequence[Any], results: Sequence[Any], read: Sequence[int]) -> Any:
    """Return an executable on the first CPU device for the arguments that the program reads."""
    device = jax.devices("cpu")[0]
    devices = xla_client.DeviceList((device,))
    sharding = jax.sharding.SingleDeviceSharding(device)
    return pxla.UnloadedMeshExecutable(
        xla_executable=device.client.deserialize_executable(code, executable_devices=devices),
        device_list=devices,
        backend=device.client,
        input_avals=arguments,
        input_shardings=[sharding] * len(arguments),
        output_avals=results,
        output_shardings=[sharding] * len(results),
        committed=False,
        name="stored program",
        unordered_effects=[],
        ordered_effects=[],
        keepalive=[],
        host_callbacks=[],
        kept_var_idx=set(read),
        mut=None,
        xla_in_layouts=[None] * len(arguments),
        dispatch_in_layouts=[None] * len(arguments),
        xla_out_layouts=[None] * len(results),
        all_args_info=None,
        pgle_profiler=None,
    ).load()


def _calls_libraries(lowered: jax.stages.Lowered) -> bool:
    """Return whether a program calls functions that are not part of XLA, for example of LAPACK."""
    return "custom_call" in lowered.as_text()


def _describe(value: Any) -> Sequence[Any]:
    """Return the shape, the element type and the weakness of the type of an abstract value."""
    return [list(value.shape), str(value.dtype), bool(value.weak_type)]


def _abstract(shape: Sequence[int], dtype: str, weak: bool) -> Any:
    """Return the abstract value with this shape and element type."""
    return core.ShapedArray(tuple(shape), jnp.dtype(dtype), weak_type=weak)

"""`compile`: create an engine from a JAX function, or from a module or exported program of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from diopi_engine.batch_rules import Dependence
from diopi_engine.container import sha256
from diopi_engine.engine import Engine
from diopi_engine.errors import CompileError, EngineFileError
from diopi_engine.independence import prove_independence
from diopi_engine.manifest import (
    COMPILER,
    DTYPES,
    FORMAT,
    LAYOUTS,
    MAX_CORES,
    MODES,
    Binding,
    Control,
    EngineManifest,
    Weight,
)
from diopi_engine.network import input_types
from diopi_engine.proto.hgrt import MAX_DIMS
from diopi_engine.sizes import Array, numpy_type, sample_bytes
from diopi_engine.verification import record_network

BATCH = "b"
"""Represents the size of the batch in the shape of an input."""

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
"""JAX's names of the platforms that networks are lowered for by default."""


@final
@dataclass(frozen=True)
class Input:
    """The description of an input of a network to be compiled.

    Attributes:
        name: the name of the input.
        shape: the sizes; the first one may be `BATCH`, in all inputs or in none.
        dtype: the element type, by its name in NumPy.
        layout: the meaning of the axes: `LINEAR`, `NCHW` or `NHWC`.
    """

    name: str
    shape: tuple[int | str, ...]
    _: KW_ONLY
    dtype: str = "float32"
    layout: str = "LINEAR"


@final
@dataclass(frozen=True)
class TracedFunction:
    """A network as a JAX function, with its weights, ready to be traced.

    Attributes:
        function: the function of the weights and the inputs; its results are a flat sequence.
        weights: the weights by name.
        wide: whether JAX traces it with 64-bit element types.
    """

    function: Callable[..., Sequence[Any]]
    weights: Mapping[str, Any]
    wide: bool


def compile(
    network: Any,
    inputs: Sequence[Input],
    *,
    weights: Any = None,
    outputs: Sequence[str] = (),
    name: str = "engine",
    max_batch: int = 64,
    patch: int = 8,
    mode: str = "normal",
    cores: int = 1,
    platforms: Sequence[str] = PLATFORMS,
) -> Engine:
    """Compile a network to an engine that forms a group by itself.

    Args:
        network: a JAX function of the weights, if there are any, and the inputs; a `torch.nn.Module` in the mode in
            which it will run; or a result of `torch.export.export`. Results may be nested.
        inputs: the inputs in the order of the arguments.
        weights: the weights of a JAX function, nested as its argument.
        outputs: the names of the results, in order; the default is `output0` and so on.
        name: the name of the engine.
        max_batch: the largest batch of one execution.
        patch: the largest part of a batch that is computed at a time, if the samples are proved to be independent;
            otherwise a batch is computed as a whole.
        mode: `normal`: each core computes separate patches; `weight_split`: all cores compute one patch together.
        cores: the number of cores that the engine runs on.
        platforms: the platforms that the network is lowered for.

    Returns:
        The engine.

    Raises CompileError if the network can't be compiled: a function depends on the value of the batch size, samples
    of a batch depend on one another, or an operator is not supported.
    """
    _check_arguments(inputs, mode, cores)
    traced = _to_jax_function(network, weights, inputs)
    arrays = {key: _weight_array(key, value) for key, value in traced.weights.items()}
    exported, dependences = _export_network(traced, inputs, list(arrays.values()), platforms)
    bindings = _describe_bindings(inputs, outputs, exported)
    batch = _divide_batch(inputs, bindings, dependences, max_batch, patch)
    parts = _cores_per_batch(mode, cores)
    memory = _required_memory(exported, list(arrays.values()), bindings, batch.patch, parts)
    control = _describe_control(name, mode, cores, memory)
    engine = _assemble_engine(bytes(exported.serialize()), arrays, bindings, batch, platforms, control)
    if not batch.is_divisible:
        _check_samples(engine)
    record_network(engine.manifest, engine.network)
    return _read_back(engine)


def _read_back(engine: Engine) -> Engine:
    """Return the engine as its file contains it; raise CompileError for names and sizes that a file can't contain."""
    try:
        return Engine.from_bytes(engine.to_bytes())
    except EngineFileError as error:
        raise CompileError(str(error)) from error


@final
@dataclass(frozen=True, kw_only=True)
class BatchDivision:
    """How an engine computes a batch.

    Attributes:
        size: the largest batch of one execution.
        patch: the largest part of a batch that is computed at a time.
        is_divisible: whether the samples are proved to be independent.
    """

    size: int
    patch: int
    is_divisible: bool


def _divide_batch(
    inputs: Sequence[Input],
    bindings: Sequence[Binding],
    dependences: Sequence[Dependence],
    max_batch: int,
    patch: int,
) -> BatchDivision:
    """Return how an engine computes a batch. A batch whose samples may depend on one another has a single patch.

    Args:
        inputs: the inputs of the network.
        bindings: the inputs and outputs of the engine.
        dependences: how the outputs depend on the samples.
        max_batch: the largest batch of one execution; 1 for networks whose inputs have no batch.
        patch: the largest part of a batch that is computed at a time.

    Returns:
        The division of the batch.
    """
    has_batch = any(BATCH in binding.shape for binding in inputs)
    is_divisible = not has_batch or _is_divisible(bindings, dependences)
    size = max_batch if has_batch else 1
    return BatchDivision(size=size, patch=min(patch, size) if is_divisible else size, is_divisible=is_divisible)


def _cores_per_batch(mode: str, cores: int) -> int:
    """Return the number of cores that compute one patch together."""
    return cores if mode == "weight_split" else 1


def _describe_control(name: str, mode: str, cores: int, memory: int) -> Control:
    """Return the control section of an engine that forms a group by itself and needs this memory per core in bytes."""
    return Control(
        name=name,
        virtual_device=0,
        memory_group=0,
        mode=mode,
        cores_per_batch=_cores_per_batch(mode, cores),
        core_mask=(1 << cores) - 1,
        memory=memory,
    )


def _assemble_engine(
    network: bytes,
    weights: Mapping[str, Array],
    bindings: Sequence[Binding],
    batch: BatchDivision,
    platforms: Sequence[str],
    control: Control,
) -> Engine:
    """Return an engine that is the only one of its group.

    Args:
        network: The serialized network. The name of the group is a digest of the network and the weights.
        weights: The weights by name.
        bindings: The inputs and outputs.
        batch: The sizes of batches and patches.
        platforms: The platforms for which the network is lowered.
        control: How the engine uses the cores of a device.
    """
    manifest = EngineManifest(
        format=FORMAT,
        compiler=COMPILER,
        name=control.name,
        bindings=tuple(bindings),
        max_batch=batch.size,
        patch=batch.patch,
        is_divisible=batch.is_divisible,
        platforms=tuple(platforms),
        group=sha256(network + b"".join(sha256(array.tobytes()).encode() for array in weights.values())),
        engine=0,
        scheme=(control,),
        weights=tuple(Weight(name, str(array.dtype), array.shape) for name, array in weights.items()),
        members={},
    )
    return Engine(manifest, network, [*weights.values()])


def _check_arguments(inputs: Sequence[Input], mode: str, cores: int) -> None:
    """Raise CompileError if the inputs, the mode or the number of cores of a compilation are invalid."""
    for binding in inputs:
        sizes = binding.shape[1:] if binding.shape[:1] == (BATCH,) else binding.shape
        if len(binding.shape) > MAX_DIMS or not all(isinstance(size, int) and size >= 0 for size in sizes):
            raise CompileError(
                f"input {binding.name} has shape {binding.shape}, expected sizes; only the first may be {BATCH!r}"
            )
        if binding.dtype not in DTYPES or binding.layout not in LAYOUTS:
            raise CompileError(
                f"input {binding.name} is {binding.dtype} in layout {binding.layout}, "
                f"expected a type of {', '.join(DTYPES)} "
                f"and a layout of {', '.join(LAYOUTS)}"
            )
        if binding.layout != "LINEAR" and len(binding.shape) != 4:
            raise CompileError(
                f"input {binding.name} has layout {binding.layout} and {len(binding.shape)} axes, expected 4"
            )
    if len({binding.shape[:1] == (BATCH,) for binding in inputs}) != 1:
        raise CompileError(f"either all inputs have the batch {BATCH!r} as first size, or none has")
    if len({binding.name for binding in inputs}) != len(inputs):
        raise CompileError(f"inputs have the same name: {', '.join(binding.name for binding in inputs)}")
    if mode not in MODES or not 1 <= cores <= MAX_CORES:
        raise CompileError(f"mode {mode!r} on {cores} cores, expected one of {', '.join(MODES)} on 1 to {MAX_CORES}")


def _to_jax_function(network: Any, weights: Any, inputs: Sequence[Input]) -> TracedFunction:
    """Return a JAX function or a PyTorch module as a function whose weights and results are flat sequences.

    Raises:
        CompileError: `weights` are passed with a PyTorch module, which contains its weights.
    """
    if type(network).__module__.startswith("torch.") or hasattr(network, "state_dict"):
        from diopi_engine.aten.program import convert_program  # which needs PyTorch

        if weights is not None:
            raise CompileError("a PyTorch module contains its weights; omit the argument `weights`")
        return TracedFunction(
            *convert_program(network, [(binding.shape, binding.dtype) for binding in inputs]), wide=True
        )
    leaves, tree = jax.tree_util.tree_flatten_with_path(weights)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") or "weight" for path, _ in leaves]

    def function(*arguments: Any) -> Sequence[Any]:
        """Call the network with the flat weights, nested again, and return its results as a flat list."""
        weight_arguments = [] if weights is None else [jax.tree.unflatten(tree, arguments[: len(names)])]
        return jax.tree.leaves(network(*weight_arguments, *arguments[len(names) :]))

    arrays = dict(zip(names, (leaf for _, leaf in leaves), strict=True))
    types = [*(str(jnp.result_type(leaf)) for leaf in arrays.values()), *(binding.dtype for binding in inputs)]
    wide = jax.dtypes.canonicalize_dtype("int64") == np.int64 or any(dtype.endswith("64") for dtype in types)
    return TracedFunction(function, arrays, wide)


def _weight_array(name: str, value: Any) -> Array:
    """Return a weight as a contiguous NumPy array; raise CompileError if its element type is unsupported."""
    array = np.ascontiguousarray(value).reshape(np.shape(value))
    if str(array.dtype) not in DTYPES:
        raise CompileError(f"weight {name} is {array.dtype}, expected one of {', '.join(DTYPES)}")
    return array


@contextmanager
def _without_source_locations() -> Iterator[None]:
    """Return a context manager in which JAX omits source files and calling functions.

    Engines then depend neither on folders nor on the caller.
    """
    options = {"jax_hlo_source_file_canonicalization_regex": ".*", "jax_traceback_in_locations_limit": 0}
    former = {name: getattr(jax.config, name) for name in options}
    try:
        for name, value in options.items():
            jax.config.update(name, value)
        yield
    finally:
        for name, value in former.items():
            jax.config.update(name, value)


def _export_network(
    network: TracedFunction, inputs: Sequence[Input], weights: Sequence[Any], platforms: Sequence[str]
) -> tuple[export.Exported, Sequence[Dependence]]:
    """Return the lowered network, and how its outputs depend on the samples of a batch.

    Raises:
        CompileError: The network fails for the shapes and types of the inputs, or JAX can't export it.
    """
    scope = export.SymbolicScope()
    sizes = [", ".join(map(str, binding.shape)) for binding in inputs]
    types = [numpy_type(binding.dtype) for binding in inputs]
    with jax.enable_x64(network.wide):
        argument_types = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in weights]
        shapes = [export.symbolic_shape(text, scope=scope) for text in sizes]
        argument_types += [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in zip(shapes, types, strict=True)]
        try:
            function = jax.jit(network.function)
            with _without_source_locations():
                exported = export.export(function, platforms=list(platforms))(*argument_types)
            return exported, prove_independence(function.trace(*argument_types).jaxpr, len(weights))
        except CompileError:
            raise
        except Exception as error:  # whatever the function raises, and JAX for what can't be exported
            raise CompileError(f"the network can't be compiled: {error}") from error


def _describe_bindings(inputs: Sequence[Input], names: Sequence[str], exported: export.Exported) -> tuple[Binding, ...]:
    """Return the bindings of the inputs, followed by those of the exported network's outputs.

    Args:
        inputs: The inputs.
        names: The names of the outputs; empty for `output0`, `output1`, ….
        exported: The exported network.

    Raises:
        CompileError: The number of names is not the number of outputs.
    """
    names = names or [f"output{n}" for n in range(len(exported.out_avals))]
    if len(names) != len(exported.out_avals):
        raise CompileError(f"{len(names)} outputs are named, the network has {len(exported.out_avals)}")
    input_bindings = tuple(
        Binding(
            name=binding.name,
            is_input=True,
            dtype=binding.dtype,
            layout=binding.layout,
            shape=tuple(None if size == BATCH else int(size) for size in binding.shape),
        )
        for binding in inputs
    )
    has_batch = any(None in specification.shape for specification in input_bindings)
    return input_bindings + tuple(
        _describe_output(name, aval, has_batch) for name, aval in zip(names, exported.out_avals, strict=True)
    )


def _describe_output(name: str, aval: Any, has_batch: bool) -> Binding:
    """Return the binding of an output.

    Args:
        name: The name of the output.
        aval: Its abstract value in JAX: the shape and element type.
        has_batch: Whether its first size is that of the batch.

    Raises:
        CompileError: no binding can represent the output
    """
    sizes = aval.shape[1:] if has_batch else aval.shape
    if not all(isinstance(size, int) for size in sizes) or (has_batch and str(aval.shape[:1]) != f"({BATCH},)"):
        raise CompileError(f"output {name} has shape {aval.shape}, expected the batch as first size and nowhere else")
    if str(aval.dtype) not in DTYPES or len(aval.shape) > MAX_DIMS:
        raise CompileError(f"output {name} is {aval.dtype}{list(aval.shape)}, which no binding can be")
    return Binding(
        name=name,
        is_input=False,
        dtype=str(aval.dtype),
        layout="LINEAR",
        shape=((None,) if has_batch else ()) + tuple(map(int, sizes)),
    )


def _is_divisible(bindings: Sequence[Binding], dependences: Sequence[Dependence]) -> bool:
    """Return whether the samples of all outputs are proved to be independent.

    Args:
        bindings: the inputs and outputs.
        dependences: how the outputs depend on the samples.

    Returns:
        Whether a batch may be computed in parts.

    Raises:
        CompileError: if an operation certainly mixes samples.
    """
    outputs = [binding for binding in bindings if not binding.is_input]
    for output, dependence in zip(outputs, dependences, strict=True):
        if dependence.is_certain:
            raise CompileError(
                f"output {output.name} of a sample depends on other samples of its batch: {dependence.reason}; "
                "compile the network for inputs of a fixed size"
            )
    return all(dependence.is_independent for dependence in dependences)


def _required_memory(
    exported: export.Exported, weights: Sequence[Any], bindings: Sequence[Binding], patch: int, parts: int
) -> int:
    """Return the bytes of local memory that each core needs: its part of the weights, and the data of a patch.

    Args:
        exported: The exported network.
        weights: The weights.
        bindings: The inputs and outputs.
        patch: The number of samples of a patch, the part of a batch that is computed at a time.
        parts: The number of cores over which the weights are split.
    """
    with jax.enable_x64(True):
        types = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in weights]
        types += input_types([binding for binding in bindings if binding.is_input], patch)
        analysis = jax.jit(exported.call).lower(*types).compile().memory_analysis()
    temporary = int(analysis.temp_size_in_bytes) if analysis is not None else 0
    return -(-sum(array.nbytes for array in weights) // parts) + patch * sum(map(sample_bytes, bindings)) + temporary


def _check_samples(engine: Engine) -> None:
    """Check that the results of a sample do not depend on other samples, where independence was not proved.

    The second sample becomes NaN, which must not change the results of the first one.

    Args:
        engine: the engine.

    Raises:
        CompileError: if samples depend on one another.
    """
    floating = [jnp.issubdtype(numpy_type(binding.dtype), jnp.floating) for binding in engine.manifest.inputs]
    if not any(floating):
        return
    plain = [np.zeros([2, *binding.shape[1:]], numpy_type(binding.dtype)) for binding in engine.manifest.inputs]  # type: ignore[list-item]  # the batch is the first size alone
    changed = [array.copy() for array in plain]
    for array in (array for array, is_floating in zip(changed, floating, strict=True) if is_floating):
        array[1] = np.nan
    results = zip(engine.manifest.outputs, engine(*plain), engine(*changed), strict=True)
    for output, expected, actual in results:
        if not np.array_equal(expected[0], actual[0], equal_nan=expected.dtype.kind in "fV"):
            raise CompileError(f"output {output.name} of a sample depends on other samples of its batch")

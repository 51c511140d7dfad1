"""Convert a PyTorch module or exported program to a JAX function and its weights."""

from __future__ import annotations

import operator as python_operators
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import torch
from jax import Array
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from diopi_engine.aten import layers, movement, operators  # noqa: F401 - the import registers their operators
from diopi_engine.aten.table import OPERATORS
from diopi_engine.errors import CompileError

TRACED_BATCH = 2
"""Batch size for tracing a module; PyTorch would treat a batch of 1 as a fixed size."""

_SIZE_FUNCTIONS = {
    getattr(python_operators, name) for name in ("add", "sub", "mul", "floordiv", "mod", "neg", "pow", "getitem")
}
"""Python functions in a graph: they compute with sizes and unpack results."""

_ASSERTIONS = ("_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range_for_size", "sym_constrain_range")
"""Operators that check assumptions of the trace. They are skipped, because only the batch size can differ."""


def convert_program(
    network: Any, inputs: Sequence[tuple[tuple[Any, ...], str]]
) -> tuple[Any, Mapping[str, np.ndarray[Any, Any]]]:
    """Convert a network to a JAX function and the weights of the network.

    Args:
        network: a `torch.nn.Module` or `ExportedProgram`.
        inputs: shape and element type of each input; a size that is not an int stands for the batch size.

    Returns:
        The function, which takes the weights in the order of the mapping and then the inputs; and the weights by name.

    Raises:
        CompileError: if PyTorch can't export the network, or an operator is not supported.
    """
    program = network if isinstance(network, ExportedProgram) else _export_module(network, inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns about its own internals
        program = program.run_decompositions()
    _remove_identity_views(program.graph_module.graph)
    if lacking := sorted(
        {_operator_name(node) for node in _operator_nodes(program)} - set(OPERATORS) - set(_ASSERTIONS)
    ):
        raise CompileError(f"the network uses operators that are not supported: {', '.join(lacking)}")
    names = [spec.arg.name for spec in program.graph_signature.input_specs]
    weights = _collect_weights(program)
    order = [names.index(name) for name in weights] + [
        n for n, spec in enumerate(program.graph_signature.input_specs) if spec.kind is InputKind.USER_INPUT
    ]
    targets = {spec.arg.name: str(spec.target) for spec in program.graph_signature.input_specs}

    def function(*arguments: Any) -> list[Array]:
        """Run the exported program with the weights and inputs in the order of the mapping."""
        return _interpret(program, {names[place]: value for place, value in zip(order, arguments, strict=True)})

    return function, {targets[name]: array for name, array in weights.items()}


def _export_module(module: torch.nn.Module, inputs: Sequence[tuple[tuple[Any, ...], str]]) -> ExportedProgram:
    """Return the exported program of a module, traced with a dynamic batch size; raise CompileError if that fails."""
    shapes = [tuple(size if isinstance(size, int) else TRACED_BATCH for size in shape) for shape, _ in inputs]
    examples = tuple(
        torch.zeros(shape, dtype=getattr(torch, dtype)) for shape, (_, dtype) in zip(shapes, inputs, strict=True)
    )
    dynamic = tuple(
        {n: Dim.DYNAMIC for n, size in enumerate(shape) if not isinstance(size, int)} for shape, _ in inputs
    )
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # PyTorch warns about its own internals
            return torch.export.export(module, examples, dynamic_shapes=dynamic)
    except Exception as error:  # whatever the module raises, and PyTorch for what can't be exported
        raise CompileError(f"PyTorch can't export the module: {error}") from error


def _remove_identity_views(graph: torch.fx.Graph) -> None:
    """Remove nodes that only request the strides that a tensor already has; JAX arrays have no strides."""
    for node in graph.nodes:
        if node.op == "call_function" and node.target is torch.ops.aten.as_strided.default:
            source = node.args[0]
            if _strided_layout(node) == _strided_layout(source):
                node.replace_all_uses_with(source)
    graph.eliminate_dead_code()


def _strided_layout(node: Any) -> tuple[str, list[tuple[str, str]]]:
    """Return the storage offset of a node's tensor, and the size and stride of each axis that is longer than 1."""
    value = node.meta["val"]
    axes = zip(value.shape, value.stride(), strict=True)
    return str(value.storage_offset()), [(str(size), str(stride)) for size, stride in axes if str(size) != "1"]


def _collect_weights(program: ExportedProgram) -> dict[str, np.ndarray[Any, Any]]:
    """Return the parameters, buffers and constants that the graph uses, by the name of their graph node."""
    used_names = {node.name for node in program.graph.nodes if node.op == "placeholder" and node.users}
    tensors = {**program.state_dict, **program.constants}
    specs = program.graph_signature.input_specs
    kinds = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
    return {
        spec.arg.name: _to_numpy(tensors[spec.target])
        for spec in specs
        if spec.kind in kinds and spec.arg.name in used_names
    }


def _to_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return a copy of a tensor in NumPy; bfloat16 has the type of ml_dtypes."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.uint16).numpy().copy().view(ml_dtypes.bfloat16)
    return tensor.numpy().copy()


def _operator_nodes(program: ExportedProgram) -> list[Any]:
    """Return the nodes that call ATen operators; raise CompileError if a node calls anything but size functions."""
    nodes = [node for node in program.graph.nodes if node.op == "call_function" and node.target not in _SIZE_FUNCTIONS]
    if unsupported := [str(node.target) for node in nodes if not isinstance(node.target, torch._ops.OpOverload)]:
        raise CompileError(f"the network calls {', '.join(unsupported)}, which is not an ATen operator")
    return nodes


def _operator_name(node: Any) -> str:
    """Return the operator that a node calls, by its name in the table."""
    return str(node.target._name).removeprefix("aten::")


def _interpret(program: ExportedProgram, values: dict[str, Any]) -> list[Array]:
    """Run the graph and return its outputs.

    Args:
        program: the network.
        values: the arrays by the names of placeholders; receives the values of all other nodes.

    Returns:
        The outputs of the user's network.

    Raises:
        CompileError: if the network changes its buffers, or an operator fails.
    """
    mutated = {
        spec.arg.name for spec in program.graph_signature.output_specs if spec.kind is not OutputKind.USER_OUTPUT
    }
    if mutated:
        raise CompileError(f"the network changes {', '.join(sorted(mutated))}: call `eval()` on it before compiling")

    def substitute(value: Any) -> Any:
        """Replace the graph nodes in an argument by their values."""
        return torch.fx.node.map_arg(value, lambda node: values[node.name])

    for node in program.graph.nodes:
        if node.op == "call_function":
            values[node.name] = _call_operator(node, substitute(node.args), substitute(node.kwargs))
    output = next(node for node in program.graph.nodes if node.op == "output")
    return [jnp.asarray(result) for result in substitute(output.args[0])]


def _call_operator(node: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Return the result of a call node: size arithmetic, an assertion (skipped), or an operator of the table.

    Raises:
        CompileError: The operator fails.
    """
    if node.target in _SIZE_FUNCTIONS:
        return node.target(*arguments)
    name = _operator_name(node)
    if name in _ASSERTIONS:
        return None
    try:
        result = OPERATORS[name](*arguments, **named)
    except Exception as error:  # whatever JAX raises for it
        raise CompileError(f"{name} in {node.name}: {error}") from error
    return _cast_results(result, node.meta.get("val"))


def _cast_results(result: Any, example: Any) -> Any:
    """Return results in the element types that the traced example values have."""
    if isinstance(example, list | tuple):
        return [_cast_results(actual, expected) for actual, expected in zip(result, example, strict=True)]
    if result is None or not isinstance(example, torch.Tensor):
        return result
    return jnp.asarray(result).astype(str(example.dtype).removeprefix("torch."))

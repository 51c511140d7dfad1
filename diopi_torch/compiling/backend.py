"""The backend `diopi` of `torch.compile`, which PyTorch calls with the graph of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, final

import torch
from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

import diopi_torch
from diopi_impl.program_folder import store_programs
from diopi_proto.aten.table import find_row
from diopi_torch import dump
from diopi_torch.backend import backend, selected_vendor
from diopi_torch.compiling.stages import Environment, Stage, divide
from diopi_torch.fallback import fall_back, operator_name
from diopi_torch.functions import watches
from diopi_torch.observing import is_observing
from diopi_torch.operators import overload
from diopi_torch.registration import forced_operators, operator_names, select_kernels
from diopi_torch.sdpa import ON_CPU


@final
class CompiledGraph:
    """A graph of AOTAutograd that is compiled when it runs for the first time.

    The first call divides the graph into stages and compiles them. If sizes vary between calls, there are stages for
    each combination of sizes.

    Args:
        module: the graph.
    """

    def __init__(self, module: torch.fx.GraphModule) -> None:
        self._module = module
        self._placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._attributes = [node for node in module.graph.nodes if node.op == "get_attr"]
        (self._output,) = (node for node in module.graph.nodes if node.op == "output")
        self._stages: dict[tuple[int, ...], Sequence[Stage]] = {}

    def run(self, arguments: list[Any]) -> Any:
        """Run the graph and return its outputs.

        If something observes the calls of operators, the operators run one by one.

        Args:
            arguments: the tensors and sizes that the graph takes. The list is cleared, so that tensors that are no
                longer needed are released during the run.

        Returns:
            The outputs.
        """
        if _are_operators_observed():
            return torch.fx.Interpreter(self._module).boxed_run(arguments)
        sizes = tuple([argument for argument in arguments if isinstance(argument, int)])
        stages = self._stages.get(sizes)
        if stages is None:
            stages = self._stages[sizes] = self._divide(arguments)
        values: Environment = dict(zip(self._placeholders, arguments, strict=True))
        arguments.clear()
        for node in self._attributes:
            values[node] = getattr(self._module, node.target)
        device = backend()
        for stage in stages:
            stage.run(values, device)
        return torch.fx.node.map_arg(self._output.args[0], values.__getitem__)

    def _divide(self, arguments: Sequence[Any]) -> Sequence[Stage]:
        """Return the stages of the graph for arguments of these sizes."""
        if any(isinstance(argument, int) for argument in arguments):
            FakeTensorProp(self._module).propagate(*arguments)
        return divide(self._module.graph, backend().vendor)


def _are_operators_observed() -> bool:
    """Return whether something receives the call of each operator or function, so that graphs must not be compiled."""
    return bool(watches or dump.KEY in dump.environment or is_observing())


def compile_graph(module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
    """Return a function that runs a graph of AOTAutograd.

    Args:
        module: the graph.
        example_inputs: tensors with the form of its inputs; not used.

    Returns:
        A function of a list of arguments, which it clears; see `CompiledGraph.run`.
    """
    untraced = torch.compiler.disable(CompiledGraph(module).run)

    def run(arguments: list[Any]) -> Any:
        """Return the outputs of the graph."""
        return untraced(arguments)

    run._boxed_call = True  # type: ignore[attr-defined]  # AOTAutograd then passes a list, which `run` may clear
    return run


@cache
def _keep_programs() -> None:
    """Let the vendor store its compiled programs on disk, for this process and later processes."""
    store_programs(backend().vendor, selected_vendor(), diopi_torch.IMPORT_TIME)


@cache
def _exclude_kernels_from_tracing() -> None:
    """Exclude the kernels of the device from tracing by TorchDynamo, which would compile their Python code."""
    skip = _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP)
    for kernel in {*select_kernels(forced_operators()).values(), fall_back}:
        function = kernel.func if isinstance(kernel, partial) else kernel
        code = getattr(function, "__code__", None) or type(function).__call__.__code__
        set_code_exec_strategy(code, skip)


DECOMPOSED = ("constant_pad_nd", "masked_fill.Scalar", "masked_fill.Tensor")
"""Operators that are decomposed although they have a function.

The host would have to read arguments of the function before the program runs.
"""


def decompositions_for_programs() -> dict[Any, Callable[..., Any]]:
    """Return the decompositions of operators that programs can't contain, by operator.

    A decomposition is a function that computes the same by calls of other operators. These operators have no function
    of the standard, work on lists of tensors, are in `DECOMPOSED`, or are variants of attention.
    """
    core = {
        operator: function
        for operator, function in core_aten_decompositions().items()
        if isinstance(operator, torch._ops.OpOverload)
        and (not has_function(operator_name(operator)) or operator_name(operator) in DECOMPOSED)
    }
    attention = {overload(name): function for name, function in ON_CPU.items()}
    lists = {operator: partial(_call_for_entries, operator) for operator in _operators_on_lists()}
    return {**lists, **core, **attention}


def has_function(name: str) -> bool:
    """Return whether the mapping of ATen operators (`diopi_proto.aten`) assigns a function to an operator."""
    row = find_row(name)
    return row is not None and row.calls_functions


def _operators_on_lists() -> Iterator[torch._ops.OpOverload]:
    """Yield the operators on lists, such as `_foreach_add.List`, for which PyTorch has an operator on single tensors.

    Operators that have a function, or that change their arguments, are left out.
    """
    for name in operator_names():
        if name.startswith("_foreach_") and not has_function(name):
            operator = overload(name)
            plain = name.partition(".")[0].removeprefix("_foreach_")
            if not operator._schema.is_mutable and hasattr(torch.ops.aten, plain):
                yield operator


def _call_for_entries(operator: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> list[Any]:
    """Return the results of the operator on single tensors, such as `add` for `_foreach_add`, one per list entry."""
    plain = getattr(torch.ops.aten, operator.overloadpacket.__name__.removeprefix("_foreach_"))
    lists = [value for value in args if isinstance(value, list | tuple)]
    return [
        plain(*[value[entry] if isinstance(value, list | tuple) else value for value in args], **kwargs)
        for entry in range(len(lists[0]))
    ]


@cache
def _compiler() -> Callable[..., Any]:
    """Return the function that traces a graph with AOTAutograd and compiles the results."""
    return aot_autograd(
        fw_compiler=compile_graph,
        bw_compiler=compile_graph,
        decompositions=decompositions_for_programs,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )


def compile_with_vendor(module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
    """Compile a graph of `torch.compile`; this is the backend `diopi`.

    Args:
        module: the graph that TorchDynamo traced.
        example_inputs: tensors with the form of its inputs but without elements.

    Returns:
        A function with the parameters and results of the graph.
    """
    _keep_programs()
    _exclude_kernels_from_tracing()
    return _compiler()(module, example_inputs)

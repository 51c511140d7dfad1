"""Divide a graph into stages: programs that the vendor compiles, and operators that run one at a time.

A program contains as many operators as possible. An operator that no program can contain runs by itself, as it does
without compilation. Operators that draw random numbers or write their arguments keep their order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any, final

import torch

from diopi_impl.base import BaseVendor
from diopi_impl.program import RunProgram
from diopi_proto.aten.mapping import NotMappedError
from diopi_torch.backend import Backend
from diopi_torch.compiling.builder import ArraySlot, ProgramBuilder
from diopi_torch.compiling.conversion import Node, add_node
from diopi_torch.fallback import check_on_cpu, default_arguments, named_arguments, operator_name
from diopi_torch.layout import TensorLayout, layout_of
from diopi_torch.preconditions import CLASS_LOSSES, PRECONDITIONS
from diopi_torch.registration import forced_operators
from diopi_torch.streams import DeviceStream
from diopi_torch.tensors import allocate, is_on_device, materialize, upload
from lib_rt import Tensor

Environment = dict[Node, Any]
"""The values of nodes in one run of a graph."""


@final
@dataclass(frozen=True)
class CheckedOperator:
    """An operator of a program whose arguments must meet a precondition, for example that indices are in range.

    Attributes:
        node: the node that calls the operator.
        placeholders: tensors of zeros in place of the arguments that the program computes. Preconditions read only the
            shape and element type of these arguments. The example tensors of the nodes are not used, because they
            change when the graph is called with other sizes.
    """

    node: Node
    placeholders: Environment

    @classmethod
    def from_node(cls, node: Node, computed: Collection[Node]) -> CheckedOperator:
        """Return the checked operator of a node in a program that computes these nodes."""
        examples = {source: source.meta["val"] for source in node.all_input_nodes if source in computed}
        return cls(node, {source: torch.zeros(e.shape, dtype=e.dtype) for source, e in examples.items()})

    def check(self, values: Environment) -> None:
        """Raise the exception that the operator raises on the CPU if the arguments do not meet the precondition."""
        values_by_node = {**self.placeholders, **values}
        args, kwargs = torch.fx.node.map_arg((self.node.args, dict(self.node.kwargs)), values_by_node.__getitem__)
        operator = self.node.target
        assert isinstance(operator, torch._ops.OpOverload)
        named = default_arguments(operator) | named_arguments(operator, args, kwargs)
        if not PRECONDITIONS[operator_name(operator)](named):
            check_on_cpu(operator, args, kwargs)


@final
@dataclass(frozen=True, kw_only=True)
class ProgramStage:
    """Operators that run as one program.

    Attributes:
        inputs: the nodes whose tensors the program reads.
        outputs: the nodes whose tensors the program computes, with the layouts that PyTorch expects. If the layout is
            None, the value of the node is an array, which a `WriteStage` copies to a tensor.
        checked: the operators with a precondition.
        run_program: runs the program.
    """

    inputs: Sequence[Node]
    outputs: Sequence[tuple[Node, TensorLayout | None]]
    checked: Sequence[CheckedOperator]
    run_program: RunProgram

    def run(self, values: Environment, device: Backend) -> None:
        """Run the program and add the tensors of its outputs to `values`."""
        stream = device.streams.current
        stream.synchronize()
        for operator in self.checked:
            operator.check(values)
        arrays = [_read(values[node], stream) for node in self.inputs]
        results = self.run_program(arrays)
        for (node, layout), result in zip(self.outputs, results, strict=True):
            if layout is None:
                values[node] = result
            else:
                values[node] = allocate(layout, device, stream.stream_id)
                _write(values[node], result, stream)


def _read(tensor: torch.Tensor, stream: DeviceStream) -> Any:
    """Return the elements of a tensor as an array: a view if the host can address the memory, otherwise a copy."""
    on_device = tensor if is_on_device(tensor) else upload(tensor)
    native = _open(materialize(on_device) if on_device.is_complex() else on_device, stream)
    return native.view() if native.device.host_addressable else native.numpy()


def _write(tensor: torch.Tensor, array: Any, stream: DeviceStream) -> None:
    """Copy an array to a tensor of the device."""
    native = _open(tensor, stream)
    if native.device.host_addressable:
        native.view()[...] = array
    else:
        native.write(array)


def _open(tensor: torch.Tensor, stream: DeviceStream) -> Tensor:
    """Return a tensor of the standard's interface that uses the memory of a PyTorch tensor of the device."""
    return stream.open_tensor(tensor, layout_of(tuple(tensor.shape), tensor.stride(), tensor.dtype))


@final
@dataclass(frozen=True)
class OperatorStage:
    """An operator that runs by itself.

    Attributes:
        node: the node of the operator in the graph.
    """

    node: Node

    def run(self, values: Environment, device: Backend) -> None:
        """Call the operator and add its result to the values."""
        args, kwargs = torch.fx.node.map_arg((self.node.args, dict(self.node.kwargs)), values.__getitem__)
        values[self.node] = self.node.target(*args, **kwargs)  # type: ignore[operator]  # a node that calls a function


@final
@dataclass(frozen=True)
class WriteStage:
    """A copy of a computed value to an input of the graph, which the graph changes in place.

    Attributes:
        node: the node of the copy in the graph.
    """

    node: Node

    def run(self, values: Environment, device: Backend) -> None:
        """Copy the value to the input."""
        target, value = (values[source] for source in self.node.args[:2])  # type: ignore[index]  # the arguments of copy_
        if isinstance(value, torch.Tensor):
            target.copy_(value)
        else:
            _write(target, value, device.streams.current)
            torch.autograd.graph.increment_version(target)
        values[self.node] = target


Stage = ProgramStage | OperatorStage | WriteStage


def divide(graph: torch.fx.Graph, vendor: BaseVendor) -> list[Stage]:
    """Return the stages of a graph in the order in which they run.

    Args:
        graph: a graph of AOTAutograd, in which no operator changes an argument that another one reads.
        vendor: the vendor that compiles the programs.

    Returns:
        The stages. Nodes that no stage contains are the inputs of the graph.
    """
    placements: dict[Node, OperatorPlacement] = {}
    writes: list[Stage] = []
    for node in graph.nodes:
        if _operator(node) == "copy_":  # AOTAutograd changes the inputs of the graph at its end
            writes.append(WriteStage(node))
        elif node.op == "call_function":
            source = node.args[0] if node.target is getitem else None
            placements[node] = placements[source] if source in placements else _find_placement(node, vendor)
    stages: dict[int, list[Node]] = {}
    for node, position in _order(placements).items():
        stages.setdefault(position, []).append(node)
    divided_stages: list[Stage] = []
    for position, nodes in sorted(stages.items()):
        divided_stages += [OperatorStage(node) for node in nodes] if position % 2 else [_compile_stage(nodes, vendor)]
    return divided_stages + writes


@final
@dataclass(frozen=True)
class OperatorPlacement:
    """How an operator can run.

    Attributes:
        fits_program: whether a program can contain the operator.
        early: the arguments that must be inputs of the program, because the host reads their elements before it runs.
    """

    fits_program: bool
    early: Collection[Node] = ()


def _order(placements: Mapping[Node, OperatorPlacement]) -> dict[Node, int]:
    """Return the position of the stage of each node.

    Programs have even positions, and single operators odd ones. A node has the first position at which all its
    arguments are available, so that programs contain as many operators as possible.
    """
    positions: dict[Node, int] = {}
    last_ordered = 1
    for node, placement in placements.items():
        if node.target is getitem and (whole := node.all_input_nodes[0]) in positions:
            positions[node] = positions[whole]
            continue
        position = max((positions[source] for source in node.all_input_nodes if source in positions), default=0)
        if not placement.fits_program:
            position += position % 2 == 0
            if _is_ordered(node):
                position = last_ordered = max(position, last_ordered)
        else:
            position += position % 2
            if any(positions.get(source) == position for source in placement.early):
                position += 2
        positions[node] = position
    return positions


def _is_ordered(node: Node) -> bool:
    """Return whether an operator must keep its order: it draws random numbers or writes an argument."""
    target = node.target
    return isinstance(target, torch._ops.OpOverload) and (
        torch.Tag.nondeterministic_seeded in target.tags or target._schema.is_mutable
    )


def _find_placement(node: Node, vendor: BaseVendor) -> OperatorPlacement:
    """Return how the operator of a node can run, by trying to translate it."""
    if _operator(node) in forced_operators():
        return OperatorPlacement(False)
    builder = ProgramBuilder(vendor)
    try:
        values = {source: _add_example(builder, source.meta.get("val")) for source in node.all_input_nodes}
        add_node(builder, node, values)
        if builder.reads_arguments():
            return OperatorPlacement(True, node.all_input_nodes)
    except NotMappedError:
        return OperatorPlacement(False)
    return OperatorPlacement(True, [source for source in node.all_input_nodes if _is_checked(node, source)])


def _is_checked(node: Node, source: Node) -> bool:
    """Return whether the precondition of a node's operator reads the elements of the argument `source`.

    The precondition of a loss of classes reads only the classes, which are integers.
    """
    name = _operator(node)
    return name in PRECONDITIONS and not (name in CLASS_LOSSES and source.meta["val"].is_floating_point())


def _operator(node: Node) -> str | None:
    """Return the name of the operator that a node calls; None if it calls another function."""
    return operator_name(node.target) if isinstance(node.target, torch._ops.OpOverload) else None


def _add_example(builder: ProgramBuilder, example: Any) -> Any:
    """Return slots of new inputs for an example value, a tensor or a list; raise NotMappedError for other values."""
    if isinstance(example, list | tuple):
        return [_add_example(builder, entry) for entry in example]
    if not isinstance(example, torch.Tensor):
        raise NotMappedError("a value whose form is unknown, or a number that varies between calls")
    return builder.add_input(example)


def _compile_stage(nodes: Sequence[Node], vendor: BaseVendor) -> ProgramStage:
    """Return the stage that runs these nodes as one program."""
    builder, inside = ProgramBuilder(vendor), set(nodes)
    inputs = list(dict.fromkeys(source for node in nodes for source in node.all_input_nodes if source not in inside))
    values: dict[Node, Any] = {source: builder.add_input(source.meta["val"]) for source in inputs}
    for node in nodes:
        if node.target is getitem:
            values[node] = values[node.all_input_nodes[0]][node.args[1]]
        else:
            values[node] = add_node(builder, node, values)
    outputs = [
        node for node in nodes if isinstance(values[node], ArraySlot) and any(user not in inside for user in node.users)
    ]
    program = builder.build([values[node] for node in outputs])
    return ProgramStage(
        inputs=inputs,
        outputs=[(node, None if _is_only_written(node, inside) else _layout(node.meta["val"])) for node in outputs],
        checked=[CheckedOperator.from_node(node, inside) for node in nodes if _operator(node) in PRECONDITIONS],
        run_program=vendor.compile_program(program),
    )


def _is_only_written(node: Node, inside: Collection[Node]) -> bool:
    """Return whether the only use of a node outside of its program is a copy to a tensor of the device."""
    return all(
        user in inside
        or (_operator(user) == "copy_" and user.args[1] is node and is_on_device(user.all_input_nodes[0].meta["val"]))
        for user in node.users
    )


def _layout(example: torch.Tensor) -> TensorLayout:
    """Return the layout of an example result."""
    return layout_of(tuple(example.shape), example.stride(), example.dtype)

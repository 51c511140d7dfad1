"""Translate the operators of a graph to the steps of a program.

A node of the graph calls an operator. The slots of the nodes before it are its arguments
(`diopi_torch.compiling.builder`).
"""

from __future__ import annotations

from typing import Any

import torch

from diopi_proto.aten.mapping import AtenOperator, NotMappedError, function_calls
from diopi_proto.aten.table import find_row
from diopi_torch.compiling.builder import ProgramBuilder, dtype_of, slots_in
from diopi_torch.compiling.structural import STRUCTURAL
from diopi_torch.fallback import default_arguments, named_arguments, operator_name

Node = torch.fx.Node

Values = dict[Node, Any]
"""The results of nodes: a slot, a number, None, or a list of these."""


def add_node(builder: ProgramBuilder, node: Node, values: Values) -> Any:
    """Append the steps of an operator and return the slots of its results.

    Args:
        builder: receives the steps.
        node: a node that calls an operator.
        values: the slots of the nodes before it.

    Returns:
        A slot, or a list of slots in the order of the operator's results.

    Raises:
        NotMappedError: if programs can't contain the call. In this case, no step is appended.
    """
    checkpoint = builder.checkpoint()
    try:
        return _convert(builder, node, values)
    except NotMappedError:
        builder.restore(checkpoint)
        raise


def _convert(builder: ProgramBuilder, node: Node, values: Values) -> Any:
    """Append the steps of an operator, and return the slots of its results, as `add_node` does.

    If NotMappedError is raised, some steps may remain.

    Args:
        builder: the builder of the program.
        node: the node of the operator.
        values: the slots and numbers that earlier nodes returned.

    Returns:
        The slot of the result, or a list of slots.

    Raises:
        NotMappedError: No functions compute the operator.
    """
    operator = node.target
    if not isinstance(operator, torch._ops.OpOverload) or operator.namespace != "aten":
        raise NotMappedError(str(operator))
    arguments = _arguments(node, operator, values)
    examples = node.meta.get("val")
    name = operator_name(operator)
    if structural := STRUCTURAL.get(name):
        return structural(builder, arguments, examples)
    row = find_row(name)
    if row is None or operator._schema.is_mutable or not row.calls_functions:
        raise NotMappedError(name)
    returned = _result_slots(builder, examples)
    results = returned if isinstance(returned, list) else [returned]
    described = AtenOperator(name=row.operator, arguments=arguments, inplace=False, factory=builder)
    computed = builder.append_calls(function_calls(described, row, results))
    if any(slot.number not in computed for slot in slots_in(results)):
        raise NotMappedError(f"{name} has a result that no function computes")
    return returned


def _arguments(node: Node, operator: torch._ops.OpOverload, values: Values) -> dict[str, Any]:
    """Return the arguments of a node by name, including defaults, with slots in place of tensors."""
    named = default_arguments(operator) | named_arguments(operator, node.args, node.kwargs)
    return {name: _replace_nodes(value, values) for name, value in named.items()}


def _result_slots(builder: ProgramBuilder, examples: Any) -> Any:
    """Return new slots with the shapes and element types of example results: a tensor, a list of tensors, or None.

    Raises:
        NotMappedError: A result is a number.
    """
    if isinstance(examples, list | tuple):
        return [_result_slots(builder, example) for example in examples]
    if examples is None:
        return None
    if not isinstance(examples, torch.Tensor):
        raise NotMappedError("a result is a number")
    return builder.new_slot(tuple(examples.shape), dtype_of(examples))


def _replace_nodes(value: Any, values: Values) -> Any:
    """Return an argument with slots in place of nodes; raise NotMappedError for a size that varies between calls."""
    if isinstance(value, Node):
        return values[value]
    if isinstance(value, torch.SymInt):
        raise NotMappedError("a size that varies between calls")
    return [_replace_nodes(entry, values) for entry in value] if isinstance(value, list | tuple) else value

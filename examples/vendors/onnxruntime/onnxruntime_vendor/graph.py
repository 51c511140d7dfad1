"""Models of ONNX: a builder whose methods add nodes, and the values that flow between the nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from diopi_impl.specs import ResultSpec

Array = np.ndarray[Any, Any]

IR_VERSION = 10
"""The version of the model format. Newer versions of `onnx` would write one that ONNX Runtime may not read yet."""

BOOL, INT64 = np.dtype(np.bool_), np.dtype(np.int64)

RESULT_DTYPES: Mapping[str, np.dtype[Any]] = {
    **dict.fromkeys(("And", "Equal", "Greater", "GreaterOrEqual", "IsNaN", "Less", "LessOrEqual", "Not", "Or"), BOOL),
    **dict.fromkeys(("ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "Shape"), INT64),
}
"""The element types of the results of operators whose result does not have the element type of their first operand."""


@dataclass(frozen=True)
class Value:
    """A tensor in a model: an input, a constant or the first result of a node.

    Attributes:
        name: the name in the model.
        dtype: the element type.
        rank: the number of axes of an input; −1 for any other tensor.
        shape: the sizes of an input in the call for which the model is built; () for any other tensor.
        node: the node that computes the tensor; None for inputs and constants.
    """

    name: str
    dtype: np.dtype[Any]
    rank: int = -1
    shape: tuple[int, ...] = ()
    node: onnx.NodeProto | None = None

    def results(self, count: int) -> tuple[Value, ...]:
        """Return the first `count` results of the node that computes this tensor."""
        assert self.node is not None
        while len(self.node.output) < count:
            self.node.output.append(f"{self.name}_{len(self.node.output)}")
        return tuple(Value(name, self.dtype, node=self.node) for name in list(self.node.output)[:count])


@dataclass
class Graph:
    """A model that is being built.

    `graph.Add(x, y)` adds a node with the operator `Add`, as `graph.operator("Add")(x, y)` does.

    Attributes:
        nodes: the nodes, in the order in which they compute.
        constants: the tensors that are part of the model.
        inputs: the tensors that a call passes.
        depends_on_sizes: whether the model is right only for inputs and results of these sizes.
    """

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    depends_on_sizes: bool = False

    def __getattr__(self, name: str) -> Callable[..., Value]:
        """Return a function that adds a node with this operator; raise AttributeError for a small initial letter."""
        if not name[0].isupper():
            raise AttributeError(f"{name!r} is not an operator of ONNX: operators begin with a capital letter")
        return self.operator(name)

    def shape_of(self, value: Value | ResultSpec) -> tuple[int, ...]:
        """Return the sizes of an input, or of a result of the caller. The model then depends on them."""
        self.depends_on_sizes = True
        return value.shape

    def add_input(self, array: Array) -> Value:
        """Return a new input with the element type and the number of axes of an array."""
        self.inputs.append(Value(f"input{len(self.inputs)}", array.dtype, array.ndim, array.shape))
        return self.inputs[-1]

    def add_constant(self, array: Array) -> Value:
        """Return a new constant with the elements of an array."""
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return Value(name, array.dtype)

    def operator(self, name: str) -> Callable[..., Value]:
        """Return a function that adds a node with this operator.

        Its positional arguments are the operands: tensors, or numbers and tuples of integers, which become constants.
        `as_value` defines the types of constants. Keywords are attributes. None stands for an operand or an attribute
        that is omitted, and so does an empty list for an attribute.
        """

        def add_node(*operands: Any, **attributes: Any) -> Value:
            """Add a node, and return its first result."""
            dtype = next((value.dtype for value in operands if isinstance(value, Value)), INT64)
            values = [None if value is None else self.as_value(value, dtype) for value in operands]
            while values and values[-1] is None:
                values.pop()
            present = {key: _as_attribute(value) for key, value in attributes.items() if value not in (None, (), [])}
            result = f"{name}{len(self.nodes)}"
            node = helper.make_node(name, [value.name if value else "" for value in values], [result], **present)
            self.nodes.append(node)
            if name == "Cast":
                return Value(result, helper.tensor_dtype_to_np_dtype(attributes["to"]), node=node)
            return Value(result, RESULT_DTYPES.get(name, dtype), node=node)

        return add_node

    def as_value(self, value: Any, dtype: np.dtype[Any]) -> Value:
        """Return a tensor as it is, and anything else as a constant.

        A tuple is of int64, an integer of NumPy has its own type, and any other number has the given type.
        """
        if isinstance(value, Value):
            return value
        is_integer = isinstance(value, tuple | list | np.integer)
        return self.add_constant(np.asarray(value, np.int64 if is_integer else dtype))

    def serialize(self, results: list[Value], opset: int) -> bytes:
        """Return the model as ONNX Runtime reads it. The inputs have symbolic sizes.

        The results get names of their own, because an input or a constant can't be a result.
        """
        outputs = [helper.make_empty_tensor_value_info(f"result{i}") for i in range(len(results))]
        identities = [
            helper.make_node("Identity", [value.name], [output.name])
            for value, output in zip(results, outputs, strict=True)
        ]
        inputs = [
            helper.make_tensor_value_info(value.name, onnx_type(value.dtype), [None] * value.rank)
            for value in self.inputs
        ]
        graph = helper.make_graph([*self.nodes, *identities], "call", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", opset)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        serialized: bytes = model.SerializeToString()
        return serialized


def onnx_type(dtype: np.dtype[Any]) -> int:
    """Return ONNX's number of an element type."""
    return int(helper.np_dtype_to_tensor_dtype(dtype))


def _as_attribute(value: Any) -> Any:
    """Return the value of an attribute; truth values are integers in ONNX."""
    return int(value) if isinstance(value, bool | np.bool_) else value

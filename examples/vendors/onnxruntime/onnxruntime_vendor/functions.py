"""Functions of the standard from the rows of `operators.tsv`: their models, sessions and calls."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from diopi_impl.functional import OutSpec, ResultSpec
from diopi_proto.interface import lookup
from onnxruntime_vendor.graph import Array, Graph, Value
from onnxruntime_vendor.helpers import HELPERS
from onnxruntime_vendor.sessions import Session

TABLE = Path(__file__).with_name("operators.tsv")


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        function: the function of the standard.
        opset: the version of ONNX's operators.
        expression: what the function is in operators of ONNX, of which every name begins with a capital letter.
    """

    function: str
    opset: int
    expression: str

    @property
    def uses_shapes(self) -> bool:
        """Whether the model depends on the sizes of tensors, so that each shape needs a session of its own."""
        return re.search(r"shapes?\(", self.expression) is not None


class Names(dict[str, Any]):
    """The names of an expression: a name with a capital letter that is not an argument is an operator of ONNX."""

    def __init__(self, graph: Graph, arguments: Mapping[str, Any]) -> None:
        super().__init__(arguments)
        self._graph = graph

    def __missing__(self, name: str) -> Any:
        """Return an operator, or a helper to which the graph is passed; raise KeyError for any other name."""
        if name[0].isupper():
            return self._graph.operator(name)
        helper = HELPERS[name]
        takes_graph = next(iter(inspect.signature(helper).parameters)) == "graph"
        return partial(helper, self._graph) if takes_graph else helper


BUILTINS: Mapping[str, Any] = {
    "float": float,
    "int64": np.int64,
    "INT64_MIN": int(np.iinfo(np.int64).min),
    "len": len,
    "list": list,
    "rank": lambda value: value.rank,
}
"""Further names that every expression has."""


@dataclass(frozen=True)
class Plan:
    """How calls of one form are executed.

    Attributes:
        session: the session of the model.
        is_computed: which results the model has; the others are omitted.
        is_sequence: whether the function has several results, or one that is a list.
    """

    session: Session
    is_computed: tuple[bool, ...]
    is_sequence: bool

    def run(self, arrays: list[Array]) -> Any:
        """Return the results of a call."""
        computed = iter(self.session.run(arrays))
        results = [next(computed) if is_computed else None for is_computed in self.is_computed]
        return results if self.is_sequence else results[0]


class OnnxFunction:
    """An implementation of a function: it creates a session per form of calls, and runs it.

    Calls have the same form if they have the same attributes, and if their tensors have the same element types and the
    same numbers of axes.

    Args:
        row: the row of the function.
    """

    def __init__(self, row: Row) -> None:
        self.row = row
        self.parameters = [parameter.name for parameter in lookup(row.function).arguments]
        self._code: CodeType = compile(row.expression, row.function, "eval")
        self._plans: dict[Any, Plan] = {}

    def __call__(self, *values: Any, out: OutSpec | tuple[OutSpec, ...] = None) -> Any:
        """Return the results of a call."""
        key = tuple(self._form(value) for value in (*values, out))
        if key not in self._plans:
            self._plans[key] = self._plan(values, out)
        return self._plans[key].run([np.asarray(array, order="C") for array in _arrays(values)])

    def _form(self, value: Any) -> Any:
        """Return what sessions depend on. `repr` tells apart numbers that are equal, such as 0 and −0."""
        if isinstance(value, np.ndarray):
            return value.dtype, value.shape if self.row.uses_shapes else value.ndim
        if isinstance(value, ResultSpec):
            return value.dtype, value.shape if self.row.uses_shapes else value.ndim
        if isinstance(value, list | tuple) and not all(isinstance(entry, int) for entry in value):
            return tuple(self._form(entry) for entry in value)
        return repr(value)

    def _plan(self, values: Sequence[Any], out: Any) -> Plan:
        """Return the plan for calls of this form."""
        graph = Graph()
        arguments = {name: _as_argument(graph, value) for name, value in zip(self.parameters, values, strict=True)}
        shapes = {value.name: array.shape for value, array in zip(graph.inputs, _arrays(values), strict=True)}

        def shape(value: Value | ResultSpec) -> tuple[int, ...]:
            """Return the shape of an argument or a result."""
            return value.shape if isinstance(value, ResultSpec) else shapes[value.name]

        names = Names(graph, {**BUILTINS, "out": out, "shape": shape, **arguments})
        result = eval(self._code, {"__builtins__": {}}, names)
        is_sequence = isinstance(result, tuple | list)
        results = list(result) if is_sequence else [result]
        session = Session(graph.serialize([value for value in results if value is not None], self.row.opset))
        return Plan(session, tuple(value is not None for value in results), is_sequence)


def _as_argument(graph: Graph, value: Any) -> Any:
    """Return an argument as expressions take it: tensors and lists of tensors become inputs of the model."""
    if isinstance(value, np.ndarray):
        return graph.add_input(value)
    if isinstance(value, list):
        return [_as_argument(graph, entry) for entry in value]
    return value


def _arrays(values: Sequence[Any]) -> Iterator[Array]:
    """Yield all arrays among the arguments in the order of the inputs."""
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, list):
            yield from _arrays(value)


def read_table() -> list[Row]:
    """Return the rows of the table."""
    lines = [line.split("\t") for line in TABLE.read_text("utf-8").splitlines()[1:]]
    return [Row(function, int(opset), expression) for function, opset, expression in lines]


def implementation(row: Row) -> OnnxFunction:
    """Return the implementation of a function; its signature has all arguments of the prototype, and `out`."""
    function = OnnxFunction(row)
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in function.parameters]
    keyword = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY)
    function.__signature__ = inspect.Signature([*parameters, keyword])  # type: ignore[attr-defined]
    return function

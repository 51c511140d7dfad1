"""Functions of the standard from their definitions in `operators.py`: their models, sessions and calls."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_impl.specs import OutSpec, ResultSpec
from onnxruntime_vendor.graph import Array, Graph
from onnxruntime_vendor.operators import Definition
from onnxruntime_vendor.sessions import Session


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
    same numbers of axes; if a model depends on the sizes of its tensors, also the same sizes.

    Args:
        definition: the function in operators of ONNX.
    """

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._plans: dict[Any, Plan] = {}
        self._depends_on_sizes = False
        names = [name for name in inspect.signature(definition.build).parameters if name not in ("graph", "out")]
        arguments = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY)
        self.__signature__ = inspect.Signature([*arguments, out])

    def __call__(self, *values: Any, out: OutSpec | tuple[OutSpec, ...] = None, **named: Any) -> Any:
        """Return the results of a call."""
        arguments = self.__signature__.bind(*values, out=out, **named).arguments
        key = self._key(arguments)
        if key not in self._plans:
            plan = self._make_plan(arguments)
            key = self._key(arguments)  # the model may be the first that depends on sizes
            self._plans[key] = plan
        return self._plans[key].run([np.asarray(array, order="C") for array in _arrays(arguments.values())])

    def _key(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the form of a call."""
        return tuple(self._form(value) for value in arguments.values())

    def _form(self, value: Any) -> Any:
        """Return what sessions depend on. `repr` tells apart numbers that are equal, such as 0 and −0."""
        if isinstance(value, np.ndarray | ResultSpec):
            return value.dtype, value.shape if self._depends_on_sizes else value.ndim
        if isinstance(value, list | tuple) and not all(isinstance(entry, int) for entry in value):
            return tuple(self._form(entry) for entry in value)
        return repr(value)

    def _make_plan(self, arguments: Mapping[str, Any]) -> Plan:
        """Return the plan for calls of this form."""
        graph = Graph()
        values = {name: _as_argument(graph, value) for name, value in arguments.items()}
        if "out" not in inspect.signature(self._definition.build).parameters:
            del values["out"]
        result = self._definition.build(graph, **values)
        self._depends_on_sizes |= graph.depends_on_sizes
        is_sequence = isinstance(result, tuple | list)
        results = list(result) if is_sequence else [result]
        model = graph.serialize([value for value in results if value is not None], self._definition.opset)
        return Plan(Session(model), tuple(value is not None for value in results), is_sequence)


def _as_argument(graph: Graph, value: Any) -> Any:
    """Return an argument as definitions take it: tensors and lists of tensors become inputs of the model."""
    if isinstance(value, np.ndarray):
        return graph.add_input(value)
    if isinstance(value, list):
        return [_as_argument(graph, entry) for entry in value]
    return value


def _arrays(values: Iterable[Any]) -> Iterator[Array]:
    """Yield all arrays among the arguments in the order of the inputs."""
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, list):
            yield from _arrays(value)

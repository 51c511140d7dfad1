"""Trace a PyTorch program: record the functions of the standard that a device would be called for.

The program runs on the CPU. A `TorchDispatchMode` receives each ATen operator after autograd and after PyTorch has
decomposed composite operators. The table of `diopi_proto.aten` maps operators to functions. Attention is decomposed
into products and softmax, as on a device without a fused kernel. Source: PyTorch's documentation of
`torch.utils._python_dispatch`.
"""

from __future__ import annotations

import runpy
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from diopi_proto.aten.mapping import AtenOperator, NotMappedError, function_calls
from diopi_proto.aten.table import DECOMPOSED, NO_CALL, Row, find_row
from diopi_proto.types import Dtype, Number
from diopi_test.traces.calls import NetworkTrace, TracedCall, TracedTensor

BOUNDED = (Dtype.int8, Dtype.uint8, Dtype.int16, Dtype.int32, Dtype.int64)
"""The element types of tensors whose smallest and largest elements are recorded."""


class Tracer(TorchDispatchMode):
    """Records the calls of functions that the operators called in its context map to.

    Attributes:
        paused: Whether calls are not recorded at the moment.
    """

    def __init__(self) -> None:
        super().__init__()
        self.paused = False
        self._calls: Counter[str] = Counter()
        self._by_key: dict[str, TracedCall] = {}
        self._not_mapped: Counter[str] = Counter()

    def network_trace(self, name: str) -> NetworkTrace:
        """Return the trace of the calls so far."""
        calls = (replace(self._by_key[key], count=self._calls[key]) for key in sorted(self._calls))
        return NetworkTrace(name, tuple(calls), dict(self._not_mapped))

    def __torch_dispatch__(
        self, operator: Any, types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        keywords, name = kwargs or {}, _table_name(operator)
        row = find_row(name)
        if self.paused or operator.is_view or operator.namespace != "aten" or (row and row.function == NO_CALL):
            return operator(*args, **keywords)
        if row and row.function == DECOMPOSED:
            with self:
                return decomposition_table[operator](*args, **keywords)
        return self._record_calls(operator, row, args, keywords)

    def _record_calls(self, operator: Any, row: Row | None, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Return the results of an operator, and record the functions that it maps to, or that there are none."""
        passed = _bind_arguments(operator, args, keywords)
        descriptions = {name: _describe_tensors(value) for name, value in passed.items()}
        returned = operator(*args, **keywords)
        try:
            if row is None:
                raise NotMappedError(_table_name(operator))
            for call in _function_calls(operator, row, descriptions, _describe_tensors(_as_list(returned))):
                self._by_key.setdefault(call.key, call)
                self._calls[call.key] += 1
        except NotMappedError as error:
            self._not_mapped[str(error)] += 1
        return returned


_active: list[Tracer] = []
"""The tracers whose contexts are active."""


@contextmanager
def untraced() -> Iterator[None]:
    """Return a context manager in which calls are not recorded, such as those of warm-up steps."""
    paused = [tracer.paused for tracer in _active]
    for tracer in _active:
        tracer.paused = True
    try:
        yield
    finally:
        for tracer, was_paused in zip(_active, paused, strict=True):
            tracer.paused = was_paused


@contextmanager
def trace_calls() -> Iterator[Tracer]:
    """Return a context manager that traces the calls in its body; attention is decomposed into products and softmax."""
    tracer = Tracer()
    _active.append(tracer)
    try:
        with sdpa_kernel(SDPBackend.MATH), tracer:
            yield tracer
    finally:
        _active.remove(tracer)


def trace_script(script: Path, arguments: Sequence[str], name: str) -> NetworkTrace:
    """Run a program and return the trace of its calls.

    Exceptions of the program are raised.

    Args:
        script: The Python program.
        arguments: Its command-line arguments.
        name: The name of the network.

    Returns:
        The trace.

    Raises:
        SystemExit: The program exits with a status other than 0.
    """
    words, path = sys.argv, sys.path
    sys.argv, sys.path = [str(script), *arguments], [str(script.parent), *path]
    torch.manual_seed(0)
    try:
        with trace_calls() as tracer:
            try:
                runpy.run_path(str(script), run_name="__main__")
            except SystemExit as end:
                if end.code:
                    raise
    finally:
        sys.argv, sys.path = words, path
    return tracer.network_trace(name)


def _table_name(operator: Any) -> str:
    """Return the name of an operator in the form of the table: `add.Tensor`, or `relu` for the default overload."""
    name, overload = operator._schema.name.removeprefix("aten::"), operator._overloadname
    return name if overload == "default" else f"{name}.{overload}"


def _bind_arguments(operator: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an operator by name, including defaults."""
    declared = operator._schema.arguments
    defaults = {argument.name: argument.default_value for argument in declared if argument.has_default_value()}
    positional = {argument.name: value for argument, value in zip(declared, args, strict=False)}
    return {**defaults, **positional, **keywords}


def _as_list(value: Any) -> list[Any]:
    """Return a list or tuple as a list, and any other value as a list with one element."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _describe_tensors(value: Any) -> Any:
    """Return a value with its tensors replaced by their descriptions."""
    if isinstance(value, torch.Tensor):
        return describe(value)
    return [_describe_tensors(entry) for entry in value] if isinstance(value, list | tuple) else value


def describe(tensor: torch.Tensor) -> TracedTensor:
    """Return the description of a tensor; `Dtype.unsupported` stands for types that the standard lacks."""
    name = str(tensor.dtype).removeprefix("torch.")
    dtype = Dtype.__members__.get(name, Dtype.unsupported)
    bounds = (int(tensor.min()), int(tensor.max())) if dtype in BOUNDED and tensor.numel() else None
    return TracedTensor(shape=tuple(tensor.shape), dtype=dtype, strides=tuple(tensor.stride()), bounds=bounds)


SEED = 1
"""The seed of the generator in every call of a random function."""


class _TracedTensorFactory:
    """Creates descriptions of the tensors that a device would allocate, in place of tensors.

    The functions that map an operator to calls use a factory to create tensors. A device's factory allocates them.
    """

    def tensor_from_numbers(self, value: Number | list[int]) -> TracedTensor:
        """Return the description of a tensor of these numbers; only integers have bounds."""
        if isinstance(value, list):
            return TracedTensor(shape=(len(value),), dtype=Dtype.int64, strides=(1,), bounds=(min(value), max(value)))
        if isinstance(value, float):
            return TracedTensor(shape=(), dtype=Dtype.float32, strides=())
        return TracedTensor(shape=(), dtype=Dtype.int64, strides=(), bounds=(value, value))

    def read_number(self, tensor: TracedTensor) -> Number | None:
        """Return the element of a tensor without axes if its bounds are known, otherwise None."""
        return None if tensor.bounds is None or tensor.shape else tensor.bounds[0]

    def restride(self, tensor: TracedTensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> TracedTensor:
        """Return the description of a view of the tensor with this shape and these strides."""
        return replace(tensor, shape=shape, strides=strides)

    def empty_like(self, tensor: TracedTensor, dtype: Dtype) -> TracedTensor:
        """Return the description of a tensor of the same shape and another element type, with unknown elements."""
        return replace(tensor, dtype=dtype, bounds=None)

    def generator(self, argument: object) -> int:
        """Return the seed of the generator, whatever generator the operator received."""
        return SEED


_FACTORY = _TracedTensorFactory()
"""The factory that every mapping of a traced operator uses; it has no state."""


def _function_calls(operator: Any, row: Row, named: Mapping[str, Any], returned: list[Any]) -> Iterator[TracedCall]:
    """Yield the calls of functions that an operator maps to.

    Args:
        operator: The operator of PyTorch.
        row: The row of the operator in the table of `diopi_proto.aten`.
        named: The arguments by name, with descriptions in place of tensors.
        returned: The descriptions of the results.

    Raises:
        NotMappedError: The operator maps to no function.
    """
    described = AtenOperator(
        name=_table_name(operator), arguments=named, inplace=bool(operator._schema.is_mutable), factory=_FACTORY
    )
    for call in function_calls(described, row, returned):
        results = {name: _without_bounds(value) for name, value in call.results.items()}
        yield TracedCall(function=call.function, arguments=call.arguments, results=results)


def _without_bounds(value: Any) -> Any:
    """Return result tensors without their bounds."""
    if isinstance(value, list):
        return [_without_bounds(entry) for entry in value]
    return replace(value, bounds=None) if isinstance(value, TracedTensor) else value

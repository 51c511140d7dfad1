"""Tracing a program: which functions of the standard a device would be called for by what it does in PyTorch.

The program runs on the CPU. Below autograd and below what PyTorch composes of other operators, a `TorchDispatchMode`
sees each operator of ATen; the table of `diopi_proto.aten` says which function serves it. Attention is composed of
products and softmax here, as on a device that has no kernel for all of it. Source: PyTorch's documentation of
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

from diopi_proto.aten.mapping import NotMappedError, Operator, function_calls
from diopi_proto.aten.table import DECOMPOSED, NO_CALL, Row, find_row
from diopi_proto.types import Dtype, Number
from diopi_test.models.calls import NetworkTrace, TracedCall, TracedTensor

BOUNDED = (Dtype.int8, Dtype.uint8, Dtype.int16, Dtype.int32, Dtype.int64)
"""The element types of which tensors are kept with the least and the greatest of their numbers."""


class Tracer(TorchDispatchMode):
    """Sees the operators that are called while it is entered, and keeps which calls of functions they are.

    Attributes:
        paused: whether what is called now is left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.paused = False
        self._calls: Counter[str] = Counter()
        self._by_key: dict[str, TracedCall] = {}
        self._not_mapped: Counter[str] = Counter()

    def network_trace(self, name: str) -> NetworkTrace:
        """What was called so far."""
        calls = (replace(self._by_key[key], count=self._calls[key]) for key in sorted(self._calls))
        return NetworkTrace(name, tuple(calls), dict(self._not_mapped))

    def __torch_dispatch__(
        self, operator: Any, types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        keywords, name = kwargs or {}, _name(operator)
        row = find_row(name)
        if self.paused or operator.is_view or operator.namespace != "aten" or (row and row.function == NO_CALL):
            return operator(*args, **keywords)
        if row and row.function == DECOMPOSED:
            with self:
                return decomposition_table[operator](*args, **keywords)
        return self._record(operator, row, args, keywords)

    def _record(self, operator: Any, row: Row | None, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Call an operator and keep the calls it is."""
        passed = _bind_arguments(operator, args, keywords)
        before = {name: _describe_tensors(value) for name, value in passed.items()}
        returned = operator(*args, **keywords)
        try:
            if row is None:
                raise NotMappedError(_name(operator))
            for call in _function_calls(operator, row, before, _describe_tensors(_as_list(returned))):
                self._by_key.setdefault(call.key, call)
                self._calls[call.key] += 1
        except NotMappedError as error:
            self._not_mapped[str(error)] += 1
        return returned


_active: list[Tracer] = []
"""The tracer of the program that is being traced."""


@contextmanager
def untraced() -> Iterator[None]:
    """Leave out what a traced program does here: the building of a network, the steps before the one that counts."""
    paused = [tracer.paused for tracer in _active]
    for tracer in _active:
        tracer.paused = True
    try:
        yield
    finally:
        for tracer, before in zip(_active, paused, strict=True):
            tracer.paused = before


@contextmanager
def trace_calls() -> Iterator[Tracer]:
    """Trace what is called here; attention is composed of products and softmax."""
    tracer = Tracer()
    _active.append(tracer)
    try:
        with sdpa_kernel(SDPBackend.MATH), tracer:
            yield tracer
    finally:
        _active.remove(tracer)


def trace_script(script: Path, arguments: Sequence[str], name: str) -> NetworkTrace:
    """Run a program with these arguments and give what it calls.

    Raises what the program raises; SystemExit if it exits with a status other than 0.
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


def _name(operator: Any) -> str:
    """The name of an operator as the table has it."""
    name, overload = operator._schema.name.removeprefix("aten::"), operator._overloadname
    return name if overload == "default" else f"{name}.{overload}"


def _bind_arguments(operator: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """What an operator is called with, by name."""
    declared = operator._schema.arguments
    defaults = {argument.name: argument.default_value for argument in declared if argument.has_default_value()}
    positional = {argument.name: value for argument, value in zip(declared, args, strict=False)}
    return {**defaults, **positional, **keywords}


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _describe_tensors(value: Any) -> Any:
    """A value with its tensors described."""
    if isinstance(value, torch.Tensor):
        return describe(value)
    return [_describe_tensors(entry) for entry in value] if isinstance(value, list | tuple) else value


def describe(tensor: torch.Tensor) -> TracedTensor:
    """What a tensor is; `Dtype.unsupported` stands for an element type that the standard does not have."""
    name = str(tensor.dtype).removeprefix("torch.")
    dtype = Dtype.__members__.get(name, Dtype.unsupported)
    bounds = (int(tensor.min()), int(tensor.max())) if dtype in BOUNDED and tensor.numel() else None
    return TracedTensor(tuple(tensor.shape), dtype, tuple(tensor.stride()), bounds)


SEED = 1
"""Of the generator of every call that draws."""


class _TracedTensorFactory:
    """Creates descriptions of the tensors that a device would allocate."""

    def tensor_from_numbers(self, value: Number | list[int]) -> TracedTensor:
        if isinstance(value, list):
            return TracedTensor((len(value),), Dtype.int64, (1,), (min(value), max(value)))
        if isinstance(value, float):
            return TracedTensor((), Dtype.float32, ())
        return TracedTensor((), Dtype.int64, (), (value, value))

    def read_number(self, tensor: TracedTensor) -> Number | None:
        return None if tensor.bounds is None or tensor.shape else tensor.bounds[0]

    def restride(self, tensor: TracedTensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> TracedTensor:
        return replace(tensor, shape=shape, strides=strides)

    def empty_like(self, tensor: TracedTensor, dtype: Dtype) -> TracedTensor:
        return replace(tensor, dtype=dtype, bounds=None)

    def generator(self, argument: object) -> int:
        return SEED


_FACTORY = _TracedTensorFactory()


def _function_calls(operator: Any, row: Row, named: Mapping[str, Any], returned: list[Any]) -> Iterator[TracedCall]:
    """The calls that an operator is; NotMappedError if no function serves it."""
    described = Operator(_name(operator), named, bool(operator._schema.is_mutable), _FACTORY)
    for call in function_calls(described, row, returned):
        results = {name: _without_bounds(value) for name, value in call.results.items()}
        yield TracedCall(call.function, call.arguments, results)


def _without_bounds(value: Any) -> Any:
    """Result tensors without what they held."""
    if isinstance(value, list):
        return [_without_bounds(entry) for entry in value]
    return replace(value, bounds=None) if isinstance(value, TracedTensor) else value

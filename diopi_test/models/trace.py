"""Tracing a program: which functions of the standard a device would be called for by what it does in PyTorch.

The program runs on the CPU. Below autograd and below what PyTorch composes of other operators, a `TorchDispatchMode`
sees each operator of ATen; `aten.tsv` says which function serves it. Attention is composed of products and softmax
here, as on a device that has no kernel for all of it. Source: PyTorch's documentation of
`torch.utils._python_dispatch`.
"""

from __future__ import annotations

import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from diopi_proto import parameters as kinds
from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Reduction, RoundMode
from diopi_test.models.calls import Call, Model, TracedTensor
from diopi_test.models.table import NO_CALL, SEED, ArgumentOf, Constant, Row, form_of, needs_source, row_of

NUMBERS = (bool, int, float)

BOUNDED = (Dtype.int8, Dtype.uint8, Dtype.int16, Dtype.int32, Dtype.int64)
"""The element types of which tensors are kept with the least and the greatest of their numbers."""


class NotMappedError(Exception):
    """No function serves the call; the message names the operator, and what of it none serves."""


class Tracer(TorchDispatchMode):
    """Sees the operators that are called while it is entered, and keeps which calls of functions they are.

    Attributes:
        paused: whether what is called now is left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.paused = False
        self._calls: Counter[str] = Counter()
        self._by_key: dict[str, Call] = {}
        self._not_mapped: Counter[str] = Counter()

    def model(self, name: str) -> Model:
        """What was called so far."""
        calls = (replace(self._by_key[key], count=self._calls[key]) for key in sorted(self._calls))
        return Model(name, tuple(calls), dict(self._not_mapped))

    def __torch_dispatch__(
        self, operator: Any, types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given, name = kwargs or {}, _name(operator)
        row = row_of(name)
        if self.paused or operator.is_view or operator.namespace != "aten" or (row and row.function == NO_CALL):
            return operator(*args, **given)
        if row and row.function == "decomposed":
            with self:
                return decomposition_table[operator](*args, **given)
        return self._record(operator, row, args, given)

    def _record(self, operator: Any, row: Row | None, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
        """Call an operator and keep the calls it is."""
        passed = _bound(operator, args, given)
        before = _Values({name: _described(value) for name, value in passed.items()})
        returned = operator(*args, **given)
        try:
            if row is None:
                raise NotMappedError(_name(operator))
            for call in _calls(operator, row, before, _described(_as_list(returned))):
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
def traced() -> Iterator[Tracer]:
    """Trace what is called here; attention is composed of products and softmax."""
    tracer = Tracer()
    _active.append(tracer)
    try:
        with sdpa_kernel(SDPBackend.MATH), tracer:
            yield tracer
    finally:
        _active.remove(tracer)


def trace_script(script: Path, arguments: Sequence[str], name: str) -> Model:
    """Run a program with these arguments and give what it calls.

    Raises what the program raises; SystemExit if it exits with a status other than 0.
    """
    words, path = sys.argv, sys.path
    sys.argv, sys.path = [str(script), *arguments], [str(script.parent), *path]
    torch.manual_seed(0)
    try:
        with traced() as tracer:
            try:
                runpy.run_path(str(script), run_name="__main__")
            except SystemExit as end:
                if end.code:
                    raise
    finally:
        sys.argv, sys.path = words, path
    return tracer.model(name)


def _name(operator: Any) -> str:
    """The name of an operator as the table has it."""
    name, overload = operator._schema.name.removeprefix("aten::"), operator._overloadname
    return name if overload == "default" else f"{name}.{overload}"


def _bound(operator: Any, args: Sequence[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What an operator is called with, by name."""
    declared = operator._schema.arguments
    defaults = {argument.name: argument.default_value for argument in declared if argument.has_default_value()}
    positional = {argument.name: value for argument, value in zip(declared, args, strict=False)}
    return {**defaults, **positional, **given}


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _described(value: Any) -> Any:
    """A value with its tensors described."""
    if isinstance(value, torch.Tensor):
        return describe(value)
    return [_described(entry) for entry in value] if isinstance(value, list | tuple) else value


def describe(tensor: torch.Tensor) -> TracedTensor:
    """What a tensor is; `Dtype.unsupported` stands for an element type that the standard does not have."""
    name = str(tensor.dtype).removeprefix("torch.")
    dtype = Dtype.__members__.get(name, Dtype.unsupported)
    bounds = (int(tensor.min()), int(tensor.max())) if dtype in BOUNDED and tensor.numel() else None
    return TracedTensor(tuple(tensor.shape), dtype, tuple(tensor.stride()), bounds)


@dataclass(frozen=True)
class _Values:
    """The arguments of an operator, tensors described."""

    named: Mapping[str, Any]

    def get(self, source: Constant | ArgumentOf) -> Any:
        """What a source gives; KeyError if the operator has no such argument."""
        if isinstance(source, Constant):
            return source.value
        value = self.named[source.name]
        return _as_tensor(value) if source.as_tensor else value

    def but(self, **changes: Any) -> _Values:
        """The same with others of these names."""
        return _Values({**self.named, **changes})


def _as_tensor(value: Any) -> TracedTensor:
    """The tensor that a number of the program, or a list of integers, is copied to."""
    if isinstance(value, list):
        return TracedTensor((len(value),), Dtype.int64, (1,), (min(value), max(value)))
    return (
        TracedTensor((), Dtype.float32, ())
        if isinstance(value, float)
        else TracedTensor((), Dtype.int64, (), (value, value))
    )


def _calls(operator: Any, row: Row, values: _Values, returned: list[Any]) -> list[Call]:
    """The calls that an operator is; NotMappedError if no function serves it."""
    if rule := RULES.get(row.function):
        function, values, returned = rule(row.operator, values, returned)
        row = replace(row, function=function)
    plain = form_of(row.function, inplace=False, scalar=False) or form_of(row.function, inplace=False, scalar=True)
    assert plain is not None
    needed = needs_source(plain)
    given = {p.name: values.get(row.source(p.name, values.named)) for p in plain.arguments if p.name in needed}
    lists = [name for name, value in given.items() if plain.parameter(name).is_tensor and isinstance(value, list)]
    if not lists:
        return _converted(_call(operator, row, plain, given, returned))
    results = returned if any(returned) else values.named["self"]  # which it writes
    each = (_call(operator, row, plain, one, [result]) for one, result in _each(given, lists, results))
    return [call for one in each for call in _converted(one)]


def _converted(call: Call) -> list[Call]:
    """A call; and conversions of results, where the function does not give the type that PyTorch has for them."""
    prototype, results, conversions = lookup(call.function), dict(call.results), []
    for name, value in call.results.items():
        if isinstance(value, TracedTensor) and not prototype.can_hold(name, value.dtype, call.arguments):
            results[name] = replace(value, dtype=prototype.infer(name, call.arguments) or value.dtype)
            conversions.append(Call("diopiCastDtype", {"input": results[name]}, {"out": value}))
    return [replace(call, results=results), *conversions]


def _each(
    given: Mapping[str, Any], lists: Sequence[str], results: Sequence[Any]
) -> Iterator[tuple[dict[str, Any], TracedTensor]]:
    """The calls that an operator over lists is, an entry each: arguments and result."""
    length = len(given[lists[0]])
    for number, result in enumerate(results):
        yield (
            {
                name: value[number] if isinstance(value, list) and len(value) == length else value
                for name, value in given.items()
            },
            result,
        )


def _call(operator: Any, row: Row, plain: Prototype, given: Mapping[str, Any], returned: list[Any]) -> Call:
    """The call of the form of a function that takes what is given."""
    inplace = bool(operator._schema.is_mutable)
    scalar = any(plain.parameter(name).is_tensor and isinstance(value, NUMBERS) for name, value in given.items())
    prototype = form_of(plain.base, inplace=inplace, scalar=scalar)
    if prototype is None and row.operator == _name(operator):  # it may also write a result in the place of an input
        prototype = form_of(plain.base, inplace=False, scalar=scalar)
    prototype = plain if plain.form == "scalar" else prototype
    if prototype is None:
        raise NotMappedError(_name(operator))
    arguments = {p.name: _argument(p, given.get(p.name), operator) for p in prototype.arguments}
    results = _results(row, prototype, returned, operator)
    for name, value in arguments.items():
        _check_dtypes(value, prototype.dtypes_of(name), operator)
    for value in results.values():
        _check_dtypes(value, tuple(Dtype), operator)
    return Call(prototype.name, arguments, results)


def _argument(parameter: kinds.Parameter, value: Any, operator: Any) -> Any:
    """An argument as a function takes it; NotMappedError if it can't take it."""
    kind = parameter.annotation
    if issubclass(kind, kinds.Generator):
        return SEED
    if issubclass(kind, kinds.Scalar) and isinstance(value, TracedTensor):
        if value.bounds is None or value.shape:
            raise NotMappedError(f"{_name(operator)} with a tensor for {parameter.name}")
        return value.bounds[0]  # the host reads it first
    if issubclass(kind, Reduction) and isinstance(value, int):
        return Reduction(value).name
    if issubclass(kind, RoundMode):
        return value or "none"
    if issubclass(kind, kinds.Size) and not parameter.optional:
        return tuple(value) if isinstance(value, list) else () if value is None else (value,)
    if parameter.optional and parameter.is_tensor_array and not value:
        return None  # an array is of the length of the others, or left out
    if value is None and not parameter.optional:
        raise NotMappedError(f"{_name(operator)} without {parameter.name}")
    return tuple(value) if issubclass(kind, kinds.Size) and value is not None else value


def _results(row: Row, prototype: Prototype, returned: list[Any], operator: Any) -> dict[str, Any]:
    """What is passed for results whose sizes the caller decides, by name."""
    outputs = [p for p in prototype.results if issubclass(p.annotation, kinds.Out | kinds.Outs)]
    found: dict[str, Any] = {}
    for number, parameter in enumerate(outputs):
        place = row.results.get(parameter.name, number)
        value = returned if parameter.is_tensor_array else returned[place] if place < len(returned) else None
        if parameter.optional and isinstance(value, TracedTensor) and 0 in value.shape:
            value = None  # PyTorch's way to leave it out
        if value is None and not parameter.optional:
            raise NotMappedError(f"{_name(operator)} without {parameter.name}")
        found[parameter.name] = _form(value)
    return found


def _form(value: Any) -> Any:
    """Result tensors without what they held."""
    if isinstance(value, list):
        return [_form(entry) for entry in value]
    return replace(value, bounds=None) if isinstance(value, TracedTensor) else value


def _check_dtypes(value: Any, taken: Sequence[Dtype], operator: Any) -> None:
    """NotMappedError if a tensor, or one of a list, has an element type that is not `taken`."""
    for tensor in value if isinstance(value, list) else [value]:
        if isinstance(tensor, TracedTensor) and (tensor.dtype is Dtype.unsupported or tensor.dtype not in taken):
            raise NotMappedError(f"{_name(operator)} of {tensor.dtype.name}")


Rule = Callable[[str, _Values, list[Any]], tuple[str, _Values, list[Any]]]
"""From an operator's name, its arguments and results to the function that serves it, and the arguments and results of
that."""


def _convolution(operator: str, values: _Values, returned: list[Any]) -> tuple[str, _Values, list[Any]]:
    """Over one axis it is one over two of which the first has one element, as PyTorch computes it."""
    named = values.named
    rank = len(named["weight"].shape) - 2
    values = values.but(padding=list(named["padding"]), **_bias(operator, named))
    if rank == 1:
        lists = {"stride": 1, "padding": 0, "dilation": 1, "output_padding": 0}
        widened = {name: [more, *named[name]] for name, more in lists.items()}
        tensors = {name: _with_axis(named[name]) for name in ("input", "weight", "grad_output") if name in named}
        values, returned = values.but(**widened, **tensors), [_with_axis(result) for result in returned]
    kind = "ConvTranspose" if named["transposed"] else "Convolution"
    return f"diopi{kind}{max(rank, 2)}d{'Backward' if operator.endswith('backward') else ''}", values, returned


def _bias(operator: str, named: Mapping[str, Any]) -> Mapping[str, Any]:
    """The sizes of the bias, if its gradient is wanted."""
    if not operator.endswith("backward"):
        return {}
    return {"bias_sizes": named["bias_sizes"] if named["output_mask"][2] else None}


def _with_axis(tensor: TracedTensor | None) -> TracedTensor | None:
    """A tensor of rank 3 with an axis of one element before its last."""
    if tensor is None or len(tensor.shape) != 3:
        return tensor
    shape, strides = (*tensor.shape[:2], 1, tensor.shape[2]), tensor.strides
    return replace(tensor, shape=shape, strides=(*strides[:2], strides[2] * tensor.shape[2], strides[2]))


def _grid_sampler(operator: str, values: _Values, returned: list[Any]) -> tuple[str, _Values, list[Any]]:
    """Sampling with zeros beyond the edges, whose pixels are squares: the only one the standard has."""
    if values.named["padding_mode"] or values.named["align_corners"]:
        raise NotMappedError(f"{operator} with padding_mode or align_corners")
    mode = ("bilinear", "nearest", "bicubic")[values.named["interpolation_mode"]]
    return (
        "diopiGridSample",
        _Values({"self": values.named["input"], "grid": values.named["grid"], "mode": mode}),
        returned,
    )


RULES: Mapping[str, Rule] = {
    "convolution": _convolution,
    "convolution_backward": _convolution,
    "grid_sampler": _grid_sampler,
}
"""What depends on more than names."""

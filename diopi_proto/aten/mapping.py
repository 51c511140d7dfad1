"""From a call of an operator of ATen to the calls of functions that serve it.

What a tensor is, the caller says: anything with a shape, strides and an element type of the standard. What has to be
made of it is asked of the caller's `Maker`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from diopi_proto import parameters as kinds
from diopi_proto.aten.table import ArgumentOf, Constant, Row, form_of, needs_source
from diopi_proto.dtypes import chosen
from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Number, Reduction, RoundMode

NUMBERS = (bool, int, float)


class NotMappedError(Exception):
    """No function serves the call; the message names the operator, and what of it none serves."""


class Maker(Protocol):
    """What the caller makes for a mapping."""

    def of_numbers(self, value: Number | list[int]) -> Any:
        """The tensor that a number, or a list of integers, is copied to: float32 or int64."""

    def number_in(self, tensor: Any) -> Number | None:
        """The number in a tensor of one element; None if it has no other number of elements, or nobody knows it."""

    def laid_out(self, tensor: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """The same elements with another shape and strides."""

    def of_type(self, tensor: Any, dtype: Dtype) -> Any:
        """A tensor like another for a result of another element type."""

    def generator(self, given: Any) -> Any:
        """The generator of a call, whose operator was given `given` for one."""


@dataclass(frozen=True)
class FunctionCall:
    """A call of a function.

    Attributes:
        function: its name.
        arguments: by name, in the prototype's order. An enumerator is its name, a list of integers a tuple.
        results: what is passed for results, by name; None for one that is not wanted. Those whose sizes the callee
            decides are not named.
    """

    function: str
    arguments: Mapping[str, Any]
    results: Mapping[str, Any]


@dataclass(frozen=True)
class Operator:
    """An operator of ATen in a call.

    Attributes:
        name: with the overload, if that has a name other than `default`.
        named: its arguments by name, left out ones included.
        inplace: whether it writes its first argument.
        maker: makes what the functions' arguments need.
    """

    name: str
    named: Mapping[str, Any]
    inplace: bool
    maker: Maker

    def get(self, source: Constant | ArgumentOf) -> Any:
        """What a source gives; KeyError if the operator has no such argument."""
        if isinstance(source, Constant):
            return source.value
        value = self.named[source.name]
        return self.maker.of_numbers(value) if source.as_tensor else value

    def but(self, **changes: Any) -> Operator:
        """The same with others of these arguments."""
        return replace(self, named={**self.named, **changes})


def function_calls(operator: Operator, row: Row, returned: Sequence[Any]) -> list[FunctionCall]:
    """The calls of functions that a call of an operator is, in order.

    Args:
        row: the operator's, or that of the operator it is the in-place form of.
        returned: the tensors it returns, lists of them as they are.

    NotMappedError if no function serves the call.
    """
    results = list(returned)
    if row.function.startswith("diopiUpsample"):
        _check_scales(operator)
    if row.function == "diopiCdistBackward" and 0 in operator.named["grad"].shape:
        raise NotMappedError(f"{operator.name} of no distances, whose gradient has the sizes before broadcasting")
    if rule := RULES.get(row.function):
        function, operator, results = rule(operator, results)
        row = replace(row, function=function)
    operator = _with_all_axes(operator, row.function)
    plain = form_of(row.function, inplace=False, scalar=False) or form_of(row.function, inplace=False, scalar=True)
    assert plain is not None
    needed = needs_source(plain)
    given = {p.name: operator.get(row.source(p.name, operator.named)) for p in plain.arguments if p.name in needed}
    lists = [name for name, value in given.items() if plain.parameter(name).is_tensor and isinstance(value, list)]
    if not lists:
        return _converted(_call(operator, row, plain, given, results), operator.maker)
    written = results if any(result is not None for result in results) else operator.named["self"]
    each = (_call(operator, row, plain, one, [result]) for one, result in _each(given, lists, written))
    return [call for one in each for call in _converted(one, operator.maker)]


def _converted(call: FunctionCall, maker: Maker) -> list[FunctionCall]:
    """A call; and conversions of results, where the function does not give the type that PyTorch has for them."""
    prototype, results, conversions = lookup(call.function), dict(call.results), []
    for name, value in call.results.items():
        if _is_tensor(value) and not prototype.can_hold(name, value.dtype, call.arguments):
            results[name] = maker.of_type(value, prototype.infer(name, call.arguments) or value.dtype)
            conversions.append(FunctionCall("diopiCastDtype", {"input": results[name]}, {"out": value}))
    return [replace(call, results=results), *conversions]


def _each(
    given: Mapping[str, Any], lists: Sequence[str], results: Sequence[Any]
) -> Iterator[tuple[dict[str, Any], Any]]:
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


def _call(
    operator: Operator, row: Row, plain: Prototype, given: Mapping[str, Any], returned: Sequence[Any]
) -> FunctionCall:
    """The call of the form of a function that takes what is given."""
    scalar = any(plain.parameter(name).is_tensor and isinstance(value, NUMBERS) for name, value in given.items())
    prototype = form_of(plain.base, inplace=operator.inplace, scalar=scalar)
    if prototype is None and row.operator == operator.name:  # it may also write a result in the place of an input
        prototype = form_of(plain.base, inplace=False, scalar=scalar)
    prototype = plain if plain.form == "scalar" else prototype
    if prototype is None:
        raise NotMappedError(operator.name)
    arguments = {p.name: _argument(operator, p, given.get(p.name)) for p in prototype.arguments}
    results = _results(operator, row, prototype, returned)
    for name, value in arguments.items():
        _check_dtypes(value, prototype.dtypes_of(name), operator.name)
    for name, value in results.items():
        _check_dtypes(value, prototype.dtypes if prototype.rule_of(name) is chosen else tuple(Dtype), operator.name)
    return FunctionCall(prototype.name, arguments, results)


def _argument(operator: Operator, parameter: kinds.Parameter, value: Any) -> Any:
    """An argument as a function takes it; NotMappedError if it can't take it."""
    kind = parameter.annotation
    if issubclass(kind, kinds.Generator):
        return operator.maker.generator(operator.named.get("generator"))
    if issubclass(kind, kinds.Scalar) and _is_tensor(value):
        number = operator.maker.number_in(value)  # the host reads it first
        if number is None:
            raise NotMappedError(f"{operator.name} with a tensor for {parameter.name}")
        return number
    if isinstance(value, complex):
        raise NotMappedError(f"{operator.name} with a complex number for {parameter.name}")
    if issubclass(kind, Reduction) and isinstance(value, int):
        return Reduction(value).name
    if issubclass(kind, RoundMode):
        return value or "none"
    if issubclass(kind, kinds.Size) and not parameter.optional:
        return tuple(value) if isinstance(value, list) else () if value is None else (value,)
    if parameter.optional and parameter.is_tensor_array and not value:
        return None  # an array is of the length of the others, or left out
    if value is None and not parameter.optional:
        raise NotMappedError(f"{operator.name} without {parameter.name}")
    return tuple(value) if issubclass(kind, kinds.Size) and value is not None else value


def _results(operator: Operator, row: Row, prototype: Prototype, returned: Sequence[Any]) -> dict[str, Any]:
    """What is passed for results whose sizes the caller decides, by name."""
    outputs = [p for p in prototype.results if issubclass(p.annotation, kinds.Out | kinds.Outs)]
    found: dict[str, Any] = {}
    for number, parameter in enumerate(outputs):
        place = row.results.get(parameter.name, number)
        one = returned[place] if place < len(returned) else None
        value: Any = list(returned) if parameter.is_tensor_array else one
        if parameter.optional and _is_tensor(value) and 0 in value.shape:
            value = None  # PyTorch's way to leave it out
        if value is None and not parameter.optional:
            raise NotMappedError(f"{operator.name} without {parameter.name}")
        found[parameter.name] = value
    return found


def _check_dtypes(value: Any, taken: Sequence[Dtype], operator: str) -> None:
    """NotMappedError if a tensor, or one of a list, has an element type that is not `taken`."""
    for tensor in value if isinstance(value, list) else [value]:
        if _is_tensor(tensor) and (tensor.dtype is Dtype.unsupported or tensor.dtype not in taken):
            raise NotMappedError(f"{operator} of {tensor.dtype.name}")


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "strides")


Rule = Callable[[Operator, list[Any]], tuple[str, Operator, list[Any]]]
"""From an operator and its results to the function that serves it, and the operator and results as that takes them."""


def _convolution(operator: Operator, returned: list[Any]) -> tuple[str, Operator, list[Any]]:
    """Over one axis it is one over two of which the first has one element, as PyTorch computes it."""
    named, maker = operator.named, operator.maker
    is_gradient = operator.name.endswith("backward")
    rank = len(named["weight"].shape) - 2
    operator = operator.but(padding=list(named["padding"]), **(_bias_sizes(named) if is_gradient else {}))
    if rank == 1:
        lists = {"stride": 1, "padding": 0, "dilation": 1, "output_padding": 0}
        widened = {name: [more, *named[name]] for name, more in lists.items()}
        operands = ("input", "weight", "grad_output")
        tensors = {name: _with_axis(named[name], maker) for name in operands if name in named}
        operator = operator.but(**widened, **tensors)
        returned = [_with_axis(result, maker) for result in returned]
    kind = "ConvTranspose" if named["transposed"] else "Convolution"
    return f"diopi{kind}{max(rank, 2)}d{'Backward' if is_gradient else ''}", operator, returned


def _bias_sizes(named: Mapping[str, Any]) -> Mapping[str, Any]:
    """The sizes of the bias, if its gradient is wanted."""
    return {"bias_sizes": named["bias_sizes"] if named["output_mask"][2] else None}


def _with_axis(tensor: Any, maker: Maker) -> Any:
    """A tensor of rank 3 with an axis of one element before its last."""
    if tensor is None or len(tensor.shape) != 3:
        return tensor
    shape, strides = (*tensor.shape[:2], 1, tensor.shape[2]), tensor.strides
    return maker.laid_out(tensor, shape, (*strides[:2], strides[2] * tensor.shape[2], strides[2]))


WINDOW = ("kernel_size", "stride", "padding", "dilation", "output_padding")
"""Arguments that have a number for each axis over which a window moves."""


def _with_all_axes(operator: Operator, function: str) -> Operator:
    """One number for all axes, which PyTorch takes too, once for each axis."""
    axes = int(found[1]) if (found := re.search("([23])d", function)) else 1
    given = {name: operator.named[name] for name in WINDOW if name in operator.named}
    short = {name: value * axes for name, value in given.items() if isinstance(value, list) and len(value) == 1}
    return operator.but(**short) if short and axes > 1 else operator


def _check_scales(operator: Operator) -> None:
    """NotMappedError if a scale is given that is not the one of the sizes: the standard knows sizes alone."""
    named = operator.named
    sizes = named["input_size"] if "input_size" in named else named["self"].shape
    scales = [value for name, value in named.items() if name.startswith("scales")]
    for size, wanted, scale in zip(sizes[2:], named["output_size"], scales, strict=True):
        if scale is not None and size * scale != wanted:
            raise NotMappedError(f"{operator.name} by {scale} from {size} to {wanted}")


def _grid_sampler(operator: Operator, returned: list[Any]) -> tuple[str, Operator, list[Any]]:
    """Sampling with zeros beyond the edges, whose pixels are squares: the only one the standard has."""
    named, modes = operator.named, ("bilinear", "nearest")
    if named["padding_mode"] or named["align_corners"] or named["interpolation_mode"] >= len(modes):
        raise NotMappedError(f"{operator.name} with padding_mode or align_corners, or bicubic")
    arguments = {"self": named["input"], "grid": named["grid"], "mode": modes[named["interpolation_mode"]]}
    return "diopiGridSample", replace(operator, named=arguments), returned


def beyond_attention(
    query: Any, key: Any, value: Any, bias: Any = None, dropout: float = 0.0, is_causal: bool = False
) -> str | None:
    """What `diopiMultiHeadAttention` lacks for attention of these tensors, of [B, H, S, D] each; None if nothing.

    In a causal call of ATen's the first query sees the first key alone, in one of the standard's the last query all.
    """
    if bias is not None or dropout:
        return "with a mask or dropout"
    if {len(one.shape) for one in (query, key, value)} != {4} or key.shape != value.shape:
        return "of keys and values of other shapes"
    if any(query.shape[axis] != key.shape[axis] for axis in (0, 1, 3)):
        return "of queries and keys of other batches, heads or sizes"
    return "causal, of more or fewer keys than queries" if is_causal and query.shape[2] != key.shape[2] else None


def _attention(operator: Operator, returned: list[Any]) -> tuple[str, Operator, list[Any]]:
    """Heads come before rows, after them in the standard."""
    named, maker = operator.named, operator.maker
    tensors = query, key, value = named["query"], named["key"], named["value"]
    if lacks := beyond_attention(query, key, value, named["attn_bias"], named["dropout_p"], named["is_causal"]):
        raise NotMappedError(f"{operator.name} {lacks}")

    def rows_first(tensor: Any) -> Any:
        shape, strides = ((a, c, b, d) for a, b, c, d in (tensor.shape, tensor.strides))
        return maker.laid_out(tensor, shape, strides)

    queries, keys, values = map(rows_first, tensors)
    size = query.shape[3]
    scale = named["scale"] if named["scale"] is not None else size**-0.5 if size else 1.0
    common = {"q": queries, "k": keys, "v": values, "scale": scale}
    if "grad_out" not in named:
        out, logsumexp, *_ = returned
        unasked = {"return_debug_mask": False, "debug_attn_mask": None}
        return "diopiMultiHeadAttention", operator.but(**common, **unasked), [rows_first(out), logsumexp]
    known = {"grad_out": rows_first(named["grad_out"]), "out": rows_first(named["out"])}
    gradient = operator.but(**common, **known, softmax_lse=named["logsumexp"])
    return "diopiMultiHeadAttentionBackward", gradient, [rows_first(result) for result in returned[:3]]


RULES: Mapping[str, Rule] = {
    "attention": _attention,
    "convolution": _convolution,
    "convolution_backward": _convolution,
    "grid_sampler": _grid_sampler,
}
"""What depends on more than names."""

RULE_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "attention": ("diopiMultiHeadAttention", "diopiMultiHeadAttentionBackward"),
    "convolution": ("diopiConvolution2d", "diopiConvolution3d", "diopiConvTranspose2d", "diopiConvTranspose3d"),
    "convolution_backward": (
        *("diopiConvolution2dBackward", "diopiConvolution3dBackward"),
        *("diopiConvTranspose2dBackward", "diopiConvTranspose3dBackward"),
    ),
    "grid_sampler": ("diopiGridSample",),
}
"""The functions among which each rule chooses."""

"""Translate a call of an ATen operator to the calls of standard functions that implement it.

A tensor is any object with a shape, strides and an element type of the standard. The caller provides a `TensorFactory`
that creates the tensors that a translation needs.

An adapter of an operator (`_convolution` and others) receives a call and the tensors that the operator returns. It
returns the name of the standard function, the call with the function's arguments, and the results in the function's
order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from diopi_proto import parameters as kinds
from diopi_proto.aten.table import ArgumentOf, Constant, Row, find_form, sourced_arguments
from diopi_proto.dtypes import caller_chosen
from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Number, Reduction, RoundMode

NUMBERS = (bool, int, float)
"""The Python types of a number that an operator may receive in place of a tensor."""


class NotMappedError(Exception):
    """No function implements the call; the message names the operator and the property that is not supported."""


class TensorFactory(Protocol):
    """Creates the tensors and generators that a translated call needs."""

    def tensor_from_numbers(self, value: Number | list[int]) -> Any:
        """Return a tensor of a number or a list of integers, in float32 or int64."""

    def read_number(self, tensor: Any) -> Number | None:
        """Return the value of a tensor with one element; None if it has another number of elements or is unknown."""

    def restride(self, tensor: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """Return a view of the tensor with the shape `shape` and the strides `strides`, in elements."""

    def empty_like(self, tensor: Any, dtype: Dtype) -> Any:
        """Return a new tensor with the shape of `tensor` and the element type `dtype`."""

    def generator(self, argument: Any) -> Any:
        """Return the generator of a call; `argument` is the generator argument of the operator, or None."""


@dataclass(frozen=True)
class FunctionCall:
    """A call of a standard function.

    Attributes:
        function: the name of the function.
        arguments: the arguments by name, in the order of the prototype. An enumerator is represented by its name, a
            list of integers by a tuple.
        results: the tensors passed for results, by name; None for results that are not wanted. Results whose sizes the
            callee decides are missing.
    """

    function: str
    arguments: Mapping[str, Any]
    results: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class AtenOperator:
    """An operator of ATen with the arguments of one call.

    Attributes:
        name: the name of the operator, with the overload unless the overload is `default`.
        arguments: the arguments by name, including arguments that have their default value.
        inplace: whether the operator writes its first argument.
        factory: creates the tensors that the functions' arguments need.
    """

    name: str
    arguments: Mapping[str, Any]
    inplace: bool
    factory: TensorFactory

    def get(self, source: Constant | ArgumentOf) -> Any:
        """Return the value of a source; raise KeyError if the operator has no such argument."""
        if isinstance(source, Constant):
            return source.value
        value = self.arguments[source.name]
        return self.factory.tensor_from_numbers(value) if source.as_tensor else value

    def with_arguments(self, **changes: Any) -> AtenOperator:
        """Return the operator with these arguments replaced or added."""
        return replace(self, arguments={**self.arguments, **changes})


def function_calls(operator: AtenOperator, row: Row, returned: Sequence[Any]) -> list[FunctionCall]:
    """Translate a call of an operator to calls of functions.

    Args:
        operator: the operator with its arguments.
        row: the row of the operator, or of the operator whose in-place form it is.
        returned: the tensors that the operator returns; lists of tensors stay lists.

    Returns:
        The calls in the order in which they have to run.

    Raises:
        NotMappedError: if no function implements the call.
    """
    results = list(returned)
    if row.function.startswith("diopiUpsample"):
        _check_scales(operator)
    if row.function == "diopiCdistBackward" and 0 in operator.arguments["grad"].shape:
        raise NotMappedError(
            f"{operator.name} without distances is not supported: the gradient has the sizes before broadcasting"
        )
    if rule := RULES.get(row.function):
        function, operator, results = rule(operator, results)
        row = replace(row, function=function)
    operator = _repeat_for_all_axes(operator, row.function)
    plain = find_form(row.function, inplace=False, scalar=False) or find_form(row.function, inplace=False, scalar=True)
    assert plain is not None
    names = sourced_arguments(plain)
    values = {p.name: operator.get(row.source(p.name, operator.arguments)) for p in plain.arguments if p.name in names}
    lists = [name for name, value in values.items() if plain.parameter(name).is_tensor and isinstance(value, list)]
    if not lists:
        return _append_conversions(_call(operator, row, plain, values, results), operator.factory)
    written = results if any(result is not None for result in results) else operator.arguments["self"]
    calls = (_call(operator, row, plain, entry, [result]) for entry, result in _split_lists(values, lists, written))
    return [call for entry in calls for call in _append_conversions(entry, operator.factory)]


def _append_conversions(call: FunctionCall, factory: TensorFactory) -> list[FunctionCall]:
    """Return a call and the conversions of its results to the element types of PyTorch, where these differ."""
    prototype, results, conversions = lookup(call.function), dict(call.results), []
    for name, value in call.results.items():
        if _is_tensor(value) and not prototype.can_hold(name, value.dtype, call.arguments):
            results[name] = factory.empty_like(value, prototype.infer(name, call.arguments) or value.dtype)
            conversions.append(FunctionCall("diopiCastDtype", {"input": results[name]}, {"out": value}))
    return [replace(call, results=results), *conversions]


def _split_lists(
    values: Mapping[str, Any], lists: Sequence[str], results: Sequence[Any]
) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the arguments and the result for each entry of an operator whose arguments `lists` are lists."""
    length = len(values[lists[0]])
    for number, result in enumerate(results):
        yield (
            {
                name: value[number] if isinstance(value, list) and len(value) == length else value
                for name, value in values.items()
            },
            result,
        )


def _call(
    operator: AtenOperator, row: Row, plain: Prototype, values: Mapping[str, Any], returned: Sequence[Any]
) -> FunctionCall:
    """Return the call of the form of `plain` that accepts the values; raise NotMappedError if no form accepts them."""
    scalar = any(plain.parameter(name).is_tensor and isinstance(value, NUMBERS) for name, value in values.items())
    prototype = find_form(plain.base, inplace=operator.inplace, scalar=scalar)
    if prototype is None and row.operator == operator.name:  # a plain function may also write its result to the input
        prototype = find_form(plain.base, inplace=False, scalar=scalar)
    prototype = plain if plain.form == "scalar" else prototype
    if prototype is None:
        raise NotMappedError(operator.name)
    arguments = {p.name: _argument(operator, p, values.get(p.name)) for p in prototype.arguments}
    results = _results(operator, row, prototype, returned)
    for name, value in arguments.items():
        _check_dtypes(value, prototype.dtypes_of(name), operator.name)
    for name, value in results.items():
        _check_dtypes(
            value, prototype.dtypes if prototype.rule_of(name) is caller_chosen else tuple(Dtype), operator.name
        )
    return FunctionCall(prototype.name, arguments, results)


def _argument(operator: AtenOperator, parameter: kinds.Parameter, value: Any) -> Any:
    """Return the argument that a function takes for `value`; raise NotMappedError if it does not accept the value."""
    kind = parameter.annotation
    if issubclass(kind, kinds.Generator):
        return operator.factory.generator(operator.arguments.get("generator"))
    if issubclass(kind, kinds.Scalar) and _is_tensor(value):
        number = operator.factory.read_number(value)  # requires the host to read device memory
        if number is None:
            raise NotMappedError(f"{operator.name} does not support a tensor for {parameter.name}")
        return number
    if isinstance(value, complex):
        raise NotMappedError(f"{operator.name} does not support a complex number for {parameter.name}")
    if issubclass(kind, Reduction) and isinstance(value, int):
        return Reduction(value).name
    if issubclass(kind, RoundMode):
        return value or "none"
    if issubclass(kind, kinds.Size) and not parameter.optional:
        return tuple(value) if isinstance(value, list) else () if value is None else (value,)
    if parameter.optional and parameter.is_tensor_array and not value:
        return None  # an empty array would not have the length of the other arrays
    if value is None and not parameter.optional:
        raise NotMappedError(f"{operator.name} requires {parameter.name}")
    return tuple(value) if issubclass(kind, kinds.Size) and value is not None else value


def _results(operator: AtenOperator, row: Row, prototype: Prototype, returned: Sequence[Any]) -> dict[str, Any]:
    """Return the tensors for results whose sizes the caller decides; raise NotMappedError if one is missing."""
    outputs = [p for p in prototype.results if issubclass(p.annotation, kinds.Out | kinds.Outs)]
    by_name: dict[str, Any] = {}
    for number, parameter in enumerate(outputs):
        place = row.results.get(parameter.name, number)
        single = returned[place] if place < len(returned) else None
        value: Any = list(returned) if parameter.is_tensor_array else single
        if parameter.optional and _is_tensor(value) and 0 in value.shape:
            value = None  # PyTorch returns an empty tensor for an omitted result
        if value is None and not parameter.optional:
            raise NotMappedError(f"{operator.name} requires {parameter.name}")
        by_name[parameter.name] = value
    return _separate_results(by_name, operator.factory)


def _separate_results(results: Mapping[str, Any], factory: TensorFactory) -> dict[str, Any]:
    """Return the results; if several results have the same tensor, all except the last get a new tensor.

    A function may write its results in any order, and several times.

    Args:
        results: The tensors by the names of the results.
        factory: Creates the new tensors.

    Returns:
        A tensor for each result; no tensor occurs twice.
    """
    last = {id(value): name for name, value in results.items()}
    return {
        name: factory.empty_like(value, value.dtype) if _is_tensor(value) and last[id(value)] != name else value
        for name, value in results.items()
    }


def _check_dtypes(value: Any, supported: Sequence[Dtype], operator: str) -> None:
    """Raise NotMappedError if a tensor, or a tensor in a list, has an element type that is not in `supported`."""
    for tensor in value if isinstance(value, list) else [value]:
        if _is_tensor(tensor) and (tensor.dtype is Dtype.unsupported or tensor.dtype not in supported):
            raise NotMappedError(f"{operator} does not support {tensor.dtype.name}")


def _is_tensor(value: Any) -> bool:
    """Return whether the value is a tensor, whatever its class."""
    return hasattr(value, "strides")


Rule = Callable[[AtenOperator, list[Any]], tuple[str, AtenOperator, list[Any]]]
"""Returns the name of the function for an operator and its results, and both adapted to the function."""


def _convolution(operator: AtenOperator, returned: list[Any]) -> tuple[str, AtenOperator, list[Any]]:
    """Adapt a convolution. A convolution over one axis becomes a convolution over two axes; the first has size 1."""
    arguments, factory = operator.arguments, operator.factory
    is_gradient = operator.name.endswith("backward")
    rank = len(arguments["weight"].shape) - 2
    bias = _bias_sizes(arguments) if is_gradient else {}
    operator = operator.with_arguments(padding=list(arguments["padding"]), **bias)
    if rank == 1:
        lists = {"stride": 1, "padding": 0, "dilation": 1, "output_padding": 0}
        widened = {name: [neutral, *arguments[name]] for name, neutral in lists.items()}
        operands = ("input", "weight", "grad_output")
        tensors = {name: _insert_axis(arguments[name], factory) for name in operands if name in arguments}
        operator = operator.with_arguments(**widened, **tensors)
        returned = [_insert_axis(result, factory) for result in returned]
    kind = "ConvTranspose" if arguments["transposed"] else "Convolution"
    return f"diopi{kind}{max(rank, 2)}d{'Backward' if is_gradient else ''}", operator, returned


def _bias_sizes(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the argument `bias_sizes` of the gradient, which is None if the gradient of the bias is not wanted."""
    return {"bias_sizes": arguments["bias_sizes"] if arguments["output_mask"][2] else None}


def _insert_axis(tensor: Any, factory: TensorFactory) -> Any:
    """Return a tensor of rank 3 with an axis of size 1 inserted before the last axis; other tensors unchanged."""
    if tensor is None or len(tensor.shape) != 3:
        return tensor
    shape, strides = (*tensor.shape[:2], 1, tensor.shape[2]), tensor.strides
    return factory.restride(tensor, shape, (*strides[:2], strides[2] * tensor.shape[2], strides[2]))


WINDOW = ("kernel_size", "stride", "padding", "dilation", "output_padding")
"""The arguments that contain one number per axis over which a window moves."""


def _repeat_for_all_axes(operator: AtenOperator, function: str) -> AtenOperator:
    """Return the operator with each window argument that has only one number extended to all axes of the function."""
    axes = int(match[1]) if (match := re.search("([23])d", function)) else 1
    window = {name: operator.arguments[name] for name in WINDOW if name in operator.arguments}
    one_axis = {name: value * axes for name, value in window.items() if isinstance(value, list) and len(value) == 1}
    return operator.with_arguments(**one_axis) if one_axis and axes > 1 else operator


def _check_scales(operator: AtenOperator) -> None:
    """Raise NotMappedError if a scale does not follow from the sizes, because the standard has only sizes."""
    arguments = operator.arguments
    sizes = arguments["input_size"] if "input_size" in arguments else arguments["self"].shape
    scales = [value for name, value in arguments.items() if name.startswith("scales")]
    for size, result_size, scale in zip(sizes[2:], arguments["output_size"], scales, strict=True):
        if scale is not None and size * scale != result_size:
            raise NotMappedError(f"{operator.name} does not support the scale {scale} from {size} to {result_size}")


def _grid_sampler(operator: AtenOperator, returned: list[Any]) -> tuple[str, AtenOperator, list[Any]]:
    """Adapt grid sampling; the standard supports only zero padding, align_corners=False, bilinear and nearest."""
    arguments, modes = operator.arguments, ("bilinear", "nearest")
    if arguments["padding_mode"] or arguments["align_corners"] or arguments["interpolation_mode"] >= len(modes):
        raise NotMappedError(f"{operator.name} does not support padding_mode, align_corners or bicubic interpolation")
    adapted = {"self": arguments["input"], "grid": arguments["grid"], "mode": modes[arguments["interpolation_mode"]]}
    return "diopiGridSample", replace(operator, arguments=adapted), returned


def find_unsupported_attention(
    query: Any, key: Any, value: Any, bias: Any = None, dropout: float = 0.0, is_causal: bool = False
) -> str | None:
    """Describe why `diopiMultiHeadAttention` cannot compute this attention.

    In causal attention of ATen, the first query sees only the first key; in the standard, the last query sees all keys.
    They differ if there are not as many keys as queries.

    Args:
        query: the queries, [B, H, S, D].
        key: the keys, [B, H, S, D].
        value: the values, [B, H, S, D].
        bias: the mask or bias, or None.
        dropout: the probability of dropout.
        is_causal: whether queries see only preceding keys.

    Returns:
        The unsupported property, which completes "… does not support", or None if the function supports the call.
    """
    if bias is not None or dropout:
        return "a mask or dropout"
    if {len(tensor.shape) for tensor in (query, key, value)} != {4} or key.shape != value.shape:
        return "keys and values of different shapes"
    if any(query.shape[axis] != key.shape[axis] for axis in (0, 1, 3)):
        return "queries and keys of different batch sizes, numbers of heads or head sizes"
    return (
        "causal attention with more or fewer keys than queries"
        if is_causal and query.shape[2] != key.shape[2]
        else None
    )


def _attention(operator: AtenOperator, returned: list[Any]) -> tuple[str, AtenOperator, list[Any]]:
    """Adapt attention: heads precede rows in ATen and follow them in the standard."""
    arguments, factory = operator.arguments, operator.factory
    tensors = query, key, value = arguments["query"], arguments["key"], arguments["value"]
    if reason := find_unsupported_attention(
        query, key, value, arguments["attn_bias"], arguments["dropout_p"], arguments["is_causal"]
    ):
        raise NotMappedError(f"{operator.name} does not support {reason}")

    def rows_first(tensor: Any) -> Any:
        shape, strides = ((a, c, b, d) for a, b, c, d in (tensor.shape, tensor.strides))
        return factory.restride(tensor, shape, strides)

    queries, keys, values = map(rows_first, tensors)
    size = query.shape[3]
    scale = arguments["scale"] if arguments["scale"] is not None else size**-0.5 if size else 1.0
    common = {"q": queries, "k": keys, "v": values, "scale": scale}
    if "grad_out" not in arguments:
        out, logsumexp, *_ = returned
        unasked = {"return_debug_mask": False, "debug_attn_mask": None}
        return "diopiMultiHeadAttention", operator.with_arguments(**common, **unasked), [rows_first(out), logsumexp]
    known = {"grad_out": rows_first(arguments["grad_out"]), "out": rows_first(arguments["out"])}
    gradient = operator.with_arguments(**common, **known, softmax_lse=arguments["logsumexp"])
    return "diopiMultiHeadAttentionBackward", gradient, [rows_first(result) for result in returned[:3]]


RULES: Mapping[str, Rule] = {
    "attention": _attention,
    "convolution": _convolution,
    "convolution_backward": _convolution,
    "grid_sampler": _grid_sampler,
}
"""Translations that depend on more than names, by the name in the table."""

RULE_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "attention": ("diopiMultiHeadAttention", "diopiMultiHeadAttentionBackward"),
    "convolution": ("diopiConvolution2d", "diopiConvolution3d", "diopiConvTranspose2d", "diopiConvTranspose3d"),
    "convolution_backward": (
        *("diopiConvolution2dBackward", "diopiConvolution3dBackward"),
        *("diopiConvTranspose2dBackward", "diopiConvTranspose3dBackward"),
    ),
    "grid_sampler": ("diopiGridSample",),
}
"""The functions that each rule chooses from."""
